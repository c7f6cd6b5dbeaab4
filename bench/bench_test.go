package main

import (
	"encoding/json"
	"encoding/xml"
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

// TestChartIsProportional measures the bars.
func TestChartIsProportional(t *testing.T) {
	site := func(name string, cpu float64) siteResult {
		return siteResult{Name: name, Protocols: map[string]figures{http1: {CPU: cpu}}}
	}
	r := &results{Groups: []groupResult{{Name: "page", Title: "A <page>", Sites: []siteResult{
		site("`respond`", 20), site("the same again", 21), site("`not_found`", 40), site("nginx, <one>", 10),
	}}}}
	var drawing struct {
		Desc string `xml:"desc"`
		Bars []struct {
			Class string   `xml:"class,attr"`
			Texts []string `xml:"text"`
			Rect  struct {
				Width float64 `xml:"width,attr"`
			} `xml:"rect"`
		} `xml:"g"`
	}
	if err := xml.Unmarshal([]byte(r.chart()), &drawing); err != nil {
		t.Fatalf("%v\n%s", err, r.chart())
	}
	if len(drawing.Bars) != 3 {
		t.Fatalf("got %d bars, want one for each site but the control", len(drawing.Bars))
	}
	for i, want := range []struct {
		class, name, rate string
		width             float64
	}{{"other", "respond", "50,000", 170}, {"ours", "not_found", "25,000", 85}, {"other", "nginx, <one>", "100,000", 340}} {
		bar := drawing.Bars[i]
		if bar.Class != want.class || len(bar.Texts) != 2 || bar.Texts[0] != want.name || bar.Texts[1] != want.rate || bar.Rect.Width != want.width {
			t.Errorf("bar %d is %+v, want %+v", i, bar, want)
		}
		if !strings.Contains(drawing.Desc, want.name+" "+want.rate+"\n") {
			t.Errorf("the description lacks %s: %s", want.name, drawing.Desc)
		}
	}
}
