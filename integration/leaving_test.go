package integration

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestClientsThatLeaveAtOnceCostNothing has clients close their connection after Content-Length bytes, as curl, health checks and
// crawlers do. They cost no more warnings and backend connections than without not_found.
func TestClientsThatLeaveAtOnceCostNothing(t *testing.T) {
	paths := []string{"/at-once", "/at-once", "/windows", "/windows", "/chunked", "/chunked", "/chunked?close"} // one after the other
	write := func(w http.ResponseWriter, r *http.Request) {
		length, pieces := 60_000, 3
		if r.URL.Path == "/at-once" {
			length, pieces = 13, 1
		}
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path != "/chunked" {
			w.Header().Set("Content-Length", fmt.Sprint(length))
		}
		w.WriteHeader(http.StatusNotFound)
		for range pieces {
			if pieces > 1 { // as from a distant backend
				_ = http.NewResponseController(w).Flush()
				time.Sleep(50 * time.Millisecond)
			}
			_, _ = w.Write(make([]byte, length/pieces))
		}
	}
	large := testcaddy.TempFile(t, "404.html", "<h1>{{.Heading}}</h1>"+strings.Repeat("x", 100_000))
	sites, connections := make(map[string]string), make(map[string]*atomic.Int64)
	for page, directive := range map[string]string{"none": "", "built-in": "not_found", "large": "not_found {\ntemplate " + large + "\n}"} {
		var app string
		app, connections[page] = countingBackend(t, write)
		sites[page+".test"] = "log\n" + directive + "\nreverse_proxy " + app
	}
	s, _ := testcaddy.StartAllProtocols(t, sites)

	visit := func(c *testcaddy.Client, url string) (int64, error) {
		req, err := http.NewRequest("GET", url, nil)
		if err != nil {
			return 0, err
		}
		req.Header.Set("Accept", "text/html")
		if req.URL.RawQuery == "close" && req.URL.Scheme == "http" {
			req.Header.Set("Connection", "close")
		}
		res, err := c.HTTP.Do(req)
		if err != nil {
			return 0, err
		}
		defer c.HTTP.CloseIdleConnections()
		defer res.Body.Close()
		if res.ContentLength < 0 {
			return io.Copy(io.Discard, res.Body)
		}
		return io.CopyN(io.Discard, res.Body, res.ContentLength)
	}
	var visitors sync.WaitGroup
	for page, atLeast := range map[string]int64{"none": 1, "built-in": 1000, "large": 100_000} {
		all, once := s.Clients(t), testcaddy.Once(s.Addr, "HTTP/1.1")
		visitors.Go(func() {
			for _, c := range []*testcaddy.Client{all[0], once, all[3], all[4]} {
				for _, path := range paths {
					n, err := visit(c, c.Scheme+"://"+page+".test"+path)
					if err != nil || n < atLeast {
						t.Errorf("%s over %s, %s: got %d bytes, %v", page, c.Name, path, n, err)
					}
				}
			}
		})
	}
	visitors.Wait()

	type cost struct{ warnings, connections int }
	costOf := func(page string) cost {
		s.Logs.WaitForHost(t, "handled request", page+".test", 4*len(paths))
		return cost{len(warningsAbout(t, s, page+".test")), int(connections[page].Load())}
	}
	want := costOf("none")
	for page := range connections {
		if got := costOf(page); got.warnings > want.warnings || got.connections > want.connections {
			t.Errorf("%s: got %+v, want at most %+v, as without not_found", page, got, want)
		}
	}
}

