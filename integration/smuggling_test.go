package integration

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestRequestsAndAnswersStayInStep sends requests one after the other, some with a body that nobody reads. Each gets
// its own page, in order, or the connection ends. Nothing within a body reaches the backend as a request.
func TestRequestsAndAnswersStayInStep(t *testing.T) {
	app := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/smuggled" {
			t.Error("the backend was asked what was within a body")
		}
		if r.URL.Path != "/unread" {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "theirs")
	})
	// without Caddy's timeout for bodies, which would wrap net/http's
	s := testcaddy.Start(t, "http://a.test:0 {\nnot_found\nreverse_proxy "+app+"\n}",
		"servers {\ntimeouts {\nread_body_idle -1s\n}\n}")

	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n"
	large := strings.Repeat(smuggled, 1<<20/len(smuggled))
	request := func(line, fields, body string) string {
		return fmt.Sprintf("%s HTTP/1.1\r\nHost: a.test\r\nContent-Length: %d\r\n%s\r\n%s", line, len(body), fields, body)
	}
	post := request("POST /read", "", smuggled)
	for name, tt := range map[string]struct {
		requests string
		answers  []string
		mayEnd   bool // the connection may end before all of that is answered
	}{
		"many": {
			requests: post + request("HEAD /read", "", "") + post + post,
			answers:  []string{"POST /read", "HEAD /read", "POST /read", "POST /read"},
		},
		"an unread body": {
			requests: request("POST /unread", "", smuggled),
			answers:  []string{"POST /unread"},
			mayEnd:   true,
		},
		"a large unread body": {
			requests: request("POST /unread", "", large),
			answers:  []string{"POST /unread"},
			mayEnd:   true,
		},
		"a body that nobody waits for": {
			requests: request("POST /unread", "Expect: 100-continue\r\n", smuggled),
			answers:  []string{"POST /unread"},
			mayEnd:   true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := s.Connect(t)
			last := request("GET /last", "Connection: close\r\n", "")
			go io.WriteString(conn, tt.requests+last) // which fails where the connection ends early
			r := bufio.NewReader(conn)
			for _, answer := range append(tt.answers, "GET /last") {
				method, path, _ := strings.Cut(answer, " ")
				res, err := http.ReadResponse(r, &http.Request{Method: method})
				if err == nil && res.StatusCode == http.StatusContinue {
					res, err = http.ReadResponse(r, &http.Request{Method: method})
				}
				hasEnded := err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
				if tt.mayEnd && hasEnded {
					return
				}
				if err != nil {
					t.Fatalf("instead of the answer to %s, got %v", answer, err)
				}
				if tt.mayEnd && res.StatusCode == http.StatusBadGateway { // the backend has closed the connection
					return
				}
				page := testcaddy.ReadBody(t, res, answer)
				if method == http.MethodHead {
					page.Want(t, http.StatusNotFound, "")
				} else {
					page.WantPage(t, method, "http://a.test"+path, "")
				}
			}
			if rest, _ := io.ReadAll(r); len(rest) > 0 {
				t.Errorf("after the last answer there is %.200q", rest)
			}
		})
	}
}

// TestResponsesStayInStep has a backend send more or less than it declares, or what looks like a second response. The
// next requests still get their own answers.
func TestResponsesStayInStep(t *testing.T) {
	const smuggled = "HTTP/1.1 200 OK\r\nX-For: smuggled\r\nContent-Length: 8\r\n\r\nsmuggled"
	responses := map[string]string{
		"GET /more":       "Content-Length: 6\r\n\r\ntheirs" + smuggled,
		"GET /less":       "Content-Length: 6000\r\n\r\ntheirs" + smuggled,
		"GET /trailers":   "Trailer: X-For\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-For: smuggled\r\n\r\n" + smuggled,
		"HEAD /with-body": "Content-Length: 72\r\n\r\n" + smuggled,
	}
	ends := make(chan struct{}, 100) // of connections
	app := testcaddy.AcceptTCP(t, func(conn net.Conn) {
		defer func() { ends <- struct{}{} }()
		r := bufio.NewReader(conn)
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			asked := req.Method + " " + req.RequestURI
			rest, isMalformed := responses[asked]
			if !isMalformed {
				rest = fmt.Sprintf("X-For: %s\r\nContent-Length: 6\r\n\r\ntheirs", asked)
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n"+rest)
			if asked == "GET /less" {
				return // or Caddy would wait for more
			}
		}
	})
	s := testcaddy.Start(t, "http://a.test:0 {\nnot_found\nreverse_proxy "+app+"\n}")

	conn := s.Connect(t)
	r := bufio.NewReader(conn)
	ask := func(method, path string) testcaddy.Response {
		fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: a.test\r\n\r\n", method, path)
		return testcaddy.ReadResponse(t, r, method, path)
	}
	for asked := range responses {
		method, path, _ := strings.Cut(asked, " ")
		res := ask(method, path)
		res.WantHeader(t, "X-For", "")
		if method == http.MethodGet {
			res.WantPage(t, method, "http://a.test"+path, "")
		}
		select { // a connection with something left on it is closed
		case <-ends:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: the connection to the backend is kept", asked)
		}
		next := path + "/next"
		for _, res := range []testcaddy.Response{ask("GET", next), s.Get(t, "http://a.test"+next)} {
			res.WantPage(t, "GET", "http://a.test"+next, "")
			res.WantHeader(t, "X-For", "GET "+next)
		}
		if t.Failed() {
			t.Fatalf("after %s", asked)
		}
	}
}
