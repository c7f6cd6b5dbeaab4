package integration

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestWhatCaddyDoes tests undocumented behavior of Caddy. Each case names the functions that rely on it, and that
// have to change if a new Caddy fails the case. OBSERVER is where a handler observes the next ones.
//
// parseCaddyfile and groupOf rely on how Caddy sorts and merges the routes of a block, and on each block's own state:
// TestAdapt fails without that. Request.EndBody relies on what Caddy's reader of a body says at its end:
// TestUploadThatEndsKeepsItsConnection fails without that. DeferredAround relies on two fields of the header handler's
// writer: TestPageHoldsAgainstADeferredHeader fails without them.
func TestWhatCaddyDoes(t *testing.T) {
	app := testcaddy.Backend(t, emptyOrBroken)
	const intercept = "intercept {\n@gone status 410\nhandle_response @gone {\n"
	const gone = "\n}\n}\n"
	inErrorRoute := "handle_errors {\nheader X-Site yes\nOBSERVER\nrespond /other no\n}"
	for name, tt := range map[string]struct {
		method string // GET, if it is empty
		site   string
		want   string
	}{
		// Request.IsUnhandled, Request.SetHandled, Judge.Status, Judge.isEmpty200 and Judge.Decide
		"the end of the chain":  {site: "OBSERVER", want: " unhandled"},
		"the end within handle": {site: "OBSERVER\nhandle {\nrespond /other no\n}", want: " unhandled"},
		"an empty response":     {site: "OBSERVER\nrespond 200", want: "WriteHeader 200"},
		"a silent handler":      {site: "OBSERVER\nhandle {\n" + testcaddy.Directive(t, silent) + "\n}"},
		// Judge.isBareStatus and Request.HandledError
		"the end of the routes of a 404": {site: "error 404\n" + inErrorRoute, want: "WriteHeader 404"},
		"the end of the routes of a 500": {site: "error 500\n" + inErrorRoute, want: "WriteHeader 500"},
		// Request.IsIntercepted and Judge.Decide
		"intercept takes a response": {
			site: "route {\nOBSERVER\n" + intercept + "respond own" + gone + "respond 410\n}",
			want: "WriteHeader 200 Content-Type intercepted:410",
		},
		"within its response route": {site: intercept + "OBSERVER" + gone + "respond 410", want: " intercepted:410"},
		"intercept takes none": {
			site: "route {\nOBSERVER\n" + intercept + gone + "respond 200\n}",
			want: "WriteHeader 200",
		},
		// Judge.Status, Judge.isEmpty200 and Request.IsIntercepted
		"intercept of no answer": {
			site: "route {\nOBSERVER\n" + intercept + gone + "}",
			want: "WriteHeader 0 unhandled intercepted:0",
		},
		"templates of no answer": {
			site: "route {\nOBSERVER\ntemplates\n}",
			want: "WriteHeader 200 Content-Length unhandled",
		},
		"templates of no answer to HEAD": {
			method: "HEAD",
			site:   "route {\nOBSERVER\ntemplates\n}",
			want:   "WriteHeader 200 unhandled",
		},
		// SiteHeader.restore
		"a backend without Server": {
			site: "OBSERVER\nreverse_proxy " + app,
			want: "WriteHeader 200 -Server Content-Length Via",
		},
		// exchange.callNext
		"a backend that breaks off": {
			site: "OBSERVER\nrewrite /breaks\nreverse_proxy " + app,
			want: "WriteHeader 404 -Server Via panicked",
		},
	} {
		t.Run(name, func(t *testing.T) {
			observed := make(chan string, 1)
			site := strings.ReplaceAll(tt.site, "OBSERVER", observer(t, observed))
			s := startSite(t, site)
			s.Do(t, cmp.Or(tt.method, "GET"), "http://a.test/")
			if got := <-observed; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// emptyOrBroken is a backend that sends an empty response, or breaks off.
func emptyOrBroken(w http.ResponseWriter, r *http.Request) {
	w.Header()["Date"] = nil
	if r.URL.Path == "/breaks" {
		w.WriteHeader(http.StatusNotFound)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// observer returns a directive that discards the response of the next handlers, and reports its status, the header
// fields that changed, a panic with http.ErrAbortHandler, the variable unhandled, and the placeholder of intercept.
func observer(t *testing.T, observed chan<- string) (directive string) {
	return testcaddy.Directive(t, func(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) (err error) {
		d := &discarding{
			before: w.Header(),
			header: w.Header().Clone(),
		}
		defer func() {
			if recover() == http.ErrAbortHandler {
				d.seen += " panicked"
			}
			if caddyhttp.GetVar(r.Context(), "unhandled") == true {
				d.seen += " unhandled"
			}
			placeholders := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
			if status, ok := placeholders.Get("http.intercept.status_code"); ok {
				d.seen += fmt.Sprint(" intercepted:", status)
			}
			observed <- d.seen
		}()
		return next.ServeHTTP(d, r)
	})
}

// discarding is a response writer that passes nothing on.
type discarding struct {
	before, header http.Header
	seen           string
}

func (w *discarding) Header() http.Header         { return w.header }
func (w *discarding) Write(p []byte) (int, error) { return len(p), nil }
func (w *discarding) FlushError() error           { return nil }

func (w *discarding) WriteHeader(status int) {
	var changed []string
	for name := range w.before {
		if w.header[name] == nil {
			changed = append(changed, " -"+name)
		}
	}
	for name, values := range w.header {
		if values != nil && !slices.Equal(values, w.before[name]) {
			changed = append(changed, " "+name)
		}
	}
	slices.Sort(changed)
	w.seen += fmt.Sprintf("WriteHeader %d%s", status, strings.Join(changed, ""))
}
