package notfound

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// unknown is a backend that answers every request with a 404 of its own, as the path asks.
func unknown(w http.ResponseWriter, r *http.Request) {
	// To answer early makes reverse_proxy, of a body of unknown length, read and close it at the same time.
	_, _ = io.Copy(io.Discard, r.Body)

	flush := func() { _ = http.NewResponseController(w).Flush() }
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
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
		io.CopyN(w, endless{}, 200<<10)
	case "/large":
		h.Set("Content-Length", fmt.Sprint(1<<30))
		w.WriteHeader(http.StatusNotFound)
		if r.Method != http.MethodHead {
			io.CopyN(w, endless{}, 1<<30)
		}
	case "/endless":
		w.WriteHeader(http.StatusNotFound)
		if r.Method != http.MethodHead {
			io.Copy(w, endless{})
		}
	case "/stalls":
		h.Set("Content-Length", "1000")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, theirs)
		flush()
		if r.Method != http.MethodHead {
			<-r.Context().Done() // until the proxy gives up
		}
	case "/stalls-at-once":
		w.WriteHeader(http.StatusNotFound)
		flush()
		if r.Method != http.MethodHead {
			<-r.Context().Done()
		}
	case "/breaks":
		h.Set("Content-Length", "1000")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, theirs)
		flush()
		if r.Method != http.MethodHead {
			panic(http.ErrAbortHandler)
		}
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// TestReplacesOverEveryProtocol replaces every kind of 404 over every version of HTTP. Whatever the backend's
// body does, the client has its whole page, no trailer, and goes on with its connection.
func TestReplacesOverEveryProtocol(t *testing.T) {
	checkGoroutines(t)
	app := backend(t, unknown)
	h2c := h2cBackend(t, unknown)

	const chain = `
	log
	log_append cause {http.not_found.cause}
	not_found
	encode
	intercept {
		@teapot status 418
		handle_response @teapot {
			respond "a teapot"
		}
	}
	templates {
		mime text/x-template
	}`
	s := startEveryProtocol(t, map[string]string{
		"plain.test": "log\nlog_append cause {http.not_found.cause}\nnot_found\nreverse_proxy " + app,
		"h2c.test":   "log\nlog_append cause {http.not_found.cause}\nnot_found\nreverse_proxy h2c://" + h2c,
		"chain.test": chain + "\nreverse_proxy " + app,
	})

	for _, c := range s.clients {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, host := range []string{"plain.test", "h2c.test", "chain.test"} {
				for _, path := range []string{
					"/length", "/gzip", "/chunked", "/trailers", "/unannounced-trailers", "/both-trailers", "/none", "/missing-type",
					"/early-hints", "/medium", "/endless", "/stalls", "/stalls-at-once", "/breaks",
				} {
					if host == "chain.test" && path == "/stalls-at-once" {
						continue // see TestEncodeHoldsTheHeaderBack
					}
					uri := c.scheme + "://" + host + path
					for _, method := range []string{"GET", "HEAD", "POST"} {
						if method == "POST" && path == "/breaks" {
							continue // the proxy finds a connection closed, and must not send a POST again
						}
						name := method + " " + uri
						res := c.do(t, method, uri, "Range: bytes=0-1", "Accept-Encoding: gzip")
						if method == "HEAD" {
							if want := int64(len(textPage("GET", uri, ""))); res.body != "" || res.ContentLength != want {
								t.Errorf("%s: got Content-Length %d and %q, want %d", name, res.ContentLength, res.body, want)
							}
						} else {
							res.wantPage(t, method, uri, "")
						}
						if len(res.Trailer) > 0 {
							t.Errorf("%s: got the trailers %v", name, res.Trailer)
						}
						for field, want := range map[string]string{
							"Content-Type": "text/plain; charset=utf-8", "Content-Encoding": "", "Etag": "", "Trailer": "", "Transfer-Encoding": "",
							"X-Announced": "", "X-Unannounced": "", "Server": "Caddy", "Set-Cookie": "a=1", "Access-Control-Allow-Origin": "*", "Traceparent": "00-1-2-03",
						} {
							res.wantHeader(t, field, want)
						}
						if t.Failed() {
							t.Fatalf("at %s", name)
						}
					}
				}
			}
		})
	}
	t.Cleanup(func() {
		for _, entry := range s.logs.waitFor(t, "handled request", 1) {
			if entry["cause"] != "response" || entry["status"] != 404.0 {
				t.Errorf("the access log has %v", entry)
			}
			for field := range entry["resp_headers"].(map[string]any) {
				if strings.Contains(field, "nnounced") {
					t.Errorf("the access log has the trailer %s", field)
				}
			}
		}
	})
}

