package command

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestErrorOfAnAdminAPIIsPrintable has an admin API answer with bytes that act on a terminal, with the origin that
// enforce_origin asks for, or with a redirect.
func TestErrorOfAnAdminAPIIsPrintable(t *testing.T) {
	const acts = "\x1b[2J\x1b]0;x\x07\u009b31m"
	message, err := json.Marshal(map[string]string{"error": acts})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		begins string
	}{
		"an error":        {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, acts, 500) }, "asking the admin API at ADDRESS: HTTP 500: ?[2J"},
		"the API's error": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400); _, _ = w.Write(message) }, "the admin API at ADDRESS: ?[2J"},
		"not a report":    {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, acts) }, "the report of ADDRESS: invalid character"},
		"JSON of its own": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(message) }, "the report of ADDRESS: it is not a report, or was made by"},
		"an odd status":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(418); _, _ = io.WriteString(w, "{"+acts) }, "asking the admin API at ADDRESS: HTTP 418: {?[2J"},
		"another's JSON": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "{}")
		}, "the server at ADDRESS is not a Caddy with not_found (HTTP 404: {})"},
		"its origin": {func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, r.Header.Get("Origin"), http.StatusForbidden)
		}, "asking the admin API at ADDRESS: HTTP 403: http://ADDRESS"},
		"a redirect": {http.RedirectHandler("/not_found/reports", http.StatusFound).ServeHTTP, "asking the admin API at ADDRESS: HTTP 302: "},
	} {
		t.Run(name, func(t *testing.T) {
			address := testcaddy.Backend(t, tt.answer)
			_, err := askReport(address)
			if begins := strings.ReplaceAll(tt.begins, "ADDRESS", address); err == nil || !strings.HasPrefix(err.Error(), begins) ||
				strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Errorf("got the error %q, want one that begins with %s", err, begins)
			}
		})
	}
}
