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

const allocationRuns = 1000

// measured is a handler that answers a request. Nobody reads the response.
type measured struct {
	handler caddyhttp.HandlerFunc
	request *http.Request
}

func (m measured) run() {
	w, r, end := receive(m.request)
	defer end()
	if err := m.handler(w, r); err != nil {
		panic(err)
	}
}

func (m measured) allocations() float64 {
	return testing.AllocsPerRun(allocationRuns, m.run)
}

func (m measured) bytes() int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range allocationRuns {
		m.run()
	}
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc-before.TotalAlloc) / allocationRuns
}

func TestAllocationsOfAPageAreFew(t *testing.T) {
	h := provision(t, &Handler{Report: true})
	for _, accept := range []string{"*/*", chrome, "text/markdown, text/html, */*"} {
		for target, most := range map[string]float64{
			benchmarkTarget:                  6,
			"/" + strings.Repeat("<", 2_000): 8,
		} {
			r := incoming(target, accept)
			r.Header.Set("Referer", "https://www.example.com/blog?x")
			without := measured{testcaddy.EndOfChain, r}
			with := measured{inside(h, testcaddy.EndOfChain), r}
			if got := with.allocations() - without.allocations(); got > most {
				t.Errorf("the page for %s, %.20s: got %v allocations, want %v at most", accept, target, got, most)
			}
		}
	}
}

// withPolicy returns a handler behind the header directive of a site.
func withPolicy(h caddyhttp.HandlerFunc) caddyhttp.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Content-Security-Policy", "default-src 'self'")
		return h(w, r)
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
	h := provision(t, &Handler{})
	r := incoming(benchmarkTarget, "*/*")
	without := measured{withPolicy(next), r}
	with := measured{withPolicy(inside(h, next)), r}
	if got := with.allocations() - without.allocations(); got > 2 {
		t.Errorf("got %v allocations, want 2 at most: the exchange and the placeholder", got)
	}
	if got := with.bytes() - without.bytes(); got > 400 {
		t.Errorf("got %d bytes allocated, want 400 at most", got)
	}
}
