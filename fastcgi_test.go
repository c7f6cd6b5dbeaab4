package notfound

import (
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
