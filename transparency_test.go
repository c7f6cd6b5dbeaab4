package notfound

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/net/websocket"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// application is a backend whose answers are none of the page's business.
func application(w http.ResponseWriter, r *http.Request) {
	// To answer early makes reverse_proxy, of a body of unknown length, read and close it at the same time.
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
	case "/file":
		http.ServeContent(w, r, "x.txt", time.Unix(1, 0), strings.NewReader(strings.Repeat("0123456789", 100)))
	case "/301":
		answer(301, "Location", "/elsewhere")
	case "/401":
		answer(401, "WWW-Authenticate", `Basic realm="x"`, "WWW-Authenticate", "Bearer")
	case "/403":
		answer(403)
	case "/404":
		h.Set("Content-Type", "application/problem+json; charset=utf-8")
		answer(404, "Trailer", "X-Sum", "ETag", `"1"`, "Cache-Control", "max-age=60")
		flush()
		h.Set("X-Sum", "1")
	case "/405":
		answer(405, "Allow", "GET, HEAD")
	case "/410":
		answer(410)
	case "/418":
		answer(418)
	case "/500":
		answer(500)
	case "/503":
		answer(503, "Retry-After", "1")
	case "/hints":
		h.Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(103)
		h.Set("Link", "</b.css>; rel=preload")
		w.WriteHeader(103)
		answer(200)
	case "/hints-first-404":
		w.WriteHeader(103)
		h.Set("Content-Type", "image/png")
		answer(404)
	case "/gzip":
		h.Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		io.WriteString(z, strings.Repeat(text, 1000))
		z.Close()
	case "/zstd":
		h.Set("Content-Encoding", "zstd")
		z, _ := zstd.NewWriter(w)
		io.WriteString(z, strings.Repeat(text, 1000))
		z.Close()
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
	case "/large":
		h.Set("Content-Type", "application/octet-stream")
		io.CopyN(w, endless{}, 300<<20)
	case "/breaks":
		h.Set("Content-Length", "1000")
		answer(200)
		flush()
		if r.Method != http.MethodHead {
			panic(http.ErrAbortHandler)
		}
	}
}

var streamID = regexp.MustCompile(`stream ID \d+`)

// transcript is all that a client sees of an exchange.
func transcript(c *protocolClient, method, url string, body []byte, fields ...string) string {
	var t strings.Builder
	var informational sync.Mutex // HTTP/3 reports them from elsewhere
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
	res, err := c.Do(req)
	if err != nil {
		// addresses and ports differ from connection to connection
		return fmt.Sprintf("%T", errors.Unwrap(err))
	}
	defer res.Body.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, res.Body)

	informational.Lock()
	defer informational.Unlock()
	// not the ContentLength: where there is no such field, it tells whether the header alone ended the stream
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

// withoutChance leaves out of a transcript what differs from time to time, with the handler and without: net/http asks
// for the body with a 100 of its own if it is read before the backend's 100 was passed on; and over HTTP/3 the reset of a
// stream may overtake what was sent before it, and a response without content has a Content-Length of 0 if it was not
// flushed before the end.
func withoutChance(c *protocolClient, method, path, transcript string) string {
	transcript = strings.Replace(transcript, "100 map[]\n100 map[Server:", "100 map[Server:", 1)
	if c.name != "HTTP/3.0" {
		return transcript
	}
	if strings.HasSuffix(path, "/breaks") && !strings.HasSuffix(transcript, "<nil>\n") {
		return "broken off"
	}
	if method == http.MethodHead || strings.HasSuffix(path, "/204") || strings.HasSuffix(path, "/304") {
		return strings.ReplaceAll(transcript, "Content-Length: [\"0\"]\n", "")
	}
	return transcript
}

