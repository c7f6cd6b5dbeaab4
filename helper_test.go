package notfound

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
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
	return h.Provision(ctx)
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
