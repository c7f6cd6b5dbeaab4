// Command bench compares whole servers by the CPU time that they take for a request, and by their latency:
//
//	taskset -c 1 go run ./tools/bench [-rounds n] [-duration d] [-only group | -write]
//
// It needs Linux with two cores that nothing else uses meanwhile: one for the servers, and one for the load and the
// upstream. README.md beside this file explains the method.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(0)
	rounds := flag.Int("rounds", 60, "how often each site is measured")
	duration := flag.Duration("duration", 2*time.Second, "how long each measurement of a group takes")
	only := flag.String("only", "", "the `group` to measure: page, replace, pass or scale (default: all)")
	write := flag.Bool("write", false, "write the figures to performance.json, the documents and the chart")
	flag.Parse()
	measuresNothing := *rounds < 1 || *duration <= 0
	writesPart := *only != "" && *write // The documents show all groups.
	if flag.NArg() > 0 || measuresNothing || writesPart {
		flag.Usage()
		os.Exit(2)
	}
	if runtime.NumCPU() != 1 {
		log.Fatal("the load has to be on a core of its own: taskset -c 1 go run ./tools/bench")
	}
	p := plan{groups: groups, rounds: *rounds, duration: *duration}
	if *only != "" {
		p.groups = groupsNamed(*only)
	}
	if len(p.groups) == 0 {
		log.Fatalf("no group is named %q: -only takes page, replace, pass or scale", *only)
	}
	err := run(p, *write)
	if err != nil {
		log.Fatal(err)
	}
}

func run(p plan, write bool) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r, err := measure(ctx, p)
	if err != nil {
		return err
	}
	fmt.Print(r.tables())
	if write {
		return r.write()
	}
	return nil
}

func groupsNamed(name string) (named []group) {
	for _, g := range groups {
		if g.name == name {
			named = append(named, g)
		}
	}
	return named
}
