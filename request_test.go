package notfound

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestFieldsAreLists reads lists as proxies write them, in any case and with blanks, and an Accept of two lines.
func TestFieldsAreLists(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header = http.Header{"X-Forwarded-Proto": {"http", "HTTPS , http"}, "X-Forwarded-Host": {"a.test", "[2001:db8::1]:1 , b.test"}, "Accept": {"text/html;q=0.1", "text/plain"}}
	if got := newClient(r, true); got.authority != "[2001:db8::1]:1" || !got.isHTTPS || got.accept != "text/html;q=0.1,text/plain" {
		t.Errorf("got the authority %q, HTTPS %v, and Accept %q", got.authority, got.isHTTPS, got.accept)
	}
}

// TestVariablesAreNotWrittenOnceTheNextHandlerRuns shows the ID of the request, which Caddy writes to its variables when it is
// first expanded. reverse_proxy reads them to dial, and a dial may outlive the response.
func TestVariablesAreNotWrittenOnceTheNextHandlerRuns(t *testing.T) {
	for name, h := range map[string]*Handler{
		"a page":     {Footer: "{http.request.uuid}"},
		"a template": {Template: map[string]string{"json": testcaddy.TempFile(t, "404.json", `"{{.Placeholder "http.request.uuid"}}"`)}, Formats: []string{"json"}},
		"a dry run":  {BaseURL: "https://e.test/{http.request.uuid}", DryRun: true},
	} {
		w := httptest.NewRecorder()
		var vars, before map[string]any
		err := serve(provision(t, h), w, "GET", "/x", func(w http.ResponseWriter, r *http.Request) error {
			vars = r.Context().Value(caddyhttp.VarsCtxKey).(map[string]any)
			before = maps.Clone(vars)
			w.WriteHeader(http.StatusNotFound)
			return nil
		})
		id := fmt.Sprint(before["uuid"])
		if err != nil || len(id) != 36 || !reflect.DeepEqual(vars, before) || !h.DryRun && !strings.Contains(w.Body.String(), id) {
			t.Errorf("%s: got %q, %v, and the variables %v, want %v", name, w.Body, err, vars, before)
		}
	}
}
