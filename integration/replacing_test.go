package integration

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

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
	for _, c := range clients {
		for host := range sites {
			site := c.Scheme + "://" + host
			t.Run(c.Name+" "+site, func(t *testing.T) {
				t.Parallel()
				wantPagesInstead(t, c, site)
			})
		}
	}
}

// wantPagesInstead asks a site for every kind of 404 page.
func wantPagesInstead(t *testing.T, c *testcaddy.Client, site string) {
	t.Helper()
	for _, path := range []string{
		"/length", "/gzip", "/trailers", "/both-trailers", "/none", "/missing-type", "/early-hints", "/endless",
		"/breaks",
	} {
		wantPageInstead(t, c, "GET", site+path)
		wantPageInstead(t, c, "HEAD", site+path)
		if path != "/breaks" { // the proxy does not retry a POST on a closed connection
			wantPageInstead(t, c, "POST", site+path)
		}
		if t.Failed() {
			t.Fatalf("at %s", path)
		}
	}
}

// wantPageInstead checks that a client gets the page in one piece, without trailers and without fields of another
// body.
func wantPageInstead(t *testing.T, c *testcaddy.Client, method, uri string) {
	t.Helper()
	res := c.Do(t, method, uri, "Range: bytes=0-1", "Accept-Encoding: gzip")
	if method == http.MethodHead {
		page := testcaddy.TextPage("GET", uri, "")
		res.Want(t, http.StatusNotFound, "")
		res.WantHeader(t, "Content-Length", strconv.Itoa(len(page)))
	} else {
		res.WantPage(t, method, uri, "")
	}
	if len(res.Trailer) > 0 || len(res.TransferEncoding) > 0 {
		t.Errorf("got the trailers %v and the transfer encoding %v", res.Trailer, res.TransferEncoding)
	}
	for field, want := range map[string]string{
		"Trailer":          "",
		"X-Announced":      "",
		"X-Unannounced":    "",
		"Content-Encoding": "",
		"Etag":             "",
		"Content-Type":     "text/plain; charset=utf-8",
		"Server":           "Caddy",
		"Set-Cookie":       "a=1",
	} {
		res.WantHeader(t, field, want)
	}
}

// TestOldBodyIsReadToItsLimits has a body at the limit of draining, and one past it, for which the page costs a warning
// of reverse_proxy's. The client's connection goes on.
func TestOldBodyIsReadToItsLimits(t *testing.T) {
	page := strings.Join(strings.Fields(readFile(t, "../docs/limits.md")), " ")
	var kib int64
	_, limits, _ := strings.Cut(page, "`not_found` reads ")
	if _, err := fmt.Sscanf(limits, "at most %d KiB of the old body, for at most 2 seconds.", &kib); err != nil {
		t.Fatal(err)
	}
	app := testcaddy.Backend(t, longPage(kib<<10))
	s := testcaddy.Start(t, "http://:0 {\nlog\nnot_found\nreverse_proxy "+app+"\n}")
	for host, warnings := range map[string]int{
		"limit.test": 0,
		"past.test":  1,
	} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			conn := s.Connect(t)
			const requests = "GET /x HTTP/1.1\r\nHost: %[1]s\r\n\r\nGET /next HTTP/1.1\r\nHost: %[1]s\r\n\r\n"
			fmt.Fprintf(conn, requests, host)
			r := bufio.NewReader(conn)
			page := testcaddy.ReadResponse(t, r, "GET", "/x")
			page.WantPage(t, "GET", "http://"+host+"/x", "")
			next := testcaddy.ReadResponse(t, r, "GET", "/next")
			next.Want(t, http.StatusOK, "")
			s.Logs.WaitForHost(t, "handled request", host, 2)
			if got := warningsAbout(t, s, host); len(got) != warnings {
				t.Errorf("got the warnings %v, want %d", got, warnings)
			}
		})
	}
}

// longPage is a backend with 404 pages, whose bodies are at the limit, or past it.
func longPage(limit int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/next" {
			return
		}
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.CopyN(w, testcaddy.Endless{}, limit)
		if r.Host == "past.test" {
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}
}

// warningsAbout returns the handlers' log entries above debug about requests to a host.
func warningsAbout(t *testing.T, s *testcaddy.Server, host string) []testcaddy.Entry {
	t.Helper()
	return s.Logs.Select(t, func(e testcaddy.Entry) bool {
		logger := fmt.Sprint(e["logger"])
		isWarning := strings.HasPrefix(logger, "http.handlers") && e["level"] != "debug"
		return isWarning && e.Host() == host
	})
}
