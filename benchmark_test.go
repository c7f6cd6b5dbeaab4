package notfound

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

const (
	benchmarkTarget = "/docs/nothing?x=1"
	benchmarkURI    = "http://www.example.com" + benchmarkTarget

	chrome = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8," +
		"application/signed-exchange;v=b3;q=0.7"
)

// incoming returns a request as net/http passes it to Caddy.
func incoming(target, accept string) *http.Request {
	r := get()
	r.RequestURI = target
	r.Host = "www.example.com"
	r.Header.Set("User-Agent", "benchmark")
	r.Header.Set("Accept-Encoding", "gzip")
	r.Header.Set("Accept", accept)
	server := new(http.Server)
	address := &net.TCPAddr{IP: net.IPv6loopback, Port: 80}
	ctx := context.WithValue(r.Context(), http.ServerContextKey, server)
	ctx = context.WithValue(ctx, http.LocalAddrContextKey, address)
	return r.WithContext(ctx)
}

// receive prepares a request as Caddy's server does, with a writer that discards the response. As in net/http, each
// request has its own context, which the caller ends after the response.
func receive(r *http.Request) (w *discard, prepared *http.Request, end context.CancelFunc) {
	ctx, end := context.WithCancel(r.Context())
	w = &discard{http.Header{"Server": {"Caddy"}}}
	return w, prepare(w, r.WithContext(ctx)), end
}

// discard is the writer of a client that takes everything.
type discard struct{ header http.Header }

func (w *discard) Header() http.Header { return w.header }

func (w *discard) WriteHeader(int) {}

func (w *discard) Write(p []byte) (int, error) {
	return len(p), nil
}

// The benchmarks compare sites, each written as a Caddy user would write it, in one run: what counts is the ratio.

// benchmark measures the time of a handler. It leaves out Caddy's preparation of the request, which is the same for all
// sites, and the garbage collector, which works mostly for that: what the handler costs it shows in its allocations.
func benchmark(b *testing.B, h caddyhttp.HandlerFunc, r *http.Request) {
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
			next := &now[i]
			next.w, next.r, next.end = receive(r)
		}
		b.StartTimer()
		for _, each := range now {
			if err := h(each.w, each.r); err != nil {
				b.Fatal(err)
			}
			each.end()
		}
	}
}

// BenchmarkAnswer has addresses of different lengths, and at last a short one, which costs no more after long ones.
func BenchmarkAnswer(b *testing.B) {
	site := compile(b, "not_found", testcaddy.EndOfChain)
	for _, tt := range []struct{ name, accept, target string }{
		{"text", "*/*", benchmarkTarget},
		{"html", chrome, benchmarkTarget},
		{"2000", "*/*", "/" + strings.Repeat("a", 2_000)},
		{"64000", "*/*", "/" + strings.Repeat("a", 64_000)},
		{"64000 encoded", "*/*", "/" + strings.Repeat("<", 64_000)},
		{"text again", "*/*", benchmarkTarget},
	} {
		b.Run(tt.name, func(b *testing.B) {
			r := incoming(tt.target, tt.accept)
			res := answer(b, site, r)
			got := testcaddy.FieldsOf(b, res).URI
			want := "http://www.example.com" + strings.ReplaceAll(tt.target, "<", "%3C")
			if got != want {
				b.Errorf("got the address %.200s", got)
			}
			benchmark(b, site, r)
		})
	}
}

// BenchmarkReplace has a handler answer with a 404 page of some size.
func BenchmarkReplace(b *testing.B) {
	respond := testcaddy.TextPage("{method}", "{scheme}://{hostport}{http.request.orig_uri}", "")
	for name, directives := range map[string]string{
		"not_found": "not_found",
		"intercept": "intercept {\n@404 status 404\nhandle_response @404 {\nrespond `" + respond + "` 404\n}\n}",
	} {
		for _, size := range []int{1_000, 100_000, 10_000_000} {
			name := fmt.Sprintf("%s/%d", name, size)
			b.Run(name, func(b *testing.B) {
				site := compile(b, directives, pageOfSize(size))
				r := incoming(benchmarkTarget, "text/plain")
				answer(b, site, r).WantPage(b, "GET", benchmarkURI, "")
				benchmark(b, site, r)
			})
		}
	}
}

// pageOfSize returns a handler that writes a page in pieces as large as those that reverse_proxy copies.
func pageOfSize(size int) caddyhttp.HandlerFunc {
	piece := bytes.Repeat([]byte("x"), 32<<10) // not white space, behind which not_found looks for JSON
	return func(w http.ResponseWriter, _ *http.Request) error {
		header := w.Header()
		header.Set("Content-Type", "text/html; charset=utf-8")
		header.Set("Content-Length", strconv.Itoa(size))
		header.Set("Etag", `"1"`)
		w.WriteHeader(http.StatusNotFound)
		for left := size; left > 0; left -= len(piece) {
			_, err := w.Write(piece[:min(left, len(piece))])
			if err != nil {
				break // as reverse_proxy, which logs that it cannot copy the rest
			}
		}
		return nil
	}
}

// BenchmarkSites has configs of many sites. It adapts one, starts with it, reloads it, and says how much of the heap it
// takes. Of all stock handlers, invoke takes the least.
func BenchmarkSites(b *testing.B) {
	many, some := 20_000, 2_000
	if testing.Short() {
		many, some = 20, 20
	}
	for _, directive := range []string{"respond 404", "invoke nothing", "not_found"} {
		b.Run(directive, func(b *testing.B) {
			config := manySites(b, many, directive)
			b.Run("adapt", func(b *testing.B) {
				for b.Loop() {
					manySites(b, many, directive)
				}
			})
			b.Run("start", func(b *testing.B) {
				for b.Loop() {
					load(b, config)
					b.StopTimer()
					stop(b)
					b.StartTimer()
				}
			})
			b.Run("reload", func(b *testing.B) {
				load(b, config)
				defer stop(b)
				for b.Loop() {
					load(b, config)
				}
			})
			b.Run("heap", func(b *testing.B) {
				config := manySites(b, some, directive)
				for b.Loop() {
					before := heap()
					load(b, config)
					b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
					stop(b)
				}
			})
		})
	}
}

// manySites adapts a config of sites with two blocks. The named route is for invoke.
func manySites(b *testing.B, sites int, directive string) []byte {
	b.Helper()
	var caddyfile strings.Builder
	caddyfile.WriteString("&(nothing) {\n}\n")
	for i := range sites {
		fmt.Fprintf(&caddyfile, "http://site%d.example:0 {\nhandle /shop/* {\n%s\n}\nhandle {\n%[2]s\n}\n}\n", i, directive)
	}
	return testcaddy.Adapt(b, testcaddy.Caddyfile(caddyfile.String(), "log {\nlevel ERROR\n}"))
}

func load(b *testing.B, config []byte) {
	b.Helper()
	if err := caddy.Load(config, true); err != nil {
		b.Fatal(err)
	}
}

func stop(b *testing.B) {
	b.Helper()
	if err := caddy.Stop(); err != nil {
		b.Fatal(err)
	}
}

// heap returns what collections leave of the heap. What is in pools, and what has a finalizer, takes several.
func heap() uint64 {
	for range 5 {
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
