//go:build linux

package main

import (
	"os"
	"testing"
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
				if figures[l.Name].Median == 0 {
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

func TestMedianWithItsError(t *testing.T) {
	for name, tt := range map[string]struct {
		samples []float64
		want    string
	}{
		"one":         {samples: []float64{7}, want: "7.000±0.000"},
		"even":        {samples: []float64{4, 1, 3, 100}, want: "3.500±1.394"},
		"one far out": {samples: []float64{13, 10, 11, 9000, 12}, want: "12.00±0.83"},
	} {
		got := medianOf(tt.samples).String()
		if got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
}

// TestRatioIsOfTheSameRound has a round in which everything was slow.
func TestRatioIsOfTheSameRound(t *testing.T) {
	var servers []*server
	for _, against := range []int{0, 2, 0} {
		s := &server{site: site{Against: against}}
		s.samples = make(map[string][]float64)
		servers = append(servers, s)
	}
	addTimes(servers, "A", []float64{10, 60, 20})
	addTimes(servers, "A", []float64{100, 600, 200})
	addTimes(servers, "A", []float64{20, 120, 40})
	for i, want := range []float64{1, 3, 2} {
		got := medianOf(servers[i].samples["A ratio"])
		if got != (figure{Median: want}) {
			t.Errorf("site %d: got %v, want %v without an error", i, got, want)
		}
	}
}

func TestAnswersAreChecked(t *testing.T) {
	g := group{status: "404", contains: "page"}
	for name, tt := range map[string]struct {
		answer, accept  string
		ofReference     string
		acceptReference string
		isRight         bool
	}{
		"the same":         {answer: "404 page", ofReference: "404 page", isRight: true},
		"another status":   {answer: "200 page", ofReference: "200 page"},
		"no page":          {answer: "404", ofReference: "404"},
		"another page":     {answer: "404 another page", ofReference: "404 page"},
		"another client":   {answer: "404 page", ofReference: "404 page", accept: chrome},
		"the same, Chrome": {answer: "404 page", ofReference: "404 page", accept: chrome, acceptReference: chrome, isRight: true},
	} {
		reference := &server{group: &g, answer: tt.ofReference, site: site{accept: tt.acceptReference}}
		s := &server{group: &g, answer: tt.answer, site: site{accept: tt.accept}}
		err := s.checkAnswer(reference)
		if (err == nil) != tt.isRight {
			t.Errorf("%s: got the error %v", name, err)
		}
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
