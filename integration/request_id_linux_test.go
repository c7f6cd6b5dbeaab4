package integration

import (
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestRequestIDIsExpandedBeforeAnUpstreamIsAsked has a request wait for a connection to its upstream, and get the one of
// another request while it still dials. Caddy's transport reads the variables when it dials, and Caddy writes them when it
// first expands {http.request.uuid}: with the race detector, the test fails if the page is the first to do so.
func TestRequestIDIsExpandedBeforeAnUpstreamIsAsked(t *testing.T) {
	first, goOn := make(chan struct{}), make(chan struct{})
	ln := oneConnection(t)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/first" {
			close(first)
			<-goOn
			io.WriteString(w, "theirs")
			return
		}
		http.NotFound(w, r)
	})}
	go srv.Serve(ln)
	t.Cleanup(func() { srv.Close() })

	proxy := "log\nreverse_proxy " + ln.Addr().String() + "\n"
	s := testcaddy.Start(t, "http://a.test:0 {\nnot_found {\nfooter {http.request.uuid}\n}\n"+proxy+"}")
	answered := make(chan testcaddy.Response, 1)
	go func() { answered <- s.Get(t, "http://a.test/first") }()
	await(t, "the first request does not arrive", first)
	fill(t, ln.Addr().String())
	go func() {
		time.Sleep(200 * time.Millisecond) // for the dial to begin; it does not end
		close(goOn)
	}()
	res := s.Get(t, "http://a.test/second")
	(<-answered).Want(t, 200, "theirs")

	footer := testcaddy.FieldsOf(t, res).Footer
	for _, entry := range s.Logs.WaitFor(t, "handled request", 2) {
		id, _ := entry["uuid"].(string)
		if len(id) != 36 || entry["status"] == 404.0 && id != footer {
			t.Errorf("the access log has the ID %q, and the page %q", id, footer)
		}
	}
}

// listener accepts one connection.
type listener struct {
	net.Listener
	accepted bool
	closed   <-chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	if l.accepted {
		<-l.closed
		return nil, net.ErrClosed
	}
	l.accepted = true
	return l.Listener.Accept()
}

// oneConnection returns a listener that accepts one connection. There is room for one more that waits.
func oneConnection(t *testing.T) net.Listener {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "listener")
	defer file.Close()
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	ln, err := net.FileListener(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return &listener{Listener: ln, closed: t.Context().Done()}
}

// fill connects to a listener until that takes forever.
func fill(t *testing.T, addr string) {
	t.Helper()
	for range 10 {
		conn, err := net.DialTimeout("tcp", addr, 300*time.Millisecond)
		if err != nil {
			if !strings.Contains(err.Error(), "timeout") {
				t.Fatal(err)
			}
			return
		}
		t.Cleanup(func() { conn.Close() })
	}
	t.Fatal("the listener is never full")
}
