// Command bench compares whole servers by the CPU time that they take for a request:
//
//	taskset -c 1 go run ./tools/bench [-rounds n] [-duration d] [-only group | -out docs]
//
// It needs Linux with two cores that nothing else uses meanwhile. The servers have core 0; the load has
// core 1, together with the upstream. The tables are Markdown. What handlers take in one process is measured by the
// module's Go benchmarks.
//
// Each site of a group is its own server, and all are loaded at once, so that whatever else the machine does affects them alike.
//
// The groups page, replace and pass compare ways to do the same work. The group scale measures what the report costs, with up to
// 1,000 connections that ask for known addresses and for a flood of new ones.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(0)
	rounds := flag.Int("rounds", 60, "how often each site is measured")
	duration := flag.Duration("duration", 2*time.Second, "how long each measurement of a group takes")
	only := flag.String("only", "", "the `group` to measure: page, replace, pass or scale (default: all)")
	out := flag.String("out", "", "a `folder` to write performance.json and performance.svg, a chart, to")
	flag.Parse()
	if flag.NArg() > 0 || *rounds < 1 || *duration <= 0 || *only != "" && *out != "" {
		flag.Usage()
		os.Exit(2)
	}
	if runtime.NumCPU() != 1 {
		log.Fatal("the load has to be on a core of its own: taskset -c 1 go run ./tools/bench")
	}
	measured := slices.DeleteFunc(slices.Clone(groups), func(g group) bool { return *only != "" && g.name != *only })
	if len(measured) == 0 {
		log.Fatalf("no group is named %q: -only takes page, replace, pass or scale", *only)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	r, err := measure(ctx, measured, *rounds, *duration)
	stop()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(r.markdown())
	if *out != "" {
		if err := r.write(*out); err != nil {
			log.Fatal(err)
		}
	}
}
