// Command bench measures what the README says of performance:
//
//	go run ./bench micro [-rounds n] [-duration d]
//	go run ./bench load [-rounds n] [-duration d] [-json file]
//	go run ./bench chart file > docs/performance.svg
//
// micro runs the module's Go benchmarks, which compare handlers in one process; load compares whole servers under load, and prints tables in Markdown; chart draws the figures that load wrote
// to a file. load needs Linux with two cores, which nothing else should use meanwhile.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const usage = `usage:
	go run ./bench micro [-rounds n] [-duration d]
	go run ./bench load [-rounds n] [-duration d] [-json file]
	go run ./bench chart file`

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	switch command, args := args[0], args[1:]; command {
	case "micro":
		return runMicro(ctx, args, stdout)
	case "load":
		return runLoad(ctx, args, stdout)
	case "chart":
		return runChart(args, stdout)
	default:
		return fmt.Errorf("unknown command %q\n%s", command, usage)
	}
}

func runMicro(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("micro", flag.ExitOnError)
	rounds := flags.Int("rounds", 10, "how often each benchmark is run; the tables have medians")
	duration := flags.Duration("duration", 100*time.Millisecond, "how long each run takes, about")
	_ = flags.Parse(args) // exits
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case *rounds < 1:
		return fmt.Errorf("-rounds is %d; it has to be at least 1", *rounds)
	}

	benchmarks, err := measureMicro(ctx, *rounds, *duration)
	if err != nil {
		return err
	}
	tables, err := microMarkdown(benchmarks, microGroups)
	if err != nil {
		return err
	}
	_, err = io.WriteString(stdout, tables)
	return err
}

func runLoad(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("load", flag.ExitOnError)
	rounds := flags.Int("rounds", 5, "how often each server is measured; the tables have medians")
	duration := flags.Duration("duration", 2*time.Second, "how long each run takes, in whole seconds")
	file := flags.String("json", "", "the `file` to write the figures to as well")
	_ = flags.Parse(args) // exits
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case *rounds < 1:
		return fmt.Errorf("-rounds is %d; it has to be at least 1", *rounds)
	case *duration < time.Second || *duration%time.Second != 0:
		return fmt.Errorf("-duration is %s; it has to be in whole seconds, as wrk takes no others", *duration)
	}

	r, err := measure(ctx, *rounds, *duration)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(stdout, r.markdown()); err != nil || *file == "" {
		return err
	}
	b, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(*file, append(b, '\n'), 0o644)
}

func runChart(args []string, stdout io.Writer) error {
	if len(args) != 1 {
		return errors.New(usage)
	}
	b, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	var r results
	if err := json.Unmarshal(b, &r); err != nil {
		return fmt.Errorf("reading %s: %w", args[0], err)
	}
	svg, err := chart(&r)
	if err != nil {
		return fmt.Errorf("drawing %s: %w", args[0], err)
	}
	_, err = io.WriteString(stdout, svg)
	return err
}
