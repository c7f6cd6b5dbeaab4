package testcaddy

import (
	"io"
	"net"
	"net/http"
	"net/http/fcgi"
	"testing"
)

// FastCGI starts a FastCGI responder, as PHP is one, until the test ends.
func FastCGI(t testing.TB, h http.HandlerFunc) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go fcgi.Serve(ln, h)
	return ln.Addr().String()
}

// StallingFastCGI starts a FastCGI responder that begins a 404 page and never ends it. It reports each connection that
// Caddy closes.
func StallingFastCGI(t testing.TB) (addr string, closed <-chan struct{}) {
	t.Helper()
	report := make(chan struct{}, 10)
	return AcceptTCP(t, func(conn net.Conn) {
		const stdout = "Status: 404 Not Found\r\nContent-Type: text/html\r\n\r\n<h1>theirs"
		// FCGI_STDOUT of request 1
		conn.Write(append([]byte{1, 6, 0, 1, 0, byte(len(stdout)), 0, 0}, stdout...))
		io.Copy(io.Discard, conn)
		report <- struct{}{}
	}), report
}
