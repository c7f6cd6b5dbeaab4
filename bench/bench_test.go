package main

import (
	"fmt"
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
	f := newFigures([]sample{{20, 900}, {200, 90}, {40, 450}}, []sample{{10, 300}, {100, 30}, {20, 150}})
	if want := (figures{CPU: 40, CPUError: f.CPUError, Ratio: 2, Rate: 450, RateError: f.RateError, RateRatio: 3}); f != want {
		t.Errorf("got %+v, want %+v: ratios without an error", f, want)
	}
}

func TestGroupsThatAreNotMeasuredStay(t *testing.T) {
	folder := t.TempDir()
	if old, err := readResults(folder); old != nil || err != nil {
		t.Fatalf("got %v and %v from an empty folder", old, err)
	}
	result := func(name, measured string) groupResult {
		return groupResult{Name: name, Measured: measured, Loads: []string{"1 connection"}}
	}
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
	for s, want := range map[string]int{"before": 2, "now": 1} { // replace and pass were measured together
		if n := strings.Count(got.markdown(), "\n"+s+"\n"); n != want {
			t.Errorf("the tables say %d times that they were measured %s, want %d", n, s, want)
		}
	}
}

// TestTargetsAreKnownOrNew has a thousand times as many requests as there are known addresses.
func TestTargetsAreKnownOrNew(t *testing.T) {
	times := make(map[string]int)
	for n := range int64(100_000) {
		target := targetOf(n)
		if times[target]++; len(target) != len(targetOf(0)) {
			t.Fatalf("%s is not as long as %s", target, targetOf(0))
		}
	}
	byTimes := make(map[int]int)
	for _, n := range times {
		byTimes[n]++
	}
	if got, want := fmt.Sprint(byTimes), "map[1:50000 500:100]"; got != want {
		t.Errorf("got so many addresses by how often they are asked for: %s, want %s", got, want)
	}
}
