//go:build !race

// The race detector makes sync.Pool forget at random.

package notfound

import (
	"net/http"
	"strings"
	"testing"
)

// allocations counts what the routes of a site allocate for a request, prepared as Caddy's server does it.
func (s *site) allocations(t *testing.T, r *http.Request) float64 {
	t.Helper()
	return testing.AllocsPerRun(1000, func() {
		w := &discard{http.Header{"Server": {"Caddy"}}}
		if err := s.serve(w, prepare(w, r)); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAllocations(t *testing.T) {
	passes := func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	r := incoming(t, benchmarkTarget)
	if got := compile(t, "not_found", passes).allocations(t, r) - compile(t, "calls_next", passes).allocations(t, r); got > 1 {
		t.Errorf("a response that passes: got %v allocations, want at most 1", got)
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
