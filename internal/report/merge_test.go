package report

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMergedReportsKeepTheirBounds cuts streams of addresses over Caddys, and merges their reports in several orders and
// trees, as they are and in JSON.
func TestMergedReportsKeepTheirBounds(t *testing.T) {
	const misses = 3_000
	for name, address := range map[string]func(r *rand.Rand, caddy, n int) string{
		"Zipf": func(r *rand.Rand, _, _ int) string {
			return fmt.Sprint(rand.NewZipf(r, 1.1, 1, 2_000).Uint64())
		},
		"flood": func(r *rand.Rand, caddy, n int) string {
			if r.IntN(4) == 0 {
				return fmt.Sprintf("frequent/%d", r.IntN(10))
			}
			return fmt.Sprintf("%d/%d", caddy, n)
		},
		"disjoint": func(r *rand.Rand, caddy, _ int) string {
			return fmt.Sprintf("%d/%d", caddy, min(r.IntN(300), r.IntN(300)))
		},
		"equal": func(_ *rand.Rand, _, n int) string { return fmt.Sprint(n % 150) },
		"few":   func(r *rand.Rand, _, _ int) string { return fmt.Sprint(r.IntN(20)) },
	} {
		for _, caddys := range []int{1, 2, 3, 4, 6, 8, 12, 16} {
			t.Run(fmt.Sprint(name, "/", caddys), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(uint64(caddys), uint64(len(name))))
				counters := make([]Counter, caddys)
				for i := range counters {
					counters[i].room = 20 + r.IntN(20)
				}
				counts := make(map[string]uint64)
				for n := range misses {
					i := min(r.IntN(caddys), r.IntN(caddys)) // some have more to do
					path := "/" + address(r, i, n)
					counts[path]++
					m := Miss{Address: []byte("http://a.test" + path), Outcome: Outcome(r.IntN(int(numOutcomes)))}
					switch r.IntN(4) {
					case 0:
						m.Link, m.Referer = OwnLink, fmt.Sprintf("http://a.test/%d", n)
					case 1:
						m.Link, m.Referer = OtherLink, fmt.Sprintf("http://b.test/%d", n)
					}
					counters[i].Add(m)
				}
				reports := make([]Report, caddys)
				for i := range counters {
					reports[i], _ = counters[i].Take()
				}

				merged := merge(t, reports...)
				checkMerged(t, merged, counts, misses, reports)
				for range 2 {
					r.Shuffle(len(reports), func(i, j int) { reports[i], reports[j] = reports[j], reports[i] })
					if again := merge(t, reports...); !reflect.DeepEqual(again, merged) {
						t.Fatal("in another order, the merged report is another one")
					}
					tree := mergeTree(t, r, reports)
					// In a tree, a last link may be that of another report: which address it was missed with is forgotten.
					if got, want := withoutLastLinks(tree), withoutLastLinks(merged); !reflect.DeepEqual(got, want) {
						t.Fatal("merged in a tree, the report is another one")
					}
					checkLastLinks(t, tree, reports)
				}
			})
		}
	}
}

func merge(t *testing.T, reports ...Report) Report {
	t.Helper()
	before := clone(reports)
	merged, err := Merge(reports...)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(reports, before) {
		t.Fatal("merging changes the reports")
	}
	return merged
}

func clone(reports []Report) []Report {
	cloned := slices.Clone(reports)
	for i := range cloned {
		cloned[i].Addresses = slices.Clone(cloned[i].Addresses)
	}
	return cloned
}

// mergeTree merges reports in a random tree. On the way, each one is written and read.
func mergeTree(t *testing.T, r *rand.Rand, reports []Report) Report {
	t.Helper()
	if len(reports) > 1 {
		cut := 1 + r.IntN(len(reports)-1)
		reports = []Report{mergeTree(t, r, reports[:cut]), mergeTree(t, r, reports[cut:])}
	}
	merged := merge(t, reports...)
	body, err := json.Marshal(merged)
	if err != nil {
		t.Fatal(err)
	}
	read, err := Parse(body)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read, merged) {
		t.Fatal("the report is read as another one")
	}
	return read
}

