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
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/report"
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
	httpcaddyfile.RegisterHandlerDirective("respond_with_fields", parseRespondWithFields)
	httpcaddyfile.RegisterDirectiveOrder("respond_with_fields", httpcaddyfile.After, "respond")
}

// parseRespondWithFields returns Caddy's `respond` with a body and the header fields of a page as text, which it can have
// only in JSON.
func parseRespondWithFields(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	h.Next() // consume directive name
	var body string
	if !h.AllArgs(&body) {
		return nil, h.ArgErr()
	}
	return caddyhttp.StaticResponse{
		StatusCode: "404",
		Body:       body,
		Headers: http.Header{
			"Content-Type":           {"text/plain; charset=utf-8"},
			"Content-Length":         {strconv.Itoa(len(body))},
			"X-Content-Type-Options": {"nosniff"},
			"Cache-Control":          {"no-store"},
			"Vary":                   {"Accept"},
		},
	}, nil
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

// samePage is a body that becomes the page as text when its placeholders are expanded.
const samePage = `"HTTP ERROR 404 No endpoint {http.request.method} /missing.html.
URI: {http.request.scheme}://{http.request.hostport}{http.request.orig_uri}
STATUS: 404
MESSAGE: No endpoint {http.request.method} /missing.html.
%s
"`

// sameTemplate is a body that becomes the page as text when the templates directive executes it.
const sameTemplate = "`" + `HTTP ERROR 404 No endpoint {{.Req.Method}} /missing.html.
URI: {{if .Req.TLS}}https{{else}}http{{end}}://{{.Req.Host}}{{.OriginalReq.RequestURI}}
STATUS: 404
MESSAGE: No endpoint {{.Req.Method}} /missing.html.
%s
` + "`"

// site is the routes of a site, compiled as Caddy's server does it.
type site struct {
	routes, errors caddyhttp.Handler
	handling       *caddyhttp.HTTPErrorConfig
}

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
			Routes caddyhttp.RouteList        `json:"routes"`
			Errors *caddyhttp.HTTPErrorConfig `json:"errors"`
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
	s := &site{routes: srv.Routes.Compile(next), handling: srv.Errors}
	if s.handling != nil {
		if err := s.handling.Routes.Provision(ctx); err != nil {
			t.Fatal(err)
		}
		s.errors = s.handling.Routes.Compile(next)
	}
	return s
}

// serve handles a request as Caddy's server does once it has prepared it.
func (s *site) serve(w http.ResponseWriter, r *http.Request) error {
	err := s.routes.ServeHTTP(w, r)
	if err != nil && s.handling != nil {
		err = s.errors.ServeHTTP(w, s.handling.WithError(r, err))
	}
	return err
}

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
	s.benchmarkEach(b, func() *http.Request { return r })
}

// benchmarkEach is benchmark for requests that differ.
func (s *site) benchmarkEach(b *testing.B, next func() *http.Request) {
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
			now[i].w, now[i].r, now[i].end = receive(next())
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
)

// contender is a site that a benchmark compares with others. Those named calls_next show what a route costs without a
// handler that does anything.
type contender struct{ name, directives string }

var callingNext = contender{"calls_next", "calls_next"}

// placeholderPage is samePage with the default footer.
func placeholderPage() string { return fmt.Sprintf(samePage, testcaddy.Footer()) }

func BenchmarkAnswer(b *testing.B) {
	for _, f := range testcaddy.Formats {
		b.Run("not_found/"+f.Name, func(b *testing.B) {
			s := compile(b, "not_found", nil)
			r := incoming(b, benchmarkTarget, "Accept: "+f.MediaType)
			s.answer(b, r).WantHeader(b, "Content-Type", f.ContentType)
			s.benchmark(b, r)
		})
	}
	for _, c := range []contender{
		{"respond/constant", "respond `" + testcaddy.TextPage("GET", benchmarkURI, "") + "` 404"},
		{"respond/constant_with_fields", "respond_with_fields `" + testcaddy.TextPage("GET", benchmarkURI, "") + "`"},
		{"respond/placeholders", "respond " + placeholderPage() + " 404"},
		{"handle_errors", "error 404\nhandle_errors {\nrespond " + placeholderPage() + "\n}"},
		{"templates", "templates {\nmime text/plain\n}\nrespond " + fmt.Sprintf(sameTemplate, testcaddy.Footer()) + " 404"},
		callingNext,
	} {
		b.Run(c.name, func(b *testing.B) {
			s := compile(b, c.directives, nil)
			r := incoming(b, benchmarkTarget, "Accept: text/plain")
			if c != callingNext {
				s.answer(b, r).WantPage(b, "GET", benchmarkURI, "")
			}
			s.benchmark(b, r)
		})
	}
}

// intercepting returns a site whose intercept directive replaces another page. The rest are the directives after it.
func intercepting(rest string) contender {
	return contender{"intercept", "intercept {\n@404 status 404\nhandle_response @404 {\nrespond " + placeholderPage() + " 404\n}\n}\n" + rest}
}

