package integration

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// answersEarly is a backend that answers before it reads a body, and then reads no more of it.
func answersEarly(conn net.Conn) {
	r := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\ntheirs")
		_, _ = io.Copy(io.Discard, req.Body)
	}
}

// TestUploadThatStopsEndsItsConnection has clients stop halfway in an upload that a page answers. The page is short, or
// exceeds net/http's buffer. A timeout of Caddy's ends the wait for more of a body.
func TestUploadThatStopsEndsItsConnection(t *testing.T) {
	testcaddy.CheckGoroutines(t)
	app := testcaddy.AcceptTCP(t, answersEarly)
	authenticator := testcaddy.Backend(t, func(http.ResponseWriter, *http.Request) {})
	long := "not_found {\ntemplate " + testcaddy.Quote(testcaddy.TempFile(t, "404.html", strings.Repeat("long ", 40_000))) + "\n}\n"
	// No connection is used again: the dial would outlive its request, and read the request's variables, which Caddy
	// writes in a route of handle_response.
	const transport = "transport http {\nkeepalive off\n}\n"
	proxyWith := func(lines string) string {
		return "\nreverse_proxy " + app + " {\n" + transport + lines + "}\n"
	}
	proxy := proxyWith("")
	const toPage = "@404 status 404\nhandle_response @404 {\nnot_found\n}\n"
	toError := proxyWith("@404 status 404\nhandle_response @404 {\nerror 404\n}\n")
	sites := map[string]string{
		"nobody reads":               "not_found",
		"nobody reads, a long page":  long,
		"an early answer":            "not_found" + proxy,
		"early, a long page":         long + proxy,
		"forward_auth":               "not_found\nforward_auth " + authenticator + " {\nuri /\n" + transport + "}",
		"a proxy that sends no body": "not_found" + proxyWith("method GET\n"),
		"an error":                   "not_found" + toError,
		"an error route":             "handle_errors {\nnot_found\n}" + toError,
		"two error routes":           "not_found {\nreplace none\n}\nhandle_errors {\nnot_found\n}" + toError,
		"handle_response":            proxyWith(toPage),
		"intercept":                  "not_found\nintercept {\n" + toPage + "}" + proxy,
		"one inside another":         "not_found\nhandle {\nnot_found" + proxy + "}",
		"a limit":                    "request_body {\nmax_size 10MB\n}\nnot_found" + proxy,
		"a deferred header":          "header -Connection\nnot_found" + proxy,
		"a deferred one, far away":   "route {\nheader >Connection keep-alive\nencode\nnot_found" + proxy + "}",
		"an access log":              "log\nnot_found" + proxy,
	}
	for name, option := range map[string]string{
		"half duplex": "servers {\ntimeouts {\nread_body_idle 500ms\n}\n}",
		"full duplex": "servers {\nenable_full_duplex\ntimeouts {\nread_body_idle 500ms\n}\n}",
		"no timeout":  "servers {\nenable_full_duplex\ntimeouts {\nread_body_idle -1s\n}\n}",
	} {
		t.Run(name, func(t *testing.T) {
			s, hosts := startHosts(t, sites, option)
			var uploads sync.WaitGroup
			for site, host := range hosts {
				for framing, upload := range map[string]string{
					"length":   "Content-Length: 100000\r\n\r\n" + strings.Repeat("x", 50_000),
					"chunked":  "Transfer-Encoding: chunked\r\n\r\n8000\r\n" + strings.Repeat("x", 0x4000),
					"too long": "Content-Length: 1000000\r\n\r\n" + strings.Repeat("x", 50_000),
				} {
					conn := s.Connect(t)
					uploads.Go(func() {
						start := time.Now()
						_ = conn.SetDeadline(start.Add(4 * time.Second))
						_, _ = fmt.Fprintf(conn, "POST /x HTTP/1.1\r\nHost: %s\r\nAccept: text/html\r\n%s", host, upload)
						answer, err := io.ReadAll(conn)
						closes := strings.Contains(string(answer), "\r\nConnection: close\r\n")
						isPage := strings.Contains(string(answer), "HTTP ERROR 404") || strings.HasSuffix(string(answer), "long ")
						if !isPage || !closes || err != nil {
							t.Errorf("%s, %s: after %v, got %.200q and %v", site, framing, time.Since(start), answer, err)
						}
					})
				}
			}
			uploads.Wait()
		})
	}
}