// TestPageIsThereBeforeTheBodyEnds reads the page while the backend waits for the client to have read it.
func TestPageIsThereBeforeTheBodyEnds(t *testing.T) {
	release := make(chan struct{})
	app := backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusNotFound)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	s := startCaddy(t, "http://a.test:0 {\nnot_found\nreverse_proxy "+app+"\n}")
	before := 0
	for range 10 {
		res, err := s.Get("http://a.test/x")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		response{res, string(body)}.wantPage(t, "GET", "http://a.test/x", "")
		select {
		case release <- struct{}{}: // which a backend whose exchange was canceled does not take
			before++
		case <-time.After(2 * maxStall):
		}
	}
	// a machine that stands still for a moment may let one be canceled
	if before == 0 {
		t.Error("each page came when the exchange was canceled")
	}
}

// TestClientConnectionGoesOn sends one request after another over one connection, whatever the backends do.
func TestClientConnectionGoesOn(t *testing.T) {
	s := startCaddy(t, "http://a.test:0 {\nnot_found\nreverse_proxy "+backend(t, unknown)+"\n}")
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	for _, path := range []string{"/endless", "/large", "/stalls", "/breaks", "/stalls-at-once", "/length"} {
		// the bound is the promise to the client, not a measurement
		if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: a.test\r\n\r\n", path)
		readResponse(t, r, "GET", path).wantPage(t, "GET", "http://a.test"+path, "")
	}
}

// TestOrdinaryPageComesToItsEnd has a page of 60 kB come in three windows of 200 ms, as one does from far away. It is drained to its end:
// there is no warning, and the next request takes the same connection.
func TestOrdinaryPageComesToItsEnd(t *testing.T) {
	var connections atomic.Int64
	app := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/length" {
			w.Header().Set("Content-Length", "60000")
		}
		w.WriteHeader(http.StatusNotFound)
		_ = http.NewResponseController(w).Flush()
		for range 3 {
			time.Sleep(200 * time.Millisecond)
			_, _ = w.Write(bytes.Repeat([]byte("x"), 20_000))
			_ = http.NewResponseController(w).Flush()
		}
	}))
	app.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	app.Start()
	t.Cleanup(app.Close)
	s := startCaddy(t, strings.ReplaceAll(`
http://a.test:0 {
	not_found
	reverse_proxy APP
}
http://encode.test:0 {
	not_found
	encode
	reverse_proxy APP
}`, "APP", app.Listener.Addr().String()))
	for _, uri := range []string{"http://a.test/length", "http://a.test/chunked", "http://encode.test/length", "http://encode.test/chunked"} {
		for range 2 {
			s.get(t, uri, "Accept-Encoding: gzip").wantPage(t, "GET", uri, "")
		}
	}
	s.get(t, "http://a.test/length").wantPage(t, "GET", "http://a.test/length", "")
	if n := connections.Load(); n != 2 {
		t.Errorf("there were %d connections to the backend, want one for each site", n)
	}
	if warnings := s.logs.matching(t, func(entry map[string]any) bool {
		logger, _ := entry["logger"].(string)
		return entry["level"] != "debug" && strings.HasPrefix(logger, "http.handlers")
	}); len(warnings) > 0 {
		t.Errorf("the log has %v", warnings)
	}
}

