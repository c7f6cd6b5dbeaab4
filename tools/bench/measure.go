//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
)

// sample is what the sites of a group cost between a start of their servers and the next one.
type sample map[cell]cost

// cell is a place in the table of a group.
type cell struct {
	site     int // the number in the group
	protocol string
}

// cost is what a server spent on some requests.
type cost struct {
	cpu      time.Duration
	requests int
}

// perRequest returns the CPU time in microseconds.
func (c cost) perRequest() float64 {
	return float64(c.cpu) / float64(time.Microsecond) / float64(c.requests)
}

// add adds what the sites cost in another round, or between other starts.
func (s sample) add(other sample) {
	for at, more := range other {
		s[at] = cost{s[at].cpu + more.cpu, s[at].requests + more.requests}
	}
}

// withControl returns a group whose first site is there again.
func (g group) withControl() group {
	control := g.Sites[0]
	control.Name = "the same again"
	g.Sites = append(slices.Clone(g.Sites), control)
	return g
}

// ofTwoBuilds returns a group that has sites twice: run by the other build, and by this one, whose ratio is to that.
// These are the sites that have not_found, and the first of the group. If the first has none, it is the control: it
// shows how far two builds of the same code differ.
func (g group) ofTwoBuilds() group {
	var pairs []site
	for i, s := range g.Sites {
		if i > 0 && !strings.Contains(s.caddy, "not_found") {
			continue
		}
		s.Against = len(pairs)
		old := s
		old.isOld = true
		pairs = append(pairs, old, s)
	}
	g.Sites = pairs
	return g
}

// measure starts the servers of a group again and again. It returns a sample for each start.
func (g *group) measure(ctx context.Context, dir string) ([]sample, error) {
	var samples []sample
	for start := range *starts {
		fmt.Fprintf(os.Stderr, "%s: %d of %d starts\n", g.Name, start, *starts)
		s, err := g.measureOnce(ctx, dir, start)
		if err != nil {
			return nil, err
		}
		samples = append(samples, s)
	}
	return samples, nil
}

// measureOnce starts the servers of a group, measures them in some rounds, and stops them. The first one to start is
// another one each time, because it costs some percent more.
func (g *group) measureOnce(ctx context.Context, dir string, start int) (sample, error) {
	alignment := alignments[start%len(alignments)]
	servers := make([]*server, len(g.Sites))
	for number := range servers {
		i := (number + start) % len(servers)
		site := g.Sites[i]
		s := &server{site: site, group: g, number: 1 + number}
		s.binary = binary(dir, newBuild, alignment)
		if site.isOld {
			s.binary = binary(dir, oldBuild, alignment)
		}
		if err := s.start(ctx, dir, serverCore); err != nil {
			return nil, err
		}
		defer s.stop()
		servers[i] = s
	}
	for _, s := range servers {
		if err := s.checkAnswer(servers[s.Against]); err != nil {
			return nil, err
		}
	}
	measured := make(sample)
	for round := range 1 + rounds {
		costs, err := measureRound(servers)
		if err != nil {
			return nil, err
		}
		if round > 0 { // The one before warms the servers up.
			measured.add(costs)
		}
	}
	return measured, nil
}

// checkAnswer returns an error unless the server gives the answer of the one that it is compared with. An older build
// may give another page.
func (s *server) checkAnswer(reference *server) error {
	hasStatus := strings.HasPrefix(s.answer, s.group.status)
	isPage := strings.Contains(s.answer, s.group.contains) || s.isEncoded
	isComparable := s.isOld == reference.isOld && !s.isEncoded && !reference.isEncoded
	if !hasStatus || !isPage || isComparable && s.answer != reference.answer {
		return fmt.Errorf("%s answers\n%s\nand the reference\n%s", s.Name, s.answer, reference.answer)
	}
	if isEncoded := s.header.Get("Content-Encoding") != ""; isEncoded != s.isEncoded {
		return fmt.Errorf("%s: the answer is encoded: %v", s.Name, isEncoded)
	}
	if s.sameHeader && isComparable && !reflect.DeepEqual(s.header, reference.header) {
		return fmt.Errorf("%s has the header\n%v\nand the reference\n%v", s.Name, s.header, reference.header)
	}
	return nil
}

// measureRound loads all servers at once over each protocol, so that disturbances affect them alike.
func measureRound(servers []*server) (sample, error) {
	costs := make(sample)
	for _, p := range protocols {
		ofServers := make([]cost, len(servers))
		err := together(servers, func(i int) (err error) {
			ofServers[i], err = servers[i].load(p)
			return err
		})
		if err != nil {
			return nil, err
		}
		for i, c := range ofServers {
			costs[cell{i, p.name}] = c
		}
	}
	return costs, nil
}

// load has clients send one request after the other for a while. Each of them sends one before, or the cost of
// connecting would be measured.
func (s *server) load(p protocol) (c cost, err error) {
	var clients []*http.Transport
	for range p.connections {
		client := newClient(p)
		defer client.CloseIdleConnections()
		clients = append(clients, slices.Repeat([]*http.Transport{client}, p.inFlight)...)
	}
	sent := make([]int, len(clients))
	sendUntil := func(end time.Time) error {
		return together(clients, func(i int) error {
			for isFirst := true; isFirst || time.Now().Before(end); isFirst = false {
				got, _, err := s.ask(p, clients[i])
				if err != nil || got != s.answer {
					return fmt.Errorf("%s, %s: got %w\n%s\nwant\n%s", s.Name, p.name, err, got, s.answer)
				}
				sent[i]++
			}
			return nil
		})
	}
	if err := sendUntil(time.Time{}); err != nil {
		return c, err
	}
	clear(sent)
	before, err := s.cpu()
	if err != nil {
		return c, err
	}
	if err := sendUntil(time.Now().Add(roundTime)); err != nil {
		return c, err
	}
	after, err := s.cpu()
	c.cpu = after - before
	for _, n := range sent {
		c.requests += n
	}
	return c, err
}

// together runs do with the index of every item at once. It returns their errors.
func together[T any](items []T, do func(i int) error) error {
	errs := make([]error, len(items))
	var all sync.WaitGroup
	for i := range items {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}