// TestClientThatLeavesBeforeThePage has clients leave while the old body is still coming. The exchange with the backend ends as
// without not_found, and the page is counted.
func TestClientThatLeavesBeforeThePage(t *testing.T) {
	testcaddy.CheckGoroutines(t)
	begun, ended := make(chan struct{}), make(chan struct{})
	app := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "theirs")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		ended <- struct{}{}
	})
	site := testcaddy.Directive(t, func(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
		return next.ServeHTTP(announced{&caddyhttp.ResponseWriterWrapper{ResponseWriter: w}, begun}, r)
	}) + "\nreverse_proxy " + app
	s, clients := testcaddy.StartAllProtocols(t, map[string]string{"with.test": "log\nnot_found\n" + site, "without.test": "log\n" + site, "metrics.test": "metrics"})
	for _, c := range clients {
		for _, host := range []string{"with.test", "without.test"} {
			ctx, leave := context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(ctx, "GET", c.Scheme+"://"+host+"/x", nil)
			if err != nil {
				t.Fatal(err)
			}
			var client sync.WaitGroup
			client.Go(func() {
				res, err := c.HTTP.Do(req)
				if err == nil { // without not_found, the header may be there
					_, err = io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
				if ctx.Err() == nil {
					t.Errorf("%s: the exchange with %s ended early: %v", c.Name, host, err)
				}
			})
			await(t, c.Name+": "+host+" has no response from the backend", begun)
			leave()
			await(t, c.Name+": the exchange with the backend of "+host+" goes on", ended)
			client.Wait()
		}
	}

	warnings := func(host string) map[any]int { // by version of HTTP
		s.Logs.WaitForHost(t, "handled request", host, len(clients))
		byVersion := make(map[any]int)
		for _, e := range warningsAbout(t, s, host) {
			byVersion[e["request"].(map[string]any)["proto"]]++
		}
		return byVersion
	}
	if with, without := warnings("with.test"), warnings("without.test"); !maps.Equal(with, without) || len(without) == 0 {
		t.Errorf("got the warnings %v, want %v as without not_found", with, without)
	}
	if panics := s.Logs.Select(t, func(e testcaddy.Entry) bool { return strings.Contains(fmt.Sprint(e["msg"]), "panic") }); len(panics) > 0 {
		t.Errorf("the log has %v", panics)
	}
	line := fmt.Sprintf("caddy_not_found_pages_total{cause=\"response\",link=\"none\"} %d\n", len(clients))
	if metrics := s.Get(t, "http://metrics.test/").Content; !strings.Contains(metrics, line) {
		t.Errorf("the metrics lack %s", line)
	}
}

// await waits for a signal.
func await(t *testing.T, orElse string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(10 * time.Second):
		t.Fatal(orElse)
	}
}

// announced is a response writer that signals each Write.
type announced struct {
	*caddyhttp.ResponseWriterWrapper
	begun chan<- struct{}
}

func (w announced) Write(p []byte) (int, error) {
	defer func() { w.begun <- struct{}{} }()
	return w.ResponseWriterWrapper.Write(p)
}

// TestBackendThatAnswersEarlyReadsTheWholeUpload has a backend begin its answer before it reads 200 kB, which come in pieces. A
// page sent meanwhile would cut the upload short, because net/http discards what it reads after that.
func TestBackendThatAnswersEarlyReadsTheWholeUpload(t *testing.T) {
	const pieces, length = 10, 20_000
	app := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		if err := rc.EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Length", "6") // or reverse_proxy alone would flush the header
		w.WriteHeader(http.StatusNotFound)
		_ = rc.Flush()
		if n, err := io.Copy(io.Discard, r.Body); err != nil || n != pieces*length {
			t.Errorf("%s: the backend has read %d bytes, %v", r.Header.Get("X-Case"), n, err)
		}
		_, _ = io.WriteString(w, "theirs")
	})
	file := testcaddy.TempFile(t, "404.html", "<h1>{{.Heading}}</h1>"+strings.Repeat("x", 9_000)) // more than net/http's buffers
	_, clients := testcaddy.StartAllProtocols(t, map[string]string{
		"with.test": "not_found {\ntemplate " + file + "\n}\nreverse_proxy " + app, "without.test": "reverse_proxy " + app,
	})
	for _, host := range []string{"without.test", "with.test"} {
		for _, c := range clients {
			t.Run(host+", "+c.Name, func(t *testing.T) {
				t.Parallel()
				body, w := io.Pipe()
				req, err := http.NewRequest("POST", c.Scheme+"://"+host+"/x", body)
				if err != nil {
					t.Fatal(err)
				}
				req.ContentLength = pieces * length
				req.Header.Set("X-Case", t.Name())
				req.Header.Set("Accept", "text/html")
				go func() {
					defer w.Close()
					for range pieces {
						_, _ = w.Write(make([]byte, length))
						time.Sleep(10 * time.Millisecond)
					}
				}()
				if res := c.Send(t, req); res.StatusCode != 404 || strings.Contains(res.Content, "theirs") != (host == "without.test") {
					t.Errorf("got %s %.200q", res.Status, res.Content)
				}
			})
		}
	}
}
