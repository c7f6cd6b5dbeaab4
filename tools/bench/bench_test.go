package main

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the figures of performance.json to the documents and the chart")

// TestDocumentsShowTheFigures compares the documents and the chart with the figures that were measured. With -update,
// the test writes them first.
func TestDocumentsShowTheFigures(t *testing.T) {
	t.Chdir("../..")
	var r results
	encoded := []byte(readFile(t, resultsFile))
	err := json.Unmarshal(encoded, &r)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Groups) != len(groups) {
		t.Fatalf("%s has %d groups, want %d", resultsFile, len(r.Groups), len(groups))
	}
	if *update {
		if err := r.write(); err != nil {
			t.Fatal(err)
		}
	}
	for file, figures := range r.documents() {
		got := readFile(t, file)
		want, err := withFigures(got, figures)
		if err != nil {
			t.Errorf("%s: %v", file, err)
		} else if got != want {
			t.Errorf("%s does not have the figures of %s; go test ./tools/bench -update writes them", file, resultsFile)
		}
	}
	if readFile(t, chartFile) != r.chart() {
		t.Errorf("%s is not the chart of %s", chartFile, resultsFile)
	}
}

// TestDocumentKeepsItsText has figures put in the place of others.
func TestDocumentKeepsItsText(t *testing.T) {
	got, err := withFigures("# A\n"+figuresBegin+"\nold\n\n"+figuresEnd+"B\n", "new\n")
	want := "# A\n" + figuresBegin + "\nnew\n\n" + figuresEnd + "B\n"
	if got != want || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if _, err := withFigures("# A\n", "new\n"); err == nil {
		t.Error("a document without a place for the figures is no error")
	}
}

func TestMedianWithItsError(t *testing.T) {
	for name, tt := range map[string]struct {
		values        []float64
		median, error float64
	}{
		"one": {values: []float64{7}, median: 7},
		"even": {
			values: []float64{4, 1, 3, 100},
			median: 3.5,
			error:  1.394,
		},
		"one far out": {
			values: []float64{13, 10, 11, 9000, 12},
			median: 12,
			error:  0.831,
		},
	} {
		median, standardError := medianOf(tt.values)
		if median != tt.median || math.Abs(standardError-tt.error) > 1e-3 {
			t.Errorf("%s: got %v ± %v, want %v ± %v", name, median, standardError, tt.median, tt.error)
		}
	}
}

// TestRatioIsOfTheSameRound has a round in which everything was slow.
func TestRatioIsOfTheSameRound(t *testing.T) {
	times := []float64{20, 200, 40}
	reference := []float64{10, 100, 20}
	got := newFigures(times, reference)
	want := figures{CPU: 40, CPUError: got.CPUError, Ratio: 2}
	if got != want {
		t.Errorf("got %+v, want %+v: ratios without an error", got, want)
	}
}

func TestPercentile(t *testing.T) {
	var sorted []time.Duration
	for i := range 200 {
		sorted = append(sorted, time.Duration(i)*time.Microsecond)
	}
	p50 := percentile(sorted, 50)
	p99 := percentile(sorted, 99)
	if p50 != 100 || p99 != 198 {
		t.Errorf("got %v and %v, want 100 and 198", p50, p99)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