// checkMerged checks a merged report against how often each path was missed.
func checkMerged(t *testing.T, merged Report, counts map[string]uint64, misses uint64, reports []Report) {
	t.Helper()
	var floor uint64
	since, capacity := merged.Since, reports[0].Capacity
	for _, r := range reports {
		floor += r.Floor
		capacity = min(capacity, r.Capacity)
		if r.Since.Before(since) {
			t.Errorf("it is the report since %s, and one of %s is in it", since, r.Since)
		}
	}
	if merged.Count != misses || merged.Floor != floor || merged.Capacity != capacity || merged.Partial {
		t.Errorf("got the count %d, the floor %d and the capacity %d, want %d, %d and %d", merged.Count, merged.Floor, merged.Capacity, misses, floor, capacity)
	}
	found := make(map[string]bool)
	for i, a := range merged.Addresses {
		found[a.Path] = true
		if true := counts[a.Path]; true < a.Count-a.Overcount || true > a.Count {
			t.Errorf("%s: got %d, of which %d may be too much; it was missed %d times", a.Path, a.Count, a.Overcount, true)
		}
		if i > 0 && a.Count > merged.Addresses[i-1].Count {
			t.Errorf("%s is more frequent than the one before it", a.Path)
		}
	}
	for path, count := range counts {
		if !found[path] && (count > merged.Floor || count > misses/uint64(capacity)) {
			t.Errorf("%s was missed %d times and is not there; the floor is %d", path, count, merged.Floor)
		}
	}
}

// checkLastLinks checks that each last link is that of one of the reports.
func checkLastLinks(t *testing.T, merged Report, reports []Report) {
	t.Helper()
	last := make(map[string]bool)
	for _, r := range reports {
		for _, a := range r.Addresses {
			last[a.Path+" own "+a.Links.Own.Last], last[a.Path+" other "+a.Links.Other.Last] = true, true
		}
	}
	for _, a := range merged.Addresses {
		if !last[a.Path+" own "+a.Links.Own.Last] || !last[a.Path+" other "+a.Links.Other.Last] {
			t.Errorf("%s: the last links %+v are not of a report", a.Path, a.Links)
		}
	}
}

func withoutLastLinks(r Report) Report {
	r = clone([]Report{r})[0]
	for i := range r.Addresses {
		r.Addresses[i].Links.Own.Last, r.Addresses[i].Links.Other.Last = "", ""
	}
	return r
}

func at(second int) time.Time { return time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC) }

// full is a report with room for two addresses, and small one with room for ten.
var (
	full = Report{
		Since: at(5), Count: 30, Capacity: 2, Floor: 10,
		Addresses: []Address{
			{Host: "a.test", Path: "/x", Count: 20, Overcount: 4, Outcomes: Outcomes{1, 2, 3, 4, 6}, Links: Links{LinkCount{3, "http://a.test/1"}, LinkCount{2, "http://b.test/1"}}, First: at(10), Last: at(20)},
			{Host: "a.test", Path: "/y", Count: 10, Overcount: 9, Outcomes: Outcomes{Error: 1}, First: at(12), Last: at(12)},
		},
	}
	small = Report{
		Since: at(1), Count: 7, Capacity: 10,
		Addresses: []Address{
			{Host: "c.test", Path: "/y", Count: 5, Outcomes: Outcomes{Response: 5}, Links: Links{Own: LinkCount{1, "http://a.test/2"}}, First: at(9), Last: at(9)},
			{Host: "a.test", Path: "/x", Count: 2, Outcomes: Outcomes{Unanswered: 2}, Links: Links{Own: LinkCount{1, "http://a.test/0"}}, First: at(8), Last: at(21)},
		},
	}
)

