package notfound

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// The benchmarks compare sites, each written as a Caddy user would write it, in one run: what counts is
// the ratio.

func init() {
	caddy.RegisterModule(callsNext{})
	httpcaddyfile.RegisterDirective("calls_next", func(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
		return h.NewRoute(nil, callsNext{}), nil
	})
	httpcaddyfile.RegisterDirectiveOrder("calls_next", httpcaddyfile.Before, "redir")
}

// callsNext is a handler that only calls the next: what a route costs before its handler does anything.
// Its route has a group, as those of not_found have.
type callsNext struct{}

func (callsNext) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.calls_next", New: func() caddy.Module { return new(callsNext) }}
}

func (callsNext) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	return next.ServeHTTP(w, r)
}

// site is the routes of a site, compiled as Caddy's server does it.
type site struct{ routes caddyhttp.Handler }

// compile compiles the routes of a site, written as in a Caddyfile. The next handler comes after them; without it, they end
// as Caddy's own do.
func compile(t testing.TB, directives string, next caddyhttp.HandlerFunc) *site {
	t.Helper()
	config := new(caddy.Config)
	if err := json.Unmarshal(testcaddy.Adapt(t, testcaddy.Caddyfile("http://:0 {\n"+directives+"\n}")), config); err != nil {
		t.Fatal(err)
	}
	var app struct {
		Servers map[string]struct {
			Routes caddyhttp.RouteList `json:"routes"`
		} `json:"servers"`
	}
	if err := json.Unmarshal(config.AppsRaw["http"], &app); err != nil {
		t.Fatal(err)
	}
	delete(config.AppsRaw, "http") // so that nothing listens
	ctx, err := caddy.ProvisionContext(config)
	if err != nil {
		t.Fatal(err)
	}

	srv := app.Servers["srv0"]
	if next == nil {
		srv.Routes[len(srv.Routes)-1].Terminal = true // Caddy puts its own end after it
	}
	if err := srv.Routes.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	return &site{srv.Routes.Compile(next)}
}

// serve handles a request as Caddy's server does once it has prepared it.
func (s *site) serve(w http.ResponseWriter, r *http.Request) error { return s.routes.ServeHTTP(w, r) }

// incoming returns a request as net/http passes it to Caddy.
func incoming(t testing.TB, target string, fields ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Host = "www.example.com"
	for _, field := range append(fields, "User-Agent: benchmark", "Accept-Encoding: gzip") {
		name, value, _ := strings.Cut(field, ": ")
		r.Header.Add(name, value)
	}
	ctx := context.WithValue(context.Background(), http.ServerContextKey, new(http.Server))
	ctx = context.WithValue(ctx, http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80})
	ctx, cancel := context.WithCancel(ctx)
	t.Cleanup(cancel)
	return r.WithContext(ctx)
}

// receive prepares a request as Caddy's server does, with a writer that discards the response. As net/http does, it gives
// each request a context of its own, which the caller ends after the response.
func receive(r *http.Request) (w *discard, prepared *http.Request, end context.CancelFunc) {
	ctx, end := context.WithCancel(r.Context())
	w = &discard{http.Header{"Server": {"Caddy"}}}
	return w, prepare(w, r.WithContext(ctx)), end
}

// discard is the writer of a client that takes everything.
type discard struct{ header http.Header }

func (w *discard) Header() http.Header                 { return w.header }
func (w *discard) Write(p []byte) (int, error)         { return len(p), nil }
func (w *discard) ReadFrom(r io.Reader) (int64, error) { return io.Copy(io.Discard, r) }
func (w *discard) WriteHeader(int)                     {}
func (w *discard) FlushError() error                   { return nil }

// benchmark measures how long the routes of a site take for a request. That excludes Caddy's preparation of the request,
// which is the same for all of them, and the garbage collector, which has more to do for the preparation than for the
// routes: what they cost it shows in their allocations.
func (s *site) benchmark(b *testing.B, r *http.Request) {
	b.ReportAllocs()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var batch [64]struct {
		w   *discard
		r   *http.Request
		end context.CancelFunc
	}
	b.ResetTimer()
	for left := b.N; left > 0; left -= len(batch) {
		now := batch[:min(left, len(batch))]
		b.StopTimer()
		collectGarbage()
		for i := range now {
			now[i].w, now[i].r, now[i].end = receive(r)
		}
		b.StartTimer()
		for _, each := range now {
			if err := s.serve(each.w, each.r); err != nil {
				b.Fatal(err)
			}
			each.end()
		}
	}
}

