package integration

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestRequestsAndAnswersStayInStep sends requests of ambiguous length, and requests whose body nobody reads, each with another
// after it. Each gets its own answer, in order, and reaches the backend as it was sent, or the connection ends.
func TestRequestsAndAnswersStayInStep(t *testing.T) {
	b := startRawBackend(t, func(string, string) string { return "" })
	// without Caddy's timeout for bodies, which would wrap net/http's
	s := testcaddy.Start(t, "http://a.test:0 {\nnot_found\nreverse_proxy "+b.addr+"\n}", "servers {\ntimeouts {\nread_body_idle -1s\n}\n}")

	const (
		host     = " HTTP/1.1\r\nHost: a.test\r\n"
		smuggled = "GET /smuggled" + host + "\r\n"
		a, next  = "POST /a", "GET /last"
	)
	large := strings.Repeat(smuggled, 1<<20/len(smuggled))
	length := func(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }
	chunk := fmt.Sprintf("\r\n%x\r\n%s\r\n0\r\n\r\n", len(smuggled), smuggled)
	for name, tt := range map[string]struct {
		request string
		asks    []string
		mayEnd  bool // the connection may end before all of that is answered
	}{
		// Transfer-Encoding overrides Content-Length, and a server may refuse to take both (RFC 9112, section 6.3)
		"CL.TE":                {a + host + "Content-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled, []string{a, "GET /smuggled", next}, true},
		"TE.CL":                {a + host + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n" + chunk, []string{a, next}, true},
		"a broken chunk":       {a + host + "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + smuggled, []string{a}, true},
		"chunks with trailers": {a + host + "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n4\r\nbody\r\n0\r\nX-Sum: 1\r\nContent-Length: 4\r\n\r\n", []string{a, next}, false},
		"HEAD first":           {"HEAD /a" + host + "\r\n", []string{"HEAD /a", next}, false},
		"many":                 {strings.Repeat("GET /b"+host+"\r\n"+a+host+length("body"), 5), append(slices.Repeat([]string{"GET /b", a}, 5), next), false},

		"an unread body":              {"POST /unread" + host + length(smuggled), []string{"POST /unread", next}, true},
		"a body that is never read":   {"POST /unread/close" + host + length(large), []string{"POST /unread/close", next}, true},
		"100-continue never answered": {"POST /unread" + host + "Expect: 100-continue\r\n" + length(smuggled), []string{"POST /unread", next}, true},
	} {
		t.Run(name, func(t *testing.T) {
			conn := s.Connect(t)
			go func() { _, _ = io.WriteString(conn, tt.request+next+host+"Connection: close\r\n\r\n") }() // which fails where the connection ends early

			var answered []string
			r := bufio.NewReader(conn)
			for {
				want := "GET /nothing more"
				if len(answered) < len(tt.asks) {
					want = tt.asks[len(answered)]
				}
				method, path, _ := strings.Cut(want, " ")
				res, err := http.ReadResponse(r, &http.Request{Method: method})
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatalf("after %q: %v", answered, err)
				}
				if err != nil {
					break
				}
				answer, who := testcaddy.ReadBody(t, res, name), res.Header.Get("X-For")
				switch {
				case res.StatusCode == http.StatusContinue:
					continue
				case who != "" && method != http.MethodHead:
					answer.WantPage(t, method, "http://a.test"+path, "")
				case res.StatusCode == http.StatusBadGateway: // the request reached the backend, and broke off
					who = want
				case who == "" && tt.mayEnd && res.StatusCode == http.StatusBadRequest: // the rest of the previous request
					continue
				}
				answered = append(answered, who)
			}
			if asked := b.asked(t, len(answered)); !slices.Equal(answered, asked) {
				t.Errorf("got answers to %q, and the backend was asked %q", answered, asked)
			}
			if len(answered) > len(tt.asks) || !slices.Equal(answered, tt.asks[:len(answered)]) || !tt.mayEnd && len(answered) < len(tt.asks) {
				t.Errorf("got answers to %q, want %q", answered, tt.asks)
			}
		})
	}
}

// TestResponsesStayInStep has a backend send more or less than it declares, or what looks like a second response. The next
// client still gets its own answer.
func TestResponsesStayInStep(t *testing.T) {
	const smuggled = "HTTP/1.1 200 OK\r\nX-For: smuggled\r\nContent-Length: 8\r\n\r\nsmuggled"
	missing := func(fields, body string) string {
		return "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n" + fields + "\r\n" + body
	}
	type exchange struct {
		response string
		status   int
	}
	const page, badGateway = http.StatusNotFound, http.StatusBadGateway
	exchanges := map[string]exchange{
		"/more-than-its-length": {missing("Content-Length: 6\r\n", "theirs"+smuggled), page},
		"/less-than-its-length": {missing("Content-Length: 6000\r\n", "theirs"+smuggled), page},
		"/both-lengths":         {missing("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "6\r\ntheirs\r\n0\r\n\r\n"+smuggled), page},
		"/chunk-without-end":    {missing("Transfer-Encoding: chunked\r\n", "ffffffff\r\n"+smuggled), page},
		"/trailers":             {missing("Trailer: X-For\r\nTransfer-Encoding: chunked\r\n", "0\r\nX-For: smuggled\r\nSet-Cookie: smuggled\r\n\r\n"+smuggled), page},
		"/no-length/close":      {missing("", "theirs"+smuggled), page},
		"/two-lengths":          {missing("Content-Length: 6\r\nContent-Length: 60\r\n", "theirs"+smuggled), badGateway},
		"/body-for-HEAD":        {missing("Content-Length: 72\r\n", smuggled), page},
	}
	b := startRawBackend(t, func(_, path string) string { return exchanges[path].response })
	// Caddy waits for missing bytes until read_timeout
	s := testcaddy.Start(t, strings.ReplaceAll(`
http://a.test:0 {
	not_found
	@short path /less-than-its-length /chunk-without-end
	reverse_proxy @short BACKEND {
		transport http {
			read_timeout 500ms
		}
	}
	reverse_proxy BACKEND
}`, "BACKEND", b.addr))

	conn := s.Connect(t)
	r := bufio.NewReader(conn)
	ask := func(method, path string) testcaddy.Response {
		t.Helper()
		fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: a.test\r\n\r\n", method, path)
		return testcaddy.ReadResponse(t, r, method, path)
	}
	for path, e := range exchanges {
		method := http.MethodGet
		if path == "/body-for-HEAD" {
			method = http.MethodHead
		}
		res := ask(method, path)
		switch {
		case res.StatusCode != e.status:
			t.Errorf("%s: got %s, want %d", path, res.Status, e.status)
		case e.status == page && method == http.MethodGet:
			res.WantPage(t, method, "http://a.test"+path, "")
		}
		res.WantHeader(t, "X-For", "")
		res.WantHeader(t, "Set-Cookie", "")

		// a connection with something left on it is closed
		select {
		case <-b.ends:
		case <-time.After(10 * time.Second):
			t.Errorf("%s: the connection to the backend is kept", path)
		}
		for _, path := range []string{"/pass" + path + "?", "/missing" + path + "?"} {
			who := "GET " + path
			res, other := ask("GET", path), s.Get(t, "http://a.test"+path)
			res.WantHeader(t, "X-For", who)
			other.WantHeader(t, "X-For", who)
			if strings.HasPrefix(path, "/pass") {
				res.Want(t, http.StatusOK, who)
				other.Want(t, http.StatusOK, who)
			} else {
				res.WantPage(t, "GET", "http://a.test"+path, "")
				other.WantPage(t, "GET", "http://a.test"+path, "")
			}
		}
		if t.Failed() {
			t.Fatalf("at %s", path)
		}
	}
	b.asked(t, 0)
}

// rawBackend answers byte for byte. It records the requests that it reads, and the connections that end.
type rawBackend struct {
	addr string
	ends chan struct{}

	mu       sync.Mutex
	requests []string
	faults   []string
}

// startRawBackend starts a backend that takes its answers from a function. For an empty one it sends a 404, or a 200 below
// /pass, with the request in X-For. Below /unread, it answers before it reads the body.
func startRawBackend(t *testing.T, answer func(method, path string) string) *rawBackend {
	t.Helper()
	b := &rawBackend{ends: make(chan struct{}, 1000)}
	b.addr = testcaddy.AcceptTCP(t, func(conn net.Conn) {
		b.serve(conn, answer)
		conn.Close()
		b.ends <- struct{}{}
	})
	return b
}

func (b *rawBackend) serve(conn net.Conn, answer func(method, path string) string) {
	var sent bytes.Buffer // by the client
	r := bufio.NewReader(io.TeeReader(conn, &sent))
	for {
		begin := sent.Len() - r.Buffered()
		req, err := http.ReadRequest(r)
		if err != nil {
			if begin < sent.Len() {
				b.fault("%v: %q", err, sent.Bytes()[begin:])
			}
			return
		}
		header := strings.ToLower(string(sent.Bytes()[begin : sent.Len()-r.Buffered()]))
		if strings.Count(header, "\r\ncontent-length:")+strings.Count(header, "\r\ntransfer-encoding:") > 1 {
			b.fault("the length of the request is given twice: %q", header)
		}
		b.mu.Lock()
		b.requests = append(b.requests, req.Method+" "+req.RequestURI)
		b.mu.Unlock()

		a := answer(req.Method, req.URL.Path)
		if a == "" {
			who := req.Method + " " + req.RequestURI
			a = fmt.Sprintf("HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nX-For: %s\r\nContent-Length: 6\r\n\r\ntheirs", who)
			if strings.HasPrefix(req.URL.Path, "/pass") {
				a = fmt.Sprintf("HTTP/1.1 200 OK\r\nX-For: %s\r\nContent-Length: %d\r\n\r\n%s", who, len(who), who)
			}
			if req.Method == http.MethodHead {
				a = strings.TrimSuffix(a, "theirs")
			}
		}
		if !strings.HasPrefix(req.URL.Path, "/unread") {
			_, _ = io.Copy(io.Discard, req.Body)
		}
		if _, err := io.WriteString(conn, a); err != nil {
			return
		}
		if strings.HasSuffix(req.RequestURI, "/close") {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return // the proxy has canceled the request
		}
	}
}

func (b *rawBackend) fault(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, fmt.Sprintf(format, args...))
}

// asked returns the requests since the last call. It waits for n of them: a client may see one break off before the backend
// has recorded it.
func (b *rawBackend) asked(t testing.TB, n int) (requests []string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		b.mu.Lock()
		enough := len(b.requests) >= n
		b.mu.Unlock()
		if enough {
			break
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, fault := range b.faults {
		t.Errorf("the backend has read something that is not a request: %s", fault)
	}
	requests, b.requests, b.faults = b.requests, nil, nil
	return requests
}
