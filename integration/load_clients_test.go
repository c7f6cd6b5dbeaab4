package integration

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// kind is a kind of request, with the answer that it must have.
type kind struct {
	method, path, accept string
	want                 func(l *load, a answer) (status int, content string)
}

// answer is the answer to a request.
type answer struct{ method, uri, query, config, content string }

var kinds = []kind{
	{"GET", "/nothing", "", wantPage},
	{"GET", "/nothing", "text/html", wantTemplate},
	{"POST", "/nothing", "", wantPage},
	{"GET", "/files/none", "", wantPage},
	{"GET", "/steady/length", "", wantPage},
	{"GET", "/steady/length", "text/html", wantTemplate},
	{"POST", "/steady/length", "", wantPage},
	{"GET", "/steady/late", "", wantPage},
	{"GET", "/steady/late", "text/html", wantTemplate},
	{"GET", "/steady/trickle", "text/html", wantTemplate},
	{"GET", "/steady/stalls", "", wantPage},
	{"GET", "/steady/endless", "", wantPage},
	{"GET", "/steady/json", "", func(_ *load, a answer) (int, string) { return http.StatusNotFound, a.query }},
	{"GET", "/steady/stream", "", wantStreamed},
	{"POST", "/steady/upload", "", wantStreamed},
	{"GET", "/mortal/length", "", wantPage},
	{"GET", "/mortal/stalls", "text/html", wantTemplate},
	{"GET", "/mortal/stream", "", wantStreamed},
}

func wantPage(_ *load, a answer) (status int, content string) {
	return http.StatusNotFound, testcaddy.TextPage(a.method, a.uri, "/"+a.config)
}

func wantStreamed(_ *load, a answer) (int, string) { return http.StatusOK, streamed(a.query) }

// wantTemplate wants a whole page of one version of the template.
func wantTemplate(l *load, a answer) (status int, content string) {
	var version int64
	_, _ = fmt.Sscanf(a.content, "<p>%d</p>", &version)
	version = min(version, l.version.Load())
	l.shown.Store(version)
	heading, _, _ := strings.Cut(testcaddy.TextPage(a.method, a.uri, "/"+a.config), "\n")
	return http.StatusNotFound, strings.NewReplacer("{{.Heading}}", heading, "{{.URI}}", a.uri).Replace(templateSource(version))
}

// manner is how a client behaves.
type manner string

const (
	staying       manner = "stays"
	closing       manner = "closes" // its connection with the last byte that Content-Length declares
	stalling      manner = "stalls" // in the middle of a header, and while it reads
	resetting     manner = "resets"
	uploadingHalf manner = "uploads-half"
)

var manners = []manner{staying, closing, stalling, resetting, uploadingHalf}

// leaves reports whether a client leaves whatever the answer is.
func (m manner) leaves() bool { return m == resetting || m == uploadingHalf }

// newClients returns a client for each manner.
func newClients(t *testing.T, newClient func(testing.TB, string) *testcaddy.Client, addr string) map[manner]*testcaddy.Client {
	clients := make(map[manner]*testcaddy.Client)
	for _, m := range manners {
		clients[m] = newClient(t, addr)
		clients[m].HTTP.Timeout = time.Minute
		transport := clients[m].HTTP.Transport.(*http.Transport)
		transport.IdleConnTimeout = time.Second // CloseIdleConnections may come before a stream is gone
		dial := transport.DialContext
		transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			switch {
			case err != nil:
			case m == stalling:
				conn = &stallingConn{Conn: conn}
			case m == resetting:
				err = conn.(*net.TCPConn).SetLinger(0)
			}
			return conn, err
		}
	}
	return clients
}

// stallingConn is a connection whose first bytes come in halves, with a pause between them, and which reads slowly.
type stallingConn struct {
	net.Conn
	begun bool
}

func (c *stallingConn) Write(p []byte) (n int, err error) {
	if !c.begun {
		c.begun = true
		if n, err = c.Conn.Write(p[:len(p)/2]); err != nil {
			return n, err
		}
		time.Sleep(rand.N(100 * time.Millisecond))
	}
	rest, err := c.Conn.Write(p[n:])
	return n + rest, err
}

