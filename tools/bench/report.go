package main

import (
	"fmt"
	"math"
	"os"
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
	Compared    *siteResult `json:",omitempty"` // the site with not_found, compared with its peer; nil without one
}

type siteResult struct {
	Name    string
	Loads   map[string]figures
	Latency *latencyFigures `json:",omitempty"` // not in what was measured before there were latencies
}

// figures are medians of the rounds. An error is the standard error of the median.
type figures struct {
	CPU, CPUError     float64 // of the server, in µs per request
	Ratio, RatioError float64 // of this CPU time to that of the reference, in the same round
}

// latencyFigures are medians of the rounds, too.
type latencyFigures struct {
	Rate          float64 // requests per second
	P50, P50Error float64 // in µs
	P99, P99Error float64
}

// environment returns when and on what the figures are measured, and how often.
func (b *bench) environment() string {
	read := func(file string) string {
		content, _ := os.ReadFile(file)
		return "\n" + string(content)
	}
	cpuinfo := read("/proc/cpuinfo")
	_, model, _ := strings.Cut(cpuinfo, "\nmodel name\t: ")
	model, _, _ = strings.Cut(model, "\n")
	cores := strings.Count(cpuinfo, "\nprocessor")
	kernel := strings.TrimSpace(read("/proc/sys/kernel/osrelease"))
	today := time.Now().Format(time.DateOnly)
	seconds := b.duration.Seconds()
	measured := fmt.Sprintf("Measured on %s in %d rounds of %g s", today, b.rounds, seconds)
	machine := fmt.Sprintf("%s, %d cores, Linux %s", model, cores, kernel)
	programs := fmt.Sprintf("%s, Caddy %s", runtime.Version(), b.version)
	return measured + ": " + machine + ", " + programs + "."
}

// newGroupResult makes the figures of a group from the samples of its sites.
func newGroupResult(g *group, measured []*samples) groupResult {
	r := groupResult{Title: g.title, Note: g.note}
	for _, l := range g.loads {
		r.Loads = append(r.Loads, l.name)
	}
	for i, site := range g.sites {
		result := newSiteResult(site.name, measured[i], measured[reference])
		r.Sites = append(r.Sites, result)
	}
	if g.hasPeer {
		name := g.sites[ours].name + ", against " + g.sites[peer].name
		result := newSiteResult(name, measured[ours], measured[peer])
		r.Compared = &result
	}
	return r
}

// newSiteResult compares a site with another one of its group.
func newSiteResult(name string, s, other *samples) siteResult {
	r := siteResult{Name: name, Loads: make(map[string]figures)}
	for load, times := range s.cpu {
		r.Loads[load] = newFigures(times, other.cpu[load])
	}
	latency := new(latencyFigures)
	latency.Rate, _ = medianOf(s.rates)
	latency.P50, latency.P50Error = medianOf(s.p50s)
	latency.P99, latency.P99Error = medianOf(s.p99s)
	r.Latency = latency
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

// medianOf returns the median and its standard error for a normal distribution. The error is estimated from the median
// absolute deviation, which a few disturbed rounds do not change.
func medianOf(values []float64) (median, standardError float64) {
	const (
		deviationToSigma = 1.4826
		meanToMedian     = 1.2533 // the standard error of a median is so many times that of a mean
	)
	median = middle(values)
	deviations := make([]float64, len(values))
	for i, v := range values {
		deviations[i] = math.Abs(v - median)
	}
	sigma := deviationToSigma * middle(deviations)
	errorOfMean := sigma / math.Sqrt(float64(len(values)))
	return median, meanToMedian * errorOfMean
}

func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	lower := sorted[(n-1)/2]
	upper := sorted[n/2]
	return (lower + upper) / 2
}

// tables returns all figures in Markdown.
func (r results) tables() string {
	var b strings.Builder
	fmt.Fprintln(&b, r.Measured)
	for _, g := range r.Groups {
		fmt.Fprintf(&b, "\n### %s\n\n", g.Title)
		if g.Note != "" {
			fmt.Fprintf(&b, "%s\n\n", g.Note)
		}
		if g.comparesSites() {
			g.writeTable(&b)
		} else {
			g.writeScale(&b)
		}
	}
	return b.String()
}

