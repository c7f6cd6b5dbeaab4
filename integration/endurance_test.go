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

// TestEndurance keeps Caddy under load while its config is reloaded again and again, and while a backend goes away
// and comes back. Every answer is right, byte for byte, and nothing is left behind. For longer than a moment:
//
//	go test -race -run TestEndurance -timeout 10m -endurance 5m ./integration
func TestEndurance(t *testing.T) {
	testcaddy.CheckGoroutines(t)
	l := startLoad(t)
	l.run(t, *endurance/5) // a warm-up, which fills pools and tables
	before := testcaddy.MemoryInUse()
	l.run(t, *endurance*4/5)

	testcaddy.CheckMemory(t, before, 8<<20)
	isPanic := func(e testcaddy.Entry) bool { return strings.Contains(fmt.Sprint(e["msg"]), "panic") }
	if panics := l.logs.Select(t, isPanic); len(panics) > 0 {
		t.Errorf("the log has %v", panics)
	}
	if l.reloads.Load() == 0 || l.changes.Load() == 0 {
		t.Errorf("got %d reloads and %d changes of a backend, want some of both", l.reloads.Load(), l.changes.Load())
	}
	t.Logf("%d requests, %d of them sent again; %d reloads; %d outages of a backend, which %d requests met",
		l.requests.Load(), l.resent.Load(), l.reloads.Load(), l.changes.Load()/2, l.excused.Load())
}

// load is a Caddy under load.
type load struct {
	addr    string
	logs    *testcaddy.Logs
	configs [2][]byte    // which take turns
	mortal  string       // the address of the backend that goes away
	changes atomic.Int64 // of that backend, which is up while their number is odd

	requests, resent, reloads, excused atomic.Int64
}

func startLoad(t *testing.T) *load {
	l := &load{mortal: "127.0.0.1:" + testcaddy.FreePort(t), logs: testcaddy.NewLogs(t)}
	port, steady := testcaddy.FreePort(t), testcaddy.Backend(t, loadedBackend)
	for i, name := range []string{"one", "two"} {
		// keepalive is short because connections that become idle after a reload outlive their config by it
		site := strings.NewReplacer("NAME", name, "PORT", port, "STEADY", steady, "MORTAL", l.mortal).Replace(`
(proxy) {
	reverse_proxy {args[0]} {
		transport http {
			keepalive 200ms
			dial_timeout 30s
			read_timeout 1s # for what stalls
		}
	}
}
http://a.test:PORT {
	header X-Config NAME
	not_found {
		context_path /NAME
	}
	file_server /files/*
	handle_path /steady/* {
		import proxy STEADY
	}
	handle_path /mortal/* {
		import proxy MORTAL
	}
}`)
		l.configs[i] = testcaddy.Adapt(t, testcaddy.Caddyfile(site, "servers {\nprotocols h1 h2c\n}",
			"log default {\n"+l.logs.Output+"\ninclude http.stdlib\nlevel DEBUG\n}"))
	}
	l.addr = testcaddy.StartConfig(t, l.configs[0]).Addr
	return l
}

