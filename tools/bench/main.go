//go:build linux

// Command bench compares whole servers by the CPU time that they take for a request, and by their latency:
//
//	taskset -c 1 go run ./tools/bench [-rounds n] [-duration d] [-write] [group ...]
//
// It needs two cores that nothing else uses meanwhile: one for the servers, and one for the load and the upstream.
// README.md beside this file explains the method.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// The core of the servers, and that of the load and the upstream.
const serverCore, loadCore = "0", "1"

var (
	rounds   = flag.Uint("rounds", 24, "how often each site is measured; 0 only writes the documents again")
	duration = flag.Duration("duration", 1200*time.Millisecond, "how long each measurement of a group takes")
	write    = flag.Bool("write", false, "write the figures to performance.json, the document and the chart")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	measured, err := measureGroups()
	if err != nil {
		return err
	}
	err = templates.ExecuteTemplate(os.Stdout, "tables.md.tmpl", measured)
	if err != nil || !*write {
		return err
	}
	all, err := readResults()
	if err != nil {
		return err
	}
	maps.Copy(all, measured)
	return all.write()
}

// measureGroups measures the groups that the arguments name, or all, one after the other.
func measureGroups() (results, error) {
	measured := make(results)
	if *rounds == 0 {
		return measured, nil
	}
	if runtime.NumCPU() != 1 {
		return nil, fmt.Errorf("the load has to be on a core of its own: taskset -c %s go run ./tools/bench", loadCore)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	build := exec.CommandContext(ctx, "go", "build", "-o", dir, "./cmd/caddy")
	out, err := build.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("building Caddy: %w\n%s", err, out)
	}
	page := bytes.Repeat([]byte(html), 12_000/len(html))
	for _, name := range []string{"404.html", "brand.html"} {
		err = os.WriteFile(filepath.Join(dir, name), page, 0o644)
		if err != nil {
			return nil, err
		}
	}
	err = upstream.start(ctx, dir, loadCore)
	if err != nil {
		return nil, err
	}
	defer upstream.stop()
	named := flag.Args()
	for i := range groups {
		g := &groups[i]
		if len(named) > 0 && !slices.Contains(named, g.Name) {
			continue
		}
		measured[g.Name], err = g.measure(ctx, dir)
		if err != nil {
			return nil, err
		}
	}
	if len(measured) == 0 {
		return nil, fmt.Errorf("no group is named %q", named)
	}
	return measured, nil
}
