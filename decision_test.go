package notfound

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// TestChainsEndInAnyOrder has two chains of one request run at once, as some mirrors do. A handler that has ended is no
// longer in the way of another one of its group, and one that runs stays in the way of its own chain.
func TestChainsEndInAnyOrder(t *testing.T) {
	h, d := &Handler{Group: "not_found0"}, new(decision)
	chain := func() func() *responseWriter {
		ctx := context.WithValue(t.Context(), caddyhttp.VarsCtxKey, make(map[string]any))
		r := clientRequest{Request: httptest.NewRequestWithContext(ctx, "GET", "/", nil)}
		return func() *responseWriter { return &responseWriter{handler: h, request: r} }
	}
	one, other := chain(), chain()
	enter := func(rw *responseWriter, want bool) *responseWriter {
		t.Helper()
		if d.enter(rw) != want {
			t.Errorf("entered: %v", !want)
		}
		return rw
	}
	first, second := enter(one(), true), enter(other(), true)
	enter(one(), false)
	d.leave(first)
	enter(other(), false)
	again := enter(one(), true)
	d.leave(second)
	enter(one(), false)
	d.leave(again)
	enter(one(), true)
}
