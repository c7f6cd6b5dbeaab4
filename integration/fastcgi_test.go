package integration

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestFastCGIIsNotCanceled shows that an exchange over FastCGI goes on after the client has left, until read_timeout: for
// Caddy alone, and with a page that would replace the response.
func TestFastCGIIsNotCanceled(t *testing.T) {
	responder, closed := testcaddy.StallingFastCGI(t)
	proxy := "reverse_proxy " + responder + " {\nflush_interval -1\ntransport fastcgi {\nroot /srv\nsplit .php\nread_timeout 1s\n}\n}"
	s := testcaddy.Start(t, "http://alone.test:0 {\n"+proxy+"\n}\nhttp://page.test:0 {\nnot_found\n"+proxy+"\n}")
	for _, host := range []string{"alone.test", "page.test"} {
		ctx, leave := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer leave()
		req, err := http.NewRequestWithContext(ctx, "GET", "http://"+host+"/x.php", nil)
		if err != nil {
			t.Fatal(err)
		}
		if res, err := s.HTTP.Do(req); err == nil {
			<-ctx.Done()
			res.Body.Close()
		}
		select {
		case <-closed:
			t.Errorf("%s: the exchange was canceled", host)
		case <-time.After(300 * time.Millisecond):
		}
		select {
		case <-closed:
		case <-time.After(10 * time.Second):
			t.Errorf("%s: the exchange goes on after read_timeout", host)
		}
	}
}