func TestMerge(t *testing.T) {
	want := Report{
		Since: at(1), Count: 37, Capacity: 2, Floor: 10,
		Addresses: []Address{
			{Host: "a.test", Path: "/x", Count: 22, Overcount: 4, Outcomes: Outcomes{3, 2, 3, 4, 6}, Links: Links{LinkCount{4, "http://a.test/0"}, LinkCount{2, "http://b.test/1"}}, First: at(8), Last: at(21)},
			{Host: "c.test", Path: "/y", Count: 15, Overcount: 10, Outcomes: Outcomes{Response: 5}, Links: Links{Own: LinkCount{1, "http://a.test/2"}}, First: at(9), Last: at(9)},
			{Host: "a.test", Path: "/y", Count: 10, Overcount: 9, Outcomes: Outcomes{Error: 1}, First: at(12), Last: at(12)},
		},
	}
	for _, reports := range [][]Report{{full, small}, {small, full}} {
		if got := merge(t, reports...); !reflect.DeepEqual(got, want) {
			t.Errorf("got\n%+v\nwant\n%+v", got, want)
		}
	}
	if got := merge(t, full); !reflect.DeepEqual(got, full) {
		t.Errorf("got\n%+v\nof one report alone, want\n%+v", got, full)
	}
	if _, err := Merge(); err == nil {
		t.Error("no report at all is merged")
	}

	// of links that were followed at the same time, any, but always the same
	one, two := clone([]Report{small})[0], clone([]Report{small})[0]
	two.Addresses[0].Links.Own.Last = "http://a.test/3"
	if got, again := merge(t, one, two), merge(t, two, one); !reflect.DeepEqual(got, again) {
		t.Errorf("got %+v and %+v", got, again)
	}

	// an hour ahead, and a second earlier
	zone := clone([]Report{small})[0]
	zone.Since = at(0).In(time.FixedZone("", 3600))
	if got := merge(t, small, zone).Since; got != at(0) {
		t.Errorf("it is the report since %s, want %s", got, at(0))
	}
}

