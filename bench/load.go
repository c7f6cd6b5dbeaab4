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
	"sync"
	"sync/atomic"
	"time"
)

// protocols are HTTP/1.1 in clear text and HTTP/2 over TLS.
var protocols = []string{http1, http2}

const http1, http2 = "HTTP/1.1", "HTTP/2 over TLS"

// inFlight is the number of requests in flight: on as many connections, or, in HTTP/2, on four. reverse_proxy keeps as
// many idle connections to an upstream by default.
const inFlight = 32

// The core of the servers, and that of the load and the upstream.
const serverCore, loadCore = 0, 1

// measure runs all sites, and loads one at a time, each once in each round.
func measure(ctx context.Context, only string, rounds int, d time.Duration) (*results, error) {
	ctx, cancel := context.WithCancel(ctx)
	b, err := newBench(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	defer b.close()
	defer cancel() // ends the servers

	up, err := b.start(ctx, &upstream, loadCore)
	if err != nil {
		return nil, err
	}
	b.upstream = up[0].addrs[0]

	r := newResults(ctx, b, rounds, d)
	for i := range groups {
		g := &groups[i]
		if only != "" && g.name != only {
			continue
		}
		sites, err := b.start(ctx, g, serverCore)
		if err != nil {
			return nil, err
		}
		samples := make(map[string][][]float64) // CPU time by protocol and site
		for _, p := range protocols {
			samples[p] = make([][]float64, len(sites))
		}
		for round := range rounds + 1 { // the first is to warm up
			for _, p := range protocols {
				for i := range sites {
					i := (i + round) % len(sites) // so that none always comes after the same one
					cpu, err := load(ctx, sites[i], p, b.footer(), d)
					if err != nil {
						return nil, fmt.Errorf("%s, %s: %w", sites[i].name, p, err)
					}
					if round > 0 {
						samples[p][i] = append(samples[p][i], cpu)
					}
				}
			}
			log.Printf("%s: round %d of %d", g.name, round, rounds)
		}
		r.add(g, samples)
	}
	return r, nil
}

// load loads a site for a while, and compares every response with the one that it has to be. It returns the server's
// CPU time per request, in µs.
func load(ctx context.Context, s *runningSite, protocol, footer string, d time.Duration) (cpu float64, err error) {
	base := s.plain()
	if protocol == http2 {
		base = s.secure()
	}
	want := s.group.body(base, footer)
	clients := make([]client, inFlight)
	var shared *http.Transport
	for i := range clients {
		if protocol == http1 {
			conn, err := net.Dial("tcp", s.addrs[0])
			if err != nil {
				return 0, err
			}
			defer conn.Close()
			clients[i] = &http1Client{conn, bufio.NewReader(conn), []byte("GET " + s.group.target + " HTTP/1.1\r\nHost: " + s.addrs[0] + "\r\n\r\n")}
			continue
		}
		if i%(inFlight/4) == 0 {
			shared = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, Protocols: new(http.Protocols)}
			shared.Protocols.SetHTTP2(true)
			defer shared.CloseIdleConnections()
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+s.group.target, nil)
		if err != nil {
			return 0, err
		}
		clients[i] = &http2Client{shared, request}
	}

	before, err := s.cpu()
	if err != nil {
		return 0, err
	}
	end := time.Now().Add(d)
	var requests atomic.Int64
	failures := make(chan error, inFlight+1)
	var all sync.WaitGroup
	for _, c := range clients {
		all.Go(func() {
			for time.Now().Before(end) && ctx.Err() == nil {
				resp, err := c.get()
				if err != nil {
					failures <- err
					return
				}
				body, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != s.group.status || string(body) != want {
					failures <- fmt.Errorf("got %s and\n%s\n%w\nwant status %d and\n%s", resp.Status, body, err, s.group.status, want)
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

// client has one request in flight.
type client interface {
	get() (*http.Response, error)
}

// http1Client has one connection, and takes less time than an http.Transport.
type http1Client struct {
	conn    net.Conn
	r       *bufio.Reader
	request []byte
}

func (c *http1Client) get() (*http.Response, error) {
	if _, err := c.conn.Write(c.request); err != nil {
		return nil, err
	}
	return http.ReadResponse(c.r, nil)
}

type http2Client struct {
	transport *http.Transport
	request   *http.Request
}

func (c *http2Client) get() (*http.Response, error) { return c.transport.RoundTrip(c.request) }
