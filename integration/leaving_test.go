package integration

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// oldBodies are ways in which the body of a 404 comes.
var oldBodies = map[string]func(w http.ResponseWriter){
	"at-once": func(w http.ResponseWriter) { writeOld(w, 13, 1, 0) },
	"windows": func(w http.ResponseWriter) { writeOld(w, 60_000, 3, 80*time.Millisecond) }, // as it comes from far away
	"chunked": func(w http.ResponseWriter) { writeOld(w, -1, 3, 20*time.Millisecond) },
	"fastcgi": func(w http.ResponseWriter) { writeOld(w, -1, 3, 20*time.Millisecond) },
}

// writeOld writes a 404 whose body has a length, or none that is declared, and comes in pieces with a pause before each.
func writeOld(w http.ResponseWriter, length, pieces int, pause time.Duration) {
	if length < 0 {
		length = 13
	} else {
		w.Header().Set("Content-Length", fmt.Sprint(length))
	}
	w.WriteHeader(http.StatusNotFound)
	for i := range pieces {
		if pause > 0 {
			_ = http.NewResponseController(w).Flush()
			time.Sleep(pause)
		}
		_, _ = w.Write(make([]byte, (i+1)*length/pieces-i*length/pieces))
	}
}

// TestClientsThatLeaveAtOnceCostNothing has clients that close their connection as soon as they have the bytes that
// Content-Length declares, as curl, health checks and crawlers do. They cost no warning in Caddy's log and no connection
// to the backend that they would not cost without not_found, whatever the page and the old body are.
func TestClientsThatLeaveAtOnceCostNothing(t *testing.T) {
	const requests = 4 // of a cell, one after the other
	type cell struct{ client, body, page string }
	var cells []cell // a handle block each, with a transport of its own to the backend
	var mu sync.Mutex
	connections := make(map[string]map[string]bool) // to the backend, by path
	app := func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if connections[r.URL.Path] == nil {
			connections[r.URL.Path] = make(map[string]bool)
		}
		connections[r.URL.Path][r.RemoteAddr] = true // over FastCGI the client's, but then there is one for each request
		mu.Unlock()
		w.Header().Set("Content-Type", "text/html")
		_, body, _ := strings.Cut(r.URL.Path, ".")
		oldBodies[body](w)
	}
	overHTTP, overFastCGI := testcaddy.Backend(t, app), testcaddy.FastCGI(t, app)+" {\ntransport fastcgi {\nroot /srv\n}\n}"

	pages := map[string]string{"none": "", "built-in": "not_found"}
	for name, size := range map[string]int{"9 kB": 9_000, "100 kB": 100_000} {
		pages[name] = "not_found {\ntemplate " + testcaddy.TempFile(t, "404.html", "<h1>{{.Heading}}</h1>"+strings.Repeat("x", size)) + "\n}"
	}
	site := "log\n"
	for _, client := range []string{"HTTP/1.0", "HTTP/1.1", "HTTP/1.1, Connection: close", "HTTP/2.0", "HTTP/3.0"} {
		for body := range oldBodies {
			to := overHTTP
			if body == "fastcgi" {
				to = overFastCGI
			}
			for page, directive := range pages {
				site += fmt.Sprintf("handle /%d.%s {\n%s\nreverse_proxy %s\n}\n", len(cells), body, directive, to)
				cells = append(cells, cell{client, body, page})
			}
		}
	}
	s, _ := testcaddy.StartAllProtocols(t, map[string]string{"a.test": site})

	visit := func(c *testcaddy.Client, path string, closes bool) (int64, error) {
		req, err := http.NewRequest("GET", c.Scheme+"://a.test"+path, nil)
		if err != nil {
			return 0, err
		}
		req.Header.Set("Accept", "text/html")
		if closes {
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
	path := func(i int) string { return fmt.Sprintf("/%d.%s", i, cells[i].body) }
	var visits sync.WaitGroup
	slots := make(chan struct{}, 16) // all at once would take longer than what is late
	for i, cell := range cells {
		visits.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			all := s.Clients(t)
			c := map[string]*testcaddy.Client{"HTTP/1.0": all[0], "HTTP/2.0": all[3], "HTTP/3.0": all[4]}[cell.client]
			if c == nil {
				c = testcaddy.HTTP11Once(s.Addr)
			}
			for range requests {
				n, err := visit(c, path(i), strings.HasSuffix(cell.client, "close"))
				if atLeast := map[string]int64{"none": 1, "built-in": 1000, "9 kB": 9_000, "100 kB": 100_000}[cell.page]; err != nil || n < atLeast {
					t.Errorf("%v: got %d bytes, %v", cell, n, err)
				}
			}
		})
	}
	visits.Wait()

	warnings := make(map[string]int) // by path
	for _, entry := range s.Logs.WaitFor(t, "handled request", requests*len(cells)) {
		if entry["status"] != 404.0 {
			t.Errorf("the access log has %v", entry)
		}
	}
	for _, entry := range s.Logs.Select(t, isWarning) {
		warnings[entry["request"].(map[string]any)["uri"].(string)]++
	}
	type cost struct{ warnings, connections int }
	costs := make(map[cell]cost)
	for i, cell := range cells {
		costs[cell] = cost{warnings[path(i)], len(connections[path(i)])}
	}
	for cell, got := range costs {
		bare := cell
		bare.page = "none"
		if want := costs[bare]; got != want {
			t.Errorf("%v: got %+v, want %+v as without not_found", cell, got, want)
		}
	}
}

