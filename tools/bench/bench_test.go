package main

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
)

// TestDocumentationShowsTheFigures compares docs/performance.md and its chart with the figures that were measured.
func TestDocumentationShowsTheFigures(t *testing.T) {
	read := func(file string) string {
		b, err := os.ReadFile("../../docs/" + file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	var r results
	if err := json.Unmarshal([]byte(read(resultsFile)), &r); err != nil || len(r.Groups) != len(groups) {
		t.Fatalf("got %d groups and %v", len(r.Groups), err)
	}
	if !strings.Contains(read("performance.md"), r.markdown()) {
		t.Errorf("performance.md does not have these tables:\n%s", r.markdown())
	}
	if read(chartFile) != r.chart() {
		t.Error("performance.svg is not the chart of performance.json")
	}
}

func TestMedianWithItsError(t *testing.T) {
	for name, tt := range map[string]struct {
		values        []float64
		median, error float64
	}{
		"one":         {[]float64{7}, 7, 0},
		"even":        {[]float64{4, 1, 3, 100}, 3.5, 1.394},
		"one far out": {[]float64{13, 10, 11, 9000, 12}, 12, 0.831},
	} {
		if median, standardError := medianOf(tt.values); median != tt.median || math.Abs(standardError-tt.error) > 1e-3 {
			t.Errorf("%s: got %v ± %v, want %v ± %v", name, median, standardError, tt.median, tt.error)
		}
	}
}

// TestRatioIsOfTheSameRound has a round in which everything was slow.
func TestRatioIsOfTheSameRound(t *testing.T) {
	f := newFigures([]float64{20, 200, 40}, []float64{10, 100, 20})
	if want := (figures{CPU: 40, CPUError: f.CPUError, Ratio: 2}); f != want {
		t.Errorf("got %+v, want %+v: ratios without an error", f, want)
	}
}
