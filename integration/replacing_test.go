package integration

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestReplacesOverEveryProtocol replaces every kind of 404 page over every version of HTTP, with and without handlers in
// between. Whatever becomes of the backend's body, the client gets the whole page, and no trailer.
func TestReplacesOverEveryProtocol(t *testing.T) {
	testcaddy.CheckGoroutines(t)
	const logged = "log\nlog_append cause {http.not_found.cause}\nnot_found\n"
	app := "reverse_proxy " + testcaddy.Backend(t, testcaddy.MissingPage)
	sites := map[string]string{
		"plain.test": logged + app,
		"h2c.test":   logged + "reverse_proxy h2c://" + testcaddy.H2CBackend(t, testcaddy.MissingPage),
		"chain.test": logged + "encode\nintercept {\n@teapot status 418\nhandle_response @teapot {\nrespond \"a teapot\"\n}\n}\ntemplates {\nmime text/x-template\n}\n" + app,
	}
	s, clients := testcaddy.StartAllProtocols(t, sites)
	var requests atomic.Int64
	t.Run("clients", func(t *testing.T) {
		for _, c := range clients {
			for host := range sites {
				t.Run(c.Name+" "+host, func(t *testing.T) {
					t.Parallel()
					for _, path := range []string{
						"/length", "/gzip", "/chunked", "/trailers", "/both-trailers", "/none", "/missing-type", "/early-hints", "/medium", "/endless", "/breaks",
					} {
						for _, method := range []string{"GET", "HEAD", "POST"} {
							if method == "POST" && path == "/breaks" { // the proxy does not retry a POST on a closed connection
								continue
							}
							requests.Add(1)
							res := c.Do(t, method, c.Scheme+"://"+host+path, "Range: bytes=0-1", "Accept-Encoding: gzip")
							wantPageInstead(t, res, method, c.Scheme+"://"+host+path)
							if t.Failed() {
								t.Fatalf("at %s %s", method, path)
							}
						}
					}
				})
			}
		}
	})
	for _, entry := range s.Logs.WaitFor(t, "handled request", int(requests.Load())) {
		if entry["cause"] != "response" || entry["status"] != 404.0 {
			t.Errorf("the access log has %v", entry)
		}
		for field := range entry["resp_headers"].(map[string]any) {
			if strings.Contains(field, "nnounced") {
				t.Errorf("the access log has the trailer %s", field)
			}
		}
	}
}

// wantPageInstead checks that a response is the page in one piece, and has no trailers.
func wantPageInstead(t *testing.T, res testcaddy.Response, method, uri string) {
	t.Helper()
	if method == http.MethodHead {
		if want := int64(len(testcaddy.TextPage("GET", uri, ""))); res.StatusCode != 404 || res.Content != "" || res.ContentLength != want {
			t.Errorf("got %d, Content-Length %d and %q, want 404, %d and no body", res.StatusCode, res.ContentLength, res.Content, want)
		}
	} else {
		res.WantPage(t, method, uri, "")
	}
	if len(res.Trailer) > 0 || len(res.TransferEncoding) > 0 {
		t.Errorf("got the trailers %v and the transfer encoding %v", res.Trailer, res.TransferEncoding)
	}
	for field, want := range map[string]string{
		"Content-Type": "text/plain; charset=utf-8", "Trailer": "", "Transfer-Encoding": "", "X-Announced": "", "X-Unannounced": "",
		"Content-Encoding": "", "Etag": "", "Server": "Caddy", "Set-Cookie": "a=1", "Access-Control-Allow-Origin": "*", "Traceparent": "00-1-2-03",
	} {
		res.WantHeader(t, field, want)
	}
}

// countingBackend starts a backend that counts its connections.
func countingBackend(t *testing.T, h http.HandlerFunc) (addr string, connections *atomic.Int64) {
	t.Helper()
	connections = new(atomic.Int64)
	return testcaddy.Backend(t, h, func(srv *http.Server) {
		srv.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				connections.Add(1)
			}
		}
	}), connections
}

