package main

import (
	"math"
	"os"
	"reflect"
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
	r, err := readResults("../docs")
	if err != nil || len(r) == 0 {
		t.Fatalf("got %d groups and %v", len(r), err)
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
	f := newFigures([]sample{{20, 900}, {200, 90}, {40, 450}}, []sample{{10, 300}, {100, 30}, {20, 150}})
	if want := (figures{CPU: 40, CPUError: f.CPUError, Ratio: 2, Rate: 450, RateError: f.RateError, RateRatio: 3}); f != want {
		t.Errorf("got %+v, want %+v: ratios without an error", f, want)
	}
}

func TestGroupsThatAreNotMeasuredStay(t *testing.T) {
	result := func(name, measured string) groupResult {
		return groupResult{Name: name, Measured: measured, Loads: []string{"1 connection"}}
	}
	folder := t.TempDir()
	before := results{result("page", "before"), result("gone", "before"), result("pass", "before"), result("scale1", "before")}
	if err := before.write(folder); err != nil {
		t.Fatal(err)
	}
	old, err := readResults(folder)
	if err != nil {
		t.Fatal(err)
	}
	got := results{result("replace", "now"), result("pass", "now")}.with(old)
	want := results{result("page", "before"), result("replace", "now"), result("pass", "now"), result("scale1", "before")}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if n := strings.Count(got.markdown(), "\nnow\n"); n != 1 {
		t.Errorf("the tables say %d times when the groups that were measured together were, want once", n)
	}
}