// TestBodyThatTakesTooLongIsGivenUp has bodies stall, and trickle without end. The client's next request on its connection waits
// for no more than a second of the one, and a few of the other.
func TestBodyThatTakesTooLongIsGivenUp(t *testing.T) {
	gone := make(chan struct{}, 1)
	app := backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusNotFound)
		pause := 50 * time.Millisecond
		if r.URL.Path == "/stalls" {
			pause = time.Hour
		}
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(pause):
			}
		}
		gone <- struct{}{}
	})
	s := startCaddy(t, "http://a.test:0 {\nnot_found\nreverse_proxy "+app+"\n}")
	for path, want := range map[string]struct{ atLeast, atMost time.Duration }{
		"/stalls": {0, 1500 * time.Millisecond}, "/trickles": {2 * maxStall, 5 * time.Second},
	} {
		t.Run(path, func(t *testing.T) {
			conn := s.connect(t)
			r := bufio.NewReader(conn)
			fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: a.test\r\n\r\n", path)
			readResponse(t, r, "GET", path).wantPage(t, "GET", "http://a.test"+path, "")
			begin := time.Now()
			fmt.Fprint(conn, "OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n") // which net/http answers itself
			readResponse(t, r, "OPTIONS", "*").want(t, 200, "")
			if d := time.Since(begin); d < want.atLeast || d > want.atMost {
				t.Errorf("the next response came after %v, want %v to %v", d, want.atLeast, want.atMost)
			}
			<-gone
		})
	}
}

type keptKey struct{}

// TestCallerGoesOnAfterAnExchangeWasCanceled asks another backend with the same request, once not_found has returned.
func TestCallerGoesOnAfterAnExchangeWasCanceled(t *testing.T) {
	app := backend(t, unknown)
	other := backend(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "an error page") })
	after := goDirective(t, func(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
		before := r.Context()
		r2 := r.WithContext(context.WithValue(r.Context(), keptKey{}, "kept"))
		if err := next.ServeHTTP(w, r2); err != nil {
			return err
		}
		for name, ctx := range map[string]context.Context{"before": before, "after": r.Context(), "of the request that was passed on": r2.Context()} {
			if err := ctx.Err(); err != nil {
				t.Errorf("the context %s: %v", name, err)
			}
			select {
			case <-ctx.Done():
				t.Errorf("the context %s is done", name)
			default:
			}
		}
		if r2.Context().Value(keptKey{}) != "kept" {
			t.Error("the context has lost its value")
		}
		return nil
	})
	s := startCaddy(t, strings.NewReplacer("APP", app, "OTHER", other, "AFTER", after).Replace(`
http://a.test:0 {
	intercept {
		@missing status 404
		handle_response @missing {
			header -Content-Length # intercept leaves the page's in place, as it does with every response
			reverse_proxy OTHER
		}
	}
	handle {
		not_found
		reverse_proxy APP
	}
}
http://b.test:0 {
	AFTER
	handle {
		not_found
		reverse_proxy APP
	}
}`))
	for _, path := range []string{"/stalls", "/endless", "/length"} {
		res := s.get(t, "http://a.test"+path)
		if res.StatusCode != 200 || res.body != "an error page" {
			t.Errorf("%s: got %d %q", path, res.StatusCode, res.body)
		}
		s.get(t, "http://b.test"+path).wantPage(t, "GET", "http://b.test"+path, "")
	}
}

