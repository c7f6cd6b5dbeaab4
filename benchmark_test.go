package notfound

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// The benchmarks compare sites, each written as a Caddy user would write it, in one run: what counts is
// the ratio. `go run ./bench micro` makes tables of them.

func init() {
	caddy.RegisterModule(callsNext{})
	httpcaddyfile.RegisterDirective("calls_next", func(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
		route := h.NewRoute(nil, callsNext{})
		routed := route[0].Value.(caddyhttp.Route)
		routed.Group = "calls_next"
		route[0].Value = routed
		return route, nil
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

// samePage is a body of placeholders that gives the page as text.
const samePage = `"HTTP ERROR 404 No endpoint {http.request.method} /missing.html.
URI: {http.request.scheme}://{http.request.hostport}{http.request.orig_uri}
STATUS: 404
MESSAGE: No endpoint {http.request.method} /missing.html.
%s
"`

// sameTemplate is a body that the templates directive makes the page as text of.
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

// compile compiles the routes of a site, written as in a Caddyfile. next stands behind them; without it they end as
// Caddy's own do.
func compile(t testing.TB, directives string, next caddyhttp.HandlerFunc) *site {
	t.Helper()
	config := new(caddy.Config)
	if err := json.Unmarshal(adapt(t, "{\n"+globalOptions+"}\nhttp://:0 {\n"+directives+"\n}"), config); err != nil {
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
	delete(config.AppsRaw, "http") // nobody listens
	ctx, err := caddy.ProvisionContext(config)
	if err != nil {
		t.Fatal(err)
	}

	srv := app.Servers["srv0"]
	if next == nil {
		srv.Routes[len(srv.Routes)-1].Terminal = true // Caddy puts its own end behind it
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

// serve does what Caddy's server does with a request that it has prepared.
func (s *site) serve(w http.ResponseWriter, r *http.Request) error {
	err := s.routes.ServeHTTP(w, r)
	if err != nil && s.handling != nil {
		err = s.errors.ServeHTTP(w, s.handling.WithError(r, err))
	}
	return err
}

// prepare prepares a request, as Caddy's server does.
func prepare(w http.ResponseWriter, r *http.Request) *http.Request {
	return caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, new(caddyhttp.Server))
}

// incoming is a request as net/http gives it to Caddy.
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

// discard is the writer of a client that takes everything.
type discard struct{ header http.Header }

func (w *discard) Header() http.Header                 { return w.header }
func (w *discard) Write(p []byte) (int, error)         { return len(p), nil }
func (w *discard) ReadFrom(r io.Reader) (int64, error) { return io.Copy(io.Discard, r) }
func (w *discard) WriteHeader(int)                     {}
func (w *discard) FlushError() error                   { return nil }

// benchmark measures what the routes of a site take for a request. Caddy's preparation of the request,
// which is the same for all of them, is not in it.
func (s *site) benchmark(b *testing.B, r *http.Request) {
	b.ReportAllocs()
	var batch [64]struct {
		w *discard
		r *http.Request
	}
	b.ResetTimer()
	for left := b.N; left > 0; left -= len(batch) {
		now := batch[:min(left, len(batch))]
		b.StopTimer()
		for i := range now {
			now[i].w = &discard{http.Header{"Server": {"Caddy"}}}
			now[i].r = prepare(now[i].w, r)
		}
		b.StartTimer()
		for _, each := range now {
			if err := s.serve(each.w, each.r); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// answer is what a site answers to a request.
func (s *site) answer(t testing.TB, r *http.Request) response {
	t.Helper()
	w := httptest.NewRecorder()
	if err := s.serve(w, prepare(w, r)); err != nil {
		t.Fatal(err)
	}
	return response{w.Result(), w.Body.String()}
}

const (
	benchmarkTarget = "/docs/nothing?x=1"
	benchmarkURI    = "http://www.example.com" + benchmarkTarget
)

// placeholderPage is samePage with the footer that the page has here, as quoted in a Caddyfile.
func placeholderPage() string { return fmt.Sprintf(samePage, footer()) }

func BenchmarkAnswer(b *testing.B) {
	for _, format := range formats {
		b.Run("not_found/"+format.name, func(b *testing.B) {
			s := compile(b, "not_found", nil)
			r := incoming(b, benchmarkTarget, "Accept: "+format.mediaTypes[0])
			if got := s.answer(b, r).Header.Get("Content-Type"); got != format.contentType {
				b.Fatalf("got %s", got)
			}
			s.benchmark(b, r)
		})
	}
	for _, contender := range []struct{ name, directives string }{
		{"respond/constant", "respond `" + textPage("GET", benchmarkURI, "") + "` 404"},
		{"respond/placeholders", "respond " + placeholderPage() + " 404"},
		{"handle_errors", "error 404\nhandle_errors {\nrespond " + placeholderPage() + "\n}"},
		{"templates", "templates {\nmime text/plain\n}\nrespond " + fmt.Sprintf(sameTemplate, footer()) + " 404"},
	} {
		b.Run(contender.name, func(b *testing.B) {
			s := compile(b, contender.directives, nil)
			r := incoming(b, benchmarkTarget, "Accept: text/plain")
			s.answer(b, r).wantPage(b, "GET", benchmarkURI, "")
			s.benchmark(b, r)
		})
	}
	b.Run("calls_next", func(b *testing.B) {
		compile(b, "calls_next", nil).benchmark(b, incoming(b, benchmarkTarget, "Accept: text/plain"))
	})
}

// theirPage is the 404 page of a backend.
var theirPage = "<!doctype html><title>404</title><p>" + strings.Repeat("not here ", 100)

func answersTheirPage(w http.ResponseWriter, _ *http.Request) {
	header := w.Header()
	header["Content-Type"] = []string{"text/html; charset=utf-8"}
	header["Content-Length"] = []string{strconv.Itoa(len(theirPage))}
	header["Etag"] = []string{`"1"`}
	header["X-Request-Id"] = []string{"1"}
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, theirPage)
}

// Replacing the response of a handler in the same process.
func BenchmarkReplace(b *testing.B) {
	next := func(w http.ResponseWriter, r *http.Request) error {
		answersTheirPage(w, r)
		return nil
	}
	for _, contender := range []struct{ name, directives string }{
		{"not_found", "not_found"},
		{"intercept/respond", "intercept {\n@404 status 404\nhandle_response @404 {\nrespond " + placeholderPage() + " 404\n}\n}"},
		{"calls_next", "calls_next"},
	} {
		b.Run(contender.name, func(b *testing.B) {
			s := compile(b, contender.directives, next)
			r := incoming(b, benchmarkTarget, "Accept: text/plain")
			if res := s.answer(b, r); contender.name != "calls_next" {
				res.wantPage(b, "GET", benchmarkURI, "")
			}
			s.benchmark(b, r)
		})
	}
}

// Replacing the response of a backend, over TCP.
func BenchmarkReplaceProxied(b *testing.B) {
	addr := backend(b, answersTheirPage)
	for _, contender := range []struct{ name, directives string }{
		{"not_found", "not_found\nreverse_proxy " + addr},
		{"handle_response", "reverse_proxy " + addr + " {\n@404 status 404\nhandle_response @404 {\nrespond " + placeholderPage() + " 404\n}\n}"},
		{"intercept", "intercept {\n@404 status 404\nhandle_response @404 {\nrespond " + placeholderPage() + " 404\n}\n}\nreverse_proxy " + addr},
	} {
		b.Run(contender.name, func(b *testing.B) {
			s := compile(b, contender.directives, nil)
			r := incoming(b, benchmarkTarget, "Accept: text/plain")
			s.answer(b, r).wantPage(b, "GET", benchmarkURI, "")
			s.benchmark(b, r)
		})
	}
}

// A response that passes.
func BenchmarkPass(b *testing.B) {
	next := func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	for _, directive := range []string{"not_found", "calls_next"} {
		b.Run(directive, func(b *testing.B) {
			compile(b, directive, next).benchmark(b, incoming(b, benchmarkTarget))
		})
	}

	addr := backend(b, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, theirPage) })
	for _, directive := range []string{"not_found", "calls_next"} {
		b.Run("proxied/"+directive, func(b *testing.B) {
			s := compile(b, directive+"\nreverse_proxy "+addr, nil)
			r := incoming(b, benchmarkTarget)
			s.answer(b, r).want(b, http.StatusOK, theirPage)
			s.benchmark(b, r)
		})
	}
}

// What clients send as Accept: those whose fields are known, and one like Chrome's that is not.
func BenchmarkAccept(b *testing.B) {
	for _, client := range acceptOfClients {
		b.Run(client.name, func(b *testing.B) {
			s := compile(b, "not_found", nil)
			var fields []string
			if client.accept != "" {
				fields = []string{"Accept: " + client.accept}
			}
			r := incoming(b, benchmarkTarget, fields...)
			if got, want := s.answer(b, r).Header.Get("Content-Type"), formatByName(client.format).contentType; got != want {
				b.Fatalf("got %s, want %s", got, want)
			}
			s.benchmark(b, r)
		})
	}
}

// Addresses of any length: the cost grows with it, and is the same again after it.
func BenchmarkAddress(b *testing.B) {
	s := compile(b, "not_found", nil)
	for _, length := range []int{20, 200, 2_000, 64_000, 20} {
		for name, filler := range map[string]string{"plain": "a", "encoded": "<"} {
			b.Run(fmt.Sprintf("%s/%d", name, length), func(b *testing.B) {
				r := incoming(b, benchmarkTarget, "Accept: text/plain")
				r.RequestURI = "/" + strings.Repeat(filler, length-1)
				uri := "http://www.example.com/" + strings.Repeat(strings.ReplaceAll(filler, "<", "%3C"), length-1)
				s.answer(b, r).wantPage(b, "GET", uri, "")
				s.benchmark(b, r)
			})
		}
	}
}
