package main

import (
	"fmt"
	"strings"
	"time"
)

// results are all figures, as they are printed, written to a file and drawn. Each is the median of the rounds.
type results struct {
	Environment string         `json:"environment"`
	Rounds      int            `json:"rounds"`
	Seconds     float64        `json:"seconds"`           // of each run
	Others      float64        `json:"others_core_share"` // the mean share that other processes had of the servers' core
	Groups      []groupResult  `json:"groups"`
	Growth      []growthResult `json:"growth"`
}

type groupResult struct {
	Name       string            `json:"name"`
	Title      string            `json:"title"`
	Contenders []contenderResult `json:"contenders"`
}

type contenderResult struct {
	Name      string             `json:"name"`
	Protocols map[string]figures `json:"protocols"`
}

type growthResult struct {
	Name        string          `json:"name"`
	RestMiB     float64         `json:"rest_mib"` // the server's memory at rest
	Connections map[int]figures `json:"connections"`
}

type figures struct {
	Rate     float64 `json:"requests_per_second"`
	Ratio    float64 `json:"ratio"`               // of the rate to that of the group's first, round by round
	MedianMS float64 `json:"median_ms,omitempty"` // latency
	P99MS    float64 `json:"p99_ms,omitempty"`
	Core     float64 `json:"server_core_in_use"` // 1 where it was all the time
	PeakMiB  float64 `json:"peak_mib"`           // the server's memory, since it started
}

func newResults(environment string, rounds int, d time.Duration, groups []group, servers [][]*server, grown []*grown) *results {
	r := &results{Environment: environment, Rounds: rounds, Seconds: d.Seconds()}
	var all []sample
	for i, g := range groups {
		result := groupResult{Name: g.name, Title: g.title}
		for _, s := range servers[i] {
			c := contenderResult{Name: s.name, Protocols: make(map[string]figures)}
			for protocol, runs := range s.runs {
				all = append(all, runs...)
				c.Protocols[protocol] = newFigures(runs, servers[i][0].runs[protocol])
			}
			result.Contenders = append(result.Contenders, c)
		}
		r.Groups = append(r.Groups, result)
	}
	for _, c := range grown {
		result := growthResult{Name: c.name, RestMiB: median(c.rest), Connections: make(map[int]figures)}
		for connections, runs := range c.runs {
			all = append(all, runs...)
			result.Connections[connections] = newFigures(runs, grown[0].runs[connections])
		}
		r.Growth = append(r.Growth, result)
	}
	for _, run := range all {
		r.Others += run.others / float64(len(all))
	}
	return r
}

// newFigures takes the medians of runs, and compares them with the base of the same rounds.
func newFigures(runs, base []sample) figures {
	of := func(runs []sample, value func(sample) float64) []float64 {
		values := make([]float64, len(runs))
		for i, run := range runs {
			values[i] = value(run)
		}
		return values
	}
	rate := func(s sample) float64 { return s.rate }
	return figures{
		Rate:     median(of(runs, rate)),
		Ratio:    medianRatio(of(runs, rate), of(base, rate)),
		MedianMS: median(of(runs, func(s sample) float64 { return s.median })),
		P99MS:    median(of(runs, func(s sample) float64 { return s.p99 })),
		Core:     median(of(runs, func(s sample) float64 { return s.core })),
		PeakMiB:  median(of(runs, func(s sample) float64 { return s.peak })),
	}
}

// busy is the use of a core from which on it is the limit.
const busy = 0.9

// markdown has the figures in tables, for people.
func (r *results) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", r.Environment)
	fmt.Fprintf(&b, "Medians of %d rounds of %g s. Each server has one core; its load has another, together with the backend, and %d requests\n"+
		"in flight. A ratio compares what was measured in the same round. Other processes had %.1f%% of the servers' core.\n", r.Rounds, r.Seconds, inFlight, 100*r.Others)
	fmt.Fprintf(&b, "† The core was in use for less than %.0f%% of the time: the limit was the load or the backend, not the server.\n", 100*busy)

	for _, g := range r.Groups {
		header, latencyHeader := []string{"Requests/s"}, []string{"Latency, median and p99"}
		for _, protocol := range protocols {
			header = append(header, protocol.name, "ratio")
			if protocol.http == 1 {
				latencyHeader = append(latencyHeader, protocol.name, "p99")
			}
		}
		rates, latencies := [][]string{header}, [][]string{latencyHeader}
		for _, c := range g.Contenders {
			rate, latency := []string{c.Name}, []string{c.Name}
			for _, protocol := range protocols {
				f := c.Protocols[protocol.name]
				rate = append(rate, f.rate(), fmt.Sprintf("%.2f", f.Ratio))
				if protocol.http == 1 {
					latency = append(latency, ms(f.MedianMS), ms(f.P99MS))
				}
			}
			rates, latencies = append(rates, rate), append(latencies, latency)
		}
		fmt.Fprintf(&b, "\n### %s\n\n", g.Title)
		b.WriteString(table(rates))
		b.WriteByte('\n')
		b.WriteString(table(latencies))
	}

	fmt.Fprintf(&b, "\n### More and more connections\n\nA request that nothing answers, over HTTP/1.1. Memory is what is resident: at rest, and at its peak since the start.\n")
	for _, c := range r.Growth {
		rows := [][]string{
			{c.Name + ", connections", "requests/s", "latency, median", "p99", "memory"},
			{"at rest", "", "", "", fmt.Sprintf("%.1f MiB", c.RestMiB)},
		}
		for _, connections := range growth {
			f := c.Connections[connections]
			rows = append(rows, []string{thousands(float64(connections)), f.rate(), ms(f.MedianMS), ms(f.P99MS), fmt.Sprintf("%.1f MiB", f.PeakMiB)})
		}
		b.WriteByte('\n')
		b.WriteString(table(rows))
	}
	return b.String()
}

// rate marks the rate that is not all that the server could do.
func (f figures) rate() string {
	if f.Core < busy {
		return thousands(f.Rate) + "†"
	}
	return thousands(f.Rate)
}

func ms(v float64) string { return fmt.Sprintf("%.2f ms", v) }