// theirs answers with a 404 page of some size, in pieces as large as those that reverse_proxy copies.
func theirs(w http.ResponseWriter, size int) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(size))
	header.Set("Etag", `"1"`)
	w.WriteHeader(http.StatusNotFound)
	for err := error(nil); size > 0 && err == nil; size -= len(blank) {
		_, err = w.Write(blank[:min(size, len(blank))])
	}
}

var blank = bytes.Repeat([]byte(" "), 32<<10)

func BenchmarkReplace(b *testing.B) {
	run := func(c contender, name string, size int) {
		b.Run(name, func(b *testing.B) {
			s := compile(b, c.directives, func(w http.ResponseWriter, _ *http.Request) error {
				theirs(w, size)
				return nil
			})
			r := incoming(b, benchmarkTarget, "Accept: text/plain")
			if c != callingNext {
				s.answer(b, r).WantPage(b, "GET", benchmarkURI, "")
			}
			s.benchmark(b, r)
		})
	}
	for _, size := range []int{1_000, 100_000, 10_000_000} {
		for _, c := range []contender{{"not_found", "not_found"}, intercepting("")} {
			run(c, fmt.Sprintf("%s/%d", c.name, size), size)
		}
	}
	run(callingNext, callingNext.name, 1_000)
}

func BenchmarkReplaceProxied(b *testing.B) {
	addr := testcaddy.Backend(b, func(w http.ResponseWriter, _ *http.Request) { theirs(w, 1_000) })
	proxy := "reverse_proxy " + addr
	for _, c := range []contender{
		{"not_found", "not_found\n" + proxy},
		intercepting(proxy),
		{"handle_response", proxy + " {\n@404 status 404\nhandle_response @404 {\nrespond " + placeholderPage() + " 404\n}\n}"},
		{"calls_next", "calls_next\n" + proxy},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := compile(b, c.directives, nil)
			r := incoming(b, benchmarkTarget, "Accept: text/plain")
			if c.name != "calls_next" {
				s.answer(b, r).WantPage(b, "GET", benchmarkURI, "")
			}
			s.benchmark(b, r)
		})
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

func BenchmarkPassProxied(b *testing.B) {
	addr := testcaddy.Backend(b, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(blank[:1_000]) })
	for _, directive := range []string{"not_found", "calls_next"} {
		b.Run(directive, func(b *testing.B) {
			s := compile(b, directive+"\nreverse_proxy "+addr, nil)
			r := incoming(b, benchmarkTarget)
			s.answer(b, r).Want(b, http.StatusOK, string(blank[:1_000]))
			s.benchmark(b, r)
		})
	}
}

// BenchmarkAddress has addresses of different lengths. The cost grows with the length, and is no higher for an address that
// follows long ones.
func BenchmarkAddress(b *testing.B) {
	s := compile(b, "not_found", nil)
	for _, filler := range []string{"a", "<"} {
		for _, length := range []int{20, 200, 2_000, 64_000, 20} {
			b.Run(fmt.Sprintf("%s/%d", map[string]string{"a": "valid", "<": "encoded"}[filler], length), func(b *testing.B) {
				r := incoming(b, benchmarkTarget, "Accept: text/plain")
				r.RequestURI = "/" + strings.Repeat(filler, length-1)
				uri := "http://www.example.com/" + strings.ReplaceAll(r.RequestURI[1:], "<", "%3C")
				s.answer(b, r).WantPage(b, "GET", uri, "")
				s.benchmark(b, r)
			})
		}
	}
	b.Run(callingNext.name, func(b *testing.B) {
		compile(b, callingNext.directives, nil).benchmark(b, incoming(b, benchmarkTarget))
	})
}

// BenchmarkReport has the page with the report and without it: the difference is what counts. The addresses are one that the
// report knows; one that is new each time, for which another one must give way; and both, asked for by all cores at once, which
// includes Caddy's preparation of the requests.
func BenchmarkReport(b *testing.B) {
	for _, c := range []contender{{"not_found", "not_found"}, {"report", "not_found {\nreport\n}"}} {
		s := compile(b, c.directives, nil)
		missed.Take()
		for i := range 2000 {
			missed.Add(report.Miss{Host: "www.example.com", Path: fmt.Sprintf("/%d", i), Referer: "https://www.example.com/blog", Link: report.Own})
		}
		request := func(b *testing.B) *http.Request {
			return incoming(b, benchmarkTarget, "Accept: text/plain", "Referer: https://www.example.com/blog?x=1")
		}
		s.answer(b, request(b)).WantPage(b, "GET", benchmarkURI, "")

		var asked atomic.Int64
		unknown := func(r *http.Request) {
			r.RequestURI = "/docs/" + strconv.FormatInt(asked.Add(1), 10) + "?x=1"
		}
		b.Run(c.name+"/known", func(b *testing.B) { s.benchmark(b, request(b)) })
		b.Run(c.name+"/unknown", func(b *testing.B) {
			r := request(b)
			s.benchmarkEach(b, func() *http.Request { unknown(r); return r })
		})
		for _, name := range []string{"known", "unknown"} {
			b.Run(c.name+"/contended/"+name, func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					r := request(b)
					for pb.Next() {
						if name == "unknown" {
							unknown(r)
						}
						w, received, end := receive(r)
						if err := s.serve(w, received); err != nil {
							b.Error(err)
						}
						end()
					}
				})
			})
		}
	}
}