// loadedBackend is what both backends do. What it streams is the query many times over, which no two requests share.
func loadedBackend(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/stream":
		for range pieces {
			io.WriteString(w, strings.Repeat(r.URL.RawQuery, pieceLength))
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

const pieces, pieceLength = 10, 1000

func streamed(query string) string { return strings.Repeat(query, pieces*pieceLength) }

// kind is a kind of request, with the answer that it must have.
type kind struct {
	method, path string
	want         func(uri, query, config string) (status int, content string)
}

var kinds = []kind{
	{"GET", "/nothing", wantPage},
	{"GET", "/files/none", wantPage},
	{"GET", "/steady/length", wantPage},
	{"GET", "/steady/stalls", wantPage},
	{"GET", "/steady/endless", wantPage},
	{"GET", "/steady/json", func(_, query, _ string) (int, string) { return http.StatusNotFound, query }},
	{"GET", "/steady/stream", wantStreamed},
	{"POST", "/steady/upload", wantStreamed},
	{"GET", "/mortal/length", wantPage},
	{"GET", "/mortal/stalls", wantPage},
	{"GET", "/mortal/stream", wantStreamed},
}

func wantPage(uri, _, config string) (status int, content string) {
	return http.StatusNotFound, testcaddy.TextPage("GET", uri, "/"+config)
}

func wantStreamed(_, query, _ string) (int, string) { return http.StatusOK, streamed(query) }

// run keeps Caddy under load for a while, with a worker for each kind of request over each version of HTTP.
func (l *load) run(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	check := func(what string, err error) {
		if err != nil {
			t.Errorf("%s: %v", what, err)
			stop()
		}
	}
	var running sync.WaitGroup
	for _, k := range kinds {
		for _, c := range []*testcaddy.Client{testcaddy.HTTP11(t, l.addr), testcaddy.H2C(t, l.addr)} {
			c.HTTP.Timeout = time.Minute
			running.Go(func() {
				defer c.HTTP.CloseIdleConnections()
				for more := true; more; more = pause(ctx, rand.N(50*time.Millisecond)) {
					check(k.method+" "+k.path+" over "+c.Name, l.ask(c, k))
				}
			})
		}
	}
	running.Go(func() {
		for pause(ctx, 100*time.Millisecond) {
			check("reloading", caddy.Load(l.configs[l.reloads.Add(1)%2], true))
		}
	})
	running.Go(func() {
		for pause(ctx, rand.N(200*time.Millisecond)) {
			l.runMortal(ctx)
		}
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

// runMortal starts the mortal backend, and closes it with all its connections.
func (l *load) runMortal(ctx context.Context) {
	ln, err := net.Listen("tcp", l.mortal)
	if err != nil {
		return // a connection between others has the port for now
	}
	srv := &http.Server{Handler: http.HandlerFunc(loadedBackend)}
	go srv.Serve(ln)
	l.changes.Add(1)
	pause(ctx, 300*time.Millisecond+rand.N(time.Second))
	l.changes.Add(1)
	srv.Close()
}

// ask sends a request and checks the answer. One from the mortal backend may be missing, or break off, unless the
// backend was up all the time. A page does not break off: Caddy has it.
func (l *load) ask(c *testcaddy.Client, k kind) error {
	before := l.changes.Load()
	query := fmt.Sprintf("%09d", l.requests.Add(1))
	uri, upload := "http://a.test"+k.path+"?"+query, ""
	if k.method == http.MethodPost {
		upload = streamed(query)
	}
	res, err := l.send(c, k.method, uri, upload)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)

	content := string(body)
	status, want := k.want(uri, query, res.Header.Get("X-Config"))
	mayFail := strings.HasPrefix(k.path, "/mortal/") && !(before%2 == 1 && l.changes.Load() == before)
	switch {
	case err == nil && res.StatusCode == status && content == want:
		return nil
	case mayFail && err == nil && res.StatusCode == http.StatusBadGateway && content == "",
		mayFail && err != nil && res.StatusCode == http.StatusOK && status == http.StatusOK && strings.HasPrefix(want, content):
		l.excused.Add(1)
		return nil
	}
	return fmt.Errorf("got %s, %.500q of %d bytes, and %v; want %d, %.500q", res.Status, content, len(content), err, status, want)
}

// send sends a request, and sends it again over another connection where no response comes. A reload closes connections
// that are idle, or that wait to be accepted, and a request may be on its way then.
func (l *load) send(c *testcaddy.Client, method, uri, upload string) (res *http.Response, err error) {
	for range 10 {
		var req *http.Request
		if req, err = http.NewRequest(method, uri, strings.NewReader(upload)); err != nil {
			break
		}
		if res, err = c.HTTP.Do(req); err == nil {
			break
		}
		l.resent.Add(1)
		c.HTTP.CloseIdleConnections()
	}
	return res, err
}
