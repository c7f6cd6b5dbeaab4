package notfound

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// TestRecorded404s replays the 404s of real applications, to their real clients. What is not in the list is replaced; with
// `replace all`, everything is.
func TestRecorded404s(t *testing.T) {
	passes := map[string]bool{ // seen
		// JSON and XML
		"FastAPI, curl GET /":                                                            false,
		"Verdaccio 6.8, curl GET /nix":                                                   false,
		"Verdaccio 6.8, npm GET /-/team/x/y/user?format=cli":                             false,
		"versitygw (S3), curl GET /nix":                                                  false,
		"versitygw (S3), none HEAD /cba/nope":                                            false,
		"versitygw (S3), rclone HEAD /bkt-a/p":                                           false,
		"docker-registry 2, curl GET /v2/A/app/manifests/nope":                           false,
		"docker-registry 2, skopeo GET /v2/a/app/manifests/nope":                         false,
		"Jupyter Notebook, Chromium GET /api/contents/nope.txt":                          false,
		"WordPress 6.1, Chromium GET /wp-json/oembed/1.0/embed?url=http://app.example/x": false,
		"MediaWiki 1.39, Chromium GET /rest.php/v1/page/Nopexx":                          false,
		// HTML, text or nothing, to a script
		"FastAPI, Chromium GET /plain/99":                                   false,
		"Flask with htmx 4 and Turbo 8, Chromium GET /part/99":              false,
		"Flask with htmx 4 and Turbo 8, Chromium GET /frame/99":             false,
		"Next.js 16.4, app router, Chromium GET /nix?_rsc=5CB68i4pnAekjehf": false,
		"Next.js 16.4, app router, Chromium GET /api/x":                     false,
		"Verdaccio 6.8, Chromium GET /-/verdaccio/data/sidebar/nope-nope":   false,
		"Prometheus, Chromium GET /api/v1/nope":                             false,
		"Rails 6.1, Chromium GET /head":                                     false,
	}
	content, err := os.ReadFile("integration/testdata/404s.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded []struct {
		Application, Client, Method, Target string
		Request, Response                   http.Header
		BodyBytes                           int `json:"body_bytes"`
	}
	if err := json.Unmarshal(content, &recorded); err != nil || len(recorded) == 0 {
		t.Fatalf("got %d recorded 404s, %v", len(recorded), err)
	}
	for _, rec := range recorded {
		name := fmt.Sprintf("%s, %s %s %s", rec.Application, rec.Client, rec.Method, rec.Target)
		_, passesPages := passes[name]
		if passesPages {
			passes[name] = true
		}
		for mode, want := range map[string]bool{"": passesPages, replaceAll: false} {
			r := httptest.NewRequest(rec.Method, rec.Target, nil)
			r.Header = rec.Request.Clone()
			w := httptest.NewRecorder()
			theirs := strings.Repeat("x", rec.BodyBytes)
			err := provision(t, &Handler{Replace: mode}).ServeHTTP(w, prepare(w, r), caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
				for field, values := range rec.Response {
					w.Header()[field] = values
				}
				w.WriteHeader(http.StatusNotFound)
				_, err := w.Write([]byte(theirs))
				return err
			}))
			passed := w.Body.String() == theirs && w.Header().Get("Content-Type") == rec.Response.Get("Content-Type") && w.Header().Get("Cache-Control") != "no-store"
			if err != nil || passed != want {
				t.Errorf("%s, replace %q: it passed: %v, %v, want %v", name, mode, passed, err, want)
			}
		}
	}
	for name, seen := range passes {
		if !seen {
			t.Errorf("%s was not recorded", name)
		}
	}
}
