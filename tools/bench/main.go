//go:build linux

// Command bench compares whole servers by the CPU time that they take for a request, and by their latency:
//
//	taskset -c 1 go run ./tools/bench [-rounds n] [-duration d] [-write] [group ...]
//	taskset -c 1 go run ./tools/bench [-rounds n] [-duration d] -against commit [group ...]
//
// It needs two cores that nothing else uses meanwhile: one for the servers, and one for the load and the upstream.
// README.md beside this file explains the method.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// The core of the servers, and that of the load and the upstream.
const serverCore, loadCore = "0", "1"

// roundsPerStart is how many rounds the servers of a group live. What they cost depends on how the kernel and the runtime
// happened to place their memory, so the error of a figure is that over the starts.
const roundsPerStart = 10

var (
	rounds   = flag.Int("rounds", 60, "how often each site is measured; 0 only writes the documents again")
	duration = flag.Duration("duration", 300*time.Millisecond, "how long each measurement of a group takes")
	write    = flag.Bool("write", false, "write the figures to performance.json, the document and the chart")
	against  = flag.String("against", "", "compare this build with that of a `commit`, and write nothing")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if *rounds == 0 && *write {
		return writeResults(nil)
	}
	if err := checkFlags(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := makeTmpfsDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	err = buildAll(ctx, dir)
	if err != nil {
		return err
	}
	return measureGroups(ctx, dir)
}

func checkFlags() error {
	if runtime.NumCPU() != 1 {
		return fmt.Errorf("the load has to be on a core of its own: taskset -c %s go run ./tools/bench", loadCore)
	}
	if *write && *against != "" {
		return errors.New("the documents have no figures of two builds, so -against does not write any")
	}
	if *write && *rounds <= roundsPerStart {
		return fmt.Errorf("a figure needs two starts for its error, and so more than %d rounds", roundsPerStart)
	}
	return nil
}

// measureGroups measures the groups that the arguments name, or all, one after the other.
func measureGroups(ctx context.Context, dir string) error {
	named := flag.Args()
	selected := slices.DeleteFunc(slices.Clone(groups), func(g group) bool {
		return len(named) > 0 && !slices.Contains(named, g.Name)
	})
	if len(selected) == 0 {
		return fmt.Errorf("no group is named %q", named)
	}
	err := writePages(dir)
	if err != nil {
		return err
	}
	upstream.binary = binary(dir, newBuild, alignments[0])
	err = upstream.start(ctx, dir, loadCore)
	if err != nil {
		return err
	}
	defer upstream.stop()
	measured := make(results)
	for _, g := range selected {
		if *against != "" {
			err = g.compareBuilds(ctx, dir)
			if err != nil {
				return err
			}
			continue
		}
		samples, err := g.measure(ctx, dir)
		if err != nil {
			return err
		}
		measured[g.Name] = g.resultOf(samples)
	}
	err = templates.ExecuteTemplate(os.Stdout, "tables.md.tmpl", measured)
	if err != nil || !*write {
		return err
	}
	return writeResults(measured)
}

// compareBuilds prints how this build compares with that of the other commit.
func (g group) compareBuilds(ctx context.Context, dir string) error {
	pairs := g.ofTwoBuilds()
	samples, err := pairs.measure(ctx, dir)
	if err != nil {
		return err
	}
	fmt.Println(pairs.tableOfBuilds(samples))
	return nil
}

// writePages writes the files that the sites of the group "file" send.
func writePages(dir string) error {
	page := bytes.Repeat([]byte(html), 12_000/len(html))
	for _, name := range []string{"404.html", "brand.html"} {
		err := os.WriteFile(filepath.Join(dir, name), page, 0o644)
		if err != nil {
			return err
		}
	}
	return nil
}

// writeResults writes the documents with what was measured now, and with the former figures of the other groups.
func writeResults(measured results) error {
	all, err := readResults()
	if err != nil {
		return err
	}
	maps.Copy(all, measured)
	return all.write()
}