// TestResponsesThatAreNotReplacedPass has the same exchanges through a site with the handler in front and
// through the same site without it, over every version of HTTP, and compares what the client sees.
func TestResponsesThatAreNotReplacedPass(t *testing.T) {
	checkGoroutines(t)
	app := backend(t, application)
	h2c := h2cBackend(t, application)
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "large.bin"), bytes.Repeat([]byte("0123456789abcdef"), 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	site := strings.NewReplacer("APP", app, "H2C", "h2c://"+h2c, "ROOT", root).Replace(`
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
	handle /dead {
		reverse_proxy 127.0.0.1:1
	}
	handle /large.bin {
		root ROOT
		file_server
	}
	handle /respond {
		respond "mine" 200
	}
	handle /respond-empty {
		respond 200
	}
	handle {
		reverse_proxy APP
	}`)
	s := startEveryProtocol(t, map[string]string{"with.test": "log\nnot_found\n" + site, "without.test": "log\n" + site})

	type exchange struct {
		method, path string
		body         []byte
		fields       []string
	}
	var exchanges []exchange
	for _, path := range []string{
		"/length", "/chunked", "/empty", "/nothing", "/204", "/304", "/file", "/301", "/401", "/403", "/404", "/405", "/410", "/418",
		"/500", "/503", "/hints", "/hints-first-404", "/gzip", "/zstd", "/compressible", "/trailers", "/unannounced-trailers", "/breaks",
	} {
		for _, method := range []string{"GET", "HEAD"} {
			for _, prefix := range []string{"", "/encoded", "/h2c", "/flushed"} {
				exchanges = append(exchanges, exchange{method: method, path: prefix + path, fields: []string{"Accept-Encoding: gzip"}})
			}
		}
	}
	upload := bytes.Repeat([]byte("0123456789abcdef"), 256<<10)
	exchanges = append(exchanges,
		exchange{"GET", "/dead", nil, nil}, exchange{"HEAD", "/dead", nil, nil},
		exchange{"GET", "/respond", nil, nil}, exchange{"GET", "/respond-empty", nil, nil}, exchange{"HEAD", "/respond-empty", nil, nil},
		exchange{"GET", "/file", nil, []string{"Range: bytes=5-14"}},
		exchange{"GET", "/file", nil, []string{"Range: bytes=-3"}},
		exchange{"GET", "/file", nil, []string{"Range: bytes=5000-"}},
		exchange{"GET", "/file", nil, []string{"If-Modified-Since: Sat, 21 Nov 2026 11:00:00 GMT"}},
		exchange{"GET", "/large.bin", nil, nil}, exchange{"HEAD", "/large.bin", nil, nil},
		exchange{"GET", "/large.bin", nil, []string{"Range: bytes=1000000-20000000"}},
		exchange{"POST", "/upload", upload, nil},
		exchange{"POST", "/upload", upload, []string{"Expect: 100-continue"}},
		exchange{"PUT", "/h2c/upload", upload, []string{"Expect: 100-continue"}},
		exchange{"POST", "/respond", []byte("unread"), []string{"Expect: 100-continue"}},
	)

	for _, c := range s.clients {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, e := range exchanges {
				see := func(host string) string {
					return withoutChance(c, e.method, e.path, transcript(c, e.method, c.scheme+"://"+host+e.path, e.body, e.fields...))
				}
				with, without := see("with.test"), see("without.test")
				for tries := 0; with != without && tries < 10; tries++ {
					without = see("without.test") // does Caddy alone answer so from time to time?
				}
				if with != without {
					t.Errorf("%s %s %v: got\n%s\nwithout the handler\n%s", e.method, e.path, e.fields, with, without)
				}
				if without == "" || strings.Contains(without, "HTTP ERROR") {
					t.Errorf("%s %s: this compares nothing: %s", e.method, e.path, without)
				}
			}
		})
	}
	t.Run("several hundred MB", func(t *testing.T) {
		for _, c := range s.clients[1:] {
			with := transcript(c, "GET", c.scheme+"://with.test/large", nil)
			if !strings.Contains(with, fmt.Sprintf("\n%d ", 300<<20)) || !strings.HasSuffix(with, "<nil>\n") {
				t.Errorf("%s: got\n%s", c.name, with)
			}
		}
	})
}

