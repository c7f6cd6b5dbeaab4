package integration

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestSlowClientsHoldNobodyUp has clients stop in the middle of a request, or read none of many pages. Others are
// served meanwhile, and Caddy's timeouts end the slow ones. The page in HTML exceeds net/http's buffer.
func TestSlowClientsHoldNobodyUp(t *testing.T) {
	testcaddy.CheckGoroutines(t)
	app := testcaddy.Backend(t, testcaddy.MissingPage)
	s := startSite(t, "not_found\nreverse_proxy /length "+app,
		"servers {\nmax_header_size 256KB\ntimeouts {\nread_body_idle 2s\nwrite_idle 2s\nidle 1s\n}\n}")

	long := strings.Repeat("x", 60_000)
	ends := make(map[string]<-chan error)
	const accept = " HTTP/1.1\r\nHost: a.test\r\nAccept: text/html\r\n"
	for name, request := range map[string]string{
		"stalls in an upload":              "POST /other" + accept + "Content-Length: 1000\r\n\r\nbody",
		"stalls in an upload in chunks":    "POST /other" + accept + "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n",
		"stalls in an upload to a backend": "POST /length" + accept + "Content-Length: 1000\r\n\r\nbody",
		"reads no page":                    "GET /" + long + accept + "\r\n",
		"reads no page for a response":     "GET /length?" + long + accept + "\r\n",
	} {
		conn := s.Connect(t)
		end := make(chan error, 1)
		ends[name] = end
		go func() {
			_, err := io.WriteString(conn, request)
			if strings.HasPrefix(request, "POST") {
				var answer []byte
				answer, err = io.ReadAll(conn)
				hasPage := strings.Contains(string(answer), ">HTTP ERROR 404</strong>")
				if strings.HasPrefix(request, "POST /other") && !hasPage {
					t.Errorf("a client that %s gets %.500q, want the page", name, answer)
				}
			}
			for err == nil && strings.HasPrefix(request, "GET") {
				_, err = io.WriteString(conn, request)
			}
			end <- err
		}()
	}

	s.HTTP.Timeout = 1500 * time.Millisecond // less than Caddy's timeouts
	for range 100 {
		getPage(t, s.Client, "http://a.test/other")
		getPage(t, s.Client, "http://a.test/length")
		time.Sleep(10 * time.Millisecond)
	}
	for name, end := range ends {
		if err := <-end; errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a client that %s is not ended by Caddy's timeouts", name)
		}
	}
}

// TestBodyThatIsNotReadHoldsNoPageUp has clients send the header of a request alone, with a body that net/http does not
// read before a response, because it is too long or the client waits to be asked for it. Caddy's timeout for bodies is
// off, so nothing else would end the wait.
func TestBodyThatIsNotReadHoldsNoPageUp(t *testing.T) {
	s := startSite(t, "not_found", "servers {\ntimeouts {\nread_body_idle -1s\n}\n}")
	for name, fields := range map[string]string{
		"too long":         "Content-Length: 1048576",
		"not asked for":    "Content-Length: 4\r\nExpect: 100-continue",
		"chunks not asked": "Transfer-Encoding: chunked\r\nExpect: 100-continue",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := s.Connect(t)
			fmt.Fprintf(conn, "POST /other HTTP/1.1\r\nHost: a.test\r\n%s\r\n\r\n", fields)
			res := testcaddy.ReadResponse(t, bufio.NewReader(conn), "POST", "/other")
			res.WantPage(t, "POST", "http://a.test/other", "")
		})
	}
}

// TestBodyThatIsHeldBackIsNotAskedFor has a client that waits for a 100 before it sends its body, with Caddy's default
// timeouts. It gets the page instead (RFC 9110, section 10.1.1).
func TestBodyThatIsHeldBackIsNotAskedFor(t *testing.T) {
	s := startSite(t, "not_found")
	conn := s.Connect(t)
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprint(conn, "POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
	res := testcaddy.ReadResponse(t, bufio.NewReader(conn), "POST", "/x")
	res.WantPage(t, "POST", "http://a.test/x", "")
	if !res.Close {
		t.Error("the connection does not end, on which the body may still come")
	}
}