// TestOldBodyIsReadToItsLimits has bodies at and past the limits of draining. The page comes at the end of the body, or with the
// first write past a limit, which costs a warning of reverse_proxy's and the backend connection. The client's goes on.
func TestOldBodyIsReadToItsLimits(t *testing.T) {
	const never = time.Hour
	seconds := func(f float64) time.Duration { return time.Duration(f * float64(time.Second)) }
	cases := map[string]struct {
		declared, piece, pieces int           // bytes; a chunked body declares none
		pause, end              time.Duration // before each piece, and before the end
		after                   time.Duration // when the page comes, at the earliest; at the latest, five seconds later
		cost                    int           // in warnings, and in connections
	}{
		"256 KiB":               {256 << 10, 256 << 10, 1, 0, 0, 0, 0},
		"a byte more":           {256<<10 + 2, 256<<10 + 1, 1, 0, never, 0, 1},
		"trickles without end":  {0, 1, 100, seconds(.1), 0, seconds(2), 1},
		"only ends after 2.3 s": {0, 1, 1, 0, seconds(2.3), seconds(2.3), 0},
		"stalls":                {0, 1, 1, 0, never, seconds(3), 1}, // until read_timeout
		"stalls at once":        {0, 0, 0, 0, never, seconds(3), 1},
	}
	sites, backendConnections := make(map[string]string), make(map[string]*atomic.Int64)
	for name, tt := range cases {
		app, connections := countingBackend(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/next" {
				return
			}
			w.Header().Set("Content-Type", "text/html")
			if tt.declared > 0 {
				w.Header().Set("Content-Length", fmt.Sprint(tt.declared))
			}
			w.WriteHeader(http.StatusNotFound)
			wait := func(d time.Duration) {
				_ = http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(d):
				}
			}
			for i := 0; i < tt.pieces && r.Context().Err() == nil; i++ {
				wait(tt.pause)
				_, _ = io.CopyN(w, testcaddy.Endless{}, int64(tt.piece))
			}
			wait(tt.end)
		})
		backendConnections[name] = connections
		sites[name] = "reverse_proxy " + app + " {\ntransport http {\nread_timeout 3s\n}\n}"
	}
	s, hosts := testcaddy.StartSites(t, "", sites)
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, begin := s.Connect(t), time.Now()
			fmt.Fprintf(conn, "GET /x HTTP/1.1\r\nHost: %s\r\n\r\nGET /next HTTP/1.1\r\nHost: %[1]s\r\n\r\n", hosts[name])
			r := bufio.NewReader(conn)
			testcaddy.ReadResponse(t, r, "GET", "/x").WantPage(t, "GET", "http://"+hosts[name]+"/x", "")
			if after := time.Since(begin); after < tt.after || after > tt.after+5*time.Second {
				t.Errorf("the page came after %v, want %v, or up to five seconds more", after, tt.after)
			}
			testcaddy.ReadResponse(t, r, "GET", "/next").Want(t, 200, "")
			s.Logs.WaitForHost(t, "handled request", hosts[name], 2)
			if got := warningsAbout(t, s, hosts[name]); len(got) != tt.cost {
				t.Errorf("got the warnings %v, want %d", got, tt.cost)
			}
			if n := backendConnections[name].Load(); n != int64(1+tt.cost) {
				t.Errorf("got %d connections to the backend, want %d", n, 1+tt.cost)
			}
		})
	}
}

// warningsAbout returns the handlers' log entries above debug about requests to a host.
func warningsAbout(t *testing.T, s *testcaddy.Server, host string) []testcaddy.Entry {
	t.Helper()
	return s.Logs.Select(t, func(e testcaddy.Entry) bool {
		return e["level"] != "debug" && strings.HasPrefix(fmt.Sprint(e["logger"]), "http.handlers") && e.Host() == host
	})
}
