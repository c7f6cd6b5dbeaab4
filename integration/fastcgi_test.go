package integration

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestFastCGIIsNotCanceled shows that an exchange over FastCGI cannot be canceled. For Caddy alone, it goes on after the client
// has left. After a page, it holds the client's next request over HTTP/1.1, unless there is a read_timeout; the page
// itself is there at once.
func TestFastCGIIsNotCanceled(t *testing.T) {
	responder, closed := testcaddy.StallingFastCGI(t)
	proxy := func(timeout string) string {
		return "reverse_proxy " + responder + " {\nflush_interval -1\ntransport fastcgi {\nroot /srv\nsplit .php\nread_timeout " + timeout + "\n}\n}"
	}
	s := testcaddy.Start(t, "http://alone.test:0 {\n"+proxy("2s")+"\n}\nhttp://page.test:0 {\nnot_found\n"+proxy("500ms")+"\n}")

	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", "http://alone.test/x.php", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.HTTP.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	leave()
	res.Body.Close()
	select {
	case <-closed:
		t.Error("the exchange was canceled, so that the README need not mention it")
	case <-time.After(200 * time.Millisecond):
	}

	for range 2 {
		s.Get(t, "http://page.test/x.php").WantPage(t, "GET", "http://page.test/x.php", "")
	}
}
