package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// microGroup is a benchmark that has a table.
type microGroup struct{ name, title string }

var microGroups = []microGroup{
	{"Answer", "A request that nothing answers"},
	{"Replace", "A 404 page replaced, by its size in bytes"},
	{"ReplaceProxied", "A 404 page of a backend replaced, over TCP"},
	{"Pass", "A response that passes"},
	{"PassProxied", "A response of a backend that passes, over TCP"},
	{"Accept", "What clients send as Accept"},
	{"Address", "Addresses, by their length in bytes"},
}

// reference is the contender that only calls the next handler: what it takes is not the others' own.
const reference = "calls_next"

// benchmark is what `go test` prints of one benchmark.
type benchmark struct {
	group, name   string
	ns            []float64 // by round
	bytes, allocs float64
}

// measureMicro runs the benchmarks of the module, all of them once in each round.
func measureMicro(ctx context.Context, rounds int, d time.Duration) ([]*benchmark, error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "notfound.test")
	if out, err := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, "github.com/caddy-notfound/notfound").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the benchmarks: %w\n%s", err, out)
	}

	var all []*benchmark
	for round := range rounds {
		log.Printf("round %d of %d", round+1, rounds)
		cmd := exec.CommandContext(ctx, binary, "-test.run=^$", "-test.bench=.", "-test.cpu=1", "-test.benchtime="+d.String(), "-test.timeout=1h")
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("running the benchmarks: %w\n%s", err, out)
		}
		found, err := parseBenchmarks(string(out))
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = found
			continue
		}
		if len(found) != len(all) {
			return nil, fmt.Errorf("there are %d benchmarks, and there were %d", len(found), len(all))
		}
		for i, b := range found {
			all[i].ns = append(all[i].ns, b.ns...)
		}
	}
	return all, nil
}

// parseBenchmarks reads what `go test -bench` prints with its allocations.
func parseBenchmarks(out string) (all []*benchmark, err error) {
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) != 8 || fields[3] != "ns/op" || fields[5] != "B/op" || fields[7] != "allocs/op" {
			continue
		}
		b := &benchmark{ns: make([]float64, 1)}
		b.group, b.name, _ = strings.Cut(strings.TrimPrefix(fields[0], "Benchmark"), "/")
		for i, value := range map[int]*float64{2: &b.ns[0], 4: &b.bytes, 6: &b.allocs} {
			if *value, err = strconv.ParseFloat(fields[i], 64); err != nil {
				return nil, fmt.Errorf("reading %q: %w", line, err)
			}
		}
		all = append(all, b)
	}
	return all, nil
}

// microMarkdown has the benchmarks in tables, for people.
func microMarkdown(all []*benchmark, groups []microGroup) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n\nMedians of %d rounds, on one core. The time is that of a compiled route, for a request that Caddy has prepared, without the garbage\n"+
		"collector's. Own is what a handler adds to that of `%s`, which only calls the next handler, and the ratio is of what is own to\n"+
		"that of the first.\n",
		machine(), len(all[0].ns), reference)
	for _, g := range groups {
		var group []*benchmark
		var next *benchmark
		for _, each := range all {
			if each.group == g.name {
				group = append(group, each)
				if each.name == reference {
					next = each
				}
			}
		}
		if next == nil {
			return "", fmt.Errorf("there is no benchmark %s/%s", g.name, reference)
		}
		rows := [][]string{{"", "time", "own", "ratio", "allocated", "allocations"}}
		for _, each := range group {
			row := []string{each.name, thousands(median(each.ns)) + " ns", "", "", thousands(each.bytes) + " B", thousands(each.allocs)}
			if each != next {
				own := each.own(next)
				row[2], row[3] = thousands(median(own))+" ns", fmt.Sprintf("%.2f", medianRatio(own, group[0].own(next)))
			}
			rows = append(rows, row)
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s", g.title, table(rows))
	}
	return b.String(), nil
}

// own is what a benchmark takes beyond the one that only calls the next handler, in each round.
func (b *benchmark) own(next *benchmark) []float64 {
	own := make([]float64, len(b.ns))
	for i := range own {
		own[i] = b.ns[i] - next.ns[i]
	}
	return own
}
