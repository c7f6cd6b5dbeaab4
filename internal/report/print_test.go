package report

import (
	"strings"
	"testing"
	"time"
)

// text returns what a filter chooses of a report, as it is printed.
func text(t *testing.T, r Report, f Filter) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTextHasASectionForEachKindOfLink(t *testing.T) {
	defer func(before *time.Location) { time.Local = before }(time.Local)
	time.Local = time.FixedZone("", 3600) // or local times may be those of UTC
	seen := time.Date(2026, 1, 2, 2, 4, 5, 6, time.UTC)
	r := Report{
		Since: seen,
		Links: map[Link]Total{
			OwnLink: {
				Count:    1042,
				Outcomes: Outcomes{OutcomeUnanswered: 42, OutcomeResponse: 1000},
				Browsers: 1001,
			},
			NoLink: {
				Count:    123456,
				Floor:    7,
				Outcomes: Outcomes{OutcomeError: 123456},
			},
		},
		Addresses: []Address{
			{
				Link:     OwnLink,
				Host:     "shop.example.com:8080",
				Path:     "/old",
				Query:    true,
				Count:    1041,
				Outcomes: Outcomes{OutcomeUnanswered: 41, OutcomeResponse: 1000},
				Browsers: 1000,
				LastLink: "https://www.example.com/blog",
				Last:     seen,
			},
			{
				Link:      NoLink,
				Host:      "www.example.com",
				Path:      "/wp-login.php",
				Count:     1009,
				Overcount: 7,
				Outcomes:  Outcomes{OutcomeError: 1002},
				Last:      seen,
			},
			{
				Link:      NoLink,
				Path:      "urn:x",
				Count:     8,
				Overcount: 7,
				Outcomes:  Outcomes{OutcomeError: 1},
				Last:      seen,
			},
		},
	}
	for name, tt := range map[string]struct {
		filter Filter
		want   string
	}{
		"all": {
			want: `124498 404s since 2026-01-02 03:04:05 +0100

OWN LINKS: 1042 404s, 42 unanswered, 1000 response, 1001 opened a page
Pages of your own link to these addresses: correct the pages.

COUNT  LAST SEEN         ADDRESS
 1041  2026-01-02 03:04  shop.example.com:8080/old
                         41 unanswered, 1000 response, 1000 opened a page; with a query; on https://www.example.com/blog

NO LINKS: 123456 404s, error, none opened a page
No known link: typed, bookmarked, asked for by a scanner, or fetched by a program, perhaps on the page that is named. Some may be in use, such as a wiki's forms for missing pages.

    COUNT  LAST SEEN         ADDRESS
1002-1009  2026-01-02 03:04  www.example.com/wp-login.php
                             error, none opened a page
      1-8  2026-01-02 03:04  urn:x
                             error, none opened a page
There was no room for every address: one that is not here may have been missed up to 7 times. 39-42 is a count somewhere between the two.
`,
		},
		"one of a kind": {
			filter: Filter{Limit: 1, Link: "none"},
			want: `124498 404s in all since 2026-01-02 03:04:05 +0100

NO LINKS: 123456 404s in all, error, none opened a page
No known link: typed, bookmarked, asked for by a scanner, or fetched by a program, perhaps on the page that is named. Some may be in use, such as a wiki's forms for missing pages.

    COUNT  LAST SEEN         ADDRESS
1002-1009  2026-01-02 03:04  www.example.com/wp-login.php
                             error, none opened a page
... and 1 more
There was no room for every address: one that is not here may have been missed up to 7 times. 39-42 is a count somewhere between the two.
`,
		},
		"a host": {
			filter: Filter{Host: "SHOP.example.com:8080"},
			want: `124498 404s in all since 2026-01-02 03:04:05 +0100

OWN LINKS: 1042 404s in all, 42 unanswered, 1000 response, 1001 opened a page
Pages of your own link to these addresses: correct the pages.

COUNT  LAST SEEN         ADDRESS
 1041  2026-01-02 03:04  shop.example.com:8080/old
                         41 unanswered, 1000 response, 1000 opened a page; with a query; on https://www.example.com/blog

NO LINKS: 123456 404s in all, error, none opened a page
No known link: typed, bookmarked, asked for by a scanner, or fetched by a program, perhaps on the page that is named. Some may be in use, such as a wiki's forms for missing pages.

No address matches.
There was no room for every address: one that is not here may have been missed up to 7 times. 39-42 is a count somewhere between the two.
`,
		},
		"an outcome": {
			filter: Filter{Link: "own", Outcome: "error"},
			want: `124498 404s in all since 2026-01-02 03:04:05 +0100

OWN LINKS: 1042 404s in all, 42 unanswered, 1000 response, 1001 opened a page
Pages of your own link to these addresses: correct the pages.

No address matches.
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := text(t, r, tt.filter); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestAddressesAreReadable(t *testing.T) {
	for address, want := range map[string]string{
		"a.test/tags/%E9%96%8B%E7%99%BA/":       "a.test/tags/開発/",
		"/stra%C3%9fe/%D9%A3/e%CC%81/%E0%A4%A8": "/straße/٣/e\u0301/न", // a digit, a mark, a letter
		"/%41%2F%20%25C3%9F":                    "/%41%2F%20%25C3%9F",  // ASCII; the % of %25C3 is one
		"/%1B%5B31m%00%0A%C2%9B":                "/%1B%5B31m%00%0A%C2%9B",
		"/%E2%80%AE%E2%81%A6%D8%A7%E2%80%8D":    "/%E2%80%AE%E2%81%A6ا%E2%80%8D", // directions, and a joiner
		"/%E9%96/%C3%C3%9F/%F0%9F%8E%89":        "/%E9%96/%C3ß/%F0%9F%8E%89",     // cut, broken, a symbol
		"/%E3%85%A4/%EF%B8%8F":                  "/%E3%85%A4/%EF%B8%8F",          // a filler, a variation selector
		"/%":                                    "/%",
	} {
		if got := readable(address); got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
	r := Report{Links: map[Link]Total{OwnLink: {Count: 1}}}
	r.Addresses = []Address{{Path: "/%C3%9F", LastLink: "https://a.test/%C3%A9"}}
	printed := text(t, r, Filter{})
	if !strings.Contains(printed, "  /ß\n") || !strings.Contains(printed, "; on https://a.test/é\n") {
		t.Errorf("got\n%s", printed)
	}
}
