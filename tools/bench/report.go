package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// results are all figures, as they are printed, written to a file and drawn.
type results struct {
	Measured string // when, on what, and how often
	Groups   []groupResult
}

type groupResult struct {
	Title, Note string
	Loads       []string // the names of the loads, in their order
	Sites       []siteResult
	Compared    siteResult // the one with not_found, with its peer as the reference
}

type siteResult struct {
	Name  string
	Loads map[string]figures
}

// figures are medians of the rounds. An error is the standard error of the median.
type figures struct {
	CPU, CPUError     float64 // of the server, in µs per request
	Ratio, RatioError float64 // of this CPU time to that of the reference, in the same round
}

// environment returns when and on what the figures are measured, and how often.
func (b *bench) environment(rounds int, d time.Duration) string {
	read := func(file string) string {
		b, _ := os.ReadFile(file)
		return "\n" + string(b)
	}
	cpuinfo := read("/proc/cpuinfo")
	_, model, _ := strings.Cut(cpuinfo, "\nmodel name\t: ")
	model, _, _ = strings.Cut(model, "\n")
	return fmt.Sprintf("Measured on %s in %d rounds of %g s: %s, %d cores, Linux %s, %s, Caddy %s.",
		time.Now().Format(time.DateOnly), rounds, d.Seconds(), model, strings.Count(cpuinfo, "\nprocessor"), strings.TrimSpace(read("/proc/sys/kernel/osrelease")), runtime.Version(), b.version)
}

func newGroupResult(g *group, samples map[string][][]float64) groupResult {
	compare := func(name string, i, with int) siteResult {
		s := siteResult{name, make(map[string]figures)}
		for load, sites := range samples {
			s.Loads[load] = newFigures(sites[i], sites[with])
		}
		return s
	}
	r := groupResult{Title: g.title, Note: g.note}
	for _, l := range g.loads {
		r.Loads = append(r.Loads, l.name)
	}
	for i, s := range g.sites {
		r.Sites = append(r.Sites, compare(s.name, i, reference))
	}
	r.Compared = compare(g.sites[ours].name+", against "+g.sites[peer].name, ours, peer)
	return r
}

// newFigures compares the CPU times of a site with those of the reference in the same rounds.
func newFigures(times, reference []float64) (f figures) {
	ratios := make([]float64, len(times))
	for i := range times {
		ratios[i] = times[i] / reference[i]
	}
	f.CPU, f.CPUError = medianOf(times)
	f.Ratio, f.RatioError = medianOf(ratios)
	return f
}

// medianOf returns the median and its standard error for a normal distribution, estimated from the median absolute deviation,
// which a few disturbed rounds do not change.
func medianOf(values []float64) (median, standardError float64) {
	middle := func(values []float64) float64 {
		sorted := slices.Sorted(slices.Values(values))
		n := len(sorted)
		return (sorted[(n-1)/2] + sorted[n/2]) / 2
	}
	median = middle(values)
	deviations := make([]float64, len(values))
	for i, v := range values {
		deviations[i] = math.Abs(v - median)
	}
	return median, 1.2533 * 1.4826 * middle(deviations) / math.Sqrt(float64(len(values)))
}

const resultsFile, chartFile = "performance.json", "performance.svg"

// write writes the results and their chart to a folder.
func (r results) write(folder string) error {
	b, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(folder, resultsFile), append(b, '\n'), 0o644),
		os.WriteFile(filepath.Join(folder, chartFile), []byte(r.chart()), 0o644))
}

const introduction = `Medians with their standard error. Every response is compared with what it has to be. The servers share one core, all
sites of a table are loaded at once, and unless a table says otherwise, 32 requests of each are in flight. CPU is the
server's time per request. The ratio is that time to the one of the first site in the same round, or of the site that
the last row names: below 1.00 is cheaper.
`

// markdown returns the figures as tables.
func (r results) markdown() string {
	var b strings.Builder
	b.WriteString(introduction)
	fmt.Fprintf(&b, "%s\n", r.Measured)
	for _, g := range r.Groups {
		fmt.Fprintf(&b, "\n### %s\n\n", g.Title)
		if g.Note != "" {
			fmt.Fprintf(&b, "%s\n\n", g.Note)
		}
		g.writeTable(&b)
	}
	return b.String()
}

func (g *groupResult) writeTable(b *strings.Builder) {
	header, separator := "|", "|---|"
	for _, l := range g.Loads {
		header += " | " + l + " | ratio"
		separator += "---:|---:|"
	}
	fmt.Fprintf(b, "%s |\n%s\n", header, separator)
	for _, s := range append(slices.Clone(g.Sites), g.Compared) {
		fmt.Fprintf(b, "| %s", s.Name)
		for _, l := range g.Loads {
			f := s.Loads[l]
			fmt.Fprintf(b, " | %.1f ± %.1f µs | %.3f ± %.3f", f.CPU, f.CPUError, f.Ratio, f.RatioError)
		}
		b.WriteString(" |\n")
	}
}
