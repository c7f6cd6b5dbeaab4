package integration

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

var endurance = flag.Duration("endurance", 2*time.Second, "how long TestEndurance keeps Caddy under load")

// TestEndurance keeps Caddy under load while configs are reloaded, and a backend goes away and comes back. Every answer is
// right, byte for byte, and nothing leaks. To run it for longer:
//
//	go test -race -run TestEndurance -timeout 10m ./integration -endurance 5m
func TestEndurance(t *testing.T) {
	testcaddy.CheckGoroutines(t)
	l := startLoad(t)
	l.run(t, *endurance/5) // a warm-up, which fills pools and tables
	before := testcaddy.MemoryInUse()
	l.run(t, *endurance*4/5)

	testcaddy.CheckMemory(t, before, 8<<20)
	if warnings := l.logs.Select(t, func(testcaddy.Entry) bool { return true }); len(warnings) > 0 {
		t.Errorf("the log has %v", warnings)
	}
	if l.reloads == 0 || l.outages == 0 {
		t.Errorf("got %d reloads and %d outages, want some of each", l.reloads, l.outages)
	}
	t.Logf("%d requests, %d reloads, %d outages", l.requests.Load(), l.reloads, l.outages)
}

// load is a Caddy under load.
type load struct {
	addr             string
	configs          [2][]byte // used in turn
	steady, mortal   string    // backends; the mortal one goes away
	logs             *testcaddy.Logs
	requests         atomic.Int64
	reloads, outages int
}

func startLoad(t *testing.T) *load {
	l := &load{
		logs:   testcaddy.NewLogs(t),
		steady: testcaddy.Backend(t, loadedBackend), mortal: "127.0.0.1:" + testcaddy.FreePort(t),
	}
	template := testcaddy.TempFile(t, "404.html", strings.NewReplacer("HEADING", "{{.Heading}}", "URI", "{{.URI}}").Replace(templatePage))
	port := testcaddy.FreePort(t)
	for i, name := range []string{"one", "two"} {
		// Idle connections keep an old config in memory for the keepalive, and the timers of HTTP/2 keep closed connections for
		// the server's timeouts, so these are short.
		sites := strings.NewReplacer("NAME", name, "PORT", port, "TEMPLATE", template, "STEADY", l.steady, "MORTAL", l.mortal).Replace(`
(proxy) {
	reverse_proxy {args[0]} {
		transport http {
			keepalive 200ms
			read_timeout 30s
		}
	}
}
http://a.test:PORT {
	header X-Config NAME
	not_found {
		context_path /NAME
		template TEMPLATE
		report
	}
	file_server /files/*
	handle_path /steady/* {
		import proxy STEADY
	}
	handle_path /mortal/* {
		import proxy MORTAL
	}
	not_found /watched/* {
		dry_run
	}
	handle_path /watched/* {
		import proxy STEADY
	}
	handle_path /within/* {
		not_found {
			dry_run
		}
		import proxy STEADY
	}
}`)
		l.configs[i] = testcaddy.Adapt(t, testcaddy.Caddyfile(sites, "servers {\nprotocols h1 h2c\ntimeouts {\nread_body_idle 5s\nwrite_idle 5s\nidle 5s\n}\n}",
			"log default {\noutput discard\n}", "log not_found {\n"+l.logs.Output+"\ninclude http.handlers.not_found\nlevel WARN\n}",
			"log stdlib {\n"+l.logs.Output+"\ninclude http.stdlib\nlevel DEBUG\n}"))
	}
	l.addr = testcaddy.StartConfig(t, l.configs[0]).Addr
	return l
}

// loadedBackend is both backends' handler. It streams the query many times over, which is unique to each request.
func loadedBackend(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/stream":
		for range 10 {
			io.WriteString(w, strings.Repeat(r.URL.RawQuery, 1000))
			_ = http.NewResponseController(w).Flush()
			time.Sleep(5 * time.Millisecond)
		}
	case "/json":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, r.URL.RawQuery)
	case "/upload":
		body, _ := io.ReadAll(r.Body)
		w.Write(body)
	default:
		testcaddy.MissingPage(w, r)
	}
}

func streamed(query string) string { return strings.Repeat(query, 10_000) }

const templatePage = "<h1>HEADING</h1><p>URI</p>\n"

// kind is a kind of request: for a page in text, a page from the template, or the backend's answer.
type kind struct{ method, path, want string }

