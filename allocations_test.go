//go:build !race

// The race detector makes sync.Pool forget at random.

package notfound

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// To see what is allocated, run
//
//	go test -run '^$' -bench . -benchmem -memprofile mem.out -memprofilerate 1 .
//	go tool pprof -top -sample_index alloc_space mem.out

// run has a handler answer a prepared request. Nobody reads the response.
func run(t *testing.T, h caddyhttp.HandlerFunc, r *http.Request) {
	w, received, end := receive(r)
	defer end()
	if err := h(w, received); err != nil {
		t.Fatal(err)
	}
}

// allocations counts what handling a request allocates.
func allocations(t *testing.T, h caddyhttp.HandlerFunc, r *http.Request) float64 {
	return testing.AllocsPerRun(1000, func() { run(t, h, r) })
}

// allocated returns how many bytes handling a request allocates.
func allocated(t *testing.T, h caddyhttp.HandlerFunc, r *http.Request) int {
	const runs = 1000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		run(t, h, r)
	}
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc-before.TotalAlloc) / runs
}

func TestAllocationsOfAPageAreFew(t *testing.T) {
	with := inside(provision(t, &Handler{Report: true}), testcaddy.EndOfChain)
	for _, accept := range []string{"*/*", chrome, "text/markdown, text/html, */*"} {
		for target, most := range map[string]float64{
			benchmarkTarget:                  6,
			"/" + strings.Repeat("<", 2_000): 8,
		} {
			r := incoming(target, accept)
			r.Header.Set("Referer", "https://www.example.com/blog?x")
			got := allocations(t, with, r) - allocations(t, testcaddy.EndOfChain, r)
			if got > most {
				t.Errorf("the page for %s, %.20s: got %v allocations, want %v at most", accept, target, got, most)
			}
		}
	}
}

// TestAllocationsOfAResponseThatPassesAreFew has a site with a policy, which is copied before the next handler runs.
func TestAllocationsOfAResponseThatPassesAreFew(t *testing.T) {
	next := func(w http.ResponseWriter, r *http.Request) error {
		_, cancel := context.WithCancel(r.Context()) // as http.Transport does
		defer cancel()
		w.WriteHeader(http.StatusOK)
		return nil
	}
	with := withPolicy(inside(provision(t, &Handler{}), next))
	without := withPolicy(next)
	r := incoming(benchmarkTarget, "*/*")
	if got := allocations(t, with, r) - allocations(t, without, r); got > 2 {
		t.Errorf("got %v allocations, want 2 at most: the exchange and the placeholder", got)
	}
	if got := allocated(t, with, r) - allocated(t, without, r); got > 400 {
		t.Errorf("got %d bytes allocated, want 400 at most", got)
	}
}