func TestReportThatCannotBeIsRefused(t *testing.T) {
	const most = ^uint64(0)
	long := strings.Repeat("x", maxKey)
	for name, tt := range map[string]struct {
		change func(r *Report, a *Address)
		want   string
	}{
		"partial":            {func(r *Report, _ *Address) { r.Partial = true }, "it is partial, because a limit or a filter left addresses out; give the whole report"},
		"empty":              {func(r *Report, _ *Address) { *r = Report{} }, "it is not a report of not_found: its capacity is 0"},
		"negative capacity":  {func(r *Report, _ *Address) { r.Capacity = -1 }, "its capacity is -1"},
		"no time":            {func(r *Report, _ *Address) { r.Since = time.Time{} }, "since when"},
		"time beyond JSON":   {func(r *Report, _ *Address) { r.Since = time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("", -3600)) }, "since when"},
		"floor too high":     {func(r *Report, _ *Address) { r.Floor = 16 }, "with a count of 30 and a capacity of 2, the floor cannot be 16"},
		"count below floor":  {func(r *Report, a *Address) { r.Floor, a.Count, a.Overcount = 15, 14, 9 }, "it cannot have the count 14"},
		"count above all":    {func(_ *Report, a *Address) { a.Count = 31 }, "it cannot have the count 31 and the overcount 4"},
		"overcount too high": {func(_ *Report, a *Address) { a.Overcount = 11 }, "it cannot have the count 20 and the overcount 11"},
		"nothing but overcount": {func(r *Report, _ *Address) {
			r.Addresses[1].Overcount = 10
		}, "a.test/y: in a report with the count 30 and the floor 10, it cannot have the count 10 and the overcount 10"},
		"addresses missing": {func(r *Report, _ *Address) { r.Addresses = r.Addresses[:1] }, "addresses are missing: the others do not add up to the count 30"},
		"no addresses":      {func(r *Report, _ *Address) { r.Addresses = nil }, "addresses are missing"},
		"too many misses": {func(r *Report, a *Address) {
			r.Count, r.Capacity, r.Floor, a.Count, r.Addresses[1].Count, r.Addresses[1].Overcount, r.Addresses[1].Outcomes = 20, 2, 10, 20, 15, 5, Outcomes{Error: 10}
		}, "the addresses were missed more often than the count 20 says"},
		"outcomes too few":    {func(_ *Report, a *Address) { a.Outcomes.Error = 0 }, "a.test/x: the outcomes [1 0 3 4 6] add up to less than its count less its overcount"},
		"outcomes too many":   {func(_ *Report, a *Address) { a.Outcomes.Error = 3 }, "the outcomes [1 3 3 4 6] add up to more"},
		"outcomes that wrap":  {func(_ *Report, a *Address) { a.Outcomes = Outcomes{most, 17, 0, 0, 0} }, "add up to more"},
		"links too many":      {func(_ *Report, a *Address) { a.Links.Own.Count = 15 }, "15 own and 2 other links led to it, which is more than its count less its overcount"},
		"links that wrap":     {func(_ *Report, a *Address) { a.Links.Own.Count = most }, "own and 2 other links led to it"},
		"link of none":        {func(_ *Report, a *Address) { a.Links.Own.Count = 0 }, `of 0 links, "http://a.test/1" cannot be the last`},
		"link missing":        {func(_ *Report, a *Address) { a.Links.Other.Last = "" }, `of 2 links, "" cannot be the last`},
		"link of a script":    {func(_ *Report, a *Address) { a.Links.Own.Last = "javascript:alert(1)" }, `"javascript:alert(1)" cannot be the last`},
		"link that acts":      {func(_ *Report, a *Address) { a.Links.Own.Last = "http://a.test/\x1b[2J" }, `"http://a.test/\x1b[2J" cannot be the last`},
		"link with a query":   {func(_ *Report, a *Address) { a.Links.Own.Last = "http://a.test/?x" }, "cannot be the last"},
		"link with a user":    {func(_ *Report, a *Address) { a.Links.Own.Last = "http://me@a.test/" }, "cannot be the last"},
		"link too long":       {func(_ *Report, a *Address) { a.Links.Own.Last = "http://a.test/" + long }, "cannot be the last"},
		"host that acts":      {func(_ *Report, a *Address) { a.Host = "a.test\x1b[2J" }, `"a.test\x1b[2J/x" is not an address as a report has it`},
		"host in capitals":    {func(_ *Report, a *Address) { a.Host = "A.test" }, "is not an address"},
		"host with a user":    {func(_ *Report, a *Address) { a.Host = "me@a.test" }, "is not an address"},
		"path that acts":      {func(_ *Report, a *Address) { a.Path = "/\u009b31m" }, `"a.test/\u009b31m" is not an address`},
		"path with markup":    {func(_ *Report, a *Address) { a.Path = "/<b>" }, "is not an address"},
		"path with a query":   {func(_ *Report, a *Address) { a.Path = "/x?y" }, "is not an address"},
		"path in the host":    {func(_ *Report, a *Address) { a.Path = "x" }, "is not an address"},
		"path too long":       {func(_ *Report, a *Address) { a.Path = "/" + long }, "is not an address"},
		"URL for a path":      {func(_ *Report, a *Address) { a.Host, a.Path = "", "http://a.test/x" }, "is not an address"},
		"address there twice": {func(r *Report, _ *Address) { r.Addresses[1].Path = "/x" }, "a.test/x is there twice"},
		"first after last":    {func(_ *Report, a *Address) { a.First = at(21) }, "when it was missed first and last"},
		"no first":            {func(_ *Report, a *Address) { a.First = time.Time{} }, "when it was missed first and last"},
	} {
		t.Run(name, func(t *testing.T) {
			r := clone([]Report{full})[0]
			tt.change(&r, &r.Addresses[0])
			_, err := Merge(small, r)
			if err == nil || !strings.HasPrefix(err.Error(), "report 2: ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got the error %v, want %s", err, tt.want)
			}
			if body, jsonErr := json.Marshal(r); jsonErr == nil {
				if _, err := Parse(body); err == nil {
					t.Error("it is read")
				}
			}
		})
	}
	huge := Report{Since: at(1), Count: most, Capacity: 1, Addresses: []Address{{Host: "a.test", Path: "/x", Count: most, Outcomes: Outcomes{Error: most}, First: at(1), Last: at(1)}}}
	if got := merge(t, huge); !reflect.DeepEqual(got, huge) {
		t.Errorf("got %+v", got)
	}
	if _, err := Merge(huge, small); err == nil || err.Error() != "the counts of the reports add up to too large a number" {
		t.Errorf("got the error %v", err)
	}
	for body, want := range map[string]string{
		"":                                  "unexpected end of JSON input",
		"<html>":                            "invalid character '<'",
		"\x1b[2J":                           `invalid character '\x1b'`,
		`{"count": -1}`:                     "cannot unmarshal number -1",
		`{"count": 18446744073709551616}`:   "cannot unmarshal number 18446744073709551616",
		`{"since": "\u001b[2J"}`:            `parsing time`,
		`{"addresses": {}}`:                 "cannot unmarshal object",
		`{} {}`:                             "invalid character '{' after top-level value",
		`{"error": "no not_found handler"}`: "it is not a report of not_found",
	} {
		if _, err := Parse([]byte(body)); err == nil || !strings.Contains(err.Error(), want) || strings.ContainsRune(err.Error(), '\x1b') {
			t.Errorf("%q: got the error %v, want %s", body, err, want)
		}
	}
}
