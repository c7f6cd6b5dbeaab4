// Command bench compares whole servers by the CPU time that they take for a request:
//
//	taskset -c 1 go run ./bench [-rounds n] [-duration d] [-only group] [-out docs]
//
// It needs Linux with two cores that nothing else uses meanwhile, and nginx. The servers have core 0; the load has
// core 1, together with the upstream. The tables are Markdown. What handlers take in one process is measured by the
// module's Go benchmarks.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(0)
	rounds := flag.Int("rounds", 30, "how often each site is measured")
	duration := flag.Duration("duration", time.Second, "how long each measurement takes")
	only := flag.String("only", "", "the `group` to measure: page, replace or pass (default: all)")
	out := flag.String("out", "", "a `folder` to write performance.json and performance.svg, a chart, to")
	flag.Parse()
	if flag.NArg() > 0 || *rounds < 1 || *duration <= 0 {
		flag.Usage()
		os.Exit(2)
	}
	if runtime.NumCPU() != 1 {
		log.Fatal("the load has to be on a core of its own: taskset -c 1 go run ./bench")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	r, err := measure(ctx, *only, *rounds, *duration)
	stop()
	if err == nil && *out != "" {
		figures, _ := json.MarshalIndent(r, "", "\t")
		err = errors.Join(os.WriteFile(filepath.Join(*out, "performance.json"), append(figures, '\n'), 0o644),
			os.WriteFile(filepath.Join(*out, "performance.svg"), []byte(r.chart()), 0o644))
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(r.markdown())
}
