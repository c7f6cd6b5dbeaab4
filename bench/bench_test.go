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
		b, err := os.ReadFile("../docs/" + file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	var r results
	if err := json.Unmarshal([]byte(read("performance.json")), &r); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(read("performance.md"), r.markdown()) {
		t.Errorf("performance.md does not have these tables:\n%s", r.markdown())
	}
	if read("performance.svg") != r.chart() {
		t.Error("performance.svg is not the chart of performance.json")
	}
}

func TestMedianWithItsError(t *testing.T) {
	for name, tt := range map[string]struct {
		values        []float64
		median, error float64
	}{
		"one":         {[]float64{7}, 7, 0},
		"all equal":   {[]float64{2, 2, 2, 2}, 2, 0},
		"unsorted":    {[]float64{9, 1, 5}, 5, 1.2533 * 1.4826 * 4 / math.Sqrt(3)},
		"even":        {[]float64{4, 1, 3, 100}, 3.5, 1.2533 * 1.4826 * 1.5 / 2},
		"one far out": {[]float64{10, 11, 12, 13, 9000}, 12, 1.2533 * 1.4826 * 1 / math.Sqrt(5)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if median, standardError := medianOf(tt.values); median != tt.median || math.Abs(standardError-tt.error) > 1e-9 {
				t.Errorf("got %v ± %v, want %v ± %v", median, standardError, tt.median, tt.error)
			}
		})
	}
}

// TestRatioIsOfTheSameRound has a round in which everything was slow.
func TestRatioIsOfTheSameRound(t *testing.T) {
	f := newFigures([]float64{20, 200, 40}, []float64{10, 100, 20})
	if f.Ratio != 0.5 || f.RatioError != 0 || f.CPU != 40 {
		t.Errorf("got %+v, want the ratio 0.5 without an error", f)
	}
}
