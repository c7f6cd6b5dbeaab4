//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"
	"time"
)

// sample is what the sites of a group cost between a start of their servers and the next one.
type sample struct {
	costs     map[cell]cost
	latencies [][]float64 // of each site, in µs
}

// cell is a place in the table of a group.
type cell struct {
	site int // the number in the group
	load string
}

// cost is what a server spent on some requests.
type cost struct {
	cpu      time.Duration
	requests int
}

func (c cost) perRequest() float64 {
	return inMicroseconds(c.cpu) / float64(c.requests)
}

// add adds what the sites cost in another round or between other starts.
func (s *sample) add(other sample) {
	if s.costs == nil {
		s.costs = make(map[cell]cost)
	}
	for at, more := range other.costs {
		sum := s.costs[at]
		sum.cpu += more.cpu
		sum.requests += more.requests
		s.costs[at] = sum
	}
	for i, more := range other.latencies {
		if i == len(s.latencies) {
			s.latencies = append(s.latencies, nil)
		}
		s.latencies[i] = append(s.latencies[i], more...)
	}
}

func sumOf(samples []sample) sample {
	var sum sample
	for _, s := range samples {
		sum.add(s)
	}
	return sum
}

// measure measures the sites of a group in all rounds. It returns a sample for each start of the servers.
func (g *group) measure(ctx context.Context, dir string) ([]sample, error) {
	var samples []sample
	for done := 0; done < *rounds; done += roundsPerStart {
		fmt.Fprintf(os.Stderr, "%s: %d of %d rounds\n", g.Name, done, *rounds)
		alignment := alignments[len(samples)%len(alignments)]
		s, err := g.measureOnce(ctx, dir, alignment, min(roundsPerStart, *rounds-done))
		if err != nil {
			return nil, err
		}
		samples = append(samples, s)
	}
	return samples, nil
}

// measureOnce starts the servers of a group, measures some rounds, and stops the servers.
func (g *group) measureOnce(ctx context.Context, dir string, alignment, rounds int) (measured sample, err error) {
	var servers []*server
	for i, site := range g.Sites {
		s := &server{site: site, group: g, number: 1 + i}
		s.binary = binary(dir, newBuild, alignment)
		if site.isOld {
			s.binary = binary(dir, oldBuild, alignment)
		}
		err = s.start(ctx, dir, serverCore)
		if err != nil {
			return measured, err
		}
		defer s.stop()
		servers = append(servers, s)
	}
	for _, s := range servers {
		err = s.checkAnswer(servers[s.Against])
		if err != nil {
			return measured, err
		}
	}
	for round := range 1 + rounds {
		costs, err := g.measureRound(servers)
		if err != nil {
			return measured, err
		}
		if round > 0 { // The one before warms the servers up.
			measured.add(sample{costs: costs})
		}
	}
	if g.Varies || *against != "" {
		return measured, nil
	}
	for _, s := range servers {
		took, err := s.measureLatency(g.Loads[0])
		if err != nil {
			return measured, err
		}
		measured.latencies = append(measured.latencies, took)
	}
	return measured, nil
}

// checkAnswer returns an error unless the server gives the answer of the one that it is compared with. An older build may
// give another page.
func (s *server) checkAnswer(reference *server) error {
	hasStatus := strings.HasPrefix(s.answer, s.group.status)
	isPage := strings.Contains(s.answer, s.group.contains)
	isSame := s.answer == reference.answer || s.isOld != reference.isOld
	isSameClient := s.accept == reference.accept
	if !hasStatus || !isPage || !isSame || !isSameClient {
		return fmt.Errorf("%s answers\n%s\nand the reference\n%s", s.Name, s.answer, reference.answer)
	}
	if s.sameHeader && s.isOld == reference.isOld && !reflect.DeepEqual(s.header, reference.header) {
		return fmt.Errorf("%s has the header\n%v\nand the reference\n%v", s.Name, s.header, reference.header)
	}
	return nil
}

// measureRound measures the CPU times of all servers at once with each load, so that disturbances affect them alike.
func (g *group) measureRound(servers []*server) (map[cell]cost, error) {
	costs := make(map[cell]cost)
	for _, l := range g.Loads {
		ofServers := make([]cost, len(servers))
		err := together(servers, func(i int) (err error) {
			ofServers[i], err = servers[i].measureCost(l)
			return err
		})
		if err != nil {
			return nil, err
		}
		for i, c := range ofServers {
			costs[cell{i, l.Name}] = c
		}
	}
	return costs, nil
}

// measureCost loads a server for a while.
func (s *server) measureCost(l load) (cost, error) {
	c, err := s.connect(l)
	if err != nil {
		return cost{}, err
	}
	defer c.close()
	before, err := s.cpu()
	if err != nil {
		return cost{}, err
	}
	requests, err := c.saturate(*duration)
	if err != nil {
		return cost{}, err
	}
	after, err := s.cpu()
	return cost{cpu: after - before, requests: requests}, err
}

// measureLatency loads a server while the others of its group have nothing to do: first with all that it can serve, and
// then, for twice as long, with half of it. It returns the latencies at this rate.
func (s *server) measureLatency(l load) ([]float64, error) {
	c, err := s.connect(l)
	if err != nil {
		return nil, err
	}
	defer c.close()
	// The goroutine that says when a request is due sleeps in a thread of its own.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	requests, err := c.saturate(*duration)
	if err != nil {
		return nil, err
	}
	rate := float64(requests) / duration.Seconds() / 2
	return c.send(atRandom(rate, 2**duration))
}
