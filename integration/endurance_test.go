package integration

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

var endurance = flag.Duration("endurance", 2*time.Second, "how long TestEndurance keeps Caddy under load")

// TestEndurance keeps Caddy under load while configs are reloaded. Every answer is right, byte for byte, and nothing
// leaks. To run it for longer:
//
//	go test -race -run TestEndurance -timeout 10m ./integration -endurance 5m
func TestEndurance(t *testing.T) {
	testcaddy.CheckGoroutines(t)
	l := startLoad(t)
	l.run(t, *endurance/5) // a warm-up, which fills pools and tables
	before := testcaddy.MemoryInUse()
	l.run(t, *endurance*4/5)

	testcaddy.CheckMemory(t, before, 8<<20)
	if warnings := readFile(t, l.log); warnings != "" {
		t.Errorf("the log has\n%s", warnings)
	}
	t.Logf("%d requests, %d reloads", l.requests.Load(), l.reloads)
}

// load is a Caddy under load.
type load struct {
	addr     string
	configs  [2][]byte // used in turn
	log      string    // the file with warnings
	requests atomic.Int64
	reloads  int
}

func startLoad(t *testing.T) *load {
	l := &load{log: testcaddy.TempFile(t, "log", "")}
	toFile := "output file " + testcaddy.Quote(l.log) + " {\nroll_disabled\n}\n"
	template := fmt.Sprintf(templatePage, "{{.Heading}}", "{{.URI}}")
	// Idle connections keep an old config in memory for the keepalive, and the timers of HTTP/2 keep closed
	// connections for the server's timeouts, so these are short.
	site := strings.NewReplacer(
		"TEMPLATE", testcaddy.Quote(testcaddy.TempFile(t, "404.html", template)),
		"BACKEND", testcaddy.Backend(t, loadedBackend),
	).Replace(`
(proxy) {
	reverse_proxy BACKEND {
		transport http {
			keepalive 200ms
			read_timeout 30s
		}
	}
}
https://a.test:0 {
	bind 127.0.0.1
	tls internal
	header X-Config NAME
	not_found {
		context_path /NAME
		template TEMPLATE
		report
	}
	file_server /files/*
	handle_path /proxied/* {
		import proxy
	}
	not_found /watched/* {
		dry_run
	}
	handle_path /watched/* {
		import proxy
	}
}`)
	storage := testcaddy.Quote(t.TempDir())
	for i, name := range []string{"one", "two"} {
		caddyfile := testcaddy.Caddyfile(strings.ReplaceAll(site, "NAME", name),
			"storage file_system "+storage, "auto_https disable_redirects",
			"servers {\ntimeouts {\nread_body_idle 2s\nwrite_idle 5s\nidle 5s\n}\n}",
			"log default {\noutput discard\n}",
			"log not_found {\n"+toFile+"include http.handlers.not_found\nlevel WARN\n}",
			"log stdlib {\n"+toFile+"include http.stdlib\nlevel DEBUG\n}")
		l.configs[i] = testcaddy.Adapt(t, caddyfile)
	}
	l.addr = testcaddy.StartConfig(t, l.configs[0]).Addr
	testcaddy.AwaitTLS(t, l.addr, "a.test")
	_ = os.Truncate(l.log, 0)          // without the handshakes that failed until then
	for i, config := range l.configs { // which keep the first one's port
		l.configs[i] = bytes.ReplaceAll(config, []byte("127.0.0.1:0"), []byte(l.addr))
	}
	return l
}

// loadedBackend streams the query many times over, which is unique to each request. No response is empty but that of
// /early, whose connection ends. If a client leaves just as an empty response comes, Go's transport may put the
// connection back and then close it, which fails the next request.
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
		io.WriteString(w, r.URL.RawQuery+string(body))
	case "/early": // answers before it reads: so long a body is not discarded
		w.WriteHeader(http.StatusNotFound)
	default:
		testcaddy.MissingPage(w, r)
	}
}

const templatePage = "<h1>%s</h1><p>%s</p>\n"

// kind is a kind of request.
type kind struct {
	method string // by default GET
	path   string
	answer string // a page in text, or from the template, or the backend's
	stalls bool   // the client sends a part of an upload, and no more
}

var kinds = []kind{
	{path: "/nothing", answer: "text"},
	{path: "/nothing", answer: "template"},
	{path: "/nothing", answer: "text", method: "POST"},
	{path: "/files/none", answer: "text"},
	{path: "/proxied/length", answer: "text"},
	{path: "/proxied/length", answer: "template", method: "POST"},
	{path: "/proxied/trailers", answer: "template"},
	{path: "/proxied/endless", answer: "text"},
	{path: "/proxied/json", answer: "json"},
	{path: "/proxied/stream", answer: "stream"},
	{path: "/proxied/upload", answer: "upload", method: "POST"},
	{path: "/nothing", answer: "text", method: "POST", stalls: true},
	{path: "/proxied/early", answer: "text", method: "POST", stalls: true},
	{path: "/watched/json", answer: "json"},
	{path: "/watched/stream", answer: "stream"},
}