// TestEventsAreFlushedAsTheyHappen has the backend send an event only after the client has seen the last one.
func TestEventsAreFlushedAsTheyHappen(t *testing.T) {
	seen := make(chan int, 1)
	app := backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 5 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			_ = http.NewResponseController(w).Flush()
			select {
			case n := <-seen:
				if n != i {
					t.Errorf("the client has seen event %d, want %d", n, i)
				}
			case <-r.Context().Done():
				return
			case <-time.After(10 * time.Second):
				t.Errorf("event %d did not arrive", i)
				return
			}
		}
	})
	s := startEveryProtocol(t, map[string]string{"a.test": "not_found\nreverse_proxy " + app, "b.test": "not_found\nencode\nreverse_proxy " + app})
	for _, c := range s.clients {
		for _, host := range []string{"a.test", "b.test"} {
			res, err := c.Get(c.scheme + "://" + host + "/")
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			for i := range 5 {
				event := fmt.Sprintf("data: %d\n\n", i)
				got := make([]byte, len(event))
				if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != event {
					t.Fatalf("%s: got %q, %v", c.name, got, err)
				}
				seen <- i
			}
			if rest, err := io.ReadAll(res.Body); err != nil || len(rest) > 0 {
				t.Errorf("%s: got %q, %v at the end", c.name, rest, err)
			}
			res.Body.Close()
		}
	}
}

func TestWebSocket(t *testing.T) {
	app := httptest.NewServer(websocket.Handler(func(ws *websocket.Conn) {
		var message string
		for websocket.Message.Receive(ws, &message) == nil {
			if websocket.Message.Send(ws, message) != nil {
				return
			}
		}
	}))
	t.Cleanup(app.Close)
	s := startCaddy(t, "http://a.test:0 {\nlog\nlog_append cause {http.not_found.cause}\nnot_found {\nreplace all\n}\nencode\nreverse_proxy "+app.Listener.Addr().String()+"\n}")

	config, err := websocket.NewConfig("ws://a.test/echo", "http://a.test")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	ws, err := websocket.NewClient(config, conn)
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
	if entry := s.logs.waitFor(t, "handled request", 1)[0]; entry["status"] != 101.0 || entry["cause"] != "" {
		t.Errorf("the access log has %v", entry)
	}
}

// TestClientThatLeaves tells the backend, as it does without the handler.
func TestClientThatLeaves(t *testing.T) {
	left := make(chan struct{}, 10)
	app := backend(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "begins")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		left <- struct{}{}
	})
	s := startEveryProtocol(t, map[string]string{"a.test": "not_found\nreverse_proxy " + app})
	for _, c := range s.clients {
		ctx, leave := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, "GET", c.scheme+"://a.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := c.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if _, err := io.ReadFull(res.Body, make([]byte, len("begins"))); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		leave()
		res.Body.Close()
		select {
		case <-left:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: the backend was not told", c.name)
		}
	}
}

// TestSlowClient takes a response in small pieces, with the window full most of the time.
func TestSlowClient(t *testing.T) {
	const size = 4 << 20
	app := backend(t, func(w http.ResponseWriter, r *http.Request) { io.CopyN(w, endless{}, size) })
	s := startEveryProtocol(t, map[string]string{"a.test": "not_found\nreverse_proxy " + app})
	for _, c := range s.clients {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			res, err := c.Get(c.scheme + "://a.test/")
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			total, buf := 0, make([]byte, 64<<10)
			for {
				n, err := io.ReadFull(res.Body, buf)
				if total += n; err != nil {
					break
				}
				time.Sleep(time.Millisecond)
			}
			if total != size {
				t.Errorf("got %d bytes, want %d", total, size)
			}
		})
	}
}

// recordingWriter tells which of the ways to write was taken.
type recordingWriter struct {
	http.ResponseWriter
	calls []string
}

func (w *recordingWriter) ReadFrom(r io.Reader) (int64, error) {
	w.calls = append(w.calls, "ReadFrom")
	return io.Copy(w.ResponseWriter, r)
}

func (w *recordingWriter) Push(target string, _ *http.PushOptions) error {
	w.calls = append(w.calls, "Push "+target)
	return nil
}

