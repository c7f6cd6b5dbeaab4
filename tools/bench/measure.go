//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
)

// measure measures the sites of a group in each round. Their servers end with it, or they would disturb the next group.
func (g *group) measure(ctx context.Context, dir string) (*result, error) {
	var servers []*server
	for i, site := range g.Sites {
		s := &server{site: site, group: g, number: 1 + i}
		s.samples = make(map[string][]float64)
		err := s.start(ctx, dir, serverCore)
		if err != nil {
			return nil, err
		}
		defer s.stop()
		servers = append(servers, s)
		err = s.checkAnswer(servers[site.Against])
		if err != nil {
			return nil, err
		}
	}
	for round := range *rounds + 1 {
		fmt.Fprintf(os.Stderr, "%s: round %d of %d\n", g.Name, round, *rounds)
		if round == 1 {
			// The round before warmed the servers up.
			for _, s := range servers {
				clear(s.samples)
			}
		}
		err := g.measureRound(servers)
		if err != nil {
			return nil, err
		}
	}
	r := &result{Measured: environment()}
	r.Figures = make(map[string]map[string]figure)
	for _, s := range servers {
		columns := make(map[string]figure)
		for column, samples := range s.samples {
			columns[column] = medianOf(samples)
		}
		r.Figures[s.Name] = columns
	}
	return r, nil
}

// checkAnswer returns an error unless the server gives the answer of the one that it is compared with.
func (s *server) checkAnswer(reference *server) error {
	hasStatus := strings.HasPrefix(s.answer, s.group.status)
	isPage := strings.Contains(s.answer, s.group.contains)
	isSame := s.answer == reference.answer && s.accept == reference.accept
	if !hasStatus || !isPage || !isSame {
		return fmt.Errorf("%s answers\n%s\nand the reference\n%s", s.Name, s.answer, reference.answer)
	}
	return nil
}

// measureRound measures the CPU times of all servers at once with each load, so that disturbances affect them alike.
// Then it measures the latencies of each.
func (g *group) measureRound(servers []*server) error {
	for _, l := range g.Loads {
		times := make([]float64, len(servers))
		err := together(servers, func(i int) (err error) {
			times[i], err = servers[i].cpuPerRequest(l)
			return err
		})
		if err != nil {
			return err
		}
		addTimes(servers, l.Name, times)
	}
	if g.Varies {
		return nil
	}
	for _, s := range servers {
		err := s.measureLatency(g.Loads[0])
		if err != nil {
			return err
		}
	}
	return nil
}

// addTimes adds the CPU times of a round, and their ratios.
func addTimes(servers []*server, column string, times []float64) {
	for i, s := range servers {
		s.add(column, times[i])
		s.add(column+" ratio", times[i]/times[s.Against])
	}
}

func (s *server) add(column string, sample float64) {
	s.samples[column] = append(s.samples[column], sample)
}

// cpuPerRequest loads a server for a while. It returns the server's CPU time, in µs per request.
func (s *server) cpuPerRequest(l load) (float64, error) {
	c, err := s.connect(l)
	if err != nil {
		return 0, err
	}
	defer c.close()
	before, err := s.cpu()
	if err != nil {
		return 0, err
	}
	requests, err := c.saturate(*duration)
	if err != nil {
		return 0, err
	}
	after, err := s.cpu()
	if err != nil {
		return 0, err
	}
	return inMicroseconds(after-before) / float64(requests), nil
}

// measureLatency loads a server while the others of its group have nothing to do: first with all that it can serve, and
// then with half of it. It adds the latencies at this rate.
func (s *server) measureLatency(l load) error {
	c, err := s.connect(l)
	if err != nil {
		return err
	}
	defer c.close()
	// The goroutine that says when a request is due sleeps in a thread of its own.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	saturated := *duration / 4
	requests, err := c.saturate(saturated)
	if err != nil {
		return err
	}
	rate := float64(requests) / saturated.Seconds() / 2
	took, err := c.send(atRandom(rate, *duration))
	if err != nil {
		return err
	}
	s.add("p50", percentile(took, 50))
	s.add("p99", percentile(took, 99))
	return nil
}

func percentile(values []float64, percent int) float64 {
	slices.Sort(values)
	return values[len(values)*percent/100]
}
