package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// inFlight is the number of requests that wait for their response at any time: 32 connections with one, or, in
// HTTP/2, 4 with 8. It is the number of idle connections that reverse_proxy keeps to a backend by default.
const inFlight, streams = 32, 8

// growth is the number of client connections whose effect is measured.
var growth = []int{1, 10, 100, 1000}

// measure starts all servers, and loads one of them at a time, each of them once in each round.
func measure(ctx context.Context, rounds int, d time.Duration) (_ *results, err error) {
	grown := []*grown{newGrown(groups[0].contenders[0]), newGrown(groups[0].contenders[1])}
	runs := len(grown) * len(growth)
	for _, g := range groups {
		runs += len(g.contenders) * len(protocols)
	}
	runs *= rounds

	// several times what it takes: so late, something hangs
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(runs)*(3*d+time.Second)+10*time.Minute, errors.New("it takes too long"))
	b, err := newBench(ctx)
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		cancel() // ends the servers
		if b != nil {
			b.close()
		}
	}()
	if err != nil {
		return nil, err
	}
	if err := b.startBackend(ctx); err != nil {
		return nil, err
	}
	servers := make([][]*server, len(groups))
	for i := range groups {
		for _, c := range groups[i].contenders {
			s, err := b.startVerified(ctx, &groups[i], c)
			if err != nil {
				return nil, err
			}
			servers[i] = append(servers[i], s)
		}
	}
	log.Printf("every server answers as it has to; %d runs take %s", runs, time.Duration(runs)*d)

	for round := range rounds {
		progress := fmt.Sprintf("round %d of %d", round+1, rounds)
		for i := range groups {
			for _, p := range protocols {
				for _, s := range servers[i] {
					run, err := b.load(ctx, s, p, inFlight, d)
					if err != nil {
						return nil, fmt.Errorf("%s, %s: %w", s.name, p.name, err)
					}
					s.runs[p.name] = append(s.runs[p.name], run)
					log.Printf("%s, %s, %s, %s: %.0f requests/s", progress, groups[i].name, p.name, s.name, run.rate)
				}
			}
		}
		for _, c := range grown {
			if err := b.grow(ctx, &groups[0], c, d); err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			log.Printf("%s, more and more connections, %s", progress, c.name)
		}
	}
	return newResults(b.environment(ctx), rounds, d, groups, servers, grown), nil
}

// sample is what one run showed.
type sample struct {
	rate        float64 // requests/s
	median, p99 float64 // latency, in ms; h2load has none
	core        float64 // the share of the time that the server's core was in use
	others      float64 // the share that other processes had of it, or other machines
	peak        float64 // of the server's memory since it started, in MiB
}

// load loads a server for a while.
func (b *bench) load(ctx context.Context, s *server, p protocol, connections int, d time.Duration) (sample, error) {
	ctx, cancel := context.WithTimeout(ctx, d+20*time.Second)
	defer cancel()

	seconds := strconv.Itoa(int(d.Seconds()))
	program, parse := "wrk", parseWrk
	args := []string{"-t1", "-c" + strconv.Itoa(connections), "-d" + seconds + "s", "--latency", "--timeout=10s"}
	if p.http == 2 {
		program, parse = "h2load", parseH2load
		args = []string{"-t1", "-c" + strconv.Itoa(connections/streams), "-m" + strconv.Itoa(streams), "-D" + seconds}
	}
	cmd := b.pinned(ctx, loadCore, program, append(args, s.base(p)+s.group.target)...)

	before, err := s.ticks()
	if err != nil {
		return sample{}, err
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return sample{}, fmt.Errorf("%s: %w\n%s", program, err, out)
	}
	after, err := s.ticks()
	if err != nil {
		return sample{}, err
	}
	run, err := parse(string(out), s.group.status)
	if err != nil {
		return sample{}, fmt.Errorf("%s: %w\n%s", program, err, out)
	}
	elapsed := after.total - before.total
	run.core = (after.busy - before.busy) / elapsed
	run.others = max(0, after.processes-before.processes-(after.server-before.server)) / elapsed
	// wrk does not tell a 502 from a 404, but servers log it
	if logged := s.logged(); logged != "" {
		return sample{}, fmt.Errorf("the server logged an error:\n%.1000s", logged)
	}
	run.peak, err = memory(s.pid, "VmHWM")
	return run, err
}