func (w *recordingWriter) FlushError() error {
	w.calls = append(w.calls, "Flush")
	return nil
}

func (w *recordingWriter) SetReadDeadline(time.Time) error {
	w.calls = append(w.calls, "SetReadDeadline")
	return nil
}

func (w *recordingWriter) SetWriteDeadline(time.Time) error {
	w.calls = append(w.calls, "SetWriteDeadline")
	return nil
}

func (w *recordingWriter) EnableFullDuplex() error {
	w.calls = append(w.calls, "EnableFullDuplex")
	return nil
}

// TestWriterKeepsItsInterfaces reaches everything that the writer below has.
func TestWriterKeepsItsInterfaces(t *testing.T) {
	below := &recordingWriter{ResponseWriter: httptest.NewRecorder()}
	err := serve(provision(t, &Handler{}), below, "GET", "/x", func(w http.ResponseWriter, _ *http.Request) error {
		rc := http.NewResponseController(w)
		err := errors.Join(rc.SetReadDeadline(time.Time{}), rc.SetWriteDeadline(time.Time{}), rc.EnableFullDuplex(),
			w.(http.Pusher).Push("/style.css", nil), rc.Flush())
		if err != nil {
			return err
		}
		_, err = io.Copy(w, io.LimitReader(endless{}, 10)) // a reader without WriteTo
		return err
	})
	if err != nil {
		t.Error(err)
	}
	want := "SetReadDeadline, SetWriteDeadline, EnableFullDuplex, Push /style.css, Flush, ReadFrom"
	if got := strings.Join(below.calls, ", "); got != want {
		t.Errorf("got the calls %s, want %s", got, want)
	}
}

// TestReadFromReachesTheConnection sends a file as file_server does, over real connections, with the handler
// and without it, and compares the ways that the writer below was written to.
func TestReadFromReachesTheConnection(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file.bin")
	if err := os.WriteFile(file, bytes.Repeat([]byte("0123456789abcdef"), 64<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	h := provision(t, &Handler{})
	sendFile := func(w http.ResponseWriter, r *http.Request) error {
		http.ServeFile(w, r, file)
		return nil
	}
	calls := make(map[string]string)
	for name, handle := range map[string]caddyhttp.HandlerFunc{
		"with": func(w http.ResponseWriter, r *http.Request) error {
			return h.ServeHTTP(w, r, caddyhttp.HandlerFunc(sendFile))
		},
		"without": sendFile,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			below := &recordingWriter{ResponseWriter: w}
			r = prepare(below, r)
			if err := handle(below, r); err != nil {
				t.Error(err)
			}
			calls[name] = strings.Join(below.calls, ", ")
		}))
		res, err := http.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, res.Body)
		res.Body.Close()
		server.Close()
		if err != nil || n != 1<<20 {
			t.Errorf("%s: got %d bytes, %v", name, n, err)
		}
	}
	if calls["with"] != "ReadFrom" || calls["without"] != "ReadFrom" {
		t.Errorf("got the calls %v, want one ReadFrom each", calls)
	}
}

