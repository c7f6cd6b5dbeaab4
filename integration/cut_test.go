package integration

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// cutting cuts a file once the header of a response is sent.
type cutting struct {
	caddyhttp.ResponseWriterWrapper
	file string
}

func (c *cutting) WriteHeader(status int) {
	c.ResponseWriterWrapper.WriteHeader(status)
	_ = os.Truncate(c.file, 100_000)
}

// TestPageThatEndsEarlyIsNoWholePage cuts a site's file while it is sent.
func TestPageThatEndsEarlyIsNoWholePage(t *testing.T) {
	root := t.TempDir()
	file := root + "/404.html"
	cut := testcaddy.Directive(t, func(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
		w = &cutting{caddyhttp.ResponseWriterWrapper{ResponseWriter: w}, file}
		return next.ServeHTTP(w, r)
	})
	_, clients := testcaddy.StartAllProtocols(t, map[string]string{
		"a.test": "route {\nvars root " + testcaddy.Quote(root) + "\n" + cut + "\nnot_found {\ntemplate {vars.root}/404.html\n}\n}",
	})
	for _, c := range clients {
		if err := os.WriteFile(file, []byte(strings.Repeat("x", 200_000)), 0o600); err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), "GET", c.Scheme+"://a.test/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/html")
		res, err := c.HTTP.Do(req)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
		if err == nil {
			t.Errorf("over %s, the page looks whole", c.Name)
		}
	}
}
