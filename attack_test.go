package notfound

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// connect opens a connection that a test may use for as long as a hang is not likelier.
func (s *server) connect(t testing.TB) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(40 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// only sends a request with Connection: close, and reads all that comes back: one response, and nothing else.
func (s *server) only(t testing.TB, method, request string) response {
	t.Helper()
	conn := s.connect(t)
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	wire, err := io.ReadAll(conn)
	if err != nil {
		t.Fatalf("%.200q: %v", request, err)
	}
	r := bufio.NewReader(bytes.NewReader(wire))
	res := readResponse(t, r, method, fmt.Sprintf("%.200q", request))
	if rest, _ := io.ReadAll(r); len(rest) > 0 {
		t.Errorf("%.200q: after the response there is %.200q", request, rest)
	}
	return res
}

// undated returns a header without its Date.
func undated(r response) http.Header {
	header := r.Header.Clone()
	header.Del("Date")
	return header
}

// bytesInUse returns the bytes of the heap and of stacks that are in use, without garbage.
func bytesInUse() int64 {
	m := memory()
	return int64(m.HeapAlloc + m.StackInuse)
}
