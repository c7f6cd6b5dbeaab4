package report

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMergedReportsKeepTheirBounds spreads streams of addresses over several Caddy instances, and merges their reports in
// several orders and trees, as they are and through JSON.
func TestMergedReportsKeepTheirBounds(t *testing.T) {
	const misses = 9_000
	for name, address := range map[string]func(r *rand.Rand, instance, n int) string{
		"Zipf": func(r *rand.Rand, _, _ int) string {
			return fmt.Sprint(rand.NewZipf(r, 1.1, 1, 2_000).Uint64())
		},
		"flood": func(r *rand.Rand, instance, n int) string {
			if r.IntN(4) == 0 {
				return fmt.Sprintf("frequent/%d", r.IntN(10))
			}
			return fmt.Sprintf("%d/%d", instance, n)
		},
		"disjoint": func(r *rand.Rand, instance, _ int) string {
			return fmt.Sprintf("%d/%d", instance, min(r.IntN(300), r.IntN(300)))
		},
		"equal": func(_ *rand.Rand, _, n int) string { return fmt.Sprint(n % 150) },
		"few":   func(r *rand.Rand, _, _ int) string { return fmt.Sprint(r.IntN(20)) },
	} {
		for _, instances := range []int{2, 3, 6, 16} {
			t.Run(fmt.Sprint(name, "/", instances), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(uint64(instances), uint64(len(name))))
				counters := make([]Counter, instances)
				for i := range counters {
					counters[i].room = 20 + r.IntN(20)
				}
				var counts [NumLinks]map[string]uint64 // by path
				for n := range misses {
					i := min(r.IntN(instances), r.IntN(instances)) // some have more to do
					path, referer := "/"+address(r, i, n), [...]string{"http://a.test/blog", "http://b.test/", ""}[r.IntN(int(NumLinks))]
					if referer != "" {
						referer += fmt.Sprint(n)
					}
					link := LinkOf(referer, "a.test", path, "")
					if counts[link] == nil {
						counts[link] = make(map[string]uint64)
					}
					counts[link][path]++
					counters[i].miss(path, referer, Outcome(r.IntN(int(NumOutcomes))))
				}
				reports := make([]Report, instances)
				for i := range counters {
					reports[i], _ = counters[i].Take()
				}

				merged := merge(t, reports...)
				for link := range NumLinks {
					checkBounds(t, merged, link, counts[link])
				}
				for range 2 {
					r.Shuffle(len(reports), func(i, j int) { reports[i], reports[j] = reports[j], reports[i] })
					if again := merge(t, reports...); !reflect.DeepEqual(again, merged) {
						t.Fatal("in another order, the merged report is another one")
					}
					// A tree may keep another last link: a merged report does not say when its link was followed.
					if tree := mergeTree(t, r, reports); !reflect.DeepEqual(withoutLastLinks(tree), withoutLastLinks(merged)) {
						t.Fatal("merged in a tree, the report is another one")
					}
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

// mergeTree merges reports in a random tree. Each one goes through JSON.
func mergeTree(t *testing.T, r *rand.Rand, reports []Report) Report {
	t.Helper()
	if len(reports) > 1 {
		cut := 1 + r.IntN(len(reports)-1)
		reports = []Report{mergeTree(t, r, reports[:cut]), mergeTree(t, r, reports[cut:])}
	}
	merged := merge(t, reports...)
	read, err := reread(t, merged)
	if err != nil || !reflect.DeepEqual(read, merged) {
		t.Fatalf("the report is read as another one: %v", err)
	}
	return read
}

// checkBounds checks the addresses of one kind of link against how often each path was missed.
func checkBounds(t *testing.T, r Report, link Link, counts map[string]uint64) {
	t.Helper()
	found, total := make(map[string]bool), r.Links.all()[link]
	for _, a := range r.Addresses {
		if a.Link != link {
			continue
		}
		found[a.Path] = true
		if n := counts[a.Path]; n < a.Count-a.Overcount || n > a.Count {
			t.Errorf("%s: got %d, of which %d may be too much; it was missed %d times", a.Path, a.Count, a.Overcount, n)
		}
	}
	for path, n := range counts {
		if !found[path] && (n > total.Floor || n > total.Count/uint64(r.Capacity)) {
			t.Errorf("%s was missed %d times and is not there; the floor is %d", path, n, total.Floor)
		}
	}
}

func withoutLastLinks(r Report) Report {
	r = clone([]Report{r})[0]
	for i := range r.Addresses {
		r.Addresses[i].LastLink = ""
	}
	return r
}

func at(second int) time.Time { return time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC) }

// full is a report with room for two addresses of each kind of link, and small one with room for ten.
var (
	full = Report{
		Since: at(5), Capacity: 2,
		Links: Totals{
			Own:  Total{Count: 30, Floor: 10, Outcomes: Outcomes{8, 3, 7, 4, 8}},
			None: Total{Count: 1, Outcomes: Outcomes{Passed: 1}},
		},
		Addresses: []Address{
			{Link: Own, Host: "a.test", Path: "/x", Count: 20, Overcount: 4, Outcomes: Outcomes{1, 2, 3, 4, 6}, LastLink: "http://a.test/1", First: at(10), Last: at(20)},
			{Link: Own, Host: "a.test", Path: "/y", Count: 10, Overcount: 9, Outcomes: Outcomes{Error: 1}, LastLink: "http://a.test/1", First: at(12), Last: at(12)},
			{Link: None, Host: "a.test", Path: "/x", Count: 1, Outcomes: Outcomes{Passed: 1}, First: at(13), Last: at(13)},
		},
	}
	small = Report{
		Since: at(1), Capacity: 10,
		Links: Totals{
			Own:   Total{Count: 7, Outcomes: Outcomes{Unanswered: 2, Response: 5}},
			Other: Total{Count: 1, Outcomes: Outcomes{Error: 1}},
			None:  Total{Count: 1, Outcomes: Outcomes{Error: 1}},
		},
		Addresses: []Address{
			{Link: Own, Host: "c.test", Path: "/y", Count: 5, Outcomes: Outcomes{Response: 5}, LastLink: "http://c.test/2", First: at(9), Last: at(9)},
			{Link: Own, Host: "a.test", Path: "/x", Count: 2, Outcomes: Outcomes{Unanswered: 2}, Query: true, LastLink: "http://a.test/0", First: at(8), Last: at(21)},
			{Link: Other, Host: "", Path: "urn:x", Count: 1, Outcomes: Outcomes{Error: 1}, LastLink: "https://b.test", First: at(8), Last: at(8)},
			{Link: None, Host: "a.test", Path: "/x", Count: 1, Outcomes: Outcomes{Error: 1}, LastLink: "http://b.test/", First: at(7), Last: at(7)},
		},
	}
)

func TestMerge(t *testing.T) {
	want := Report{
		Since: at(1), Capacity: 2,
		Links: Totals{
			Own:   Total{Count: 37, Floor: 10, Outcomes: Outcomes{10, 3, 12, 4, 8}},
			Other: Total{Count: 1, Outcomes: Outcomes{Error: 1}},
			None:  Total{Count: 2, Outcomes: Outcomes{Error: 1, Passed: 1}},
		},
		Addresses: []Address{
			{Link: Own, Host: "a.test", Path: "/x", Count: 22, Overcount: 4, Outcomes: Outcomes{3, 2, 3, 4, 6}, Query: true, LastLink: "http://a.test/0", First: at(8), Last: at(21)},
			{Link: Own, Host: "c.test", Path: "/y", Count: 15, Overcount: 10, Outcomes: Outcomes{Response: 5}, LastLink: "http://c.test/2", First: at(9), Last: at(9)},
			{Link: Own, Host: "a.test", Path: "/y", Count: 10, Overcount: 9, Outcomes: Outcomes{Error: 1}, LastLink: "http://a.test/1", First: at(12), Last: at(12)},
			{Link: Other, Host: "", Path: "urn:x", Count: 1, Outcomes: Outcomes{Error: 1}, LastLink: "https://b.test", First: at(8), Last: at(8)},
			{Link: None, Host: "a.test", Path: "/x", Count: 2, Outcomes: Outcomes{Error: 1, Passed: 1}, LastLink: "http://b.test/", First: at(7), Last: at(13)},
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

	// of links that were followed at the same time, always the same one
	one, two := clone([]Report{small})[0], clone([]Report{small})[0]
	two.Addresses[0].LastLink = "http://c.test/3"
	if got, again := merge(t, one, two), merge(t, two, one); !reflect.DeepEqual(got, again) {
		t.Errorf("got %+v and %+v", got, again)
	}
}

// TestReportThatCannotBeMergedIsRefused covers files that no Caddy writes, and a partial report, which is fine alone.
func TestReportThatCannotBeMergedIsRefused(t *testing.T) {
	long := strings.Repeat("x", maxKey)
	for name, tt := range map[string]struct {
		change func(r *Report, a *Address)
		want   string
	}{
		"no capacity":       {func(r *Report, _ *Address) { r.Capacity = 0 }, "the capacity cannot be 0"},
		"addresses missing": {func(r *Report, _ *Address) { r.Addresses = r.Addresses[1:] }, "own: addresses are missing, which were missed 20 times"},
		"link of a script":  {func(_ *Report, a *Address) { a.LastLink = "javascript:alert(1)" }, "is not a link as a report has it"},
		"link that acts":    {func(_ *Report, a *Address) { a.LastLink = "http://a.test/\x1b[2J" }, "is not a link as a report has it"},
		"host that acts":    {func(_ *Report, a *Address) { a.Host = "a.test\x1b[2J" }, `"a.test\x1b[2J/x" is not an address as a report has it`},
		"host in capitals":  {func(_ *Report, a *Address) { a.Host = "A.test" }, "is not an address"},
		"path that acts":    {func(_ *Report, a *Address) { a.Path = "/\u009b31m" }, `"a.test/\u009b31m" is not an address`},
		"path with markup":  {func(_ *Report, a *Address) { a.Path = "/<b>" }, "is not an address"},
		"path in the host":  {func(_ *Report, a *Address) { a.Path = "x" }, "is not an address"},
		"path too long":     {func(_ *Report, a *Address) { a.Path = "/" + long }, "is not an address"},
		"no address":        {func(_ *Report, a *Address) { a.Host, a.Path = "", "" }, `"" is not an address`},
		"no count":          {func(_ *Report, a *Address) { a.Count = 0 }, `"a.test/x" has no count, or no first or last time`},
		"no first time":     {func(_ *Report, a *Address) { a.First = time.Time{} }, `"a.test/x" has no count, or`},
		"no last time":      {func(_ *Report, a *Address) { a.Last = time.Time{} }, `"a.test/x" has no count, or`},
	} {
		t.Run(name, func(t *testing.T) {
			r := clone([]Report{full})[0]
			tt.change(&r, &r.Addresses[0])
			if _, err := reread(t, r); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got the error %v, want %s", err, tt.want)
			}
		})
	}

	partial := clone([]Report{full})[0]
	partial.Addresses, partial.Partial = partial.Addresses[1:], true
	read, err := reread(t, partial)
	if got := merge(t, read); err != nil || !reflect.DeepEqual(got, partial) {
		t.Errorf("got %+v, %v, want %+v", got, err, partial)
	}
	if Filter.Apply(Filter{}, &read); !read.Partial {
		t.Error("once it is filtered, it counts as whole")
	}
	if _, err := Merge(small, partial); err == nil || !strings.HasPrefix(err.Error(), "report 2 is partial, because a limit or a filter left addresses out; give the whole report") {
		t.Errorf("got the error %v", err)
	}
}

// reread returns a report after a trip through JSON.
func reread(t *testing.T, r Report) (Report, error) {
	t.Helper()
	body, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return Parse(body)
}

// TestParseTakesLittleMemory parses a list that would take 50 times its size in memory.
func TestParseTakesLittleMemory(t *testing.T) {
	body := []byte(`{"links":{"own":{},"other":{},"none":{}},"addresses":[` + strings.Repeat("{},", 1<<20) + `{}]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if r, err := Parse(body); err == nil {
		t.Errorf("it has %d addresses", len(r.Addresses))
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 8*uint64(len(body)) {
		t.Errorf("%d bytes take %d of memory", len(body), n)
	}
}

// TestParseRefusesWhatIsNoReport covers reports of other versions, and what is no report.
func TestParseRefusesWhatIsNoReport(t *testing.T) {
	whole, err := json.Marshal(small)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := Parse(whole); err != nil || !reflect.DeepEqual(r, small) {
		t.Fatalf("got %+v, %v", r, err)
	}
	with := func(old, new string) string {
		if !strings.Contains(string(whole), old) {
			t.Fatalf("%s lacks %s", whole, old)
		}
		return strings.Replace(string(whole), old, new, 1)
	}
	const other = "it is not a report, or was made by another version of not_found: "
	for body, want := range map[string]string{
		"":                                  "unexpected end of JSON input",
		"<html>":                            "invalid character '<'",
		"\x1b[2J":                           "invalid character '\\x1b'",
		"{} {}":                             "invalid character '{' after top-level value",
		`{"error": "no not_found handler"}`: other + `json: unknown field "error"`,
		`{"since":"2026-01-02T03:04:05Z","capacity":1000,"addresses":[]}`:                              other + "it lacks a kind of link",
		`{"since":"2026-01-02T03:04:05Z","capacity":1000,"addresses":[],"links":{"own":{},"none":{}}}`: other + "it lacks a kind of link",
		with(`"passed":0,`, `"passed":0,"kept":0,`):                                                    other + `json: unknown field "kept"`,
		with(`"query":false`, `"fragment":false`):                                                      other + `json: unknown field "fragment"`,
		with(`"link":"own"`, `"link":"mine"`):                                                          other + `link: "mine" is not a kind of link; it is own, other or none`,
		`{"addresses":{}}`:                                                                             other + "the addresses are no list",
		with(`"count":7`, `"count":-7`):                                                                other + "json: cannot unmarshal number -7",
		with(`2026-01-02T03:04:01Z`, `\u001b[2J`):                                                      other + "parsing time",
		with(`,"none":{"count":1,"floor":0,"outcomes":{"unanswered":0,"error":1,"response":0,"passed":0,"replaceable":0}}`, ``): other + "it lacks a kind of link",
	} {
		if _, err := Parse([]byte(body)); err == nil || !strings.Contains(err.Error(), want) || strings.ContainsRune(err.Error(), '\x1b') {
			t.Errorf("%q: got the error %v, want %s", body, err, want)
		}
	}
}
