// Command bench compares whole servers by the CPU time that they take for a request:
//
//	taskset -c 1 go run ./bench [-rounds n] [-duration d] [-only group] [-out docs]
//
// It needs Linux with two cores that nothing else uses meanwhile. The servers have core 0; the load has
// core 1, together with the upstream. The tables are Markdown. What handlers take in one process is measured by the
// module's Go benchmarks.
//
// The groups page, replace and pass compare ways to do the same work. The groups scale1 and scale2 find out whether the
// lock of the report shows: they load servers on one core and on both with up to 1,000 connections, for addresses that
// the report knows and for a flood of new ones. On both cores, the servers share one with the load.
//
// With -only, the groups in the folder that are not measured stay as they are.
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
	"strings"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(0)
	rounds := flag.Int("rounds", 30, "how often each site is measured")
	duration := flag.Duration("duration", time.Second, "how long each measurement takes")
	only := flag.String("only", "", "the `group` to measure, or how the names of several begin: page, replace, pass, scale (default: all)")
	out := flag.String("out", "", "a `folder` to write performance.json and performance.svg, a chart, to")
	flag.Parse()
	if flag.NArg() > 0 || *rounds < 1 || *duration <= 0 {
		flag.Usage()
		os.Exit(2)
	}
	if runtime.NumCPU() != 1 {
		log.Fatal("the load has to be on a core of its own: taskset -c 1 go run ./bench")
	}
	measured := slices.DeleteFunc(slices.Clone(groups), func(g group) bool { return !strings.HasPrefix(g.name, *only) })
	if len(measured) == 0 {
		log.Fatalf("no group is named %q: -only takes page, replace, pass or scale", *only)
	}
	var old results
	if *out != "" {
		var err error
		if old, err = readResults(*out); err != nil { // before it takes an hour
			log.Fatal(err)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	r, err := measure(ctx, measured, *rounds, *duration)
	stop()
	if err != nil {
		log.Fatal(err)
	}
	r = r.with(old)
	fmt.Print(r.markdown())
	if *out != "" {
		if err := r.write(*out); err != nil {
			log.Fatal(err)
		}
	}
}