// TestClientThatLeavesBeforeThePage has clients leave while the old body still comes. The exchange with the backend ends,
// and costs what it costs without not_found; the page is counted, because an address was missed.
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
		for _, e := range s.Logs.Select(t, func(e testcaddy.Entry) bool { return isWarning(e) && e.Host() == host }) {
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

// await waits for something that happens soon.
func await(t *testing.T, orElse string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(10 * time.Second):
		t.Fatal(orElse)
	}
}

// announced is a response writer that says when it has passed content on.
type announced struct {
	*caddyhttp.ResponseWriterWrapper
	begun chan<- struct{}
}

func (w announced) Write(p []byte) (int, error) {
	defer func() { w.begun <- struct{}{} }()
	return w.ResponseWriterWrapper.Write(p)
}

// TestBackendThatAnswersEarlyReadsTheWholeUpload has a backend begin its answer at once and read on, while the client sends
// 200 kB in pieces. A page that left meanwhile would cut the upload short: net/http discards what it reads after that.
func TestBackendThatAnswersEarlyReadsTheWholeUpload(t *testing.T) {
	const pieces, length = 10, 20_000
	app := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		if err := rc.EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		if r.Header.Get("Expect") != "" {
			_, _ = io.ReadFull(r.Body, make([]byte, 1)) // which asks for it
		}
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Length", "6") // or reverse_proxy alone would flush the header
		w.WriteHeader(http.StatusNotFound)
		_ = rc.Flush()
		n, err := io.Copy(io.Discard, r.Body)
		if r.Header.Get("Expect") != "" {
			n++
		}
		if err != nil || n != pieces*length {
			t.Errorf("%s: the backend has read %d bytes, %v", r.Header.Get("X-Case"), n, err)
		}
		_, _ = io.WriteString(w, "theirs")
	})
	file := testcaddy.TempFile(t, "404.html", "<h1>{{.Heading}}</h1>"+strings.Repeat("x", 9_000))
	s, _ := testcaddy.StartAllProtocols(t, map[string]string{
		"with.test": "not_found\nreverse_proxy " + app, "without.test": "reverse_proxy " + app,
		"template.test": "not_found {\ntemplate " + file + "\n}\nreverse_proxy " + app,
	})
	for _, expects := range []bool{false, true} {
		for _, host := range []string{"without.test", "with.test", "template.test"} {
			for _, c := range s.Clients(t) {
				name := fmt.Sprintf("%s, %s, Expect: %v", host, c.Name, expects)
				transport, canExpect := c.HTTP.Transport.(*http.Transport)
				if expects && !canExpect {
					continue
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					body, w := io.Pipe()
					var asked atomic.Bool
					ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { asked.Store(true) }})
					req, err := http.NewRequestWithContext(ctx, "POST", c.Scheme+"://"+host+"/x", body)
					if err != nil {
						t.Fatal(err)
					}
					req.ContentLength = pieces * length
					req.Header.Set("X-Case", name)
					req.Header.Set("Accept", "text/html")
					if expects {
						req.Header.Set("Expect", "100-continue")
						transport.ExpectContinueTimeout = time.Minute
					}
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
					if asked.Load() != expects {
						t.Errorf("got a 100: %v, want %v", asked.Load(), expects)
					}
				})
			}
		}
	}
}
