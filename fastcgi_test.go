package notfound

import (
	"io"
	"net"
	"net/http"
	"net/http/fcgi"
	"testing"
)

// fastCGI starts a FastCGI responder, as PHP is one, and returns its address.
func fastCGI(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go fcgi.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Powered-By", "FastCGI")
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusNotFound)
		w.Write([]byte("<h1>File not found.</h1>"))
	}))
	return ln.Addr().String()
}

// stallingFastCGI starts a FastCGI responder that begins a 404 page and never ends it. It tells when Caddy closes a
// connection.
func stallingFastCGI(t testing.TB) (addr string, closed <-chan struct{}) {
	t.Helper()
	told := make(chan struct{}, 10)
	return acceptTCP(t, func(conn net.Conn) {
		const stdout = "Status: 404 Not Found\r\nContent-Type: text/html\r\n\r\n<h1>theirs"
		// FCGI_STDOUT of request 1
		conn.Write(append([]byte{1, 6, 0, 1, 0, byte(len(stdout)), 0, 0}, stdout...))
		io.Copy(io.Discard, conn)
		told <- struct{}{}
	}), told
}
