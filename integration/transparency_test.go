package integration

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/websocket"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestResponsesThatAreNotReplacedPass compares a site without not_found, over every version of HTTP, with the same site with it,
// except for its 404 pages, and with a dry run, which changes nothing.
func TestResponsesThatAreNotReplacedPass(t *testing.T) {
	testcaddy.CheckGoroutines(t)
	root := filepath.Dir(testcaddy.TempFile(t, "large.bin", strings.Repeat("0123456789abcdef", 256<<10)))
	site := strings.NewReplacer("APP", testcaddy.Backend(t, application), "H2C", "h2c://"+testcaddy.H2CBackend(t, application),
		"MISSING", testcaddy.Backend(t, testcaddy.MissingPage), "ROOT", root).Replace(`
	root ROOT
	handle_path /encoded/* {
		encode
		reverse_proxy APP
	}
	handle_path /h2c/* {
		reverse_proxy H2C
	}
	handle_path /flushed/* {
		reverse_proxy APP {
			flush_interval -1
		}
	}
	handle /within/* {
		encode
		templates
		intercept {
			@teapot status 418
			handle_response @teapot {
				respond "a teapot"
			}
		}
		uri strip_prefix /within
		handle_path /around/* {
			header >X-Deferred yes
			header -Via
			DRY
			reverse_proxy APP
		}
		reverse_proxy APP
	}
	handle_path /missing/* {
		reverse_proxy MISSING
	}
	handle /large.bin {
		file_server
	}
	handle /files/* {
		file_server
	}
	handle /respond {
		respond "mine" 200
	}
	handle /bare {
		respond {http.not_found.cause} 404
	}
	handle /unanswered {
	}
	handle /intercepted {
		intercept {
			handle_response {
				respond no
			}
		}
	}
	handle /templates {
		templates
	}
	error /410 410
	handle {
		reverse_proxy APP
	}
	handle_errors 404 {
		DRY
		rewrite /large.bin
		file_server
	}
	handle_errors 410 {
		DRY
		respond /other no
	}`)
	dry, without := strings.ReplaceAll(site, "DRY", dryRun), strings.ReplaceAll(site, "DRY", "")
	_, clients := testcaddy.StartAllProtocols(t, map[string]string{"with.test": "not_found\n" + strings.ReplaceAll(site, "DRY", "not_found"), "dry.test": dryRun + "\n" + dry, "without.test": without})

	type exchange struct {
		method, path string
		body         []byte
		fields       []string
		is404        bool // which with.test answers with a page
	}
	var exchanges []exchange
	add := func(is404 bool, path string, methods ...string) {
		for _, method := range methods {
			exchanges = append(exchanges, exchange{method: method, path: path, fields: []string{"Accept-Encoding: gzip"}, is404: is404})
		}
	}
	for _, path := range []string{
		"/length", "/chunked", "/empty", "/nothing", "/204", "/304", "/401", "/404", "/hints", "/compressible", "/trailers", "/unannounced-trailers", "/breaks",
	} {
		for _, prefix := range []string{"", "/encoded", "/h2c", "/flushed"} {
			add(false, prefix+path, "GET", "HEAD")
		}
	}
	for _, path := range []string{"/object", "/object-in-pieces", "/object-breaks"} { // of HEAD, the page
		for _, prefix := range []string{"", "/encoded", "/h2c", "/flushed", "/within", "/within/around"} {
			add(false, prefix+path, "GET")
		}
	}
	for _, path := range []string{
		"/unanswered", "/bare", "/files/x", "/intercepted", "/templates", "/410", "/missing/length", "/missing/gzip", "/missing/chunked",
		"/missing/trailers", "/missing/unannounced-trailers", "/missing/none", "/missing/early-hints", "/missing/breaks",
	} {
		add(true, path, "GET", "HEAD", "POST")
	}
	upload := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	exchanges = append(exchanges,
		exchange{"GET", "/large.bin", nil, nil, false}, exchange{"HEAD", "/large.bin", nil, nil, false},
		exchange{"GET", "/large.bin", nil, []string{"Range: bytes=1000000-2000000"}, false}, exchange{"GET", "/large.bin", nil, []string{"Range: bytes=99999999-"}, false},
		exchange{"POST", "/upload", upload, nil, false},
		exchange{"POST", "/upload", upload, []string{"Expect: 100-continue"}, false},
		exchange{"PUT", "/h2c/upload", upload, []string{"Expect: 100-continue"}, false},
		exchange{"POST", "/respond", []byte("unread"), []string{"Expect: 100-continue"}, false},
	)
	for _, c := range clients {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			for _, e := range exchanges {
				see := func(host string) string {
					return withoutChance(c, e.method, e.path, transcript(c, e.method, c.Scheme+"://"+host+e.path, e.body, e.fields...))
				}
				want := see("without.test")
				if want == "" || strings.Contains(want, "HTTP ERROR") {
					t.Errorf("%s %s: got no answer to compare: %s", e.method, e.path, want)
				}
				for _, host := range []string{"dry.test", "with.test"} {
					if host == "with.test" && e.is404 {
						continue
					}
					got, want := see(host), want
					if host == "with.test" && strings.Contains(e.path, "/object") {
						got, want = withoutVary(got), withoutVary(want) // which says that a browser gets the page
					}
					if got != want {
						t.Errorf("%s %s%s %v: got\n%s\nwant, as without not_found,\n%s", e.method, host, e.path, e.fields, got, want)
					}
				}
			}
		})
	}
}

