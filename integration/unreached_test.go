package integration

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestWhatNeverReachesNotFound sends the requests of docs/limits.md that Caddy answers by itself.
func TestWhatNeverReachesNotFound(t *testing.T) {
	const options = "servers {\nmax_header_size 4KB\n}"
	s := testcaddy.Start(t, "http://www.example.com:0 {\nnot_found\n}", options)
	for name, tt := range map[string]struct {
		request string // without Connection: close
		status  int
		content string
	}{
		"OPTIONS *": {
			request: "OPTIONS * HTTP/1.1\r\nHost: www.example.com",
			status:  http.StatusOK,
		},
		"a malformed Host": {
			request: "GET /x HTTP/1.1\r\nHost: a b",
			status:  http.StatusBadRequest,
			content: "400 Bad Request: malformed Host header",
		},
		"a large header": {
			request: "GET /x HTTP/1.1\r\nHost: www.example.com\r\nX: " + strings.Repeat("x", 10_000),
			status:  http.StatusRequestHeaderFieldsTooLarge,
			content: "431 Request Header Fields Too Large",
		},
		"another host": {
			request: "GET /x HTTP/1.1\r\nHost: other.test",
			status:  http.StatusOK,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			method, _, _ := strings.Cut(tt.request, " ")
			res := s.Only(t, method, tt.request+"\r\nConnection: close\r\n\r\n")
			res.Want(t, tt.status, tt.content)
		})
	}
}

// TestFileServerRefusesWhatNoFileCanBe asks file_server for such paths, and for one that is barely short enough.
func TestFileServerRefusesWhatNoFileCanBe(t *testing.T) {
	root := t.TempDir()
	if err := os.Symlink("loop", root+"/loop"); err != nil {
		t.Fatal(err)
	}
	s := startSite(t, "not_found\nroot "+testcaddy.Quote(root)+"\nfile_server")
	for _, path := range []string{"/" + strings.Repeat("x", 256), "/loop", "/a%00b"} {
		s.Get(t, "http://a.test"+path).Want(t, http.StatusBadRequest, "")
	}
	getPage(t, s.Client, "http://a.test/"+strings.Repeat("x", 255))
}
