package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// The protocols: HTTP/1.1 in clear text, and HTTP/2.
const http1, http2 = "HTTP/1.1", "HTTP/2 over TLS"

// siteLoad has the connected clients of a site, and the body that they have to get.
type siteLoad struct {
	site    *runningSite
	clients []client
	body    string
	closers []func()
}

// client sends a request and returns the response. It has at most one request in flight.
type client func(target string) (*http.Response, error)

// connect connects the clients. Each of them sends a request, or the cost of connecting would be measured.
func (b *bench) connect(s *runningSite, l loading) (*siteLoad, error) {
	base := s.plain()
	if l.protocol == http2 {
		base = s.secure()
	}
	body, err := s.body(base, b.footer())
	if err != nil {
		return nil, err
	}
	load := &siteLoad{site: s, body: body}
	if l.protocol == http1 {
		err = load.connectHTTP1(l.inFlight, base)
	} else {
		load.connectHTTP2(l.inFlight, base)
	}
	for _, c := range load.clients {
		err = errors.Join(err, s.exchange(c, body))
	}
	if err != nil {
		load.close()
		return nil, err
	}
	return load, nil
}

func (l *siteLoad) close() {
	for _, closeConnection := range l.closers {
		closeConnection()
	}
}

// connectHTTP1 gives each client a connection of its own.
func (l *siteLoad) connectHTTP1(clients int, base string) error {
	for range clients {
		conn, err := net.Dial("tcp", l.site.addrs[0])
		if err != nil {
			return err
		}
		closeConnection := func() { _ = conn.Close() }
		l.closers = append(l.closers, closeConnection)
		c := l.site.http1Client(conn, base)
		l.clients = append(l.clients, c)
	}
	return nil
}

// connectHTTP2 gives the clients four connections.
func (l *siteLoad) connectHTTP2(clients int, base string) {
	const connections = 4
	for range connections {
		transport := &http.Transport{
			TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
			Protocols:          new(http.Protocols),
			DisableCompression: true,
		}
		transport.Protocols.SetHTTP2(true)
		l.closers = append(l.closers, transport.CloseIdleConnections)
		for range clients / connections {
			c := l.site.http2Client(transport, base)
			l.clients = append(l.clients, c)
		}
	}
}

// http1Client has one connection, and takes less time than an http.Transport.
func (s *runningSite) http1Client(conn net.Conn, base string) client {
	fields := " HTTP/1.1\r\nHost: " + s.addrs[0] + "\r\n"
	if s.group.many {
		// An own link is what the report has most to do for.
		fields += "Referer: " + base + "/\r\n"
	}
	if s.accept != "" {
		fields += "Accept: " + s.accept + "\r\n"
	}
	r := bufio.NewReader(conn)
	return func(target string) (*http.Response, error) {
		request := "GET " + target + fields + "\r\n"
		if _, err := io.WriteString(conn, request); err != nil {
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

// saturate has every client send one request after the other for a while. It returns how many were answered.
func (l *siteLoad) saturate(ctx context.Context, d time.Duration) (requests int, err error) {
	end := time.Now().Add(d)
	answered := make([]int, len(l.clients))
	errs := make([]error, len(l.clients))
	var all sync.WaitGroup
	for i, c := range l.clients {
		all.Go(func() {
			for time.Now().Before(end) && ctx.Err() == nil {
				errs[i] = l.site.exchange(c, l.body)
				if errs[i] != nil {
					return
				}
				answered[i]++
			}
		})
	}
	all.Wait()
	for _, n := range answered {
		requests += n
	}
	errs = append(errs, ctx.Err(), l.site.loggedError())
	return requests, errors.Join(errs...)
}

// exchange sends a request, and checks the response. The body is the one for the group's target.
func (s *runningSite) exchange(c client, body string) error {
	target := s.group.target
	if s.group.many {
		target = targetOf(s.asked.Add(1))
		isConstant := strings.Contains(s.caddy, "[page]")
		if !isConstant {
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
	want := s.group.status
	if resp.StatusCode != want || string(got) != body {
		return fmt.Errorf("got %s and\n%s\nwant status %d and\n%s", resp.Status, got, want, body)
	}
	return nil
}
