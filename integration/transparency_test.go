package integration

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/websocket"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

const (
	dryRun     = "not_found {\ndry_run\n}\n"
	replaceAll = "not_found {\nreplace all\n}\n"
)

// TestResponsesThatAreNotReplacedPass compares a site with not_found, and one with a dry run, with the same site
// without it, over every version of HTTP.
func TestResponsesThatAreNotReplacedPass(t *testing.T) {
	testcaddy.CheckGoroutines(t)
	large := strings.Repeat("0123456789abcdef", 256<<10)
	file := testcaddy.TempFile(t, "large.bin", large)
	site := strings.NewReplacer(
		"APP", testcaddy.Backend(t, application),
		"H2C", "h2c://"+testcaddy.H2CBackend(t, application),
		"ROOT", testcaddy.Quote(filepath.Dir(file)),
	).Replace(`
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
	handle_path /within/* {
		encode
		templates
		header >X-Deferred yes
		header -Via
		reverse_proxy APP
	}
	file_server /large.bin {
		root ROOT
	}
	respond /unread mine
	reverse_proxy APP`)
	_, clients := testcaddy.StartAllProtocols(t, map[string]string{
		"without.test": site,
		"with.test":    "not_found\n" + site,
		"dry.test":     dryRun + site,
	})

	var exchanges []exchange
	for _, path := range []string{
		"/chunked", "/nothing", "/304", "/404", "/hints", "/compressible", "/trailer", "/unannounced-trailer", "/breaks",
		"/object", "/object-breaks",
	} {
		for _, prefix := range []string{"", "/encoded", "/h2c", "/flushed", "/within"} {
			exchanges = append(exchanges, exchange{path: prefix + path})
			if !strings.HasPrefix(path, "/object") { // which becomes the page for HEAD
				exchanges = append(exchanges, exchange{method: "HEAD", path: prefix + path})
			}
		}
	}
	upload := large[:1<<20]
	const expect = "Expect: 100-continue"
	exchanges = append(exchanges,
		exchange{path: "/large.bin"},
		exchange{path: "/large.bin", method: "HEAD"},
		exchange{path: "/large.bin", field: "Range: bytes=1000000-2000000"},
		exchange{path: "/upload", method: "POST", body: upload},
		exchange{path: "/upload", method: "POST", body: upload, field: expect},
		exchange{path: "/h2c/upload", method: "PUT", body: upload, field: expect},
		exchange{path: "/unread", method: "POST", body: "unread", field: expect},
	)
	for _, c := range clients {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			for _, e := range exchanges {
				wantUnchanged(t, c, e)
			}
		})
	}
}

