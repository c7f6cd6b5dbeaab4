package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// results are all figures, as they are printed, written to a file and drawn.
type results []groupResult

type groupResult struct {
	Name, Title, Note string
	Measured          string   // when, on what, and how often
	Loads             []string // the names of the loads, in their order
	Sites             []siteResult
	Compared          []siteResult // the one with not_found, with its peer as the reference
}

type siteResult struct {
	Name  string
	Loads map[string]figures
}

// figures are medians of the rounds. An error is the standard error of the median.
type figures struct {
	CPU, CPUError             float64 // of the server, in µs per request
	Ratio, RatioError         float64 // of this CPU time to that of the reference, in the same round
	Rate, RateError           float64 // requests per second
	RateRatio, RateRatioError float64
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

func newGroupResult(g *group, measured string, samples map[string][][]sample) groupResult {
	compare := func(name string, i, with int) siteResult {
		s := siteResult{name, make(map[string]figures)}
		for load, sites := range samples {
			s.Loads[load] = newFigures(sites[i], sites[with])
		}
		return s
	}
	r := groupResult{Name: g.name, Title: g.title, Note: g.note, Measured: measured}
	for _, l := range g.loads {
		r.Loads = append(r.Loads, l.name)
	}
	for i, s := range g.sites {
		r.Sites = append(r.Sites, compare(s.name, i, reference))
	}
	r.Compared = []siteResult{compare(g.sites[ours].name+", against "+g.sites[peer].name, ours, peer)}
	return r
}

// newFigures compares samples with those of the reference in the same rounds.
func newFigures(samples, reference []sample) (f figures) {
	of := func(figure func(sample) float64) (median, standardError, ratio, ratioError float64) {
		var values, ratios []float64
		for i, s := range samples {
			values = append(values, figure(s))
			ratios = append(ratios, figure(s)/figure(reference[i]))
		}
		median, standardError = medianOf(values)
		ratio, ratioError = medianOf(ratios)
		return median, standardError, ratio, ratioError
	}
	f.CPU, f.CPUError, f.Ratio, f.RatioError = of(func(s sample) float64 { return s.cpu })
	f.Rate, f.RateError, f.RateRatio, f.RateRatioError = of(func(s sample) float64 { return s.rate })
	return f
}

// medianOf returns the median and its standard error, as it is for a normal distribution. That is estimated from the
// median absolute deviation, which a few disturbed rounds don't change.
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

// with returns the results together with those of other groups from before, in the order of the groups.
func (r results) with(old results) (all results) {
	old = slices.Concat(r, old)
	for _, g := range groups {
		if i := slices.IndexFunc(old, func(result groupResult) bool { return result.Name == g.name }); i >= 0 {
			all = append(all, old[i])
		}
	}
	return all
}

const resultsFile, chartFile = "performance.json", "performance.svg"

// readResults reads what write has written to a folder, if anything.
func readResults(folder string) (r results, err error) {
	b, err := os.ReadFile(filepath.Join(folder, resultsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the figures of %s: %w", folder, err)
	}
	return r, nil
}

// write writes the results and their chart to a folder.
func (r results) write(folder string) error {
	b, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(folder, resultsFile), append(b, '\n'), 0o644),
		os.WriteFile(filepath.Join(folder, chartFile), []byte(r.chart()), 0o644))
}

const introduction = `Medians with their standard error. Every response is compared with what it has to be. Unless a table says otherwise, the
servers have one core, and 32 requests are in flight. CPU is the server's time per request. The ratio is that time to
the one of the first site in the same round, or of the site that the last row names: below 1.00 is cheaper.
`

// isScale reports whether the loads of a group differ in their size instead of their protocol.
func (g *groupResult) isScale() bool { return g.Loads[0] != http1 }

// markdown returns the figures as tables.
func (r results) markdown() string {
	var b strings.Builder
	b.WriteString(introduction)
	measured := ""
	for _, g := range r {
		fmt.Fprintf(&b, "\n### %s\n\n", g.Title)
		if g.Measured != measured {
			measured = g.Measured
			fmt.Fprintf(&b, "%s\n\n", measured)
		}
		if g.Note != "" {
			fmt.Fprintf(&b, "%s\n\n", g.Note)
		}
		g.writeTable(&b)
	}
	return b.String()
}

func (g *groupResult) writeTable(b *strings.Builder) {
	second, cells := "ratio", func(f figures) string {
		return fmt.Sprintf("%.2f ± %.2f µs | %.3f ± %.3f", f.CPU, f.CPUError, f.Ratio, f.RatioError)
	}
	compared := cells
	if g.isScale() {
		second, cells = "per CPU", func(f figures) string {
			perCPU, perCPUError := inverse(f.CPU/1e3, f.CPUError/1e3)
			return fmt.Sprintf("%.2f ± %.2f | %.2f ± %.2f", f.Rate/1e3, f.RateError/1e3, perCPU, perCPUError)
		}
		compared = func(f figures) string {
			perCPU, perCPUError := inverse(f.Ratio, f.RatioError)
			return fmt.Sprintf("%.3f ± %.3f | %.3f ± %.3f", f.RateRatio, f.RateRatioError, perCPU, perCPUError)
		}
	}

	header, separator := "|", "|---|"
	for _, l := range g.Loads {
		header += " | " + l + " | " + second
		separator += "---:|---:|"
	}
	fmt.Fprintf(b, "%s |\n%s\n", header, separator)
	row := func(s siteResult, cells func(figures) string) {
		fmt.Fprintf(b, "| %s", s.Name)
		for _, l := range g.Loads {
			b.WriteString(" | " + cells(s.Loads[l]))
		}
		b.WriteString(" |\n")
	}
	for _, s := range g.Sites {
		row(s, cells)
	}
	for _, s := range g.Compared {
		row(s, compared)
	}
}

// inverse returns the inverse of a figure, and its error.
func inverse(value, standardError float64) (float64, float64) {
	return 1 / value, standardError / (value * value)
}
