package testcaddy

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
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

// Endless is a body that never ends.
type Endless struct{}

var filler = bytes.Repeat([]byte{'x'}, 32<<10)

func (Endless) Read(p []byte) (int, error) { return copy(p, filler), nil }

// MissingPage is a backend that answers every request with a 404 page of its own. The path says what kind of page:
//
//	/length                with Content-Length
//	/gzip                  compressed
//	/chunked               without Content-Length, in several pieces
//	/trailers              with a trailer that is announced
//	/unannounced-trailers  with one that is not
//	/both-trailers         with one of each, and nothing else
//	/none                  without content and without Content-Type
//	/missing-type          without Content-Type
//	/early-hints           after a 103
//	/medium                of 200 KiB, which is drained
//	/large                 of 1 GiB, which is not
//	/endless               without an end
//	/stalls                that stops in the middle
//	/stalls-at-once        that stops after its header
//	/breaks                that breaks off in the middle
//
// Anything else is a page without content.
func MissingPage(w http.ResponseWriter, r *http.Request) {
	// Not to answer early: reverse_proxy would read a body of unknown length and close it at the same time.
	_, _ = io.Copy(io.Discard, r.Body)

	flush := func() { _ = http.NewResponseController(w).Flush() }
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Server", "theirs")
	h.Set("Set-Cookie", "a=1")
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Traceparent", "00-1-2-03")
	const theirs = "<h1>theirs</h1>"

	switch r.URL.Path {
	case "/length":
		h.Set("Content-Length", fmt.Sprint(len(theirs)))
		h.Set("ETag", `"theirs"`)
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, theirs)
	case "/gzip":
		h.Set("Content-Encoding", "gzip")
		w.WriteHeader(http.StatusNotFound)
		z := gzip.NewWriter(w)
		io.WriteString(z, strings.Repeat(theirs, 1000))
		z.Close()
	case "/chunked":
		w.WriteHeader(http.StatusNotFound)
		for range 10 {
			io.WriteString(w, theirs)
			flush()
		}
	case "/trailers":
		h.Set("Trailer", "X-Announced")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, theirs)
		flush()
		h.Set("X-Announced", "1")
	case "/unannounced-trailers":
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, theirs)
		flush()
		h.Set(http.TrailerPrefix+"X-Unannounced", "1")
	case "/both-trailers":
		h.Set("Trailer", "X-Announced")
		w.WriteHeader(http.StatusNotFound)
		flush()
		h.Set("X-Announced", "1")
		h.Set(http.TrailerPrefix+"X-Unannounced", "1")
	case "/none":
		h.Del("Content-Type")
		w.WriteHeader(http.StatusNotFound)
	case "/missing-type":
		h["Content-Type"] = nil
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, theirs)
	case "/early-hints":
		h.Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		h.Del("Link")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, theirs)
	case "/medium":
		h.Set("Content-Length", fmt.Sprint(200<<10))
		w.WriteHeader(http.StatusNotFound)
		io.CopyN(w, Endless{}, 200<<10)
	case "/large":
		h.Set("Content-Length", fmt.Sprint(1<<30))
		w.WriteHeader(http.StatusNotFound)
		if r.Method != http.MethodHead {
			io.CopyN(w, Endless{}, 1<<30)
		}
	case "/endless":
		w.WriteHeader(http.StatusNotFound)
		if r.Method != http.MethodHead {
			io.Copy(w, Endless{})
		}
	case "/stalls":
		h.Set("Content-Length", "1000")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, theirs)
		flush()
		stall(r)
	case "/stalls-at-once":
		w.WriteHeader(http.StatusNotFound)
		flush()
		stall(r)
	case "/breaks":
		h.Set("Content-Length", "1000")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, theirs)
		flush()
		if r.Method != http.MethodHead { // or the proxy would take the connection for idle
			panic(http.ErrAbortHandler)
		}
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// stall waits until the proxy ends an exchange, which it does after its read_timeout, or for longer than that may take.
func stall(r *http.Request) {
	if r.Method == http.MethodHead {
		return // or the proxy would take the connection for idle
	}
	select {
	case <-r.Context().Done():
	case <-time.After(timeout):
	}
}