var kinds = []kind{
	{"GET", "/nothing", "text"}, {"GET", "/nothing", "template"}, {"POST", "/nothing", "text"}, {"GET", "/files/none", "text"},
	{"GET", "/steady/length", "text"}, {"POST", "/steady/length", "template"}, {"GET", "/steady/chunked", "template"}, {"GET", "/steady/endless", "text"},
	{"GET", "/steady/json", "json"}, {"GET", "/steady/stream", "stream"}, {"POST", "/steady/upload", "stream"},
	{"GET", "/watched/json", "json"}, {"GET", "/watched/stream", "stream"}, {"GET", "/within/length", "text"}, {"GET", "/within/json", "json"},
	{"GET", "/mortal/length", "text"}, {"GET", "/mortal/chunked", "template"}, {"GET", "/mortal/stream", "stream"},
}

// run keeps Caddy under load for a while, with a worker for each kind of request over each version of HTTP.
func (l *load) run(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	var running sync.WaitGroup
	repeat := func(what string, most time.Duration, f func() error) {
		running.Go(func() {
			for pause(ctx, rand.N(most)) {
				if err := f(); err != nil {
					t.Errorf("%s: %v", what, err)
					stop()
				}
			}
		})
	}
	for _, k := range kinds {
		for _, newClient := range []func(testing.TB, string) *testcaddy.Client{testcaddy.HTTP11, testcaddy.H2C} {
			c := newClient(t, l.addr)
			c.HTTP.Timeout = time.Minute
			c.HTTP.Transport.(*http.Transport).IdleConnTimeout = time.Second
			repeat(fmt.Sprint(k, " over ", c.Name), 100*time.Millisecond, func() error { return l.ask(ctx, c, k) })
		}
	}
	repeat("reloading", 200*time.Millisecond, func() error {
		l.reloads++
		return caddy.Load(l.configs[l.reloads%2], true)
	})
	repeat("the mortal backend", 200*time.Millisecond, func() error {
		ln, err := net.Listen("tcp", l.mortal)
		if err != nil {
			return nil // a client's connection has the port
		}
		srv := &http.Server{Handler: http.HandlerFunc(loadedBackend)}
		go srv.Serve(ln)
		pause(ctx, 100*time.Millisecond+rand.N(time.Second))
		l.outages++
		return srv.Close() // with all its connections
	})
	running.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// pause waits, and reports whether the load goes on.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// ask sends a request, and checks the answer. Some clients leave early, and all do at the end. An answer of the mortal backend
// may be missing or break off, but a page may not.
func (l *load) ask(ctx context.Context, c *testcaddy.Client, k kind) error {
	if rand.N(4) == 0 {
		var leave context.CancelFunc
		ctx, leave = context.WithTimeout(ctx, rand.N(30*time.Millisecond))
		defer leave()
	}
	query, upload := fmt.Sprintf("%09d", l.requests.Add(1)), ""
	uri := "http://a.test" + k.path + "?" + query
	if k.method == http.MethodPost && c.Name == "HTTP/1.1" {
		// not over HTTP/2, where net/http's client races with itself if it retries an upload
		upload = streamed(query)
	}
	var res *http.Response
	for { // a reload may close an idle connection under a request
		req, err := http.NewRequestWithContext(ctx, k.method, uri, strings.NewReader(upload))
		if err != nil {
			return err
		}
		if k.want == "template" {
			req.Header.Set("Accept", "text/html")
		}
		if res, err = c.HTTP.Do(req); err == nil {
			break
		}
		if ctx.Err() != nil {
			return nil
		}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if ctx.Err() != nil {
		return nil
	}

	content, wantStatus := string(body), http.StatusNotFound
	want := testcaddy.TextPage(k.method, uri, "/"+res.Header.Get("X-Config"))
	switch k.want {
	case "template":
		heading, _, _ := strings.Cut(want, "\n")
		want = strings.NewReplacer("HEADING", heading, "URI", uri).Replace(templatePage)
	case "json":
		want = query
	case "stream":
		wantStatus, want = http.StatusOK, streamed(query)
		if k.path == "/steady/upload" {
			want = upload
		}
	}
	mortal := strings.HasPrefix(k.path, "/mortal/")
	switch {
	case err == nil && res.StatusCode == wantStatus && content == want:
		return nil
	case mortal && err == nil && res.StatusCode == http.StatusBadGateway && content == "",
		mortal && err != nil && res.StatusCode == http.StatusOK && wantStatus == http.StatusOK && strings.HasPrefix(want, content):
		return nil
	}
	return fmt.Errorf("got %s, %.500q of %d bytes, and %v; want %d, %.500q of %d bytes", res.Status, content, len(content), err, wantStatus, want, len(want))
}
