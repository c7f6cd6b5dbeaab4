package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"
)

// The core of the servers, and that of the load and the upstream.
const serverCore, loadCore = "0", "1"

// samples are what was measured of a group. Each slice has one value for each round.
type samples struct {
	cpu     map[string][][]float64 // µs per request, by load and site
	latency []latencySamples       // by site
}

type latencySamples struct {
	rates, p50s, p99s []float64
}

// measure measures one group after the other.
func measure(ctx context.Context, groups []group, rounds int, d time.Duration) (results, error) {
	var r results
	b, err := newBench(ctx)
	if err != nil {
		return r, err
	}
	defer b.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the servers

	up, err := b.start(ctx, new(group), upstream, loadCore)
	if err != nil {
		return r, err
	}
	b.upstream = up.addrs[0]

	r.Measured = b.environment(rounds, d)
	for i := range groups {
		g := &groups[i]
		s, err := b.measureGroup(ctx, g, rounds, d)
		if err != nil {
			return r, err
		}
		r.Groups = append(r.Groups, newGroupResult(g, s))
	}
	return r, nil
}

// measureGroup measures the sites of a group in each round. Their servers end with it, or they would disturb the next
// group.
func (b *bench) measureGroup(ctx context.Context, g *group, rounds int, d time.Duration) (*samples, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sites, err := b.startAll(ctx, g)
	if err != nil {
		return nil, err
	}
	if err := b.measureRound(ctx, sites, d, newSamples(g)); err != nil { // to warm up
		return nil, err
	}
	s := newSamples(g)
	for round := range rounds {
		if err := b.measureRound(ctx, sites, d, s); err != nil {
			return nil, err
		}
		log.Printf("%s: round %d of %d", g.name, round+1, rounds)
	}
	return s, nil
}

func newSamples(g *group) *samples {
	s := &samples{cpu: make(map[string][][]float64), latency: make([]latencySamples, len(g.sites))}
	for _, l := range g.loads {
		s.cpu[l.name] = make([][]float64, len(g.sites))
	}
	return s
}

func (b *bench) startAll(ctx context.Context, g *group) ([]*runningSite, error) {
	var sites []*runningSite
	for _, s := range g.sites {
		running, err := b.start(ctx, g, s, serverCore)
		if err != nil {
			return nil, err
		}
		sites = append(sites, running)
	}
	return sites, nil
}

// measureRound measures the CPU times with each load, and then the latencies.
func (b *bench) measureRound(ctx context.Context, sites []*runningSite, d time.Duration, s *samples) error {
	for _, l := range sites[0].group.loads {
		if err := b.loadAll(ctx, sites, l, d, s.cpu[l.name]); err != nil {
			return err
		}
	}
	for i, site := range sites {
		if err := b.measureLatency(ctx, site, d, &s.latency[i]); err != nil {
			return fmt.Errorf("%s, latency: %w", site.name, err)
		}
	}
	return nil
}

// loadAll loads all sites of a group at once, and adds the CPU time per request of each.
func (b *bench) loadAll(ctx context.Context, sites []*runningSite, l loading, d time.Duration, cpu [][]float64) error {
	errs := make([]error, len(sites))
	var all sync.WaitGroup
	for i, site := range sites {
		all.Go(func() {
			perRequest, err := b.cpuPerRequest(ctx, site, l, d)
			if err != nil {
				errs[i] = fmt.Errorf("%s, %s: %w", site.name, l.name, err)
				return
			}
			cpu[i] = append(cpu[i], perRequest)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// cpuPerRequest loads a site for a while. It returns the CPU time of the server, in µs per request.
func (b *bench) cpuPerRequest(ctx context.Context, site *runningSite, l loading, d time.Duration) (float64, error) {
	load, err := b.connect(site, l)
	if err != nil {
		return 0, err
	}
	defer load.close()
	before, err := site.cpu()
	if err != nil {
		return 0, err
	}
	requests, err := load.saturate(ctx, d)
	if err != nil {
		return 0, err
	}
	after, err := site.cpu()
	if err != nil {
		return 0, err
	}
	return inMicroseconds(after-before) / float64(requests), nil
}

func inMicroseconds(d time.Duration) float64 {
	return float64(d) / float64(time.Microsecond)
}