// comparesSites reports whether the group compares sites over the protocols. Another group compares the numbers of
// connections.
func (g *groupResult) comparesSites() bool {
	return g.Loads[0] == http1
}

func (g *groupResult) writeTable(b *strings.Builder) {
	header := []string{""}
	for _, l := range g.Loads {
		header = append(header, l, "ratio")
	}
	writeHeader(b, header)
	rows := slices.Clone(g.Sites)
	if g.Compared != nil {
		rows = append(rows, *g.Compared)
	}
	for _, s := range rows {
		row := []string{s.Name}
		for _, l := range g.Loads {
			f := s.Loads[l]
			row = append(row, f.cpuCell(), f.ratioCell())
		}
		writeRow(b, row)
	}
}

// writeScale writes a row for each number of connections: the site with not_found, its peer, and how they compare.
func (g *groupResult) writeScale(b *strings.Builder) {
	site := g.Sites[ours]
	other := g.Sites[peer]
	writeHeader(b, []string{"", site.Name, other.Name, "ratio"})
	for _, l := range g.Loads {
		writeRow(b, []string{
			l,
			site.Loads[l].cpuCell(),
			other.Loads[l].cpuCell(),
			g.Compared.Loads[l].ratioCell(),
		})
	}
}

func (f figures) cpuCell() string {
	return fmt.Sprintf("%.1f±%.1f", f.CPU, f.CPUError)
}

func (f figures) ratioCell() string {
	return fmt.Sprintf("%.3f±%.3f", f.Ratio, f.RatioError)
}

func (g *groupResult) hasLatency() bool {
	return g.Sites[0].Latency != nil
}

// summary returns what docs/performance.md has: the sites that a user chooses between, without errors. The results are
// those of all groups.
func (r results) summary() string {
	hasLatency := r.Groups[0].hasLatency()
	header := []string{"", http1, http2}
	var b strings.Builder
	if hasLatency {
		header = append(header, "p50", "p99")
		b.WriteString(summaryWithLatency)
	} else {
		b.WriteString(summaryWithoutLatency)
	}
	writeHeader(&b, header)
	for i, g := range r.Groups {
		if !g.comparesSites() {
			continue
		}
		title := make([]string, len(header))
		title[0] = "**" + g.Title + "**"
		writeRow(&b, title)
		for j, s := range g.Sites {
			if groups[i].sites[j].forUser {
				row := s.cells(g.Loads, hasLatency)
				writeRow(&b, row)
			}
		}
	}
	fmt.Fprintf(&b, "\n%s\n", r.Measured)
	return b.String()
}

const (
	summaryWithoutLatency = "CPU time of the server per request, in µs:\n\n"
	summaryWithLatency    = `CPU time of the server per request, and latencies (p50, p99) over HTTP/1.1 at half of the load that
saturates the server, in µs:

`
)

// cells returns the row of a site in the summary: its figures without their errors.
func (s *siteResult) cells(loads []string, hasLatency bool) []string {
	row := []string{s.Name}
	for _, l := range loads {
		cpu := s.Loads[l].CPU
		row = append(row, rounded(cpu))
	}
	if hasLatency {
		l := s.Latency
		row = append(row, rounded(l.P50), rounded(l.P99))
	}
	return row
}

func rounded(microseconds float64) string {
	return fmt.Sprintf("%.0f", microseconds)
}

// writeHeader writes the first two lines of a table whose first column is text, and whose others are numbers.
func writeHeader(b *strings.Builder, cells []string) {
	writeRow(b, cells)
	numbers := strings.Repeat("---:|", len(cells)-1)
	b.WriteString("|---|" + numbers + "\n")
}

func writeRow(b *strings.Builder, cells []string) {
	for _, cell := range cells {
		text := strings.TrimRight("| "+cell, " ")
		b.WriteString(text + " ")
	}
	b.WriteString("|\n")
}
