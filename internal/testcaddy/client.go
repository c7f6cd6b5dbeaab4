package testcaddy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// Client sends requests to one Caddy, whatever host they are for. It follows no redirects, and times out.
type Client struct {
	Name   string // the version of HTTP, as in http.Response.Proto, or more than that if two clients speak it
	Scheme string
	HTTP   *http.Client
}

// Get sends a GET request and reads the response. Fields are header fields, as in "Accept: text/html". Without that
// one, the client accepts anything, as curl does.
func (c *Client) Get(t testing.TB, url string, fields ...string) Response {
	t.Helper()
	return c.Do(t, http.MethodGet, url, fields...)
}

// Do sends a request and reads the response.
func (c *Client) Do(t testing.TB, method, url string, fields ...string) Response {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ":")
		req.Header.Add(name, strings.TrimSpace(value))
	}
	if req.Header["Accept"] == nil {
		req.Header.Set("Accept", "*/*")
	}
	return c.Send(t, req)
}

// Send sends a request and reads the response.
func (c *Client) Send(t testing.TB, req *http.Request) Response {
	t.Helper()
	res, err := c.HTTP.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", req.Method, req.URL, err)
	}
	return ReadBody(t, res, req.Method+" "+req.URL.String())
}

// Connect opens a connection with a deadline to Caddy, until the test ends.
func (s *Server) Connect(t testing.TB) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	err = conn.SetDeadline(time.Now().Add(patience))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// Only sends a request byte for byte, over its own connection. The request must have Connection: close. One response
// comes back, which has no body if the method is HEAD, and nothing else.
func (s *Server) Only(t testing.TB, method, request string) Response {
	t.Helper()
	conn := s.Connect(t)
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	res := ReadResponse(t, r, method, fmt.Sprintf("%.200q", request))
	rest, err := io.ReadAll(r)
	if err != nil || len(rest) > 0 {
		t.Errorf("%.200q: after the response there is %.200q, %v", request, rest, err)
	}
	return res
}

// Response is a response that was read to its end.
type Response struct {
	*http.Response
	Content string
}

// ReadResponse reads the response to a request. A failure names the request by what.
func ReadResponse(t testing.TB, r *bufio.Reader, method, what string) Response {
	t.Helper()
	res, err := http.ReadResponse(r, &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return ReadBody(t, res, what)
}

// ReadBody reads the body of a response. A failure names the request by what.
func ReadBody(t testing.TB, res *http.Response, what string) Response {
	t.Helper()
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s: reading the body: %v", what, err)
	}
	return Response{res, string(content)}
}

// Recorded returns the response that a handler wrote to a recorder.
func Recorded(rec *httptest.ResponseRecorder) Response {
	return Response{rec.Result(), rec.Body.String()}
}

// WantPage checks that a response is the page as plain text.
func (r Response) WantPage(t testing.TB, method, uri, contextPath string) {
	t.Helper()
	r.Want(t, http.StatusNotFound, TextPage(method, uri, contextPath))
}

// Want checks the status and the body of a response.
func (r Response) Want(t testing.TB, status int, content string) {
	t.Helper()
	if r.StatusCode != status || r.Content != content {
		t.Errorf("got the status %d and\n%.1000s\nwant %d and\n%.1000s", r.StatusCode, r.Content, status, content)
	}
}

// WantHeader checks the value of a header field, or that there is no such field if the value is empty. Several lines
// of a field are joined with " | ".
func (r Response) WantHeader(t testing.TB, field, value string) {
	t.Helper()
	lines := r.Header.Values(field)
	got := strings.Join(lines, " | ")
	if got != value || value == "" && len(lines) > 0 {
		t.Errorf("%s: got %q, want %q", field, got, value)
	}
}

// Undated returns the header without Date, which differs from one response to the next.
func (r Response) Undated() http.Header {
	header := r.Header.Clone()
	header.Del("Date")
	return header
}
