package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The protocols: HTTP/1.1 in clear text, and HTTP/2.
const http1, http2 = "HTTP/1.1", "HTTP/2 over TLS"

// The core of the servers, and that of the load and the upstream.
const serverCore, loadCore = "0", "1"

// measure measures one group after the other.
func measure(ctx context.Context, groups []group, rounds int, d time.Duration) (r results, err error) {
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
		samples, err := b.measureGroup(ctx, g, rounds, d)
		if err != nil {
			return r, err
		}
		r.Groups = append(r.Groups, newGroupResult(g, samples))
	}
	return r, nil
}

// measureGroup loads all sites of a group at once, with each load in each round. It returns the CPU times per request, in µs, by
// load and site. The servers end with it, so as not to disturb the next group.
func (b *bench) measureGroup(ctx context.Context, g *group, rounds int, d time.Duration) (map[string][][]float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var sites []*runningSite
	for _, s := range g.sites {
		running, err := b.start(ctx, g, s, serverCore)
		if err != nil {
			return nil, err
		}
		sites = append(sites, running)
	}
	samples := make(map[string][][]float64)
	for _, l := range g.loads {
		samples[l.name] = make([][]float64, len(sites))
	}
	for round := range rounds + 1 { // the first is to warm up
		for _, l := range g.loads {
			times, errs := samples[l.name], make([]error, len(sites))
			var all sync.WaitGroup
			for i, s := range sites {
				all.Go(func() {
					cpu, err := load(ctx, s, l, b.footer(), d)
					if err != nil {
						errs[i] = fmt.Errorf("%s, %s: %w", s.name, l.name, err)
					} else if round > 0 {
						times[i] = append(times[i], cpu)
					}
				})
			}
			all.Wait()
			if err := errors.Join(errs...); err != nil {
				return nil, err
			}
		}
		log.Printf("%s: round %d of %d", g.name, round, rounds)
	}
	return samples, nil
}

// load loads a site for a while, and checks every response. It returns the CPU time of the server, in µs per request.
func load(ctx context.Context, s *runningSite, l loading, footer string, d time.Duration) (float64, error) {
	base := s.plain()
	if l.protocol == http2 {
		base = s.secure()
	}
	body, err := s.body(base, footer)
	if err != nil {
		return 0, err
	}
	clients := make([]client, l.inFlight)
	var shared *http.Transport
	for i := range clients {
		if l.protocol == http1 {
			conn, err := net.Dial("tcp", s.addrs[0])
			if err != nil {
				return 0, err
			}
			defer conn.Close()
			clients[i] = s.http1Client(conn, base)
		} else {
			if i%(l.inFlight/4) == 0 {
				shared = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, Protocols: new(http.Protocols), DisableCompression: true}
				shared.Protocols.SetHTTP2(true)
				defer shared.CloseIdleConnections()
			}
			clients[i] = s.http2Client(shared, base)
		}
		if err := s.exchange(clients[i], body); err != nil { // or the cost of connecting would be measured
			return 0, err
		}
	}

	before, err := s.cpu()
	if err != nil {
		return 0, err
	}
	end := time.Now().Add(d)
	var requests atomic.Int64
	failures := make(chan error, len(clients)+1)
	var all sync.WaitGroup
	for _, c := range clients {
		all.Go(func() {
			for time.Now().Before(end) && ctx.Err() == nil {
				if err := s.exchange(c, body); err != nil {
					failures <- err
					return
				}
				requests.Add(1)
			}
		})
	}
	all.Wait()
	after, err := s.cpu()
	if logged := s.logged(); logged != "" {
		failures <- fmt.Errorf("the server logged an error:\n%.1000s", logged)
	}
	select {
	case err = <-failures:
	default:
		err = errors.Join(err, ctx.Err())
	}
	return float64(after-before) / float64(time.Microsecond) / float64(requests.Load()), err
}

// client sends a request, and has one in flight.
type client func(target string) (*http.Response, error)

// http1Client has one connection, and takes less time than an http.Transport.
func (s *runningSite) http1Client(conn net.Conn, base string) client {
	fields := " HTTP/1.1\r\nHost: " + s.addrs[0] + "\r\n"
	if s.group.many {
		fields += "Referer: " + base + "/\r\n" // the report has most to do for an own link
	}
	if s.accept != "" {
		fields += "Accept: " + s.accept + "\r\n"
	}
	r := bufio.NewReader(conn)
	return func(target string) (*http.Response, error) {
		if _, err := io.WriteString(conn, "GET "+target+fields+"\r\n"); err != nil {
			return nil, err
		}
		return http.ReadResponse(r, nil)
	}
}

func (s *runningSite) http2Client(transport *http.Transport, base string) client {
	return func(target string) (*http.Response, error) {
		request, err := http.NewRequest(http.MethodGet, base+target, nil)
		if err != nil {
			return nil, err
		}
		if s.accept != "" {
			request.Header.Set("Accept", s.accept)
		}
		return transport.RoundTrip(request)
	}
}

// exchange sends a request, and checks the response. body is the one for the group's target.
func (s *runningSite) exchange(c client, body string) error {
	target := s.group.target
	if s.group.many {
		target = targetOf(s.asked.Add(1))
		if !strings.Contains(s.caddy, "[page]") { // a constant
			body = strings.Replace(body, s.group.target, target, 1)
		}
	}
	resp, err := c(target)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != s.group.status || string(got) != body {
		return fmt.Errorf("got %s and\n%s\nwant status %d and\n%s", resp.Status, got, s.group.status, body)
	}
	return nil
}
