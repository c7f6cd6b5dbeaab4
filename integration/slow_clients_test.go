package integration

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestSlowClientsHoldNobodyUp has clients that stop in the middle of a request, that read nothing of many pages, or that
// read byte by byte. Others are served meanwhile.
func TestSlowClientsHoldNobodyUp(t *testing.T) {
	testcaddy.CheckGoroutines(t)
	s := testcaddy.Start(t, "http://a.test:0 {\nnot_found\n}\nhttp://b.test:0 {\nnot_found\nreverse_proxy "+testcaddy.Backend(t, testcaddy.MissingPage)+"\n}",
		"servers {\nmax_header_size 256KB\n}")
	for _, request := range unfinished {
		if _, err := io.WriteString(s.Connect(t), request); err != nil {
			t.Fatal(err)
		}
	}
	var stuck sync.WaitGroup
	for _, host := range []string{"a.test", "b.test"} {
		conn := s.Connect(t)
		stuck.Go(func() {
			if err := sendWithoutReading(conn, host, 300*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: got the error %v, want that of a server that takes no more", host, err)
			}
		})
	}
	stuck.Wait()

	byByte := s.Connect(t)
	io.WriteString(byByte, "GET /x HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
	s.HTTP.Timeout = 10 * time.Second // for the others
	for range 100 {
		if _, err := io.ReadFull(byByte, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		s.Get(t, "http://a.test/other").WantPage(t, "GET", "http://a.test/other", "")
		s.Get(t, "http://b.test/length").WantPage(t, "GET", "http://b.test/length", "")
	}
	if rest, err := io.ReadAll(byByte); err != nil || !strings.HasSuffix(string(rest), testcaddy.TextPage("GET", "http://a.test/x", "")) {
		t.Errorf("byte by byte, got %q, %v", rest, err)
	}
}

// TestTimeoutsEndSlowClients shows that Caddy's timeouts apply to a page as to anything else.
func TestTimeoutsEndSlowClients(t *testing.T) {
	testcaddy.CheckGoroutines(t)
	s := testcaddy.Start(t, "http://a.test:0 {\nnot_found\n}\nhttp://b.test:0 {\nnot_found\nreverse_proxy "+testcaddy.Backend(t, testcaddy.MissingPage)+"\n}",
		"servers {\nmax_header_size 256KB\ntimeouts {\nread_header 200ms\nread_body_idle 200ms\nwrite_idle 200ms\nidle 200ms\n}\n}")
	for name, request := range unfinished {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := s.Connect(t)
			if _, err := io.WriteString(conn, request); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the connection goes on")
			}
		})
	}
	for _, host := range []string{"a.test", "b.test"} {
		t.Run("reads nothing of "+host, func(t *testing.T) {
			t.Parallel()
			if err := sendWithoutReading(s.Connect(t), host, 30*time.Second); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the connection goes on")
			}
		})
	}
}

// unfinished are requests that stop in the middle.
var unfinished = map[string]string{
	"within a long header":     "GET /x HTTP/1.1\r\nHost: a.test\r\nX-Long: " + strings.Repeat("x", 60_000),
	"within the body":          "POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1000\r\n\r\nbody",
	"within the body, proxied": "POST /length HTTP/1.1\r\nHost: b.test\r\nContent-Length: 1000\r\n\r\nbody",
}

// sendWithoutReading sends requests for long addresses until it fails, or takes longer than the client's patience.
func sendWithoutReading(conn net.Conn, host string, patience time.Duration) error {
	request := "GET /length?" + strings.Repeat("x", 60_000) + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n"
	for {
		if err := conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		if _, err := io.WriteString(conn, request); err != nil {
			return err
		}
	}
}