// TestUploadThatEndsKeepsItsConnection has whole uploads, which a backend reads, or nobody. The next request on the
// connection is answered.
func TestUploadThatEndsKeepsItsConnection(t *testing.T) {
	reads := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNotFound)
	}
	proxy := "\nreverse_proxy " + testcaddy.Backend(t, reads)
	const toError = " {\n@404 status 404\nhandle_response @404 {\nerror 404\n}\n}\n"
	const toPage = " {\n@404 status 404\nhandle_response @404 {\nnot_found\n}\n}\n"
	sites := map[string]string{
		"nobody reads":       "not_found",
		"a proxy":            "not_found" + proxy,
		"a proxy that waits": "not_found" + proxy + " {\nrequest_buffers 4KiB\n}",
		"FastCGI":            "not_found\nreverse_proxy " + testcaddy.FastCGI(t, reads) + " {\ntransport fastcgi\n}",
		"a placeholder":      "route {\nnot_found\nvars body {http.request.body}" + proxy + "\n}",
		"a limit":            "request_body {\nmax_size 1MB\n}\nnot_found" + proxy,
		"an error route":     "handle_errors {\nnot_found\n}" + proxy + toError,
		"two error routes":   "not_found {\nreplace none\n}\nhandle_errors {\nnot_found\n}" + proxy + toError,
		"handle_response":    proxy + toPage,
	}
	s, hosts := startHosts(t, sites)
	for name, host := range hosts {
		for framing, upload := range map[string]string{
			"length":   "Content-Length: 100000\r\n\r\n" + strings.Repeat("x", 100_000),
			"chunked":  "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
			"trailers": "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n4\r\nbody\r\n0\r\nX-Sum: 1\r\n\r\n",
		} {
			conn := s.Connect(t)
			go fmt.Fprintf(conn, "POST /x HTTP/1.1\r\nHost: %s\r\n%s"+
				"GET /next HTTP/1.1\r\nHost: %[1]s\r\nConnection: close\r\n\r\n", host, upload)
			r := bufio.NewReader(conn)
			for _, asked := range []string{"POST /x", "GET /next"} {
				method, path, _ := strings.Cut(asked, " ")
				res, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Errorf("%s, %s: instead of the answer to %s, got %v", name, framing, asked, err)
					break
				}
				testcaddy.ReadBody(t, res, name).WantPage(t, method, "http://"+host+path, "")
			}
		}
	}
}

// startHosts starts a Caddy with a site for each case, and returns their hosts.
func startHosts(t *testing.T, sites map[string]string, options ...string) (*testcaddy.Server, map[string]string) {
	t.Helper()
	var caddyfile strings.Builder
	hosts := make(map[string]string)
	for name, site := range sites {
		hosts[name] = fmt.Sprintf("site%d.test", len(hosts))
		fmt.Fprintf(&caddyfile, "http://%s:0 {\n%s\n}\n", hosts[name], site)
	}
	return testcaddy.StartQuiet(t, caddyfile.String(), options...), hosts
}

// TestUploadOverHTTP3IsReadBeforeThePage has a client stop one byte before the limit, and then send that byte.
func TestUploadOverHTTP3IsReadBeforeThePage(t *testing.T) {
	_, clients := testcaddy.StartAllProtocols(t, map[string]string{"a.test": "not_found"})
	c := clients[len(clients)-1]
	const limit = 256<<10 + 1
	body, rest := io.Pipe()
	defer rest.Close()
	var isAtLimit atomic.Bool
	go func() {
		_, _ = io.WriteString(rest, strings.Repeat("x", limit-1))
		time.Sleep(200 * time.Millisecond)
		isAtLimit.Store(true)
		_, _ = io.WriteString(rest, "x")
	}()
	req, err := http.NewRequestWithContext(t.Context(), "POST", "https://a.test/x", body)
	if err != nil {
		t.Fatal(err)
	}
	res := c.Send(t, req)
	if !isAtLimit.Load() {
		t.Error("the page was sent before as much of the upload as a server reads")
	}
	res.WantPage(t, "POST", "https://a.test/x", "")
}

// TestUploadThatStopsHasNoFieldOverOtherVersions has uploads over HTTP/2 and HTTP/3, where a response must not have the
// field Connection, and quic-go refuses one that has it.
func TestUploadThatStopsHasNoFieldOverOtherVersions(t *testing.T) {
	app := testcaddy.AcceptTCP(t, answersEarly)
	_, clients := testcaddy.StartAllProtocols(t, map[string]string{"a.test": "not_found\nreverse_proxy /early " + app})
	for _, c := range clients[2:] {
		for _, path := range []string{"/early", "/unread"} {
			body, rest := io.Pipe()
			defer rest.Close()
			go io.WriteString(rest, strings.Repeat("x", 256<<10+1)) // as much as is read over HTTP/3
			req, err := http.NewRequestWithContext(t.Context(), "POST", c.Scheme+"://a.test"+path, body)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Accept", "*/*")
			res := c.Send(t, req)
			res.WantPage(t, "POST", c.Scheme+"://a.test"+path, "")
			res.WantHeader(t, "Connection", "")
		}
	}
}
