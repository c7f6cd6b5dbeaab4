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
		Links: Totals{
			Own: Total{
				Count:    1042,
				Outcomes: Outcomes{Unanswered: 42, Response: 1000},
				Browsers: 1001,
			},
			None: Total{
				Count:    123456,
				Floor:    7,
				Outcomes: Outcomes{Error: 123456},
			},
		},
		Addresses: []Address{
			{
				Link:     OwnLink,
				Host:     "shop.example.com:8080",
				Path:     "/old",
				Query:    true,
				Count:    1041,
				Outcomes: Outcomes{Unanswered: 41, Response: 1000},
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
				Outcomes:  Outcomes{Error: 1002},
				Last:      seen,
			},
			{
				Link:      NoLink,
				Path:      "urn:x",
				Count:     8,
				Overcount: 7,
				Outcomes:  Outcomes{Error: 1},
				Last:      seen,
			},
		},
	}
	for name, tt := range map[string]struct {
		filter Filter
		want   string
	}{
		"all": {
			want: `124498 404s since 2026-01-02 03:04:05

OWN LINKS: 1042 404s, 42 unanswered, 1000 response, 1001 by a browser
Pages of your own link to these addresses: correct the pages.

COUNT  LAST SEEN         ADDRESS
 1041  2026-01-02 03:04  shop.example.com:8080/old
                         41 unanswered, 1000 response, 1000 by a browser; with a query; on https://www.example.com/blog

NO LINKS: 123456 404s, error, none by a browser
No known link: typed, bookmarked, asked for by a scanner, or fetched by a program, perhaps on the page that is named. Some may be in use, such as a wiki's forms for missing pages.

    COUNT  LAST SEEN         ADDRESS
1002-1009  2026-01-02 03:04  www.example.com/wp-login.php
                             error, none by a browser
      1-8  2026-01-02 03:04  urn:x
                             error, none by a browser
There was no room for every address: one that is not here may have been missed up to 7 times.
`,
		},
		"one of a kind": {
			filter: Filter{Limit: 1, Link: "none"},
			want: `124498 404s in all since 2026-01-02 03:04:05

NO LINKS: 123456 404s in all, error, none by a browser
No known link: typed, bookmarked, asked for by a scanner, or fetched by a program, perhaps on the page that is named. Some may be in use, such as a wiki's forms for missing pages.

    COUNT  LAST SEEN         ADDRESS
1002-1009  2026-01-02 03:04  www.example.com/wp-login.php
                             error, none by a browser
... and 1 more
There was no room for every address: one that is not here may have been missed up to 7 times.
`,
		},
		"a host": {
			filter: Filter{Host: "SHOP.example.com:8080"},
			want: `124498 404s in all since 2026-01-02 03:04:05

OWN LINKS: 1042 404s in all, 42 unanswered, 1000 response, 1001 by a browser
Pages of your own link to these addresses: correct the pages.

COUNT  LAST SEEN         ADDRESS
 1041  2026-01-02 03:04  shop.example.com:8080/old
                         41 unanswered, 1000 response, 1000 by a browser; with a query; on https://www.example.com/blog

NO LINKS: 123456 404s in all, error, none by a browser
No known link: typed, bookmarked, asked for by a scanner, or fetched by a program, perhaps on the page that is named. Some may be in use, such as a wiki's forms for missing pages.

No address matches.
There was no room for every address: one that is not here may have been missed up to 7 times.
`,
		},
		"an outcome": {
			filter: Filter{Link: "own", Outcome: "error"},
			want: `124498 404s in all since 2026-01-02 03:04:05

OWN LINKS: 1042 404s in all, 42 unanswered, 1000 response, 1001 by a browser
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

// TestParsedStringsArePrintable reads what no Caddy writes: strings that act on a terminal, and a long one.
func TestParsedStringsArePrintable(t *testing.T) {
	long := strings.Repeat("x", 2*maxPrinted)
	r, err := Parse([]byte(`{"since":"2026-01-02T03:04:05Z","capacity":1,"addresses":[
		{"link":"own","host":"\u001b[2J\r\n","path":"/\u009b31m\u202e\u007f` + "\xff" + `","last_link":"` + long + `"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Address{Host: "?[2J??", Path: "/?31m???", LastLink: long[:maxPrinted]}
	if got := r.Addresses[0]; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
