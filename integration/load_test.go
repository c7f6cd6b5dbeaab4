package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// The two sites of a load. They do the same, but for not_found, and have backends of their own.
const withSite, bareSite = "with.test", "bare.test"

// load is a Caddy under load.
type load struct {
	addr        string
	logs        *testcaddy.Logs
	configs     [2][]byte // which take turns
	template    string    // its file
	version     atomic.Int64
	shown       atomic.Int64                        // the version that was on a page last
	mortals     map[string]string                   // the addresses of the backends that go away, by site
	changes     atomic.Int64                        // of those backends, which are up while their number is odd
	connections map[string]map[string]*atomic.Int64 // by site and backend
	warnings    map[warning]int64
	admin       caddy.AdminHandler // serves the report
	reports     report.Report      // those that were taken, as one

	requests, resent, reloads, excused atomic.Int64

	taken  int // reports
	reread int // templates

	mu     sync.Mutex
	misses map[string]missed // by address
}

// missed is how often an address was missed, as far as clients know.
type missed struct{ answered, unknown int64 }

// warning is a kind of warning about a kind of request.
type warning struct {
	what, site   string
	manner, path string // of the request
}

func startLoad(t *testing.T) *load {
	l := &load{
		logs: testcaddy.NewLogs(t), template: testcaddy.TempFile(t, "404.html", templateSource(0)),
		mortals: make(map[string]string), connections: make(map[string]map[string]*atomic.Int64),
		misses: make(map[string]missed), warnings: make(map[warning]int64),
	}
	rest := make(map[string]string)
	for _, name := range []string{withSite, bareSite} {
		steady, connections := countingBackend(t, loadedBackend)
		l.connections[name] = map[string]*atomic.Int64{"steady": connections, "mortal": new(atomic.Int64)}
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close() // when all others have their ports
		l.mortals[name] = ln.Addr().String()
		rest[name] = "import rest " + steady + " " + l.mortals[name]
	}
	port := testcaddy.FreePort(t)
	for i, name := range []string{"one", "two"} {
		// keepalive is short because connections that become idle after a reload outlive their config by it, and so are the
		// server's timeouts because in HTTP/2 their timers keep a connection that is gone in memory, with its config
		sites := strings.NewReplacer("NAME", name, "PORT", port, "TEMPLATE", l.template, "BARE", rest[bareSite], "REST", rest[withSite]).Replace(`
(proxy) {
	reverse_proxy {args[0]} {
		transport http {
			keepalive 200ms
			dial_timeout 30s
			read_timeout {args[1]}
		}
	}
}
(rest) {
	file_server /files/*
	handle /steady/stalls {
		import proxy {args[0]} 1s
	}
	handle /steady/* {
		import proxy {args[0]} 30s
	}
	handle /mortal/stalls {
		import proxy {args[1]} 1s
	}
	handle /mortal/* {
		import proxy {args[1]} 30s
	}
}
http://*.with.test:PORT {
	header X-Config NAME
	not_found {
		context_path /NAME
		template TEMPLATE
		report
	}
	REST
}
http://*.bare.test:PORT {
	BARE
}`)
		l.configs[i] = testcaddy.Adapt(t, testcaddy.Caddyfile(sites, "servers {\nprotocols h1 h2c\ntimeouts {\nread_body_idle 5s\nwrite_idle 5s\nidle 5s\n}\n}",
			"log default {\n"+l.logs.Output+"\nexclude http.stdlib\nlevel WARN\n}", "log stdlib {\n"+l.logs.Output+"\ninclude http.stdlib\nlevel DEBUG\n}"))
	}
	l.addr = testcaddy.StartConfig(t, l.configs[0]).Addr
	info, err := caddy.GetModule("admin.api.not_found")
	if err != nil {
		t.Fatal(err)
	}
	l.admin = info.New().(caddy.AdminRouter).Routes()[0].Handler
	if _, err = l.readReport("DELETE"); err != nil { // what other tests left
		t.Fatal(err)
	}
	if l.reports, err = l.readReport("GET"); err != nil {
		t.Fatal(err)
	}
	return l
}

