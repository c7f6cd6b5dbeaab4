//go:build !race

// The race detector makes sync.Pool forget at random.

package notfound

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

// allocations counts what the routes of a site allocate for a request, prepared as Caddy's server does it.
func (s *site) allocations(t *testing.T, r *http.Request) float64 {
	t.Helper()
	return testing.AllocsPerRun(1000, func() {
		w, received, end := receive(r)
		defer end()
		if err := s.serve(w, received); err != nil {
			t.Fatal(err)
		}
	})
}

// TestAllocationsAreFew has bounds with room for what a new Go allocates. The benchmarks have the figures.
func TestAllocationsAreFew(t *testing.T) {
	nothing := compile(t, "calls_next", nil)
	for name, directive := range map[string]string{"not_found": "not_found", "with the report": "not_found {\nreport\n}"} {
		answering := compile(t, directive, nil)
		for _, accept := range []string{"*/*", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/markdown, text/html, */*"} {
			for target, most := range map[string]float64{benchmarkTarget: 6, "/" + strings.Repeat("<", 2_000): 8} {
				r := incoming(t, "/", "Accept: "+accept, "Referer: https://www.example.com/blog?x")
				r.RequestURI = target
				if got := answering.allocations(t, r) - nothing.allocations(t, r); got > most {
					t.Errorf("%s: the page for %s, %.20s: got %v allocations, want %v at most", name, accept, target, got, most)
				}
			}
		}
	}

	passes := func(w http.ResponseWriter, r *http.Request) error {
		_, cancel := context.WithCancel(r.Context()) // as http.Transport does
		defer cancel()
		w.WriteHeader(http.StatusOK)
		return nil
	}
	r := incoming(t, benchmarkTarget)
	if got := compile(t, "not_found", passes).allocations(t, r) - compile(t, "calls_next", passes).allocations(t, r); got > 3 {
		t.Errorf("a response that passes: got %v allocations, want about 1", got)
	}
}
