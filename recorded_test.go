package notfound

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestRecorded404s replays the 404s of real applications: to the clients that they were recorded with, to a browser, and to
// a program that names no HTML. What is not in the list is replaced; with `replace all`, everything is. The
// number of them is that of docs/applications.md.
func TestRecorded404s(t *testing.T) {
	const (
		recorded = "recorded"
		browser  = "browser"
		program  = "program"
		everyone = recorded + browser + program
	)
	passes := map[string]string{ // to whom
		// JSON, XML and other types of programs
		"FastAPI, curl GET /":                                                                          everyone,
		"Verdaccio 6.8, curl GET /nix":                                                                 everyone,
		"Verdaccio 6.8, npm GET /-/team/x/y/user?format=cli":                                           everyone,
		"versitygw (S3), curl GET /nix":                                                                everyone,
		"versitygw (S3), none HEAD /cba/nope":                                                          everyone,
		"versitygw (S3), rclone HEAD /bkt-a/p":                                                         everyone,
		"docker-registry 2, curl GET /v2/A/app/manifests/nope":                                         everyone,
		"docker-registry 2, skopeo GET /v2/a/app/manifests/nope":                                       everyone,
		"Jupyter Notebook, Chromium GET /api/contents/nope.txt":                                        everyone,
		"WordPress 6.1, Chromium GET /wp-json/oembed/1.0/embed?url=http://app.example/x":               everyone,
		"MediaWiki 1.39, Chromium GET /rest.php/v1/page/Nopexx":                                        everyone,
		"Next.js 16.4, app router, Chromium GET /nix?_rsc=5CB68i4pnAekjehf":                            everyone,
		"PouchDB Server (express-pouchdb) 4.2.0, PouchDB 9 in Node (node-fetch) GET /db/node-w2/":      everyone,
		"React Router framework mode, react-router-serve, plain HTTP 8.5.1, Chromium GET /post/9.data": everyone,
		"RabbitMQ management 3.10.8, rabbitmqadmin 3.10.8 POST /api/queues/%2F/none/get":               everyone,
		"RabbitMQ management 3.10.8, Chromium 156 GET /api/queues/%2F/none?lengths_age=60&lengths_incr=5&msg_rates_age=60&msg_rates_incr=5&data_rates_age=60&data_rates_incr=5": everyone,
		"Azurite Blob 3.37.0, @azure/storage-blob GET /devstoreaccount1/none?restype=container":                                                                                 everyone,
		// JSON under another type
		"PouchDB Server (express-pouchdb) 4.2.0, PouchDB 9 in Node (node-fetch) GET /db/node-w2/none/x": recorded + program,
		"PouchDB Server (express-pouchdb) 4.2.0, Chromium 156 GET /db/remote-plain/none":                program,
		"aptly api serve 1.5.0, curl GET /api/repos/nope":                                               recorded + program,
		"Node-RED 4.1.15, editor in Chromium, fetch, http in node GET /item/str":                        recorded + program,
		"Astro with ClientRouter, plain HTTP 7.3.5, Chromium GET /api/x":                                program,
		"SvelteKit, adapter-node, plain HTTP 3.2.0, Chromium GET /api/x?t":                              program,
		"Nuxt, localhost 4.5.2, Chromium GET /api/y":                                                    recorded + program,
		"TanStack Start, plain HTTP 1.169.5, Chromium GET /api/x":                                       program,
		// HTML, text or nothing, to a script
		"FastAPI, Chromium GET /plain/99":                                                                        recorded,
		"Flask with htmx 4 and Turbo 8, Chromium GET /part/99":                                                   recorded,
		"Flask with htmx 4 and Turbo 8, Chromium GET /frame/99":                                                  recorded,
		"Next.js 16.4, app router, Chromium GET /api/x":                                                          recorded,
		"Verdaccio 6.8, Chromium GET /-/verdaccio/data/sidebar/nope-nope":                                        recorded,
		"Prometheus, Chromium GET /api/v1/nope":                                                                  recorded,
		"Rails 6.1, Chromium GET /head":                                                                          recorded,
		"Express 5 with swup 4.10, barba 2.10, Alpine AJAX 0.12.7, localhost, Chromium 156 GET /alpine/missing":  recorded,
		"Express 5 with swup 4.10, barba 2.10, Alpine AJAX 0.12.7, localhost, Chromium 156 POST /alpine/vote/99": recorded,
		"Express 5 with swup 4.10, barba 2.10, Alpine AJAX 0.12.7, localhost, Chromium 156 GET /barba/missing":   recorded,
	}
	seen := make(map[string]bool)
	for _, rec := range testcaddy.Recordings() {
		name := fmt.Sprintf("%s, %s %s %s", rec.Application, rec.Client, rec.Method, rec.Target)
		seen[name] = true
		theirs := httptest.NewRecorder()
		rec.Replay(theirs)
		clients := map[string]http.Header{
			recorded: rec.Request,
			browser:  {"Accept": {"text/html,application/xhtml+xml,*/*;q=0.8"}},
			program:  {"Accept": {"*/*"}},
		}
		for client, header := range clients {
			for mode, want := range map[string]bool{"": strings.Contains(passes[name], client), replaceAll: false} {
				r := httptest.NewRequest(rec.Method, rec.Target, nil)
				r.Header = header.Clone()
				w := httptest.NewRecorder()
				err := provision(t, &Handler{Replace: mode}).ServeHTTP(w, prepare(w, r), caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
					rec.Replay(w)
					return nil
				}))
				passed := w.Body.String() == theirs.Body.String() && reflect.DeepEqual(w.Header(), theirs.Header())
				isPage := w.Header().Get("Content-Location") == "" && strings.Contains(w.Body.String(), "HTTP ERROR 404") == (rec.Method != http.MethodHead)
				if err != nil || passed != want || isPage == want {
					t.Errorf("%s, to %s, replace %q: it passed: %v, it is the page: %v, %v, want it to pass: %v", name, client, mode, passed, isPage, err, want)
				}
			}
		}
	}
	for name := range passes {
		if !seen[name] {
			t.Errorf("%s was not recorded", name)
		}
	}
	between(t, "docs/applications.md", fmt.Sprintf(" %d of their 404s", len(testcaddy.Recordings())), "")
}