// TestAnswersOfEveryKindCount has handlers answer in each way that there is, and none of them gets the page.
func TestAnswersOfEveryKindCount(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter) error{
		"nothing":        func(w http.ResponseWriter) error { return nil },
		"a header":       func(w http.ResponseWriter) error { w.Header().Set("Allow", "GET"); return nil },
		"a 103 alone":    func(w http.ResponseWriter) error { w.WriteHeader(103); return nil },
		"an empty 200":   func(w http.ResponseWriter) error { w.WriteHeader(200); return nil },
		"an empty write": func(w http.ResponseWriter) error { _, err := w.Write(nil); return err },
		"a flush":        func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() },
		"an upgrade":     func(w http.ResponseWriter) error { w.WriteHeader(101); return nil },
		"a read from nothing": func(w http.ResponseWriter) error {
			_, err := w.(io.ReaderFrom).ReadFrom(strings.NewReader(""))
			return err
		},
		"a superfluous header": func(w http.ResponseWriter) error { w.WriteHeader(204); w.WriteHeader(404); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			rec := httptest.NewRecorder()
			if err := serve(provision(t, &Handler{}), rec, "GET", "/x", func(w http.ResponseWriter, _ *http.Request) error { return answer(w) }); err != nil {
				t.Error(err)
			}
			if rec.Body.Len() > 0 || rec.Code == 404 {
				t.Errorf("got %d %q", rec.Code, rec.Body)
			}
		})
	}

	t.Run("a 103 is no answer", func(t *testing.T) {
		rec := httptest.NewRecorder()
		if err := serve(provision(t, &Handler{}), rec, "GET", "/x", func(w http.ResponseWriter, r *http.Request) error {
			w.WriteHeader(103)
			return endOfChain(w, r)
		}); err != nil || rec.Body.Len() == 0 {
			t.Errorf("got %d %q, %v", rec.Code, rec.Body, err)
		}
	})

	t.Run("a hijacked connection", func(t *testing.T) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := serve(provision(t, &Handler{}), w, "GET", "/x", func(w http.ResponseWriter, _ *http.Request) error {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					return err
				}
				defer conn.Close()
				_, err = io.WriteString(conn, "HTTP/1.1 299 Mine\r\nContent-Length: 0\r\n\r\n")
				return err
			}); err != nil {
				t.Error(err)
			}
		}))
		defer server.Close()
		res, err := http.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != 299 {
			t.Errorf("got %s", res.Status)
		}
	})
}

// TestWriterThatIsUnwrappedByHand goes past the handler, as the README says.
func TestWriterThatIsUnwrappedByHand(t *testing.T) {
	for name, tt := range map[string]struct {
		next caddyhttp.HandlerFunc
		want string
	}{
		"and answers":  {func(http.ResponseWriter, *http.Request) error { return nil }, "theirs"},
		"and goes on":  {endOfChain, "theirs" + textPage("GET", "http://a.test/x", "")},
		"and responds": {func(w http.ResponseWriter, _ *http.Request) error { w.WriteHeader(404); return nil }, "theirs" + textPage("GET", "http://a.test/x", "")},
	} {
		t.Run(name, func(t *testing.T) {
			rec := httptest.NewRecorder()
			err := serve(provision(t, &Handler{}), rec, "GET", "/x", func(w http.ResponseWriter, r *http.Request) error {
				below := w.(interface{ Unwrap() http.ResponseWriter }).Unwrap()
				below.WriteHeader(http.StatusNotFound)
				io.WriteString(below, "theirs")
				return tt.next(w, r)
			})
			if err != nil || rec.Body.String() != tt.want {
				t.Errorf("got %q, %v, want %q", rec.Body, err, tt.want)
			}
		})
	}
}

// TestEncodeHoldsTheHeaderBack shows, of Caddy alone, that a response waits in encode for the first byte of its
// body. So does the page, if the response is a 404.
func TestEncodeHoldsTheHeaderBack(t *testing.T) {
	headerSeen := make(chan struct{})
	result := make(chan bool)
	app := backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_ = http.NewResponseController(w).Flush()
		patience := 300 * time.Millisecond
		if r.Host == "plain.test" {
			patience = 10 * time.Second // where it arrives, it may take its time
		}
		select {
		case <-headerSeen:
			result <- true
		case <-time.After(patience):
			result <- false
			<-headerSeen
		}
	})
	s := startCaddy(t, "http://plain.test:0 {\nreverse_proxy "+app+"\n}\nhttp://encode.test:0 {\nencode\nreverse_proxy "+app+"\n}")
	for host, want := range map[string]bool{"plain.test": true, "encode.test": false} {
		go func() {
			res, err := s.Get("http://" + host + "/")
			if err != nil {
				t.Error(err)
				return
			}
			if want {
				headerSeen <- struct{}{}
			}
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}()
		if got := <-result; got != want {
			t.Errorf("%s: the header is there before the body: %v, want %v", host, got, want)
		}
		if !want {
			headerSeen <- struct{}{}
		}
	}
}
