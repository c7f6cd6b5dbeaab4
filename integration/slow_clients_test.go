package integration

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestSlowClientsHoldNobodyUp has clients stop in the middle of a request, or read none of many pages. Others are served
// meanwhile, and Caddy's timeouts end the slow ones.
func TestSlowClientsHoldNobodyUp(t *testing.T) {
	testcaddy.CheckGoroutines(t)
	s := testcaddy.Start(t, "http://a.test:0 {\nnot_found\n}\nhttp://b.test:0 {\nnot_found\nreverse_proxy "+testcaddy.Backend(t, testcaddy.MissingPage)+"\n}",
		"servers {\nmax_header_size 256KB\ntimeouts {\nread_header 2s\nread_body_idle 2s\nwrite_idle 3s\nidle 2s\n}\n}")
	ends := make(map[string]<-chan error)
	slow := func(name string, use func(conn io.ReadWriter) error) {
		conn, end, begin := s.Connect(t), make(chan error, 1), time.Now()
		ends[name] = end
		go func() {
			defer close(end)
			if err, after := use(conn), time.Since(begin); errors.Is(err, os.ErrDeadlineExceeded) || after < 2*time.Second {
				end <- fmt.Errorf("%v after %v", err, after)
			}
		}()
	}
	for name, request := range map[string]string{
		"within a long header":     "GET /x HTTP/1.1\r\nHost: a.test\r\nX-Long: " + strings.Repeat("x", 60_000),
		"within the body":          "POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1000\r\n\r\nbody",
		"within the body, proxied": "POST /length HTTP/1.1\r\nHost: b.test\r\nContent-Length: 1000\r\n\r\nbody",
	} {
		slow(name, func(conn io.ReadWriter) error {
			_, err := io.WriteString(conn, request)
			_, readErr := io.Copy(io.Discard, conn)
			return errors.Join(err, readErr)
		})
	}
	for _, host := range []string{"a.test", "b.test"} {
		request := "GET /length?" + strings.Repeat("x", 60_000) + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n"
		slow("reads nothing of "+host, func(conn io.ReadWriter) (err error) {
			for err == nil {
				_, err = io.WriteString(conn, request)
			}
			return err
		})
	}

	s.HTTP.Timeout = 2500 * time.Millisecond // less than write_idle
	for begin := time.Now(); time.Since(begin) < time.Second; time.Sleep(10 * time.Millisecond) {
		s.Get(t, "http://a.test/other").WantPage(t, "GET", "http://a.test/other", "")
		s.Get(t, "http://b.test/length").WantPage(t, "GET", "http://b.test/length", "")
	}
	for name, end := range ends {
		if err := <-end; err != nil {
			t.Errorf("%s: no timeout of Caddy's ended it: %v", name, err)
		}
	}
}