// wantUnchanged compares the response of the site without not_found with those of the other sites.
func wantUnchanged(t *testing.T, c *testcaddy.Client, e exchange) {
	t.Helper()
	want := e.over(c, "without.test").withoutChance(c, e)
	for _, host := range []string{"dry.test", "with.test"} {
		got := e.over(c, host).withoutChance(c, e)
		if host == "with.test" && strings.Contains(e.path, "/object") {
			got.header.Del("Vary") // which says that a browser gets the page
			want.header.Del("Vary")
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s to %s: got\n%s\nwant, as without not_found,\n%s", e, host, got, want)
		}
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
	const text = "<h1>an answer</h1>"
	answer := func(status int) {
		w.WriteHeader(status)
		io.WriteString(w, text)
	}

	switch r.URL.Path {
	case "/chunked":
		for range 5 {
			io.WriteString(w, text)
			flush()
		}
	case "/nothing":
		h["Content-Type"] = nil
	case "/304":
		h.Set("ETag", `"1"`)
		w.WriteHeader(304)
	case "/404":
		h.Set("Content-Type", "application/problem+json; charset=utf-8")
		h.Set("Trailer", "X-Sum")
		h.Set("ETag", `"1"`)
		h.Set("Cache-Control", "max-age=60")
		answer(404)
		flush()
		h.Set("X-Sum", "1")
	case "/object": // JSON under another label
		h.Set("Content-Type", "text/plain") // or net/http guesses one by chance: reverse_proxy flushes beside the first write
		h.Set("Trailer", "X-Sum")
		w.WriteHeader(103)
		w.WriteHeader(404)
		flush()
		io.WriteString(w, "\n{")
		flush()
		io.WriteString(w, "}")
		h.Set("X-Sum", "1")
	case "/object-breaks":
		h.Set("Content-Length", "100") // encode does not compress so little
		w.WriteHeader(404)
		io.WriteString(w, "{")
		flush()
		panic(http.ErrAbortHandler)
	case "/hints":
		for _, link := range []string{"</a.css>; rel=preload", "</b.css>; rel=preload"} {
			h.Set("Link", link)
			w.WriteHeader(103)
		}
		answer(200)
	case "/compressible":
		h.Set("ETag", `"1"`)
		h.Set("Content-Length", fmt.Sprint(1001*len(text))) // or each read flushes gzip
		answer(200)
		io.WriteString(w, strings.Repeat(text, 1000))
	case "/trailer":
		h.Set("Trailer", "X-Sum")
		answer(200)
		flush()
		h.Set("X-Sum", "1")
	case "/unannounced-trailer":
		answer(200)
		flush()
		h.Set(http.TrailerPrefix+"X-Sum", "1")
	case "/upload":
		sum := sha256.New()
		_, _ = io.Copy(sum, r.Body)
		h.Set("X-Sum", fmt.Sprintf("%x", sum.Sum(nil)))
		answer(200)
	case "/breaks":
		h.Set("Content-Length", "1000")
		answer(200)
		flush()
		if r.Method != http.MethodHead {
			panic(http.ErrAbortHandler)
		}
	}
}

// exchange is a request.
type exchange struct {
	method string // by default GET
	path   string
	field  string // of the header, beside Accept-Encoding: gzip
	body   string
}

func (e exchange) String() string {
	return fmt.Sprintf("%s %s %s, with %d bytes", e.method, e.path, e.field, len(e.body))
}

// seen is all that a client sees of a response.
type seen struct {
	informational    []string // responses before it
	protocol         string
	status           int
	transferEncoding []string
	header, trailer  http.Header // without Date
	content          string
	err              string
}

func (s seen) String() string {
	const lines = "%q\n%s %d %q\n%q\n%.200q of %d bytes, %s\n%q"
	return fmt.Sprintf(lines,
		s.informational,
		s.protocol, s.status, s.transferEncoding,
		s.header,
		s.content, len(s.content), s.err,
		s.trailer)
}

// over sends the request to a host, and returns what the client sees.
func (e exchange) over(c *testcaddy.Client, host string) (s seen) {
	var informational sync.Mutex // HTTP/3 reports 1xx responses from another goroutine
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
			informational.Lock()
			defer informational.Unlock()
			s.informational = append(s.informational, fmt.Sprint(code, header))
			return nil
		},
	})
	method := cmp.Or(e.method, http.MethodGet)
	uri := c.Scheme + "://" + host + e.path
	req, err := http.NewRequestWithContext(ctx, method, uri, strings.NewReader(e.body))
	if err != nil {
		panic(err)
	}
	req.GetBody = nil // or the client could send it again
	req.Header.Set("Accept-Encoding", "gzip")
	if name, value, ok := strings.Cut(e.field, ": "); ok {
		req.Header.Set(name, value)
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return seen{err: fmt.Sprintf("%T", errors.Unwrap(err))} // the text has addresses and ports
	}
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)

	informational.Lock()
	defer informational.Unlock()
	// without ContentLength: without the field, it depends on whether the header ended the stream
	s.protocol = res.Proto
	s.status = res.StatusCode
	s.transferEncoding = res.TransferEncoding
	s.header = res.Header
	s.header.Del("Date")
	s.trailer = res.Trailer
	s.content = string(content)
	s.err = streamID.ReplaceAllString(fmt.Sprint(err), "")
	return s
}

var streamID = regexp.MustCompile(`stream ID \d+`)

// withoutChance removes what varies without not_found, too. net/http sends a 100 of its own if a body is read before
// the backend's 100 is passed on. Over HTTP/3, a reset may overtake what was sent before it, and an empty response has
// a Content-Length of 0 unless it was flushed.
func (s seen) withoutChance(c *testcaddy.Client, e exchange) seen {
	if len(s.informational) > 1 && s.informational[0] == "100 map[]" {
		s.informational = s.informational[1:]
	}
	if c.Name != "HTTP/3.0" {
		return s
	}
	if strings.HasSuffix(e.path, "breaks") && s.err != "<nil>" {
		return seen{err: "broken off"}
	}
	if s.content == "" && s.header.Get("Content-Length") == "0" {
		s.header.Del("Content-Length")
	}
	return s
}

// TestWebSocket has a backend echo messages.
func TestWebSocket(t *testing.T) {
	app := testcaddy.Backend(t, websocket.Handler(echo).ServeHTTP)
	s := startSite(t, replaceAll+"encode\nreverse_proxy "+app)
	config, err := websocket.NewConfig("ws://a.test/echo", "http://a.test")
	if err != nil {
		t.Fatal(err)
	}
	ws, err := websocket.NewClient(config, s.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, sent := range []string{"hello", strings.Repeat("x", 100<<10)} {
		if err := websocket.Message.Send(ws, sent); err != nil {
			t.Fatal(err)
		}
		received := ""
		if err := websocket.Message.Receive(ws, &received); err != nil || received != sent {
			t.Fatalf("got %.100q, %v", received, err)
		}
	}
}

func echo(ws *websocket.Conn) {
	message := ""
	for websocket.Message.Receive(ws, &message) == nil {
		_ = websocket.Message.Send(ws, message)
	}
}
