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
		w, received, end := receive(r)
		defer end()
		if err := s.serve(w, received); err != nil {
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
		"a response that passes after an upstream was asked": {func(w http.ResponseWriter, r *http.Request) error {
			_, cancel := context.WithCancel(r.Context()) // as http.Transport does
			defer cancel()
			w.WriteHeader(http.StatusOK)
			return nil
		}, 1},
	} {
		if got := compile(t, "not_found", tt.next).allocations(t, r) - compile(t, "calls_next", tt.next).allocations(t, r); got > tt.most {
			t.Errorf("%s: got %v allocations, want at most %v", name, got, tt.most)
		}
	}

	answering, nothing := compile(t, "not_found", nil), compile(t, "calls_next", nil)
	for _, accept := range []string{"*/*", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/markdown, text/html, */*"} {
		for _, target := range []string{benchmarkTarget, "/" + strings.Repeat("<", 2_000)} {
			r := incoming(t, "/", "Accept: "+accept, "Referer: https://www.example.com/blog?x")
			r.RequestURI = target
			if got := answering.allocations(t, r) - nothing.allocations(t, r); got > 4 {
				t.Errorf("the page for %s, %.20s: got %v allocations, want at most 4", accept, target, got)
			}
		}
	}
}

// TestReportCostsAPageNoAllocation compares the page of a handler that reports with that of one that does not.
func TestReportCostsAPageNoAllocation(t *testing.T) {
	reporting, silent := compile(t, "not_found {\nreport\n}", nil), compile(t, "not_found", nil)
	for _, target := range []string{benchmarkTarget, "/" + strings.Repeat("<", 2_000)} {
		r := incoming(t, "/", "Referer: https://www.example.com/blog?x")
		r.RequestURI = target
		if got := reporting.allocations(t, r) - silent.allocations(t, r); got > 0 {
			t.Errorf("the page for %.20s: got %v more allocations with the report, want none", target, got)
		}
	}
}
