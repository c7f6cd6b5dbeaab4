package report

import (
	"encoding/csv"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
)

// text returns what a filter chooses of a report, as it is printed.
func text(t *testing.T, r Report, parameters ...string) string {
	t.Helper()
	var f Filter
	for i := 0; i < len(parameters); i += 2 {
		if err := f.Set(parameters[i], parameters[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	var b strings.Builder
	if err := r.WriteText(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTextHasASectionForEachKindOfLink(t *testing.T) {
	seen := time.Date(2026, 1, 2, 3, 4, 5, 6, time.Local)
	long := strings.Repeat("x", 200)
	r := Report{
		Since: seen, Capacity: 1000,
		Links: Totals{
			Own:  Total{Count: 1042, Outcomes: Outcomes{Unanswered: 42, Response: 1000}},
			None: Total{Count: 123456, Floor: 7, Outcomes: Outcomes{Error: 123456}},
		},
		Addresses: []Address{
			{Link: Own, Host: "www.example.com", Path: "/old", Count: 1041, Outcomes: Outcomes{Unanswered: 41, Response: 1000}, Query: true, LastLink: "https://www.example.com/blog", Last: seen},
			{Link: Own, Host: "www.example.com", Path: "/" + long, Count: 1, Outcomes: Outcomes{Unanswered: 1}, LastLink: "https://www.example.com/" + long, Last: seen},
			{Link: None, Host: "www.example.com", Path: "/wp-login.php", Count: 1009, Overcount: 7, Outcomes: Outcomes{Error: 1002}, LastLink: "https://www.example.com/shop", Last: seen},
			{Link: None, Path: "urn:x", Count: 8, Overcount: 7, Outcomes: Outcomes{Error: 1}, Last: seen},
		},
	}
	const head, own, none = "124498 404s since 2026-01-02 03:04:05\n", `
OWN LINKS: 1042 404s, 1000 response, 42 unanswered
Pages of your own link to these addresses: correct the pages.

`, `
NO LINKS: 123456 404s, error
No known link: typed, bookmarked, fetched by a program, or asked for by a scanner. Some may work, as a wiki's do.

`
	const full = "There was no room for every address: one that is not here may have been missed up to 7 times.\n"
	if got, want := text(t, r), head+own+
		`COUNT  LAST SEEN         ADDRESS
 1041  2026-01-02 03:04  www.example.com/old
                         1000 response, 41 unanswered; with a query; on https://www.example.com/blog
    1  2026-01-02 03:04  www.example.com/`+long+`
                         unanswered; on https://www.example.com/`+long+"\n"+none+
		`    COUNT  LAST SEEN         ADDRESS
1002-1009  2026-01-02 03:04  www.example.com/wp-login.php
                             error; on https://www.example.com/shop
      1-8  2026-01-02 03:04  urn:x
                             error
`+full; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	inAll := strings.NewReplacer("404s", "404s in all").Replace
	if got, want := text(t, r, "limit", "1", "link", "none", "why", "error"), inAll(head+none)+
		`    COUNT  LAST SEEN         ADDRESS
1002-1009  2026-01-02 03:04  www.example.com/wp-login.php
                             error; on https://www.example.com/shop
... and 1 more
`+full; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := text(t, r, "host", "b.test"), inAll(head+own)+"No address matches.\n"+inAll(none)+"No address matches.\n"+full; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := text(t, Report{Since: seen, Partial: true}); got != "0 404s in all since 2026-01-02 03:04:05\nThe report is partial: a limit or a filter left addresses out.\n" {
		t.Errorf("of a partial report, got %q", got)
	}
	if got := text(t, Report{Since: seen}); got != "0 404s since 2026-01-02 03:04:05\n" {
		t.Errorf("where nothing was missed, got %q", got)
	}
}

// hostile is what no Caddy writes.
const hostile = "\x1b[2J\r\n\t\x7f\u009b31m\u202e\xff\x00"

func TestTextDoesNothingToTheTerminal(t *testing.T) {
	r := Report{Since: at(1), Links: Totals{Own: Total{Count: 1}}, Addresses: []Address{{Host: hostile, Path: "/" + hostile, Count: 1, LastLink: hostile}}}
	got := text(t, r)
	if !strings.HasPrefix(got, "1 404 since ") || strings.Count(got, "\n") != 8 || strings.ContainsFunc(strings.ReplaceAll(got, "\n", ""), func(r rune) bool { return r > '~' || unicode.IsControl(r) }) {
		t.Errorf("got %q", got)
	}
}

// TestNoCellIsAFormula covers what a spreadsheet could compute, even one that splits lines at semicolons.
func TestNoCellIsAFormula(t *testing.T) {
	r := Report{Addresses: []Address{
		{Link: Own, Host: "=1+1", Path: "/x;=1+1,\"", Query: true, Count: 7, Overcount: 1, Outcomes: Outcomes{1, 2, 3, 0, 0}, LastLink: "https://-2+3/;=1", First: at(1).Add(time.Millisecond), Last: at(2)},
		{Link: None, Host: "-2+3", Path: hostile, Count: 1, First: at(3), Last: at(3)},
		{Link: None, Path: "@x", Count: 1, First: at(3), Last: at(3)},
		{Link: None, Path: "+x", Count: 1, First: at(3), Last: at(3)},
	}}
	var b strings.Builder
	if err := r.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if want := [][]string{
		strings.Split("link,host,path,query,count,overcount,unanswered,error,response,passed,replaceable,last_link,first,last", ","),
		{"own", "%3D1+1", "/x%3B=1+1,\"", "true", "7", "1", "1", "2", "3", "0", "0", "https://-2+3/%3B=1", "2026-01-02T03:04:01Z", "2026-01-02T03:04:02Z"},
		{"none", "%2D2+3", "?[2J?????31m???", "false", "1", "0", "0", "0", "0", "0", "0", "", "2026-01-02T03:04:03Z", "2026-01-02T03:04:03Z"},
	}; !reflect.DeepEqual(rows[:3], want) {
		t.Errorf("got\n%q\nwant\n%q", rows[:3], want)
	}
	if strings.Contains(b.String(), ";") || rows[3][2] != "%40x" || rows[4][2] != "%2Bx" {
		t.Errorf("got\n%s", b.String())
	}
}
