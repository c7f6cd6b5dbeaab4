package notfound

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/judge"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// modes are the modes of the option replace.
var modes = []string{judge.Pages, judge.Browsers, judge.All, judge.None}

var (
	errMissing = caddyhttp.Error(http.StatusNotFound, errors.New("missing"))
	errBroken  = caddyhttp.Error(http.StatusBadGateway, errors.New("broken"))
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
	background := caddy.Context{Context: context.Background()}
	ctx, cancel := caddy.NewContext(background)
	t.Cleanup(cancel)
	err := h.Provision(ctx)
	h.logger = zap.NewNop() // or a test that fails prints a debug line for each page
	return err
}

// inside returns a handler with another one as the next.
func inside(h *Handler, next caddyhttp.HandlerFunc) caddyhttp.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		return h.ServeHTTP(w, r, next)
	}
}

// ourPage is the address of get, as it is on the page.
const ourPage = "http://a.test/x"

func get() *http.Request {
	return httptest.NewRequest(http.MethodGet, ourPage, nil)
}

// prepare prepares a request, as Caddy's server does.
func prepare(w http.ResponseWriter, r *http.Request) *http.Request {
	server := new(caddyhttp.Server)
	return caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, server)
}

// inErrorRoute returns a prepared request as it is in the error route of an error.
func inErrorRoute(r *http.Request, handled error) *http.Request {
	ctx := context.WithValue(r.Context(), caddyhttp.ErrorCtxKey, handled)
	return r.WithContext(ctx)
}

// answer has a handler answer a request.
func answer(t testing.TB, h caddyhttp.HandlerFunc, r *http.Request) testcaddy.Response {
	t.Helper()
	w := httptest.NewRecorder()
	if err := h(w, prepare(w, r)); err != nil {
		t.Fatal(err)
	}
	return testcaddy.Recorded(w)
}