func (c *stallingConn) Read(p []byte) (int, error) {
	time.Sleep(rand.N(20 * time.Millisecond))
	return c.Conn.Read(p)
}

// ask sends a request to a site, and checks the answer, if a client waits for one. One from the mortal backend may be
// missing, or break off, unless the backend was up all the time; and one that stalls may do so before its header. A page
// does not break off: Caddy has it.
func (l *load) ask(c *testcaddy.Client, k kind, m manner, name string) error {
	host := string(m) + "." + name
	a := answer{method: k.method, query: fmt.Sprintf("%09d", l.requests.Add(1))}
	a.uri = "http://" + host + k.path + "?" + a.query
	if m != staying {
		defer c.HTTP.CloseIdleConnections()
	}
	if m.leaves() {
		l.miss(host+k.path, 0, 1)
		return l.leave(c, k, m, a)
	}

	before := l.changes.Load()
	res, err := l.send(c, k, a)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	content := io.Reader(res.Body)
	if m == closing && res.ContentLength >= 0 {
		content = io.LimitReader(content, res.ContentLength)
	}
	if name == bareSite {
		_, _ = io.CopyN(io.Discard, content, 1<<17) // there may be no end
		return nil
	}
	body, err := io.ReadAll(content)

	a.config, a.content = res.Header.Get("X-Config"), string(body)
	status, want := k.want(l, a)
	mayFail := strings.HasPrefix(k.path, "/mortal/") && !(before%2 == 1 && l.changes.Load() == before)
	switch {
	case err == nil && res.StatusCode == status && a.content == want:
		if status == http.StatusNotFound {
			l.miss(host+k.path, 1, 0)
		}
		return nil
	case mayFail && err == nil && res.StatusCode == http.StatusBadGateway && a.content == "",
		strings.HasSuffix(k.path, "/stalls") && err == nil && res.StatusCode == http.StatusGatewayTimeout && a.content == "",
		mayFail && err != nil && res.StatusCode == http.StatusOK && status == http.StatusOK && strings.HasPrefix(want, a.content):
		l.excused.Add(1)
		return nil
	}
	return fmt.Errorf("got %s, %.500q of %d bytes, and %v; want %d, %.500q of %d bytes",
		res.Status, a.content, len(a.content), err, status, want, len(want))
}

// miss notes that an address was missed.
func (l *load) miss(address string, answered, unknown int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.misses[address]
	m.answered += answered
	m.unknown += unknown
	l.misses[address] = m
}

// send sends a request, and sends it again over another connection where no response comes. A reload closes connections
// that are idle, or that wait to be accepted, and a request may be on its way then.
func (l *load) send(c *testcaddy.Client, k kind, a answer) (res *http.Response, err error) {
	for range 10 {
		var req *http.Request
		if req, err = newRequest(context.Background(), k, a); err != nil {
			break
		}
		if res, err = c.HTTP.Do(req); err == nil {
			break
		}
		l.resent.Add(1)
		l.miss(req.URL.Host+req.URL.Path, 0, 1)
		c.HTTP.CloseIdleConnections()
	}
	return res, err
}

func newRequest(ctx context.Context, k kind, a answer) (*http.Request, error) {
	upload := ""
	if k.method == http.MethodPost {
		upload = streamed(a.query)
	}
	req, err := http.NewRequestWithContext(ctx, k.method, a.uri, strings.NewReader(upload))
	if err == nil && k.accept != "" {
		req.Header.Set("Accept", k.accept)
	}
	return req, err
}

// leave sends a request, or a half, and leaves.
func (l *load) leave(c *testcaddy.Client, k kind, m manner, a answer) error {
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	if m == uploadingHalf {
		k.method = http.MethodPost
	}
	req, err := newRequest(ctx, k, a)
	if err != nil {
		return err
	}
	if m == uploadingHalf {
		req.Body = io.NopCloser(io.MultiReader(io.LimitReader(req.Body, req.ContentLength/2), iotest.ErrReader(io.ErrUnexpectedEOF)))
	} else {
		defer time.AfterFunc(rand.N(30*time.Millisecond), leave).Stop()
	}
	if res, err := c.HTTP.Do(req); err == nil {
		_, _ = io.CopyN(io.Discard, res.Body, 1<<17)
		res.Body.Close()
	}
	return nil
}
