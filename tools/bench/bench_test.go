//go:build linux

package main

import (
	"math"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"
)

func TestDocumentsShowTheFigures(t *testing.T) {
	t.Chdir("../..")
	r, err := readResults()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		for _, s := range g.Sites {
			for _, l := range g.Loads {
				figures := r[g.Name].Figures[s.Name]
				if figures[l.Name].Value == 0 {
					t.Errorf("%s does not have %s over %s", resultsFile, s.Name, l.Name)
				}
			}
		}
	}
	files, err := r.files()
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range files {
		got, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
		} else if string(got) != want {
			t.Errorf("%s is not that of the figures; go run ./tools/bench -rounds 0 -write writes it again", file)
		}
	}
}

// TestRatioIsThatOfTheSums has a start that was slow for both sites, and in which there were few requests.
func TestRatioIsThatOfTheSums(t *testing.T) {
	g := group{Sites: []site{{}, {Against: 0}}}
	reference := cell{0, "A"}
	other := cell{1, "A"}
	samples := []sample{
		{costs: map[cell]cost{
			reference: {100 * time.Microsecond, 10},
			other:     {300 * time.Microsecond, 20},
		}},
		{costs: map[cell]cost{
			reference: {300 * time.Microsecond, 10},
			other:     {100 * time.Microsecond, 5},
		}},
	}
	// The first start alone gives 15 µs / 10 µs, and the second 20 µs / 30 µs.
	got := overStarts(samples, g.ratio(1, "A")).String()
	if got != "0.800±0.417" {
		t.Errorf("got %s, want 400 µs / 25 divided by 400 µs / 20, and half of the difference of the starts", got)
	}
}

func TestStandardError(t *testing.T) {
	got := standardError([]float64{10, 12, 14})
	want := 2 / math.Sqrt(3) // the deviation of one value is 2
	if math.Abs(got-want) > 1e-9 {
		t.Errorf("three values: got %v, want %v", got, want)
	}
	if got := standardError([]float64{7}); !math.IsNaN(got) {
		t.Errorf("one value says nothing of the error, got %v", got)
	}
}

// TestAlignmentsAreSummedApart has four starts, of which the first and the last have the same alignment.
func TestAlignmentsAreSummedApart(t *testing.T) {
	at := cell{0, "A"}
	var samples []sample
	for _, requests := range []int{10, 2, 3, 30} {
		samples = append(samples, sample{costs: map[cell]cost{at: {time.Second, requests}}})
	}
	countRequests := func(s sample) float64 { return float64(s.costs[at].requests) }
	got := overAlignments(samples, countRequests)
	if !slices.Equal(got, []float64{40, 2, 3}) {
		t.Errorf("got %v requests", got)
	}
	got = overAlignments(samples[:2], countRequests)
	if !slices.Equal(got, []float64{10, 2}) {
		t.Errorf("two starts: got %v requests", got)
	}
}

func TestLatenciesOfAllStartsArePooled(t *testing.T) {
	samples := []sample{
		{latencies: [][]float64{{1, 2}, {5}}},
		{latencies: [][]float64{{3}, {6, 7}}},
	}
	got := sumOf(samples).latencies
	if !slices.Equal(got[0], []float64{1, 2, 3}) || !slices.Equal(got[1], []float64{5, 6, 7}) {
		t.Errorf("got %v", got)
	}
	if len(samples[0].latencies[0]) != 2 {
		t.Error("a sample of one start was changed")
	}
}

// TestTwoBuildsAreComparedSiteBySite checks which sites -against measures, and that each is compared with itself.
func TestTwoBuildsAreComparedSiteBySite(t *testing.T) {
	g := group{Sites: []site{
		{Name: "without", caddy: "respond 404"},
		{Name: "the same again", caddy: "respond 404"},
		{Name: "another without", caddy: "error 404"},
		{Name: "ours", caddy: "not_found", accept: chrome, Against: 2},
		{Name: "ours for another client", caddy: "not_found"},
		{Name: "ours again", caddy: "not_found"},
	}}
	got := g.ofTwoBuilds().Sites
	want := []site{
		{Name: "without", caddy: "respond 404", isOld: true},
		{Name: "without", caddy: "respond 404"},
		{Name: "ours", caddy: "not_found", accept: chrome, Against: 2, isOld: true},
		{Name: "ours", caddy: "not_found", accept: chrome, Against: 2},
		{Name: "ours for another client", caddy: "not_found", Against: 4, isOld: true},
		{Name: "ours for another client", caddy: "not_found", Against: 4},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if g.Sites[3].isOld || len(g.Sites) != 6 {
		t.Error("the group itself was changed")
	}
}

// TestEveryGroupHasAControl holds that a second site of each group with latencies is the same as the first.
func TestEveryGroupHasAControl(t *testing.T) {
	for _, g := range groups {
		if g.Varies {
			continue
		}
		control := g.Sites[1]
		control.Name = g.Sites[0].Name
		if control != g.Sites[0] {
			t.Errorf("%s: the second site is not the same as the first", g.Name)
		}
	}
}

func TestServersRunFromATmpfs(t *testing.T) {
	if err := checkTmpfs("/proc"); err == nil {
		t.Error("/proc is no tmpfs")
	}
	if err := checkTmpfs("/dev/shm/no such folder"); err == nil {
		t.Error("there is no such folder")
	}
}

func TestAnswersAreChecked(t *testing.T) {
	g := group{status: "404", contains: "page"}
	for name, tt := range map[string]struct {
		answer, accept  string
		ofReference     string
		acceptReference string
		referenceIsOld  bool
		isRight         bool
	}{
		"the same":         {answer: "404 page", ofReference: "404 page", isRight: true},
		"another status":   {answer: "200 page", ofReference: "200 page"},
		"no page":          {answer: "404", ofReference: "404"},
		"another page":     {answer: "404 another page", ofReference: "404 page"},
		"another client":   {answer: "404 page", ofReference: "404 page", accept: chrome},
		"another build":    {answer: "404 another page", ofReference: "404 page", referenceIsOld: true, isRight: true},
		"the same, Chrome": {answer: "404 page", ofReference: "404 page", accept: chrome, acceptReference: chrome, isRight: true},
	} {
		reference := &server{group: &g, answer: tt.ofReference, site: site{accept: tt.acceptReference, isOld: tt.referenceIsOld}}
		s := &server{group: &g, answer: tt.answer, site: site{accept: tt.accept}}
		err := s.checkAnswer(reference)
		if (err == nil) != tt.isRight {
			t.Errorf("%s: got the error %v", name, err)
		}
	}
}

func TestHeadersAreChecked(t *testing.T) {
	g := group{status: "404"}
	answer := func(s site, cacheControl string) *server {
		return &server{group: &g, site: s, answer: "404", header: http.Header{"Cache-Control": {cacheControl}}}
	}
	same := site{sameHeader: true}
	if err := answer(same, "no-store").checkAnswer(answer(site{}, "no-store")); err != nil {
		t.Error(err)
	}
	if err := answer(same, "no-store").checkAnswer(answer(site{}, "no-cache")); err == nil {
		t.Error("another header is no error")
	}
	if err := answer(site{}, "no-store").checkAnswer(answer(site{}, "no-cache")); err != nil {
		t.Error(err)
	}
}

func TestPercentile(t *testing.T) {
	var values []float64
	for i := range 200 {
		values = append(values, float64(199-i))
	}
	p50 := percentile(values, 50)
	p99 := percentile(values, 99)
	if p50 != 100 || p99 != 198 {
		t.Errorf("got %v and %v, want 100 and 198", p50, p99)
	}
}