// run keeps Caddy under load for a while, with a worker for each kind of request over each version of HTTP, and reloads
// configs meanwhile.
func (l *load) run(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	var running sync.WaitGroup
	for _, k := range kinds {
		k.method = cmp.Or(k.method, http.MethodGet)
		isProxied := strings.HasPrefix(k.path, "/proxied/") || strings.HasPrefix(k.path, "/watched/")
		clients := []*testcaddy.Client{testcaddy.HTTP11(t, l.addr), testcaddy.HTTP2(t, l.addr), testcaddy.HTTP3(t, l.addr)}
		for _, c := range clients {
			if isProxied && k.method == http.MethodGet && c.Name == "HTTP/3.0" {
				continue // its body has no length (caddyserver/caddy#7835), and so a data race over trailers
			}
			c.HTTP.Timeout = time.Minute
			running.Go(func() { l.keepAsking(ctx, t, c, k) })
		}
	}
	for ctx.Err() == nil && !t.Failed() {
		l.reloads++
		if err := caddy.Load(l.configs[l.reloads%2], true); err != nil {
			t.Errorf("reloading: %v", err)
		}
		time.Sleep(rand.N(200 * time.Millisecond))
	}
	stop()
	running.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// keepAsking sends requests of a kind until the load ends, or the test has failed.
func (l *load) keepAsking(ctx context.Context, t *testing.T, c *testcaddy.Client, k kind) {
	for ctx.Err() == nil && !t.Failed() {
		if err := l.ask(ctx, c, k); err != nil {
			t.Errorf("%+v over %s: %v", k, c.Name, err)
		}
		time.Sleep(rand.N(100 * time.Millisecond))
	}
}

// ask sends a request, and checks the answer. Some clients leave early, and all do at the end.
func (l *load) ask(ctx context.Context, c *testcaddy.Client, k kind) error {
	const longestStall = 10 * time.Second
	if !k.stalls && rand.N(4) == 0 {
		var leave context.CancelFunc
		stay := rand.N(30 * time.Millisecond)
		ctx, leave = context.WithTimeout(ctx, stay)
		defer leave()
	}
	query := fmt.Sprintf("%09d", l.requests.Add(1))
	uri := "https://a.test" + k.path + "?" + query
	upload := ""
	if k.method == http.MethodPost && c.Name != "HTTP/2.0" {
		// not over HTTP/2, where net/http's client races with itself if it retries an upload
		upload = strings.Repeat(query, 10_000)
	}
	var res *http.Response
	var start time.Time
	for res == nil { // a reload may close an idle connection under a request
		start = time.Now()
		var body io.Reader = strings.NewReader(upload)
		if k.stalls {
			stalling, rest := io.Pipe()
			go io.WriteString(rest, strings.Repeat("x", 50_000))
			// net/http's client waits for the end of an upload, even if its connection is reset.
			wait, end := context.WithTimeout(ctx, longestStall)
			defer end()
			context.AfterFunc(wait, func() { rest.Close() })
			body = stalling
		}
		req, err := http.NewRequestWithContext(ctx, k.method, uri, body)
		if err != nil {
			return err
		}
		if k.stalls {
			req.ContentLength = 1_000_000 // net/http's server, the backend, would read less before it answers
		}
		switch k.answer {
		case "template":
			req.Header.Set("Accept", "text/html")
		case "text":
			req.Header.Set("Accept", "text/plain")
		}
		res, err = c.HTTP.Do(req)
		if err != nil && ctx.Err() != nil {
			return nil
		}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if ctx.Err() != nil {
		return nil
	}

	status := http.StatusNotFound
	want := testcaddy.TextPage(k.method, uri, "/"+res.Header.Get("X-Config"))
	switch k.answer {
	case "template":
		heading, _, _ := strings.Cut(want, "\n")
		want = fmt.Sprintf(templatePage, heading, uri)
	case "json":
		want = query
	case "stream":
		status = http.StatusOK
		want = strings.Repeat(query, 10_000)
	case "upload":
		status = http.StatusOK
		want = query + upload
	}
	if took := time.Since(start); k.stalls && took > longestStall {
		return fmt.Errorf("an upload that stops is answered after %v", took)
	}
	if err != nil || res.StatusCode != status || string(body) != want {
		return fmt.Errorf("got %s, %.500q of %d bytes, and %v; want %d, %.500q of %d bytes",
			res.Status, body, len(body), err, status, want, len(want))
	}
	return nil
}