// collectGarbage runs the garbage collector if there is enough garbage.
func collectGarbage() {
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); m.HeapAlloc > 24<<20 {
		runtime.GC()
	}
}

// answer returns the response of a site to a request.
func (s *site) answer(t testing.TB, r *http.Request) testcaddy.Response {
	t.Helper()
	w := httptest.NewRecorder()
	if err := s.serve(w, prepare(w, r)); err != nil {
		t.Fatal(err)
	}
	return testcaddy.Recorded(w)
}

const (
	benchmarkTarget = "/docs/nothing?x=1"
	benchmarkURI    = "http://www.example.com" + benchmarkTarget

	chrome = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7"
)

// BenchmarkCallsNext is what a route costs without a handler that does anything.
func BenchmarkCallsNext(b *testing.B) {
	compile(b, "calls_next", nil).benchmark(b, incoming(b, benchmarkTarget))
}

func BenchmarkAnswer(b *testing.B) {
	for name, accept := range map[string]string{
		"text": "*/*", "html": chrome, "markdown": "text/markdown", "json": "application/json", "problem": "application/problem+json", "xml": "application/xml",
	} {
		b.Run(name, func(b *testing.B) {
			s := compile(b, "not_found", nil)
			r := incoming(b, benchmarkTarget, "Accept: "+accept)
			if got := testcaddy.FieldsOf(b, s.answer(b, r)).URI; got != benchmarkURI {
				b.Errorf("got the address %s", got)
			}
			s.benchmark(b, r)
		})
	}
}

// BenchmarkReplace has a handler answer with a 404 page of some size, in pieces as large as those that reverse_proxy copies.
func BenchmarkReplace(b *testing.B) {
	piece := bytes.Repeat([]byte(" "), 32<<10)
	for _, size := range []int{1_000, 100_000, 10_000_000} {
		for name, directives := range map[string]string{
			"not_found": "not_found",
			"intercept": "intercept {\n@404 status 404\nhandle_response @404 {\nrespond `" + testcaddy.TextPage("{method}", "{scheme}://{hostport}{http.request.orig_uri}", "") + "` 404\n}\n}",
		} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				s := compile(b, directives, func(w http.ResponseWriter, _ *http.Request) error {
					header := w.Header()
					header.Set("Content-Type", "text/html; charset=utf-8")
					header.Set("Content-Length", strconv.Itoa(size))
					header.Set("Etag", `"1"`)
					w.WriteHeader(http.StatusNotFound)
					err := error(nil)
					for left := size; left > 0 && err == nil; left -= len(piece) {
						_, err = w.Write(piece[:min(left, len(piece))])
					}
					return nil // as reverse_proxy, which logs that it cannot copy the rest
				})
				r := incoming(b, benchmarkTarget, "Accept: text/plain")
				s.answer(b, r).WantPage(b, "GET", benchmarkURI, "")
				s.benchmark(b, r)
			})
		}
	}
}

func BenchmarkPass(b *testing.B) {
	for _, directive := range []string{"not_found", "calls_next"} {
		b.Run(directive, func(b *testing.B) {
			compile(b, directive, func(w http.ResponseWriter, _ *http.Request) error {
				w.WriteHeader(http.StatusOK)
				return nil
			}).benchmark(b, incoming(b, benchmarkTarget))
		})
	}
}

// BenchmarkAddress has addresses of different lengths. The cost grows with the length, and is no higher for an address that
// follows long ones.
func BenchmarkAddress(b *testing.B) {
	s := compile(b, "not_found", nil)
	for name, filler := range map[string]string{"valid": "a", "encoded": "<"} {
		for _, length := range []int{20, 200, 2_000, 64_000, 20} {
			b.Run(fmt.Sprintf("%s/%d", name, length), func(b *testing.B) {
				r := incoming(b, benchmarkTarget, "Accept: text/plain")
				r.RequestURI = "/" + strings.Repeat(filler, length-1)
				s.answer(b, r).WantPage(b, "GET", "http://www.example.com"+strings.ReplaceAll(r.RequestURI, "<", "%3C"), "")
				s.benchmark(b, r)
			})
		}
	}
}
