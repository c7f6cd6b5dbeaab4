//go:build !race

// The race detector makes sync.Pool forget at random.

package notfound

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// allocations counts what the routes of a site allocate for a request, prepared as Caddy's server does it.
func (s *site) allocations(t *testing.T, r *http.Request) float64 {
	t.Helper()
	return testing.AllocsPerRun(1000, func() {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		w := &discard{http.Header{"Server": {"Caddy"}}}
		if err := s.serve(w, prepare(w, r.WithContext(ctx))); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAllocations(t *testing.T) {
	r := incoming(t, benchmarkTarget)
	for name, tt := range map[string]struct {
		next caddyhttp.HandlerFunc
		most float64
	}{
		"a response that passes": {func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(http.StatusOK)
			return nil
		}, 1},
		// http.Transport derives a context for each request: the cancelable one, its function, its channel, and the map
		// and the first entries of its children
		"a response that passes after an upstream was asked": {func(w http.ResponseWriter, r *http.Request) error {
			_, cancel := context.WithCancel(r.Context())
			defer cancel()
			w.WriteHeader(http.StatusOK)
			return nil
		}, 6},
	} {
		if got := compile(t, "not_found", tt.next).allocations(t, r) - compile(t, "calls_next", tt.next).allocations(t, r); got > tt.most {
			t.Errorf("%s: got %v allocations, want at most %v", name, got, tt.most)
		}
	}

	answering, nothing := compile(t, "not_found", nil), compile(t, "calls_next", nil)
	for _, client := range acceptOfClients {
		for _, target := range []string{benchmarkTarget, "/" + strings.Repeat("<", 2_000)} {
			r := incoming(t, "/", "Accept: "+client.accept)
			r.RequestURI = target
			if got := answering.allocations(t, r) - nothing.allocations(t, r); got > 3 {
				t.Errorf("the page for %s, %.20s: got %v allocations, want at most 3", client.name, target, got)
			}
		}
	}
}