// TestBackendConnectionIsReused replaces 10,000 small pages in a row, and counts the connections.
func TestBackendConnectionIsReused(t *testing.T) {
	var connections atomic.Int64
	app := httptest.NewUnstartedServer(http.HandlerFunc(unknown))
	app.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	app.Start()
	t.Cleanup(app.Close)
	s := startCaddy(t, "http://a.test:0 {\nnot_found\nreverse_proxy "+app.Listener.Addr().String()+"\n}")

	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	paths := []string{"/length", "/chunked", "/gzip", "/trailers", "/none", "/missing-type", "/medium"}
	for i := range 10_000 {
		path := paths[0]
		if i%10 == 9 {
			path = paths[i/10%len(paths)]
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: a.test\r\n\r\n", path)
		res := readResponse(t, r, "GET", path)
		if res.StatusCode != 404 || !strings.HasPrefix(res.body, "HTTP ERROR 404 ") {
			t.Fatalf("request %d: got %d %q", i, res.StatusCode, res.body)
		}
	}
	// One, that is. But where the machine stands still for 50 ms at the wrong moment, http.Transport gives a
	// connection up: it does not know then whether the request was written to its end.
	if n := connections.Load(); n > 3 {
		t.Errorf("there were %d connections to the backend, want 1", n)
	} else {
		t.Logf("there were %d connections to the backend", n)
	}
}

// TestEarlyHintsPassAheadOfThePage counts the 1xx responses that come before the page.
func TestEarlyHintsPassAheadOfThePage(t *testing.T) {
	s := startCaddy(t, "http://a.test:0 {\nnot_found\nreverse_proxy "+backend(t, unknown)+"\n}")
	var hints []string
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
			hints = append(hints, fmt.Sprint(code, header["Link"]))
			return nil
		},
	})
	req, err := http.NewRequestWithContext(ctx, "GET", "http://a.test/early-hints", nil)
	if err != nil {
		t.Fatal(err)
	}
	res := s.send(t, req)
	res.wantPage(t, "GET", "http://a.test/early-hints", "")
	res.wantHeader(t, "Link", "")
	if want := "[103 [</style.css>; rel=preload]]"; fmt.Sprint(hints) != want {
		t.Errorf("got the hints %v, want %s", hints, want)
	}
}

// TestPanicsPassOn has a handler panic before and after a page took the place of its response.
func TestPanicsPassOn(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		value  any
		passes bool
	}{
		"abort before":   {0, http.ErrAbortHandler, true},
		"abort of a 200": {200, http.ErrAbortHandler, true},
		"abort of a 404": {404, http.ErrAbortHandler, false},
		"other before":   {0, "other", true},
		"other of a 404": {404, "other", true},
	} {
		t.Run(name, func(t *testing.T) {
			h := provision(t, &Handler{})
			rec := httptest.NewRecorder()
			defer func() {
				if p := recover(); (p != nil) != tt.passes || p != nil && p != tt.value {
					t.Errorf("got the panic %v", p)
				}
				if page := strings.HasPrefix(rec.Body.String(), "HTTP ERROR 404 "); page != (tt.status == 404) {
					t.Errorf("got the body %q", rec.Body)
				}
			}()
			if err := serve(h, rec, "GET", "/x", func(w http.ResponseWriter, _ *http.Request) error {
				if tt.status > 0 {
					w.WriteHeader(tt.status)
				}
				panic(tt.value)
			}); err != nil {
				t.Error(err)
			}
		})
	}
}

// brokenWriter panics where it is told to.
type brokenWriter struct {
	http.ResponseWriter
	at string
	p  any
}

