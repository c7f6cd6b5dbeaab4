//go:build !race

// The race detector makes sync.Pool forget at random.

package notfound

import (
	"context"
	"net/http"
	"runtime"
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

// allocated returns how many bytes that is.
func (s *site) allocated(t *testing.T, r *http.Request) int {
	t.Helper()
	const runs = 1000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		w, received, end := receive(r)
		if err := s.serve(w, received); err != nil {
			t.Fatal(err)
		}
		end()
	}
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc-before.TotalAlloc) / runs
}

// TestAllocationsAreFew holds the budget of a page, and of a response that passes.
func TestAllocationsAreFew(t *testing.T) {
	const see = "; to see which, run go test -run '^$' -bench . -benchmem -memprofile mem.out -memprofilerate 1 . and go tool pprof -top -sample_index alloc_space mem.out"
	nothing := compile(t, "calls_next", nil)
	for name, directive := range map[string]string{"not_found": "not_found", "with the report": "not_found {\nreport\n}"} {
		answering := compile(t, directive, nil)
		for _, accept := range []string{"*/*", chrome, "text/markdown, text/html, */*"} {
			for target, most := range map[string]float64{benchmarkTarget: 6, "/" + strings.Repeat("<", 2_000): 8} {
				r := incoming(t, "/", "Accept: "+accept, "Referer: https://www.example.com/blog?x")
				r.RequestURI = target
				if got := answering.allocations(t, r) - nothing.allocations(t, r); got > most {
					t.Errorf("%s: the page for %s, %.20s: got %v allocations, want %v at most"+see, name, accept, target, got, most)
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
	const policy = "header Content-Security-Policy \"default-src 'self'\"\n"
	for _, site := range []string{"", policy} {
		with, without := compile(t, site+"not_found", passes), compile(t, site+"calls_next", passes)
		if got := with.allocations(t, r) - without.allocations(t, r); got > 2 {
			t.Errorf("a response that passes, %q: got %v allocations, want 2 at most: the exchange and the placeholder"+see, site, got)
		}
		if got := with.allocated(t, r) - without.allocated(t, r); got > 400 {
			t.Errorf("a response that passes, %q: got %d bytes allocated, want 400 at most"+see, site, got)
		}
	}
}
