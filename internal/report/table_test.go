package report

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"
)

// someReport has a row of each kind.
var someReport = Report{
	Since: time.Date(2026, 1, 2, 3, 4, 5, 6, time.Local), Count: 1234,
	Addresses: []Address{
		{Host: "www.example.com", Path: "/old", Count: 1042, Outcomes: Outcomes{Unanswered: 1042}, Links: Links{LinkCount{17, "https://www.example.com/blog"}, LinkCount{3, "https://search.example/"}}},
		{Host: "www.example.com", Path: "/shop/" + strings.Repeat("x", 40), Count: 9, Outcomes: Outcomes{Response: 7, Replaceable: 2}},
		{Host: "", Path: "urn:x", Count: 7, Overcount: 6, Outcomes: Outcomes{Error: 1}, Links: Links{Other: LinkCount{1, "https://search.example/"}}},
	},
}

func table(t *testing.T, r Report, width int) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteTable(&b, width); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTableHasARowForEachAddress(t *testing.T) {
	const head = "1234 404s since 2026-01-02 03:04:05\n\n"
	for width, want := range map[int]string{
		0: head + `COUNT  WHY                        OWN  OTHER  LAST LINK                     ADDRESS
1042   unanswered                 17   3      https://www.example.com/blog  www.example.com/old
9      7 response, 2 replaceable  0    0      -                             www.example.com/shop/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
1-7    error                      0    1      https://search.example/       urn:x
`,
		80: head + `COUNT  WHY                        OWN  OTHER  LAST LINK    ADDRESS
1042   unanswered                 17   3      https://...  www.example.com/old
9      7 response, 2 replaceable  0    0      -            www.example.com/sh...
1-7    error                      0    1      https://...  urn:x
`,
	} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			if got := table(t, someReport, width); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
	if got := table(t, Report{Since: someReport.Since, Count: 1}, 80); got != "1 404 since 2026-01-02 03:04:05\n\nNo address matches.\n" {
		t.Errorf("without addresses, got %q", got)
	}
	if got := table(t, Report{Since: someReport.Since}, 80); got != "0 404s since 2026-01-02 03:04:05\n" {
		t.Errorf("where nothing was missed, got %q", got)
	}
}

// TestTableFitsTheTerminal has all that an address can have, in large numbers.
func TestTableFitsTheTerminal(t *testing.T) {
	full := Address{
		Host: "www.example.com", Path: "/" + strings.Repeat("x", 280), Count: 100_000, Overcount: 12_345,
		Outcomes: Outcomes{Unanswered: 30_000, Error: 200, Response: 8_000, Passed: 39_999, Replaceable: 30_001},
		Links:    Links{LinkCount{17_000, "https://www.example.com/" + strings.Repeat("y", 230)}, LinkCount{12_345, "https://search.example/"}},
	}
	r := Report{Since: someReport.Since, Count: 300_000, Addresses: append([]Address{full}, someReport.Addresses...)}
	for width := 74; width <= 500; width++ {
		lines := strings.Split(strings.TrimSuffix(table(t, r, width), "\n"), "\n")
		if len(lines) != 7 {
			t.Fatalf("with a width of %d, got %d lines, want 7", width, len(lines))
		}
		longest := 0
		for _, line := range lines {
			if longest = max(longest, len(line)); len(line) > width {
				t.Fatalf("with a width of %d, a line has %d characters:\n%s", width, len(line), line)
			}
		}
		if longest < width-2 && width < 400 {
			t.Errorf("with a width of %d, the longest line has %d characters", width, longest)
		}
	}
	if got := table(t, r, 80); !strings.Contains(got, "39999 passed, 3") {
		t.Errorf("the most frequent reason is not the first:\n%s", got)
	}
}

// TestTableDoesNothingToTheTerminal prints what no Caddy says.
func TestTableDoesNothingToTheTerminal(t *testing.T) {
	evil := "\x1b[2J\r\n\t\x7f\u009b31m\u202e\xff\x00"
	r := Report{Since: someReport.Since, Count: 1, Addresses: []Address{{Host: evil, Path: "/" + evil, Count: 1, Links: Links{Own: LinkCount{1, evil}}}}}
	for _, width := range []int{0, 80, 1} {
		got := table(t, r, width)
		if strings.Count(got, "\n") != 4 || strings.ContainsFunc(strings.ReplaceAll(got, "\n", ""), func(r rune) bool { return r > '~' || unicode.IsControl(r) }) {
			t.Errorf("got %q", got)
		}
	}
}
