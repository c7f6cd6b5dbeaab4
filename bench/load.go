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

// sample is what one measurement finds.
type sample struct {
	cpu  float64 // of the server, in µs per request
	rate float64 // requests per second
}

// measure runs the sites of each group, and loads one at a time, each once in each round.
func measure(ctx context.Context, groups []group, rounds int, d time.Duration) (results, error) {
	b, err := newBench(ctx)
	if err != nil {
		return nil, err
	}
	defer b.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the servers

	up, err := b.start(ctx, &upstream)
	if err != nil {
		return nil, err
	}
	b.upstream = up[0].addrs[0]

	var r results
	measured := b.environment(rounds, d)
	for i := range groups {
		g := &groups[i]
		sites, err := b.start(ctx, g)
		if err != nil {
			return nil, err
		}
		samples := make(map[string][][]sample) // by load and site
		for _, l := range g.loads {
			samples[l.name] = make([][]sample, len(sites))
		}
		for round := range rounds + 1 { // the first is to warm up
			for _, l := range g.loads {
				for i := range sites {
					i := (i + round) % len(sites) // so that none always comes after the same one
					found, err := load(ctx, sites[i], l, b.footer(), d)
					if err != nil {
						return nil, fmt.Errorf("%s, %s: %w", sites[i].name, l.name, err)
					}
					if round > 0 {
						samples[l.name][i] = append(samples[l.name][i], found)
					}
				}
			}
			log.Printf("%s: round %d of %d", g.name, round, rounds)
		}
		r = append(r, newGroupResult(g, measured, samples))
	}
	return r, nil
}

// load loads a site for a while, and compares every response with the one that it has to be.
func load(ctx context.Context, s *runningSite, l loading, footer string, d time.Duration) (found sample, err error) {
	base := s.plain()
	if l.protocol == http2 {
		base = s.secure()
	}
	body, err := s.body(s.group, base, footer)
	if err != nil {
		return found, err
	}
	clients := make([]client, l.inFlight)
	var shared *http.Transport
	for i := range clients {
		if l.protocol == http1 {
			conn, err := net.Dial("tcp", s.addrs[0])
			if err != nil {
				return found, err
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
		if err := s.exchange(clients[i], body); err != nil { // so that what a connection costs is not measured
			return found, err
		}
	}

	before, err := s.cpu()
	if err != nil {
		return found, err
	}
	start := time.Now()
	end := start.Add(d)
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
	elapsed := time.Since(start)
	after, err := s.cpu()
	if logged := s.logged(); logged != "" {
		failures <- fmt.Errorf("the server logged an error:\n%.1000s", logged)
	}
	select {
	case err = <-failures:
	default:
		err = errors.Join(err, ctx.Err())
	}
	n := float64(requests.Load())
	return sample{float64(after-before) / float64(time.Microsecond) / n, n / elapsed.Seconds()}, err
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

// exchange sends a request, and compares the response. body is what it has to be for the group's target.
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
