//go:build !race

// The race detector makes sync.Pool forget at random, and takes ten times as long over a million addresses.

package notfound

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
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
			r := incoming(t, "/", "Accept: "+accept)
			r.RequestURI = target
			if got := answering.allocations(t, r) - nothing.allocations(t, r); got > 4 {
				t.Errorf("the page for %s, %.20s: got %v allocations, want at most 4", accept, target, got)
			}
		}
	}
}

// TestKnownAddressIsCountedWithoutAllocation counts the same page again and again, with the same link and with links that
// differ, alone and on the way of a whole request.
func TestKnownAddressIsCountedWithoutAllocation(t *testing.T) {
	uri := []byte("http://www.example.com/" + strings.Repeat("<", 2*maxKey))
	links := []string{"https://b.test/" + strings.Repeat("<", 2*maxLink), "", "https://c.test/x?y#z", "/relative"}
	var r report
	i := 0
	if got := testing.AllocsPerRun(1000, func() {
		r.addPage(uri, links[i%len(links)], causeError)
		r.addKept(uri, links[i%len(links)], true)
		i++
	}); got > 0 {
		t.Errorf("to count a page and a response that passed: got %v allocations, want none", got)
	}

	reporting, silent := compile(t, "not_found {\nreport\n}", nil), compile(t, "not_found", nil)
	for _, target := range []string{benchmarkTarget, "/" + strings.Repeat("<", 2_000)} {
		r := incoming(t, "/", "Referer: https://www.example.com/blog?x")
		r.RequestURI = target
		if got := reporting.allocations(t, r) - silent.allocations(t, r); got > 0 {
			t.Errorf("the page for %.20s: got %v more allocations with the report, want none", target, got)
		}
	}
}

// TestMillionAddressesCostLittleMemory counts distinct addresses with distinct links, all of maximal length.
func TestMillionAddressesCostLittleMemory(t *testing.T) {
	uri := []byte("http://" + strings.Repeat("h", 100) + ".test/0000000/" + strings.Repeat("x", 2*maxKey))
	number := bytes.Index(uri, []byte("0000000"))
	before := testcaddy.MemoryInUse()
	var r report
	for i := range 1_000_000 {
		copy(uri[number:], fmt.Appendf(nil, "%07d", i))
		r.addPage(uri, string(uri), causeUnanswered)
	}
	testcaddy.CheckMemory(t, before, 1<<20)

	s, _ := r.snapshot()
	if s.Count != 1_000_000 || len(s.Addresses) != maxAddresses {
		t.Errorf("got %d pages and %d addresses", s.Count, len(s.Addresses))
	}
	if a := s.Addresses[0]; len(a.Host)+1+len(a.Path) != maxKey || len(a.LastLink) != maxLink {
		t.Errorf("the key has %d bytes and the link %d, want %d and %d", len(a.Host)+1+len(a.Path), len(a.LastLink), maxKey, maxLink)
	}
}
