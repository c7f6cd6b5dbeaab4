//go:build linux

package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// figure is what the samples of all starts give together, with the standard error over the starts.
type figure struct{ Value, Error float64 }

func (f figure) String() string {
	decimals := max(0, 3-int(math.Log10(f.Value)))
	return fmt.Sprintf("%.*f±%.*f", decimals, f.Value, decimals, f.Error)
}

// overStarts evaluates the sum of all samples. Its error comes from what each sample gives alone.
func overStarts(samples []sample, evaluate func(sample) float64) figure {
	var each []float64
	for _, s := range samples {
		each = append(each, evaluate(s))
	}
	return figure{evaluate(sumOf(samples)), standardError(each)}
}

// standardError returns the standard error of a mean, which is not a number if there is only one value.
func standardError(values []float64) float64 {
	average := mean(values)
	var squares float64
	for _, v := range values {
		squares += (v - average) * (v - average)
	}
	n := float64(len(values))
	return math.Sqrt(squares / (n - 1) / n)
}

func mean(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

func percentile(values []float64, percent int) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)*percent/100]
}

// ratio returns a function for the CPU time that a site takes for a request, divided by that of the site that it is
// compared with.
func (g *group) ratio(site int, load string) func(sample) float64 {
	return func(s sample) float64 {
		own := s.costs[cell{site, load}]
		reference := s.costs[cell{g.Sites[site].Against, load}]
		return own.perRequest() / reference.perRequest()
	}
}

// resultOf returns the figures of all sites and columns.
func (g *group) resultOf(samples []sample) *result {
	r := &result{Measured: environment()}
	r.Figures = make(map[string]map[string]figure)
	for i, site := range g.Sites {
		columns := make(map[string]figure)
		for _, l := range g.Loads {
			columns[l.Name] = overStarts(samples, func(s sample) float64 { return s.costs[cell{i, l.Name}].perRequest() })
			columns[l.Name+" ratio"] = overStarts(samples, g.ratio(i, l.Name))
		}
		if !g.Varies {
			columns["p50"] = overStarts(samples, func(s sample) float64 { return percentile(s.latencies[i], 50) })
			columns["p99"] = overStarts(samples, func(s sample) float64 { return percentile(s.latencies[i], 99) })
		}
		r.Figures[site.Name] = columns
	}
	return r
}

// ofTwoBuilds returns a group that has sites twice: run by the build of the other commit, and by this one, whose ratio is
// to that. These are the sites that have not_found, and the first of the group. If the first has none, it shows how far two
// builds of the same code differ.
func (g group) ofTwoBuilds() group {
	var pairs []site
	for i, s := range g.Sites {
		isRepeated := slices.ContainsFunc(g.Sites[:i], func(before site) bool {
			return before.caddy == s.caddy && before.accept == s.accept
		})
		isOurs := strings.Contains(s.caddy, "not_found")
		if isRepeated || i > 0 && !isOurs {
			continue
		}
		s.Against = len(pairs)
		old := s
		old.isOld = true
		pairs = append(pairs, old, s)
	}
	g.Sites = pairs
	return g
}

// tableOfBuilds returns a table of the ratios of this build to the other: the mean of the alignments, and the lowest and
// the highest of them.
func (g *group) tableOfBuilds(samples []sample) string {
	var table strings.Builder
	fmt.Fprintf(&table, "### %s: this build against %s\n\n|", g.Title, *against)
	for _, l := range g.Loads {
		fmt.Fprintf(&table, "|%s", l.Name)
	}
	table.WriteString("|\n|---" + strings.Repeat("|---:", len(g.Loads)) + "|\n")
	for i, site := range g.Sites {
		if site.isOld {
			continue
		}
		fmt.Fprintf(&table, "|%s", site.Name)
		for _, l := range g.Loads {
			ratios := overAlignments(samples, g.ratio(i, l.Name))
			fmt.Fprintf(&table, "|%.3f (%.3f to %.3f)", mean(ratios), slices.Min(ratios), slices.Max(ratios))
		}
		table.WriteString("|\n")
	}
	return table.String()
}

// overAlignments evaluates the sum of the samples of each alignment.
func overAlignments(samples []sample, evaluate func(sample) float64) []float64 {
	sums := make([]sample, min(len(samples), len(alignments)))
	for i, s := range samples {
		sums[i%len(alignments)].add(s)
	}
	var values []float64
	for _, sum := range sums {
		values = append(values, evaluate(sum))
	}
	return values
}
