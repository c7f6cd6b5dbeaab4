package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// results are all figures, as they are printed, written to a file and drawn.
type results struct {
	Environment string
	Rounds      int
	Seconds     float64 // of each measurement
	Groups      []groupResult
}

type groupResult struct {
	Name, Title string
	Sites       []siteResult
}

type siteResult struct {
	Name      string
	Protocols map[string]figures
}

// figures are medians of the rounds. An error is the standard error of the median.
type figures struct {
	CPU, CPUError     float64 // of the server, in µs per request
	Ratio, RatioError float64 // of the reference's CPU time to this one, in the same round
}

func newResults(ctx context.Context, b *bench, rounds int, d time.Duration) *results {
	read := func(file string) string {
		b, _ := os.ReadFile(file)
		return "\n" + string(b)
	}
	cpuinfo := read("/proc/cpuinfo")
	_, model, _ := strings.Cut(cpuinfo, "\nmodel name\t: ")
	model, _, _ = strings.Cut(model, "\n")
	nginx, _ := exec.CommandContext(ctx, b.nginx, "-v").CombinedOutput()
	_, version, _ := strings.Cut(strings.TrimSpace(string(nginx)), "nginx/")
	return &results{
		Environment: fmt.Sprintf("Measured on %s: %s, %d cores, Linux %s, %s, Caddy %s, nginx %s.", time.Now().Format(time.DateOnly),
			model, strings.Count(cpuinfo, "\nprocessor"), strings.TrimSpace(read("/proc/sys/kernel/osrelease")), runtime.Version(), b.version, version),
		Rounds:  rounds,
		Seconds: d.Seconds(),
	}
}

func (r *results) add(g *group, samples map[string][][]float64) {
	result := groupResult{Name: g.name, Title: g.title}
	for i, s := range g.sites {
		site := siteResult{Name: s.name, Protocols: make(map[string]figures)}
		for protocol, sites := range samples {
			site.Protocols[protocol] = newFigures(sites[i], sites[0])
		}
		result.Sites = append(result.Sites, site)
	}
	r.Groups = append(r.Groups, result)
}

// newFigures compares CPU times with those of the reference in the same rounds.
func newFigures(cpu, reference []float64) (f figures) {
	ratios := make([]float64, len(cpu))
	for i := range cpu {
		ratios[i] = reference[i] / cpu[i]
	}
	f.CPU, f.CPUError = medianOf(cpu)
	f.Ratio, f.RatioError = medianOf(ratios)
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

// markdown returns the figures as tables.
func (r *results) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", r.Environment)
	fmt.Fprintf(&b, "Medians of %d rounds of %g s, with their standard error. The servers have one core, %d requests are in flight, and every\n"+
		"response is compared with what it has to be. CPU is the server's time per request, and the ratio that of the first\nsite to this one in the same round: above 1.00 is cheaper.\n",
		r.Rounds, r.Seconds, inFlight)
	for _, g := range r.Groups {
		header, separator := "|", "|---|"
		for _, p := range protocols {
			header += " | " + p + " | ratio"
			separator += "---:|---:|"
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s |\n%s\n", g.Title, header, separator)
		for _, s := range g.Sites {
			fmt.Fprintf(&b, "| %s", s.Name)
			for _, p := range protocols {
				f := s.Protocols[p]
				fmt.Fprintf(&b, " | %.2f ± %.2f µs | %.3f ± %.3f", f.CPU, f.CPUError, f.Ratio, f.RatioError)
			}
			b.WriteString(" |\n")
		}
	}
	return b.String()
}
