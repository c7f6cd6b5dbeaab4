package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestWhatCaddyDoes tests undocumented behavior of Caddy. Each case names the functions that rely on it, and that have to
// change if a new Caddy fails the case. OBSERVER is where a handler observes the next ones.
//
// parseCaddyfile and groupOf rely on how Caddy sorts and merges the routes of a block, and on each block's own state:
// TestAdapt fails without that.
func TestWhatCaddyDoes(t *testing.T) {
	app := testcaddy.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		if w.Header()["Date"] = nil; r.URL.Path == "/breaks" {
			w.WriteHeader(http.StatusNotFound)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	})
	const intercept, gone = "intercept {\n@gone status 410\nhandle_response @gone {\n", "\n}\n}\n"
	cases := map[string]struct{ site, want string }{
		// Request.IsUnhandled, Request.SetHandled, Judge.isUnanswered and Judge.Decide
		"GET the end of the chain":  {"OBSERVER", " unhandled"},
		"GET the end within handle": {"OBSERVER\nhandle {\nrespond /other no\n}", " unhandled"},
		"GET an empty response":     {"OBSERVER\nrespond 200", "WriteHeader 200"},
		"GET a silent handler":      {"OBSERVER\nhandle {\n" + testcaddy.Directive(t, silent) + "\n}", ""},
		// Judge.isBareStatus and Request.HandledError
		"GET the end of the routes of a 404": {"error 404\nhandle_errors {\nheader X-Site yes\nOBSERVER\nrespond /other no\n}", "WriteHeader 404"},
		"GET the end of the routes of a 500": {"error 500\nhandle_errors {\nheader X-Site yes\nOBSERVER\nrespond /other no\n}", "WriteHeader 500"},
		// Request.IsIntercepted and Judge.Decide
		"GET intercept takes a response": {"route {\nOBSERVER\n" + intercept + "respond own" + gone + "respond 410\n}", "WriteHeader 200 Content-Type intercepted:410"},
		"GET within its response route":  {intercept + "OBSERVER" + gone + "respond 410", " intercepted:410"},
		"GET intercept takes none":       {"route {\nOBSERVER\n" + intercept + gone + "respond 200\n}", "WriteHeader 200"},
		// Judge.Status
		"GET intercept of no answer":  {"route {\nOBSERVER\n" + intercept + gone + "}", "WriteHeader 0 unhandled intercepted:0"},
		"GET templates of no answer":  {"route {\nOBSERVER\ntemplates\n}", "WriteHeader 200 Content-Length unhandled"},
		"HEAD templates of no answer": {"route {\nOBSERVER\ntemplates\n}", "WriteHeader 200 unhandled"},
		// SiteHeader.restore
		"GET a backend without Server": {"OBSERVER\nreverse_proxy " + app, "WriteHeader 200 -Server Content-Length Via"},
		// exchange.callNext
		"GET a backend that breaks off": {"OBSERVER\nrewrite /breaks\nreverse_proxy " + app, "WriteHeader 404 -Server Via panicked"},
	}
	sites := make(map[string]string)
	observed := make(map[string]chan string)
	for name, tt := range cases {
		observed[name] = make(chan string, 1)
		sites[name] = strings.ReplaceAll(tt.site, "OBSERVER", observer(t, observed[name])) + "\n# without not_found"
	}
	s, hosts := testcaddy.StartSites(t, "", sites)
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			method, _, _ := strings.Cut(name, " ")
			s.Do(t, method, "http://"+hosts[name]+"/")
			if got := <-observed[name]; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestCaddySaysWhetherSitesRun asks Caddy, while it provisions a handler, whether a config with an HTTP app is running. On that,
// isReload of internal/page relies: a new template that cannot be used is refused only then.
func TestCaddySaysWhetherSitesRun(t *testing.T) {
	const admin = `"admin":{"disabled":true,"config":{"persist":false}}`
	const sites = `{` + admin + `,"apps":{"http":{"servers":{"a":{
		"listen": ["127.0.0.1:0"], "automatic_https": {"disable": true}, "routes": [{"handle": [{"handler": "asks_for_sites"}]}]
	}}},"tls":{"disable_storage_clean":true}}}`
	load := func(config string) func() error {
		return func() error { return caddy.Load([]byte(config), true) }
	}
	validate := func() error {
		config := new(caddy.Config)
		if err := json.Unmarshal([]byte(sites), config); err != nil {
			return err
		}
		return caddy.Validate(config)
	}
	t.Cleanup(func() { _ = caddy.Stop() })
	for _, step := range []struct {
		name string
		do   func() error
		want string // what the handlers have seen
	}{
		{"caddy validate", validate, "none"},
		{"the first config", load(sites), "none"},
		{"a reload", load(sites), "sites"},
		{"a config without sites", load(`{` + admin + `}`), ""},
		{"the first sites", load(sites), "none"},
		{"the end", caddy.Stop, ""},
		{"a start after it", load(sites), "none"},
	} {
		seenSites = ""
		if err := step.do(); err != nil || seenSites != step.want {
			t.Errorf("%s: got %q, %v, want %q", step.name, seenSites, err, step.want)
		}
	}
}

// seenSites is what asksForSites has seen. A process runs one Caddy.
var seenSites string

func init() {
	caddy.RegisterModule(asksForSites{})
}

// asksForSites is a handler that asks Caddy whether sites are running, while it is provisioned.
type asksForSites struct{}

func (asksForSites) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.asks_for_sites", New: func() caddy.Module { return new(asksForSites) }}
}

func (asksForSites) Provision(caddy.Context) error {
	seenSites = "sites"
	if _, err := caddy.ActiveContext().AppIfConfigured("http"); err != nil {
		seenSites = "none"
	}
	return nil
}

func (asksForSites) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	return next.ServeHTTP(w, r)
}

// observer returns a directive that discards the response of the next handlers, and reports its status, the header fields that
// changed, a panic with http.ErrAbortHandler, the variable unhandled, and the placeholder of intercept.
func observer(t *testing.T, observed chan<- string) (directive string) {
	return testcaddy.Directive(t, func(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) (err error) {
		d := &discarding{before: w.Header(), header: w.Header().Clone()}
		defer func() {
			if recover() == http.ErrAbortHandler {
				d.seen += " panicked"
			}
			if caddyhttp.GetVar(r.Context(), "unhandled") == true {
				d.seen += " unhandled"
			}
			if status, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer).Get("http.intercept.status_code"); ok {
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
	w.seen += fmt.Sprint("WriteHeader ", status) + strings.Join(changed, "")
}
