package notfound

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// provision sets up a handler as Caddy does when it loads a config.
func provision(t testing.TB, h *Handler) *Handler {
	t.Helper()
	if err := provisionErr(t, h); err != nil {
		t.Fatal(err)
	}
	return h
}

func provisionErr(t testing.TB, h *Handler) error {
	t.Helper()
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	t.Cleanup(cancel)
	err := h.Provision(ctx)
	h.logger = zap.NewNop() // or a test that fails prints a debug line for each page
	return err
}

// prepare prepares a request, as Caddy's server does.
func prepare(w http.ResponseWriter, r *http.Request) *http.Request {
	return caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, new(caddyhttp.Server))
}

// serve passes a request for a.test to a handler, as Caddy's server does, with the next handler after it.
func serve(h *Handler, w http.ResponseWriter, method, target string, next caddyhttp.HandlerFunc) error {
	r := httptest.NewRequest(method, target, nil)
	r.Host = "a.test"
	return h.ServeHTTP(w, prepare(w, r), next)
}

func init() {
	caddy.RegisterModule(callsNext{})
	httpcaddyfile.RegisterDirective("calls_next", func(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
		return h.NewRoute(nil, callsNext{}), nil
	})
	httpcaddyfile.RegisterDirectiveOrder("calls_next", httpcaddyfile.Before, "redir")
}

// callsNext is a handler that only calls the next one: the cost of a route alone.
type callsNext struct{}

func (callsNext) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.calls_next", New: func() caddy.Module { return new(callsNext) }}
}

func (callsNext) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	return next.ServeHTTP(w, r)
}

// site is the routes of a site, compiled as Caddy's server does it.
type site struct{ routes caddyhttp.Handler }

// compile compiles the routes of a site, written as in a Caddyfile. They end in the next handler, or, if that is nil,
// as in Caddy.
func compile(t testing.TB, directives string, next caddyhttp.HandlerFunc) *site {
	t.Helper()
	config := new(caddy.Config)
	adapted := testcaddy.Adapt(t, testcaddy.Caddyfile("http://:0 {\n"+directives+"\n}"))
	if err := json.Unmarshal(adapted, config); err != nil {
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

// receive prepares a request as Caddy's server does, with a writer that discards the response. As in net/http, each
// request has its own context, which the caller ends after the response.
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
