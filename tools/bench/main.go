//go:build linux

// Command bench compares the CPU time of whole servers:
//
//	taskset -c 1 go run ./tools/bench [-starts n] [-against folder] [group ...]
//
// It needs two cores that nothing else uses meanwhile: one for the servers, and one for the load and the upstream.
// README.md beside this file explains the method.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"fmt"
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

// A server is measured in some rounds between a start and the next one. What it costs depends on how the kernel and the
// runtime happened to place its memory.
const (
	rounds    = 10
	roundTime = 300 * time.Millisecond
)

var (
	starts  = flag.Int("starts", 6, "how often the servers of each group start")
	against = flag.String("against", "", "compare this build with that of another `folder`, a worktree of a commit")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	selected := slices.DeleteFunc(slices.Clone(groups), func(g group) bool {
		return flag.NArg() > 0 && !slices.Contains(flag.Args(), g.Name)
	})
	if runtime.NumCPU() != 1 {
		return fmt.Errorf("the load has to be on a core of its own: taskset -c %s go run ./tools/bench", loadCore)
	}
	if len(selected) == 0 {
		return fmt.Errorf("no group is named %q", flag.Args())
	}
	dir, err := makeTmpfsDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := build(ctx, ".", dir, newBuild); err != nil {
		return err
	}
	if *against != "" {
		if err := build(ctx, *against, dir, oldBuild); err != nil {
			return err
		}
	}
	if err := writePages(dir); err != nil {
		return err
	}
	upstream.binary = binary(dir, newBuild, alignments[0])
	if err := upstream.start(ctx, dir, loadCore); err != nil {
		return err
	}
	defer upstream.stop()
	var measured []table
	for _, g := range selected {
		if *against != "" {
			g = g.ofTwoBuilds()
		} else {
			g = g.withControl()
		}
		samples, err := g.measure(ctx, dir)
		if err != nil {
			return err
		}
		t := table{g, samples}
		fmt.Println(t)
		measured = append(measured, t)
	}
	if *against == "" && len(selected) == len(groups) {
		return writeChart(measured)
	}
	return nil
}

// writePages writes the files that groups.go names. Their text is compressed as well as markup usually is.
func writePages(dir string) error {
	text, err := os.ReadFile("docs/options.md")
	if err != nil {
		return err
	}
	page := []byte(html)
	for line := range bytes.Lines(bytes.ReplaceAll(text, []byte("{{"), nil)) { // or it would be a template
		page = fmt.Appendf(page, "<li class=\"entry\"><a href=\"/docs/page\">%s</a></li>\n", bytes.TrimSpace(line))
	}
	page = page[:12_000]
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	_, _ = w.Write(page)
	_ = w.Close()
	files := map[string][]byte{"404.html": page, "brand.html": page, "plain.html": page, "404.html.gz": compressed.Bytes()}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