// application is a backend with answers that pass.
func application(w http.ResponseWriter, r *http.Request) {
	// or reverse_proxy would read a body of unknown length and close it at the same time
	if r.URL.Path != "/upload" {
		_, _ = io.Copy(io.Discard, r.Body)
	}

	flush := func() { _ = http.NewResponseController(w).Flush() }
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("X-Method", r.Method)
	const text = "<h1>an answer</h1>"
	answer := func(status int, fields ...string) {
		for i := 0; i < len(fields); i += 2 {
			h.Add(fields[i], fields[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, text)
	}

	switch r.URL.Path {
	case "/length":
		answer(200, "Content-Length", fmt.Sprint(len(text)))
	case "/chunked":
		for range 5 {
			io.WriteString(w, text)
			flush()
		}
	case "/empty":
		h.Set("Content-Length", "0")
		w.WriteHeader(200)
	case "/nothing":
		h["Content-Type"] = nil
	case "/204":
		w.WriteHeader(204)
	case "/304":
		h.Set("ETag", `"1"`)
		w.WriteHeader(304)
	case "/401":
		answer(401, "WWW-Authenticate", `Basic realm="x"`, "WWW-Authenticate", "Bearer")
	case "/404":
		h.Set("Content-Type", "application/problem+json; charset=utf-8")
		answer(404, "Trailer", "X-Sum", "ETag", `"1"`, "Cache-Control", "max-age=60")
		flush()
		h.Set("X-Sum", "1")
	case "/object": // JSON, as by PouchDB Server
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("Content-Length", "17")
		w.WriteHeader(404)
		io.WriteString(w, `{"error":"none"}`+"\n")
	case "/object-in-pieces":
		h.Set("Content-Type", "text/plain") // or net/http guesses one by chance: reverse_proxy flushes beside the first write
		h.Set("Trailer", "X-Sum")
		w.WriteHeader(103)
		w.WriteHeader(404)
		flush()
		io.WriteString(w, "\n{")
		flush()
		io.WriteString(w, `"error":"none"}`)
		h.Set("X-Sum", "1")
	case "/object-breaks":
		h.Set("Content-Length", "100") // encode does not compress so little
		w.WriteHeader(404)
		io.WriteString(w, "{")
		flush()
		panic(http.ErrAbortHandler)
	case "/hints":
		h.Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(103)
		h.Set("Link", "</b.css>; rel=preload")
		w.WriteHeader(103)
		answer(200)
	case "/compressible":
		h.Set("ETag", `"1"`)
		answer(200)
		io.WriteString(w, strings.Repeat(text, 1000))
	case "/trailers":
		h.Set("Trailer", "X-Sum") // of several, the proxy changes the order
		answer(200)
		flush()
		h.Set("X-Sum", "1")
	case "/unannounced-trailers":
		answer(200)
		flush()
		h.Set(http.TrailerPrefix+"X-Sum", "1")
	case "/upload":
		sum := sha256.New()
		n, err := io.Copy(sum, r.Body)
		answer(200, "X-Sum", fmt.Sprintf("%d %x %v", n, sum.Sum(nil), err))
	case "/breaks":
		h.Set("Content-Length", "1000")
		answer(200)
		flush()
		if r.Method != http.MethodHead {
			panic(http.ErrAbortHandler)
		}
	}
}

// transcript sends a request, and returns all that the client sees.
func transcript(c *testcaddy.Client, method, url string, body []byte, fields ...string) string {
	var t strings.Builder
	var informational sync.Mutex // HTTP/3 reports 1xx responses from another goroutine
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
			informational.Lock()
			defer informational.Unlock()
			fmt.Fprintln(&t, code, header)
			return nil
		},
	})
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, reader)
	if err != nil {
		return err.Error()
	}
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ": ")
		req.Header.Add(name, value)
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		// the text has addresses and ports
		return fmt.Sprintf("%T", errors.Unwrap(err))
	}
	defer res.Body.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, res.Body)

	informational.Lock()
	defer informational.Unlock()
	// not ContentLength: without the field, it depends on whether the header ended the stream
	fmt.Fprintln(&t, res.Proto, res.Status, res.TransferEncoding)
	for _, field := range slices.Sorted(maps.Keys(res.Header)) {
		if field != "Date" {
			fmt.Fprintf(&t, "%s: %q\n", field, res.Header[field])
		}
	}
	fmt.Fprintf(&t, "%d %x %s\n", n, sum.Sum(nil), streamID.ReplaceAllString(fmt.Sprint(err), ""))
	for _, field := range slices.Sorted(maps.Keys(res.Trailer)) {
		fmt.Fprintf(&t, "trailer %s: %q\n", field, res.Trailer[field])
	}
	return t.String()
}

