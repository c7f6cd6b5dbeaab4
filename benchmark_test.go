package notfound

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// The benchmarks compare sites, each written as a Caddy user would write it, in one run: what counts is the ratio.

// benchmark measures the time of a site's routes. It leaves out Caddy's preparation of the request, which is the same
// for all sites, and the garbage collector, which works mostly for that: what the routes cost it shows in their
// allocations.
func (s *site) benchmark(b *testing.B, r *http.Request) {
	b.ReportAllocs()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var m runtime.MemStats
	var batch [64]struct {
		w   *discard
		r   *http.Request
		end context.CancelFunc
	}
	b.ResetTimer()
	for left := b.N; left > 0; left -= len(batch) {
		now := batch[:min(left, len(batch))]
		b.StopTimer()
		if runtime.ReadMemStats(&m); m.HeapAlloc > 24<<20 {
			runtime.GC()
		}
		for i := range now {
			now[i].w, now[i].r, now[i].end = receive(r)
		}
		b.StartTimer()
		for _, each := range now {
			if err := s.serve(each.w, each.r); err != nil {
				b.Fatal(err)
			}
			each.end()
		}
	}
}

// BenchmarkAnswer has addresses of different lengths, and at last a short one, which costs no more after long ones.
func BenchmarkAnswer(b *testing.B) {
	s := compile(b, "not_found", nil)
	for _, tt := range []struct{ name, accept, target string }{
		{"text", "*/*", benchmarkTarget},
		{"html", chrome, benchmarkTarget},
		{"2000", "*/*", "/" + strings.Repeat("a", 2_000)},
		{"64000", "*/*", "/" + strings.Repeat("a", 64_000)},
		{"64000 encoded", "*/*", "/" + strings.Repeat("<", 64_000)},
		{"text again", "*/*", benchmarkTarget},
	} {
		b.Run(tt.name, func(b *testing.B) {
			r := incoming(b, "/", "Accept: "+tt.accept)
			r.RequestURI = tt.target
			got := testcaddy.FieldsOf(b, s.answer(b, r)).URI
			want := "http://www.example.com" + strings.ReplaceAll(tt.target, "<", "%3C")
			if got != want {
				b.Errorf("got the address %.200s", got)
			}
			s.benchmark(b, r)
		})
	}
}

// BenchmarkReplace has a handler answer with a 404 page of some size, in pieces as large as those that reverse_proxy
// copies.
func BenchmarkReplace(b *testing.B) {
	piece := bytes.Repeat([]byte("x"), 32<<10) // not white space, behind which not_found looks for JSON
	for _, size := range []int{1_000, 100_000, 10_000_000} {
		for name, directives := range map[string]string{
			"not_found": "not_found",
			"intercept": "intercept {\n@404 status 404\nhandle_response @404 {\nrespond `" + testcaddy.TextPage("{method}", "{scheme}://{hostport}{http.request.orig_uri}", "") + "` 404\n}\n}",
		} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				s := compile(b, directives, func(w http.ResponseWriter, _ *http.Request) error {
					header := w.Header()
					header.Set("Content-Type", "text/html; charset=utf-8")
					header.Set("Content-Length", strconv.Itoa(size))
					header.Set("Etag", `"1"`)
					w.WriteHeader(http.StatusNotFound)
					err := error(nil)
					for left := size; left > 0 && err == nil; left -= len(piece) {
						_, err = w.Write(piece[:min(left, len(piece))])
					}
					return nil // as reverse_proxy, which logs that it cannot copy the rest
				})
				r := incoming(b, benchmarkTarget, "Accept: text/plain")
				s.answer(b, r).WantPage(b, "GET", benchmarkURI, "")
				s.benchmark(b, r)
			})
		}
	}
}