// grown is a contender under more and more connections.
type grown struct {
	contender
	rest []float64        // memory at rest, in MiB
	runs map[int][]sample // by the number of connections
}

func newGrown(c contender) *grown { return &grown{contender: c, runs: make(map[int][]sample)} }

// grow loads a new server of the contender with more and more connections.
func (b *bench) grow(ctx context.Context, g *group, c *grown, d time.Duration) error {
	s, err := b.startVerified(ctx, g, c.contender)
	if err != nil {
		return err
	}
	defer s.stop()
	rest, err := memory(s.pid, "VmRSS")
	if err != nil {
		return err
	}
	c.rest = append(c.rest, rest)
	for _, connections := range growth {
		run, err := b.load(ctx, s, protocols[0], connections, d)
		if err != nil {
			return fmt.Errorf("%d connections: %w", connections, err)
		}
		c.runs[connections] = append(c.runs[connections], run)
	}
	return nil
}

// What wrk prints:
var (
	wrkLatency  = regexp.MustCompile(`(?m)^ +(50|99)% +([\d.]+[a-z]+) ?$`)
	wrkRequests = regexp.MustCompile(`(?m)^ +(\d+) requests in `)
	wrkRefused  = regexp.MustCompile(`(?m)^ +Non-2xx or 3xx responses: (\d+)$`)
	wrkErrors   = regexp.MustCompile(`(?m)^ +Socket errors: .+$`)
	wrkRate     = regexp.MustCompile(`(?m)^Requests/sec: +([\d.]+)$`)
)

// parseWrk reads what wrk prints, where every response has to have the given status, as far as wrk tells.
func parseWrk(out string, status int) (sample, error) {
	if failed := wrkErrors.FindString(out); failed != "" {
		return sample{}, errors.New(strings.TrimSpace(failed))
	}
	rate, err := strconv.ParseFloat(submatch(wrkRate, out), 64)
	if err != nil || rate == 0 {
		return sample{}, errors.New("no responses")
	}
	requests, refused := submatch(wrkRequests, out), submatch(wrkRefused, out)
	if status < 400 && refused != "" || status >= 400 && refused != requests {
		return sample{}, fmt.Errorf("not every response has status %d", status)
	}
	s := sample{rate: rate}
	for _, m := range wrkLatency.FindAllStringSubmatch(out, -1) {
		latency, err := time.ParseDuration(m[2])
		if err != nil {
			return sample{}, fmt.Errorf("reading the latency: %w", err)
		}
		ms := float64(latency) / float64(time.Millisecond)
		if m[1] == "50" {
			s.median = ms
		} else {
			s.p99 = ms
		}
	}
	if s.median == 0 || s.p99 == 0 {
		return sample{}, errors.New("no latency")
	}
	return s, nil
}

// What h2load prints:
var (
	h2loadRate     = regexp.MustCompile(`(?m)^finished in .+?, ([\d.]+) req/s`)
	h2loadRequests = regexp.MustCompile(`(?m)^requests: .* (\d+) errored, (\d+) timeout$`)
	h2loadStatuses = regexp.MustCompile(`(?m)^status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx$`)
)

// parseH2load reads what h2load prints, where every response has to have a status of the same class as the given one.
func parseH2load(out string, status int) (sample, error) {
	rate, err := strconv.ParseFloat(submatch(h2loadRate, out), 64)
	requests, statuses := h2loadRequests.FindStringSubmatch(out), h2loadStatuses.FindStringSubmatch(out)
	if err != nil || rate == 0 || requests == nil || statuses == nil {
		return sample{}, errors.New("no responses")
	}
	if requests[1] != "0" || requests[2] != "0" {
		return sample{}, errors.New(requests[0])
	}
	for i, count := range statuses[1:] {
		if class := i + 2; (count != "0") != (class == status/100) {
			return sample{}, fmt.Errorf("not every response has status %d", status)
		}
	}
	return sample{rate: rate}, nil
}

// submatch gives the first group of the first match.
func submatch(re *regexp.Regexp, s string) string {
	if m := re.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return ""
}
