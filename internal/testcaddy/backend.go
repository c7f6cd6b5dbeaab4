package testcaddy

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/fcgi"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Backend starts a backend that speaks HTTP/1.1, until the test ends.
func Backend(t testing.TB, h http.HandlerFunc) (addr string) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

// H2CBackend starts a backend that speaks HTTP/2 in clear text, until the test ends.
func H2CBackend(t testing.TB, h http.HandlerFunc) (addr string) {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

// AcceptTCP starts a server that passes each connection to a function, until the test ends. It closes a connection
// when the function returns, and all that are left when the test ends.
func AcceptTCP(t testing.TB, serve func(net.Conn)) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				defer context.AfterFunc(ctx, func() { conn.Close() })()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		stop()
		serving.Wait()
	})
	return ln.Addr().String()
}

// FastCGI starts a FastCGI responder, as PHP is one, until the test ends.
func FastCGI(t testing.TB, h http.HandlerFunc) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go fcgi.Serve(ln, h)
	return ln.Addr().String()
}

// Endless is a body that never ends.
type Endless struct{}

var filler = bytes.Repeat([]byte{'x'}, 32<<10)

func (Endless) Read(p []byte) (int, error) { return copy(p, filler), nil }

// MissingPage is a backend that answers every request with a 404 page of its own. The path says what kind of page. One that
// is not below is a page without content.
func MissingPage(w http.ResponseWriter, r *http.Request) {
	// Not to answer early: reverse_proxy would read a body of unknown length and close it at the same time.
	_, _ = io.Copy(io.Discard, r.Body)

	h := w.Header()
	for _, field := range [][2]string{{"Content-Type", "text/html; charset=utf-8"}, {"Server", "theirs"}, {"Set-Cookie", "a=1"},
		{"Access-Control-Allow-Origin", "*"}, {"Traceparent", "00-1-2-03"}} {
		h.Set(field[0], field[1])
	}
	begin := func(fields ...string) {
		for i := 0; i < len(fields); i += 2 {
			h.Set(fields[i], fields[i+1])
		}
		w.WriteHeader(http.StatusNotFound)
	}
	flush := func() { _ = http.NewResponseController(w).Flush() }
	const theirs = "<h1>theirs</h1>"
	isHEAD := r.Method == http.MethodHead

	switch r.URL.Path {
	case "/length": // with Content-Length
		begin("Content-Length", fmt.Sprint(len(theirs)), "ETag", `"theirs"`)
		io.WriteString(w, theirs)
	case "/gzip": // compressed
		begin("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		io.WriteString(z, strings.Repeat(theirs, 1000))
		z.Close()
	case "/chunked": // without Content-Length, in several pieces
		begin()
		for range 10 {
			io.WriteString(w, theirs)
			flush()
		}
	case "/trailers": // with a trailer that is announced
		begin("Trailer", "X-Announced")
		io.WriteString(w, theirs)
		flush()
		h.Set("X-Announced", "1")
	case "/unannounced-trailers": // with one that is not
		begin()
		io.WriteString(w, theirs)
		flush()
		h.Set(http.TrailerPrefix+"X-Unannounced", "1")
	case "/both-trailers": // with one of each, and nothing else
		begin("Trailer", "X-Announced")
		flush()
		h.Set("X-Announced", "1")
		h.Set(http.TrailerPrefix+"X-Unannounced", "1")
	case "/none": // without content and without Content-Type
		h.Del("Content-Type")
		begin()
	case "/missing-type": // without Content-Type
		h["Content-Type"] = nil
		begin()
		io.WriteString(w, theirs)
	case "/early-hints": // after a 103
		h.Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		h.Del("Link")
		begin()
		io.WriteString(w, theirs)
	case "/medium": // which is drained
		begin("Content-Length", fmt.Sprint(200<<10))
		io.CopyN(w, Endless{}, 200<<10)
	case "/large": // which is not
		begin("Content-Length", fmt.Sprint(1<<30))
		if !isHEAD {
			io.CopyN(w, Endless{}, 1<<30)
		}
	case "/endless":
		begin()
		if !isHEAD {
			io.Copy(w, Endless{})
		}
	case "/breaks": // in the middle
		begin("Content-Length", "1000")
		io.WriteString(w, theirs)
		flush()
		if !isHEAD { // or the proxy would take the connection for idle
			panic(http.ErrAbortHandler)
		}
	default:
		begin()
	}
}
