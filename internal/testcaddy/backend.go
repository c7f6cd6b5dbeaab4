package testcaddy

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/fcgi"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Backend starts a backend that speaks HTTP/1.1, until the test ends.
func Backend(t testing.TB, h http.HandlerFunc) (addr string) {
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

// H2CBackend starts a backend that speaks HTTP/2 in clear text, until the test ends.
func H2CBackend(t testing.TB, h http.HandlerFunc) (addr string) {
	srv := httptest.NewUnstartedServer(h)
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

// AcceptTCP starts a server that passes each connection to a function, and closes it when the function returns or the
// test ends.
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

// FastCGI starts a FastCGI responder, such as PHP, until the test ends.
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

// MissingPage is a backend that answers every request with a 404 page. The path says which; any other page is empty.
func MissingPage(w http.ResponseWriter, r *http.Request) {
	// or reverse_proxy would read a body of unknown length and close it at the same time
	_, _ = io.Copy(io.Discard, r.Body)

	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Server", "theirs")
	h.Set("Set-Cookie", "a=1")
	const theirs = "<h1>theirs</h1>"
	answer := func(content string) {
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, content)
	}
	isHEAD := r.Method == http.MethodHead
	flush := func() { _ = http.NewResponseController(w).Flush() }

	switch r.URL.Path {
	case "/length": // with Content-Length
		h.Set("Content-Length", strconv.Itoa(len(theirs)))
		h.Set("ETag", `"theirs"`)
		answer(theirs)
	case "/gzip": // compressed
		h.Set("Content-Encoding", "gzip")
		w.WriteHeader(http.StatusNotFound)
		z := gzip.NewWriter(w)
		io.WriteString(z, strings.Repeat(theirs, 1000))
		z.Close()
	case "/trailers": // with a trailer that is announced
		h.Set("Trailer", "X-Announced")
		answer(theirs)
		flush()
		h.Set("X-Announced", "1")
	case "/both-trailers": // with one that is announced and one that is not, and no body
		h.Set("Trailer", "X-Announced")
		answer("")
		flush()
		h.Set("X-Announced", "1")
		h.Set(http.TrailerPrefix+"X-Unannounced", "1")
	case "/none": // without content and without Content-Type
		h.Del("Content-Type")
		answer("")
	case "/missing-type": // without Content-Type
		h["Content-Type"] = nil
		answer(theirs)
	case "/early-hints": // after a 103
		h.Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		h.Del("Link")
		answer(theirs)
	case "/large": // not drained to its end
		h.Set("Content-Length", strconv.Itoa(1<<30))
		answer("")
		if !isHEAD {
			io.CopyN(w, Endless{}, 1<<30)
		}
	case "/endless":
		answer("")
		if !isHEAD { // for which HTTP/2 takes everything
			io.Copy(w, Endless{})
		}
	case "/breaks": // in the middle
		h.Set("Content-Length", "1000")
		answer(theirs)
		flush()
		if !isHEAD { // or the proxy would take the connection for idle
			panic(http.ErrAbortHandler)
		}
	default:
		answer("")
	}
}