// loadedBackend is what all backends do. What it streams is the query many times over, which no two requests share.
func loadedBackend(w http.ResponseWriter, r *http.Request) {
	trickle := func(piece string, pause time.Duration) {
		for range pieces {
			io.WriteString(w, piece)
			_ = http.NewResponseController(w).Flush()
			time.Sleep(pause)
		}
	}
	r.URL.Path = "/" + path.Base(r.URL.Path)
	switch r.URL.Path {
	case "/stream":
		trickle(strings.Repeat(r.URL.RawQuery, pieceLength), 5*time.Millisecond)
	case "/late": // after its header
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Length", "6")
		w.WriteHeader(http.StatusNotFound)
		_ = http.NewResponseController(w).Flush()
		time.Sleep(100 * time.Millisecond)
		io.WriteString(w, "theirs")
	case "/trickle":
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusNotFound)
		trickle("theirs", 20*time.Millisecond)
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

// run keeps Caddy under load for a while, with a worker for each kind of request over each version of HTTP. A worker asks
// both sites at the same time, in one manner or another.
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
		for _, newClient := range []func(testing.TB, string) *testcaddy.Client{testcaddy.HTTP11, testcaddy.H2C} {
			clients := map[string]map[manner]*testcaddy.Client{withSite: newClients(t, newClient, l.addr), bareSite: newClients(t, newClient, l.addr)}
			running.Go(func() {
				for more := true; more; more = pause(ctx, rand.N(100*time.Millisecond)) {
					m := manners[rand.N(len(manners))]
					var both sync.WaitGroup
					for name := range clients {
						c := clients[name][m]
						both.Go(func() {
							check(fmt.Sprintf("%s %s over %s, %s", k.method, k.path, c.Name, m), l.ask(c, k, m, name))
						})
					}
					both.Wait()
				}
				for name := range clients {
					clients[name][staying].HTTP.CloseIdleConnections()
				}
			})
		}
	}
	running.Go(func() {
		for i := 1; pause(ctx, 100*time.Millisecond); i++ {
			check("writing the template", l.writeTemplate())
			if i%10 == 0 {
				check("a template that was written", l.awaitTemplate(ctx))
			} else {
				check("reloading", caddy.Load(l.configs[l.reloads.Add(1)%2], true))
			}
		}
	})
	running.Go(func() {
		for pause(ctx, rand.N(200*time.Millisecond)) {
			l.runMortals(ctx)
		}
	})
	running.Go(func() {
		for pause(ctx, rand.N(100*time.Millisecond)) {
			check("the report", l.report())
		}
	})
	for pause(ctx, 100*time.Millisecond) {
		l.takeWarnings(t)
	}
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

// runMortals starts the mortal backends, and closes them with all their connections.
func (l *load) runMortals(ctx context.Context) {
	for name, addr := range l.mortals {
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			return // a connection between others has the port for now
		}
		srv := &http.Server{Handler: http.HandlerFunc(loadedBackend), ConnState: counting(l.connections[name]["mortal"])}
		go srv.Serve(ln)
		defer srv.Close()
	}
	l.changes.Add(1)
	pause(ctx, 300*time.Millisecond+rand.N(time.Second))
	l.changes.Add(1)
}

// writeTemplate puts the next version of the template in place of the file. Written into it, half of it could be read.
func (l *load) writeTemplate() error {
	next := l.template + ".next"
	return errors.Join(os.WriteFile(next, []byte(templateSource(l.version.Add(1))), 0o600), os.Rename(next, l.template))
}

// templateSource is a version of the template. Each says at both ends which it is, and is shorter or longer than the one
// before it.
func templateSource(version int64) string {
	return fmt.Sprintf("<p>%d</p><h1>{{.Heading}}</h1>%s<p>{{.URI}}</p><p>%[1]d</p>\n", version, strings.Repeat("x", int(version%5)*4000))
}

// awaitTemplate waits until Caddy has read the template again.
func (l *load) awaitTemplate(ctx context.Context) error {
	version := l.version.Load()
	for deadline := time.Now().Add(20 * time.Second); l.shown.Load() != version; {
		if time.Now().After(deadline) {
			return fmt.Errorf("the pages do not have version %d", version)
		}
		if !pause(ctx, 10*time.Millisecond) {
			return nil
		}
	}
	l.reread++
	return nil
}

// report reads the report, or takes it. In both cases it can be merged with those that were taken.
func (l *load) report() error {
	method := []string{"GET", "DELETE"}[rand.N(2)]
	r, err := l.readReport(method)
	if err != nil {
		return err
	}
	merged, err := report.Merge(l.reports, r)
	if err == nil && method == "DELETE" {
		l.reports, l.taken = merged, l.taken+1
	}
	return err
}

// readReport asks what serves the report on the admin API. A reload closes the API's connections, and what was on its way
// would be lost.
func (l *load) readReport(method string) (report.Report, error) {
	rec := httptest.NewRecorder()
	if err := l.admin.ServeHTTP(rec, httptest.NewRequest(method, "/not_found/report", nil)); err != nil {
		return report.Report{}, err
	}
	return report.Parse(rec.Body.Bytes())
}

// takeWarnings counts what Caddy has logged. What is about no request could be about either site's, unless not_found says
// it, or the server: that is about a handler that panics, or that writes what it must not.
func (l *load) takeWarnings(t *testing.T) {
	t.Helper()
	for _, e := range l.logs.Take(t) {
		w := warning{what: fmt.Sprint(e["logger"])}
		if e["logger"] != "http.log.error" { // whose messages have addresses in them, and whose statuses clients see
			w.what += fmt.Sprint(": ", e["msg"])
		}
		request, ok := e["request"].(map[string]any)
		switch {
		case ok:
			w.manner, w.site, _ = strings.Cut(e.Host(), ".")
			w.path, _, _ = strings.Cut(request["uri"].(string), "?")
		case e["logger"] == "http.handlers.not_found", e["logger"] == "http.stdlib":
			w.site = withSite
		}
		l.warnings[w]++
	}
}
