//go:build linux

package main

import (
	_ "embed"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/template"
)

// table is what a group costs, with a sample for each start.
type table struct {
	group
	samples []sample
}

// String returns the table in Markdown: for each site and protocol, the CPU time of a request in microseconds, and its
// ratio to the site that it is compared with.
func (t table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n|", t.Title)
	for _, p := range protocols {
		fmt.Fprintf(&b, "|%s|ratio", p.name)
	}
	b.WriteString("|\n|---" + strings.Repeat("|---:|---:", len(protocols)) + "|\n")
	for i, site := range t.Sites {
		if site.isOld {
			continue
		}
		fmt.Fprintf(&b, "|%s", site.Name)
		for _, p := range protocols {
			ratio, lowest, highest := t.ratio(i, p)
			fmt.Fprintf(&b, "|%.1f|%.3f (%.3f–%.3f)", sumOf(t.samples)[cell{i, p.name}].perRequest(), ratio, lowest, highest)
		}
		b.WriteString("|\n")
	}
	return b.String()
}

// ratio returns the ratio of the sums over all starts, and the lowest and the highest of those over the starts of one
// alignment.
func (t table) ratio(site int, p protocol) (ratio, lowest, highest float64) {
	ratioOf := func(samples []sample) float64 {
		sum := sumOf(samples)
		return sum[cell{site, p.name}].perRequest() / sum[cell{t.Sites[site].Against, p.name}].perRequest()
	}
	var ratios []float64
	for i := range min(len(t.samples), len(alignments)) {
		var ofAlignment []sample
		for j := i; j < len(t.samples); j += len(alignments) {
			ofAlignment = append(ofAlignment, t.samples[j])
		}
		ratios = append(ratios, ratioOf(ofAlignment))
	}
	return ratioOf(t.samples), slices.Min(ratios), slices.Max(ratios)
}

func sumOf(samples []sample) sample {
	sum := make(sample)
	for _, s := range samples {
		sum.add(s)
	}
	return sum
}

//go:embed chart.svg.tmpl
var chartTemplate string

// bar is a row of the chart: the title of a group, or a site.
type bar struct {
	Title, Name string
	IsOurs      bool
	Rate        float64 // requests per second over HTTP/1.1
	Width       float64
	Y           int
}

// writeChart writes the chart, which shows how fast each site is over HTTP/1.1, beside the first of its group.
func writeChart(tables []table) error {
	var bars []bar
	y := 20
	for _, t := range tables {
		bars = append(bars, bar{Title: strings.ReplaceAll(t.Title, "`", ""), Y: y + 23})
		y += 46
		for i, site := range t.Sites {
			if site.Name == "the same again" {
				continue
			}
			ratio, _, _ := t.ratio(i, protocols[0])
			bars = append(bars, bar{
				Name:   strings.ReplaceAll(site.Name, "`", ""),
				IsOurs: strings.Contains(site.caddy, "not_found"),
				Rate:   1e6 / sumOf(t.samples)[cell{i, protocols[0].name}].perRequest(),
				Width:  130 / ratio,
				Y:      y,
			})
			y += 26
		}
	}
	f, err := os.Create("docs/performance.svg")
	if err != nil {
		return err
	}
	defer f.Close()
	chart := struct {
		Bars   []bar
		Height int
	}{bars, y + 40}
	return template.Must(template.New("").Parse(chartTemplate)).Execute(f, chart)
}