func (w *brokenWriter) WriteHeader(status int) {
	if w.at == "WriteHeader" {
		panic(w.p)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.at == "Write" {
		panic(w.p)
	}
	return w.ResponseWriter.Write(p)
}

func (w *brokenWriter) FlushError() error {
	if w.at == "FlushError" {
		panic(w.p)
	}
	return nil
}

// TestPanicOfThePageItselfPasses has the writer panic while the page is sent, also by what aborts a response: then there is no page.
func TestPanicOfThePageItselfPasses(t *testing.T) {
	for _, at := range []string{"WriteHeader", "Write", "FlushError"} {
		for _, p := range []any{"a panic", http.ErrAbortHandler} {
			for name, next := range map[string]caddyhttp.HandlerFunc{
				"response": func(w http.ResponseWriter, _ *http.Request) error { w.WriteHeader(404); return nil },
				"end":      endOfChain,
			} {
				if name == "end" && at == "FlushError" {
					continue // nothing is flushed then
				}
				t.Run(fmt.Sprint(at, p, name), func(t *testing.T) {
					defer func() {
						if got := recover(); got != p {
							t.Errorf("got the panic %v, want %v", got, p)
						}
					}()
					w := &brokenWriter{httptest.NewRecorder(), at, p}
					err := serve(provision(t, &Handler{}), w, "GET", "/x", next)
					t.Errorf("got %v", err)
				})
			}
		}
	}
}

// TestAfterThePage has a handler go on in every way after the page took the place of its response.
func TestAfterThePage(t *testing.T) {
	h := provision(t, &Handler{})
	rec := httptest.NewRecorder()
	var early http.Header
	err := serve(h, rec, "GET", "/x", func(w http.ResponseWriter, r *http.Request) error {
		early = w.Header()
		w.WriteHeader(http.StatusNotFound)
		w.WriteHeader(http.StatusOK)
		early.Set(http.TrailerPrefix+"X-Early", "1")
		w.Header().Set(http.TrailerPrefix+"X-Late", "1")
		w.Header().Set("Content-Type", "text/x-theirs")
		rc := http.NewResponseController(w)
		if err := rc.Flush(); err != nil {
			t.Errorf("flushing: %v", err)
		}
		if n, err := io.WriteString(w, "theirs"); n != 6 || err != nil {
			t.Errorf("writing: %d, %v", n, err)
		}
		if n, err := w.(io.ReaderFrom).ReadFrom(strings.NewReader("theirs")); n != 6 || err != nil {
			t.Errorf("reading from: %d, %v", n, err)
		}
		if _, _, err := rc.Hijack(); err == nil {
			t.Error("hijacked")
		}
		if n, err := io.Copy(w, endless{}); err == nil || n > maxDiscarded {
			t.Errorf("copying without end: %d, %v", n, err)
		}
		select {
		case <-r.Context().Done(): // the exchange is canceled
		case <-time.After(10 * time.Second):
			t.Error("the exchange is not canceled")
		}
		return fmt.Errorf("too late")
	})
	if err != nil {
		t.Errorf("got the error %v", err)
	}
	if want := textPage("GET", "http://a.test/x", ""); rec.Body.String() != want || rec.Code != 404 || !rec.Flushed {
		t.Errorf("got %d %q, flushed: %v", rec.Code, rec.Body, rec.Flushed)
	}
	for field := range early {
		if strings.Contains(field, "Early") || strings.Contains(field, "Late") {
			t.Errorf("the header has %s", field)
		}
	}
	if got := early.Get("Content-Type"); got != "text/plain; charset=utf-8" {
		t.Errorf("the header has Content-Type %s", got)
	}
}

// TestHEADHasNoBody does not rely on the server to drop it.
func TestHEADHasNoBody(t *testing.T) {
	rec := httptest.NewRecorder()
	if err := serve(provision(t, &Handler{}), rec, "HEAD", "/x", endOfChain); err != nil {
		t.Fatal(err)
	}
	if rec.Code != 404 || rec.Body.Len() != 0 {
		t.Errorf("got %d %q", rec.Code, rec.Body)
	}
}

// TestFastCGIIsNotCut shows, of Caddy alone, that its FastCGI transport does not end with the request: a responder
// is not told that the client left, and a body that stalls holds the handler. So it holds the client's next
// request over HTTP/1.1 after a page, unless there is a read_timeout. The page itself is there at once.
func TestFastCGIIsNotCut(t *testing.T) {
	responder, told := stallingFastCGI(t)
	proxy := func(timeout string) string {
		return "reverse_proxy " + responder + " {\nflush_interval -1\ntransport fastcgi {\nroot /srv\nsplit .php\nread_timeout " + timeout + "\n}\n}"
	}
	s := startCaddy(t, "http://alone.test:0 {\n"+proxy("2s")+"\n}\nhttp://page.test:0 {\nnot_found\n"+proxy("1s")+"\n}")

	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", "http://alone.test/x.php", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	leave()
	res.Body.Close()
	select {
	case <-told:
		t.Error("the responder was told: the limit in the README is gone")
	case <-time.After(200 * time.Millisecond):
	}

	for range 2 {
		s.get(t, "http://page.test/x.php").wantPage(t, "GET", "http://page.test/x.php", "")
	}
}

// TestReplacesBehindOtherHandlers puts other handlers between the page and the backend.
func TestReplacesBehindOtherHandlers(t *testing.T) {
	app := backend(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/auth":
			w.Header().Set("X-User", "me")
			return
		case "/health":
			return
		}
		unknown(w, r)
	})
	refuses := backend(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNotFound) })
	fcgi := fastCGI(t)
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "index.php"), []byte("<?php"), 0o600); err != nil {
		t.Fatal(err)
	}

	sites := map[string]string{
		"encode":        "encode {\nminimum_length 1\n}\nreverse_proxy APP",
		"templates":     "templates\nreverse_proxy APP",
		"intercept":     "intercept {\n@missing status 404\nhandle_response @missing {\nrespond \"<b>theirs</b>\" 404\n}\n}\nreverse_proxy APP",
		"status":        "intercept {\nreplace_status 404\n}\nreverse_proxy APP",
		"header":        "header {\nX-Set yes\n>X-Deferred yes\n-Traceparent\ndefer\n}\nreverse_proxy APP",
		"basic_auth":    "basic_auth {\nBob $2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG\n}\nrequest_header Host x\nreverse_proxy APP",
		"handle_path":   "handle_path /strip/* {\nreverse_proxy APP\n}",
		"php":           "root " + root + "\nphp_fastcgi " + fcgi,
		"auth":          "forward_auth APP {\nuri /auth\ncopy_headers X-User\n}\nreverse_proxy APP",
		"auth refuses":  "forward_auth " + refuses + " {\nuri /auth\n}\nrespond mine",
		"copy_response": "reverse_proxy APP {\n@missing status 404\nhandle_response @missing {\ncopy_response\n}\n}",
		"copied status": "reverse_proxy APP {\n@missing status 404\nhandle_response @missing {\ncopy_response_headers\ncopy_response 404\n}\n}",
		"balanced":      "reverse_proxy 127.0.0.1:1 APP {\nlb_policy round_robin\nlb_try_duration 5s\nlb_try_interval 1ms\nlb_retry_match {\nmethod GET\n}\nhealth_uri /health\nhealth_interval 10ms\nmax_fails 1\nfail_duration 1s\nunhealthy_status 5xx\n}",
		"buffered":      "reverse_proxy APP {\nresponse_buffers 1MiB\n}",
		"flushed":       "reverse_proxy APP {\nflush_interval -1\n}",
	}
	for name, site := range sites {
		sites[name] = strings.ReplaceAll(site, "APP", app)
	}
	s, hosts := startSites(t, "", sites)
	for name := range sites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			paths := []string{"/length", "/gzip", "/chunked", "/trailers", "/none", "/medium"}
			switch name {
			case "templates", "intercept", "status": // they hold back a response, of which a broken one then never gets out
			default:
				paths = append(paths, "/breaks")
			}
			if name == "handle_path" {
				for i := range paths {
					paths[i] = "/strip" + paths[i]
				}
			}
			for _, path := range paths {
				uri := "http://" + hosts[name] + path
				// bob:hiccup
				res := s.get(t, uri, "Accept-Encoding: gzip", "Authorization: Basic Qm9iOmhpY2N1cA==")
				res.wantPage(t, "GET", uri, "")
				res.wantHeader(t, "Content-Encoding", "")
				switch name {
				case "header":
					res.wantHeader(t, "X-Set", "yes")
					res.wantHeader(t, "X-Deferred", "yes")
					res.wantHeader(t, "Traceparent", "")
				case "php":
					res.wantHeader(t, "X-Powered-By", "FastCGI")
				}
			}
			for _, entry := range s.logs.waitForHost(t, "handled request", hosts[name], len(paths)) {
				if entry["cause"] != "response" {
					t.Errorf("the access log has the cause %v", entry["cause"])
				}
			}
		})
	}
}
