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

// plan says what is measured.
type plan struct {
	groups   []group
	rounds   int
	duration time.Duration // of each measurement of a group
}

// samples are what was measured of a site. Each slice has one value for each round.
type samples struct {
	cpu   map[string][]float64 // µs per request, by load
	rates []float64            // requests per second, at which the latencies are measured
	p50s  []float64            // in µs
	p99s  []float64
}

// measure measures one group after the other.
func measure(ctx context.Context, p plan) (results, error) {
	var r results
	b, err := newBench(ctx, p)
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

	r.Measured = b.environment()
	for i := range p.groups {
		g := &p.groups[i]
		measured, err := b.measureGroup(ctx, g)
		if err != nil {
			return r, err
		}
		r.Groups = append(r.Groups, newGroupResult(g, measured))
	}
	return r, nil
}

// measureGroup measures the sites of a group in each round. Their servers end with it, or they would disturb the next
// group.
func (b *bench) measureGroup(ctx context.Context, g *group) ([]*samples, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sites, err := b.startAll(ctx, g)
	if err != nil {
		return nil, err
	}
	// The first round warms the servers up, and does not count.
	err = b.measureRound(ctx, sites, newSamples(g))
	if err != nil {
		return nil, err
	}
	measured := newSamples(g)
	for round := range b.rounds {
		err := b.measureRound(ctx, sites, measured)
		if err != nil {
			return nil, err
		}
		log.Printf("%s: round %d of %d", g.name, round+1, b.rounds)
	}
	return measured, nil
}

// newSamples returns empty samples for each site of a group.
func newSamples(g *group) (ofSites []*samples) {
	for range g.sites {
		s := new(samples)
		s.cpu = make(map[string][]float64)
		ofSites = append(ofSites, s)
	}
	return ofSites
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

// measureRound measures the CPU times with each load, and then the latencies. It adds them to the samples of the sites.
func (b *bench) measureRound(ctx context.Context, sites []*runningSite, ofSites []*samples) error {
	for _, l := range sites[0].group.loads {
		err := b.loadAll(ctx, l, sites, ofSites)
		if err != nil {
			return err
		}
	}
	for i, site := range sites {
		err := b.measureLatency(ctx, site, ofSites[i])
		if err != nil {
			return fmt.Errorf("%s, latency: %w", site.name, err)
		}
	}
	return nil
}

// loadAll loads all sites of a group at once, and adds the CPU time per request of each.
func (b *bench) loadAll(ctx context.Context, l loading, sites []*runningSite, ofSites []*samples) error {
	errs := make([]error, len(sites))
	var all sync.WaitGroup
	for i, site := range sites {
		all.Go(func() {
			perRequest, err := b.cpuPerRequest(ctx, l, site)
			if err != nil {
				errs[i] = fmt.Errorf("%s, %s: %w", site.name, l.name, err)
				return
			}
			cpu := ofSites[i].cpu
			cpu[l.name] = append(cpu[l.name], perRequest)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// cpuPerRequest loads a site for a while. It returns the CPU time of the server, in µs per request.
func (b *bench) cpuPerRequest(ctx context.Context, l loading, site *runningSite) (float64, error) {
	load, err := b.connect(site, l)
	if err != nil {
		return 0, err
	}
	defer load.close()
	before, err := site.cpu()
	if err != nil {
		return 0, err
	}
	requests, err := load.saturate(ctx, b.duration)
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
