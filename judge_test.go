package notfound

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// TestJSONPassesWhateverItsLabel has 404 responses in text/plain, or in an error route without a type. To a client that names
// HTML, none passes because of its body: what begins as JSON may be markup that somebody has had reflected.
func TestJSONPassesWhateverItsLabel(t *testing.T) {
	const object, markup, browser = `{"error":"not_found"}`, `{<script>alert(1)</script>`, "text/html,application/xhtml+xml,*/*;q=0.8"
	h := provision(t, &Handler{})
	for name, tt := range map[string]struct {
		accept, body string
		passes       bool
	}{
		"a client that takes all":    {"*/*", object, true},
		"a client that names none":   {"", "\r\n\t " + object, true},
		"a client that names JSON":   {"application/json", object, true},
		"a browser":                  {browser, markup, false},
		"a client that refuses HTML": {"*/*, Text/HTML;q=0", markup, false},
		"an array":                   {"*/*", "[1]", false},
		"an object later":            {"*/*", "404 {}", false},
	} {
		for _, inErrorRoute := range []bool{false, true} {
			steps := []step{text, status(404), body(tt.body)}
			w := httptest.NewRecorder()
			r := httptest.NewRequest("GET", "http://a.test/x", nil)
			r.Header.Set("Accept", tt.accept)
			r = prepare(w, r)
			if inErrorRoute {
				steps = steps[1:]
				r = r.WithContext(context.WithValue(r.Context(), caddyhttp.ErrorCtxKey, error(errMissing)))
			}
			err := h.ServeHTTP(w, r, script(steps))
			if passes := w.Body.String() == tt.body; err != nil || passes != tt.passes || !passes && w.Result().Header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s, in an error route: %v: got %q, %v", name, inErrorRoute, w.Body, err)
			}
		}
	}
}
