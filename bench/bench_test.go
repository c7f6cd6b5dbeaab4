package main

import (
	"fmt"
	"html"
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

// TestTables has sites that take 10 µs, 20 µs and so on for a request, on a core that they use half of. In one round,
// all figures are a fifth lower, and in another a fifth higher.
func TestTables(t *testing.T) {
	for name, tt := range map[string]struct {
		group *group
		rows  []string
		chart string
	}{
		"protocols": {&groups[2], []string{
			"\n| | HTTP/1.1 | ratio | HTTP/2 over TLS | ratio |\n|---|---:|---:|---:|---:|\n",
			"\n| `reverse_proxy` | 10.00 ± 2.63 µs | 1.000 ± 0.000 | 10.00 ± 2.63 µs | 1.000 ± 0.000 |\n",
			"\n| `reverse_proxy` after `not_found` | 30.00 ± 7.88 µs | 3.000 ± 0.000 | 30.00",
			"\n| `reverse_proxy` after `not_found`, against `reverse_proxy` after `intercept` for a 404 | 30.00 ± 7.88 µs | 0.750 ± 0.000 | 30.00",
		}, "<g class=\"ours\">\n<text class=\"name\" x=\"350\" y=\"105\">reverse_proxy after not_found</text>"},
		"connections": {&groups[4], []string{
			"\n| | 1 connection | per CPU | 10 connections | per CPU | 100 connections | per CPU | 1,000 connections | per CPU |\n",
			"\n| `respond`, a constant with the same header fields | 50.00 ± 13.14 | 100.00 ± 26.28 | 50.00",
			"\n| `not_found` with `report` | 16.67 ± 4.38 | 33.33 ± 8.76 | 16.67",
			"\n| `not_found` with `report`, against `not_found` | 1.333 ± 0.000 | 1.333 ± 0.000 | 1.333",
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := tt.group
			samples := make(map[string][][]sample)
			for _, l := range g.loads {
				for i := range g.sites {
					cpu := 10 * float64(i+1)
					rate := 1e6 / cpu / 2
					samples[l.name] = append(samples[l.name], []sample{{0.8 * cpu, 0.8 * rate}, {1.2 * cpu, 1.2 * rate}})
				}
			}
			r := results{newGroupResult(g, "now", samples)}
			for _, want := range append(tt.rows, "\n"+g.note+"\n") {
				if !strings.Contains(r.markdown(), want) {
					t.Errorf("want %q in\n%s", want, r.markdown())
				}
			}
			if chart := r.chart(); !strings.Contains(chart, tt.chart) || strings.Contains(chart, html.EscapeString(g.title)) != (tt.chart != "") {
				t.Errorf("got the chart\n%s\nwant %q in it", chart, tt.chart)
			}
		})
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
