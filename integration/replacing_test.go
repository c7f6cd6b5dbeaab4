package integration

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestReplacesOverEveryProtocol replaces every kind of 404 page over every version of HTTP, with and without handlers
// in between. Whatever becomes of the backend's body, the client gets the whole page, and no trailer.
func TestReplacesOverEveryProtocol(t *testing.T) {
	testcaddy.CheckGoroutines(t)
	app := "reverse_proxy " + testcaddy.Backend(t, testcaddy.MissingPage)
	handlers := "encode\n" + interceptNone + "templates {\nmime text/x-template\n}\n"
	sites := map[string]string{
		"plain.test":  "not_found\n" + app,
		"h2c.test":    "not_found\nreverse_proxy h2c://" + testcaddy.H2CBackend(t, testcaddy.MissingPage),
		"within.test": "not_found\n" + handlers + app,
	}
	_, clients := testcaddy.StartAllProtocols(t, sites)
	t.Run("clients", func(t *testing.T) { // before the goroutines are checked
		for _, c := range clients {
			for host := range sites {
				t.Run(c.Name+" "+host, func(t *testing.T) {
					t.Parallel()
					for _, path := range []string{
						"/length", "/gzip", "/trailers", "/both-trailers", "/none", "/missing-type", "/early-hints", "/endless",
						"/breaks",
					} {
						uri := c.Scheme + "://" + host + path
						wantPageInstead(t, c, "GET", uri)
						wantPageInstead(t, c, "HEAD", uri)
						if path != "/breaks" { // the proxy does not retry a POST on a closed connection
							wantPageInstead(t, c, "POST", uri)
						}
						if t.Failed() {
							t.Fatalf("at %s", path)
						}
					}
				})
			}
		}
	})
}

// wantPageInstead checks that a client gets the page in one piece, without trailers and without fields of another
// body.
func wantPageInstead(t *testing.T, c *testcaddy.Client, method, uri string) {
	t.Helper()
	res := c.Do(t, method, uri, "Range: bytes=0-1", "Accept-Encoding: gzip")
	if method == http.MethodHead {
		res.Want(t, http.StatusNotFound, "")
		res.WantHeader(t, "Content-Length", fmt.Sprint(len(testcaddy.TextPage("GET", uri, ""))))
	} else {
		res.WantPage(t, method, uri, "")
	}
	if len(res.Trailer) > 0 || len(res.TransferEncoding) > 0 {
		t.Errorf("got the trailers %v and the transfer encoding %v", res.Trailer, res.TransferEncoding)
	}
	for _, field := range []string{"Trailer", "X-Announced", "X-Unannounced", "Content-Encoding", "Etag"} {
		res.WantHeader(t, field, "")
	}
	res.WantHeader(t, "Content-Type", "text/plain; charset=utf-8")
	res.WantHeader(t, "Server", "Caddy")
	res.WantHeader(t, "Set-Cookie", "a=1")
}

// TestOldBodyIsReadToItsLimits has bodies at and past the limits of draining. Past a limit, the page comes with the
// next write, and that costs a warning of reverse_proxy's. The client's connection goes on.
func TestOldBodyIsReadToItsLimits(t *testing.T) {
	const limit = 256 << 10
	cases := map[string]struct {
		write    func(w http.ResponseWriter, r *http.Request) // the body
		warnings int
	}{
		"the limit": {
			write: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.CopyN(w, testcaddy.Endless{}, limit) },
		},
		"a byte more": {
			write: func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.CopyN(w, testcaddy.Endless{}, limit+1)
				waitForEnd(w, r)
			},
			warnings: 1,
		},
		"trickles": {
			write: func(w http.ResponseWriter, r *http.Request) {
				for r.Context().Err() == nil {
					_, _ = io.WriteString(w, "x")
					_ = http.NewResponseController(w).Flush()
					time.Sleep(50 * time.Millisecond)
				}
			},
			warnings: 1,
		},
		"stalls": {write: waitForEnd, warnings: 1}, // until read_timeout
	}
	sites := make(map[string]string)
	for name, tt := range cases {
		app := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/next" {
				return
			}
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusNotFound)
			tt.write(w, r)
		})
		sites[name] = "reverse_proxy " + app + " {\ntransport http {\nread_timeout 3s\n}\n}"
	}
	s, hosts := testcaddy.StartSites(t, "", sites)
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := s.Connect(t)
			fmt.Fprintf(conn, "GET /x HTTP/1.1\r\nHost: %s\r\n\r\nGET /next HTTP/1.1\r\nHost: %[1]s\r\n\r\n", hosts[name])
			r := bufio.NewReader(conn)
			testcaddy.ReadResponse(t, r, "GET", "/x").WantPage(t, "GET", "http://"+hosts[name]+"/x", "")
			testcaddy.ReadResponse(t, r, "GET", "/next").Want(t, http.StatusOK, "")
			s.Logs.WaitForHost(t, "handled request", hosts[name], 2)
			if got := warningsAbout(t, s, hosts[name]); len(got) != tt.warnings {
				t.Errorf("got the warnings %v, want %d", got, tt.warnings)
			}
		})
	}
}

// waitForEnd sends what is written, and waits until the exchange is over.
func waitForEnd(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// warningsAbout returns the handlers' log entries above debug about requests to a host.
func warningsAbout(t *testing.T, s *testcaddy.Server, host string) []testcaddy.Entry {
	t.Helper()
	return s.Logs.Select(t, func(e testcaddy.Entry) bool {
		isHandlers := strings.HasPrefix(fmt.Sprint(e["logger"]), "http.handlers")
		return isHandlers && e["level"] != "debug" && e.Host() == host
	})
}