// withoutChance removes from a transcript what varies without not_found, too. net/http sends a 100 of its own if a body is read
// before the backend's 100 is passed on. Over HTTP/3, a reset may overtake what was sent before it, and an empty response has
// a Content-Length of 0 unless it was flushed.
func withoutChance(c *testcaddy.Client, method, path, seen string) string {
	seen = strings.Replace(seen, "100 map[]\n100 map[Server:", "100 map[Server:", 1)
	if c.Name != "HTTP/3.0" {
		return seen
	}
	if strings.HasSuffix(path, "breaks") && !strings.HasSuffix(seen, "<nil>\n") {
		return "broken off"
	}
	if method == http.MethodHead || strings.HasSuffix(path, "/204") || strings.HasSuffix(path, "/304") {
		return strings.ReplaceAll(seen, "Content-Length: [\"0\"]\n", "")
	}
	return seen
}

var streamID = regexp.MustCompile(`stream ID \d+`)

// TestEventsAreFlushedAsTheyHappen has the backend send an event only after the client has seen the one before.
func TestEventsAreFlushedAsTheyHappen(t *testing.T) {
	seen := make(chan struct{})
	app := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-seen:
			case <-r.Context().Done():
				return
			}
		}
	})
	_, clients := testcaddy.StartAllProtocols(t, map[string]string{"a.test": "not_found\nencode\nreverse_proxy " + app})
	for _, c := range clients {
		c.HTTP.Timeout = 10 * time.Second
		res, err := c.HTTP.Get(c.Scheme + "://a.test/")
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		defer res.Body.Close()
		for i := range 3 {
			got := make([]byte, len("data: 0\n\n"))
			if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != fmt.Sprintf("data: %d\n\n", i) {
				t.Fatalf("%s: got %q, %v", c.Name, got, err)
			}
			seen <- struct{}{}
		}
	}
}

// TestWebSocket has a backend echo messages.
func TestWebSocket(t *testing.T) {
	app := testcaddy.Backend(t, websocket.Handler(func(ws *websocket.Conn) {
		var message string
		for websocket.Message.Receive(ws, &message) == nil {
			if websocket.Message.Send(ws, message) != nil {
				return
			}
		}
	}).ServeHTTP)
	s := testcaddy.Start(t, "http://a.test:0 {\nlog\nlog_append cause {http.not_found.cause}\nnot_found {\nreplace all\n}\nencode\nreverse_proxy "+app+"\n}")

	config, err := websocket.NewConfig("ws://a.test/echo", "http://a.test")
	if err != nil {
		t.Fatal(err)
	}
	ws, err := websocket.NewClient(config, s.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, message := range []string{"hello", strings.Repeat("x", 100<<10), ""} {
		if err := websocket.Message.Send(ws, message); err != nil {
			t.Fatal(err)
		}
		var got string
		if err := websocket.Message.Receive(ws, &got); err != nil || got != message {
			t.Fatalf("got %.100q, %v", got, err)
		}
	}
	if err := ws.Close(); err != nil {
		t.Error(err)
	}
	if entry := s.Logs.WaitFor(t, "handled request", 1)[0]; entry["status"] != 101.0 || entry["cause"] != "" {
		t.Errorf("the access log has %v", entry)
	}
}
