package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// The tests in this file are about Caddy alone: what not_found relies on without Caddy's documentation saying so. If one
// fails with a new version of Caddy, its message says which functions of the handler rely on what has changed.

// reliedOn has a test that fails name the functions of the handler that rely on what it shows.
func reliedOn(t *testing.T, functions ...string) {
	t.Helper()
	files, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(content)
	}
	for _, function := range functions {
		if !regexp.MustCompile(`(?m)^func (\(.*\) )?` + function + `\(`).MatchString(source.String()) {
			t.Errorf("the handler has no function %s", function)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("this Caddy does not do what not_found relies on; see %s", strings.Join(functions, ", "))
		}
	})
}

// observation is what a handler finds once the next one has returned.
type observation struct {
	calls          string      // of the methods of its response writer
	before, header http.Header // when it was called, and when the status was written
	panicked       any

	unhandled   any // the variable
	intercepted any // the placeholder of intercept
}

// observe returns a directive that observes the next handlers, whose response it discards.
func observe(t *testing.T) (directive string, observations <-chan observation) {
	seen := make(chan observation, 1)
	return testcaddy.Directive(t, func(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) (err error) {
		d := &discarding{header: w.Header().Clone()}
		o := observation{before: w.Header().Clone()}
		defer func() {
			repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
			o.panicked = recover()
			o.calls, o.header = strings.Join(d.calls, ", "), d.written
			o.unhandled = caddyhttp.GetVar(r.Context(), "unhandled")
			o.intercepted, _ = repl.Get("http.intercept.status_code")
			seen <- o
		}()
		return next.ServeHTTP(d, r)
	}), seen
}

// discarding is a response writer that passes nothing on.
type discarding struct {
	header, written http.Header // the latter is that of the status
	calls           []string
}

func (w *discarding) Header() http.Header { return w.header }

func (w *discarding) WriteHeader(status int) {
	w.calls, w.written = append(w.calls, fmt.Sprint("WriteHeader ", status)), w.header.Clone()
}

func (w *discarding) Write(p []byte) (int, error) {
	w.calls = append(w.calls, fmt.Sprintf("Write %q", p))
	return len(p), nil
}

func (w *discarding) FlushError() error {
	w.calls = append(w.calls, "Flush")
	return nil
}

// TestCaddyMarksTheEndOfTheChain has requests reach the end of the chain, and handlers answer before it.
func TestCaddyMarksTheEndOfTheChain(t *testing.T) {
	reliedOn(t, "isUnhandled", "isUnanswered", "reachedEnd", "setHandled")
	observed, observations := observe(t)
	s := testcaddy.Start(t, "http://a.test:0 {\nlog\n"+observed+"\nhandle /handle {\nrespond /other no\n}\nrespond /answered 200\nhandle /silent {\n"+
		testcaddy.Directive(t, silent)+"\n}\n}")
	for path, want := range map[string]any{"/": true, "/handle": true, "/answered": nil, "/silent": nil} {
		s.Get(t, "http://a.test"+path)
		if got := (<-observations).unhandled; got != want {
			t.Errorf("%s: the variable unhandled is %v, want %v", path, got, want)
		}
	}
	for _, entry := range s.Logs.WaitFor(t, "NOP", 2) {
		if uri := entry["request"].(map[string]any)["uri"]; uri != "/" && uri != "/handle" {
			t.Errorf("the access log calls %s a NOP", uri)
		}
	}
	s.Logs.WaitFor(t, "handled request", 2)
}

// TestCaddyEndsErrorRoutesWithTheBareStatus has error routes that handle nothing.
func TestCaddyEndsErrorRoutesWithTheBareStatus(t *testing.T) {
	reliedOn(t, "isBareStatus", "errorOfRoute")
	observed, observations := observe(t)
	s := testcaddy.Start(t, "http://a.test:0 {\nerror /404 404\nerror 500\nhandle_errors {\n"+observed+"\nheader X-Site yes\nrespond /other no\n}\n}")
	for path, want := range map[string]string{"/404": "WriteHeader 404", "/": "WriteHeader 500"} {
		s.Get(t, "http://a.test"+path)
		if o := <-observations; o.calls != want || o.unhandled != nil || !maps.EqualFunc(o.header, o.before, slices.Equal) {
			t.Errorf("%s: it calls %s with the header %v, and the variable unhandled is %v, want %s with %v alone", path, o.calls, o.header, o.unhandled, want, o.before)
		}
	}
}

// TestInterceptSetsItsStatusCode has intercept take a response, take none, and find that nothing answered.
func TestInterceptSetsItsStatusCode(t *testing.T) {
	reliedOn(t, "isIntercepted", "reachedEnd", "isDecided")
	around, afterwards := observe(t)
	inside, observations := observe(t)
	s := testcaddy.Start(t, "http://a.test:0 {\nroute {\n"+around+"\nintercept {\n@gone status 410\nhandle_response @gone {\n"+inside+"\n}\n}\nrespond /gone 410\nrespond /ok 200\n}\n}")
	for path, want := range map[string]any{"/gone": http.StatusGone, "/ok": nil, "/nothing": 0} {
		s.Get(t, "http://a.test"+path)
		if path == "/gone" {
			if o := <-observations; o.intercepted != want || o.unhandled != nil {
				t.Errorf("in a response route, http.intercept.status_code is %v, want %v, and the variable unhandled is %v, want none", o.intercepted, want, o.unhandled)
			}
		}
		if got := (<-afterwards).intercepted; got != want {
			t.Errorf("%s: http.intercept.status_code is %v, want %v", path, got, want)
		}
	}
}

// TestMiddlewaresTurnNoAnswerIntoAStatus has those of Caddy that buffer a response find that nothing answered.
func TestMiddlewaresTurnNoAnswerIntoAStatus(t *testing.T) {
	reliedOn(t, "isUnanswered")
	observed, observations := observe(t)
	s := testcaddy.Start(t, "http://intercept.test:0 {\nroute {\n"+observed+"\nintercept {\n@gone status 410\nhandle_response @gone {\n}\n}\n}\n}\n"+
		"http://templates.test:0 {\nroute {\n"+observed+"\ntemplates\n}\n}")
	for host, want := range map[string]string{"intercept": "WriteHeader 0", "templates": "WriteHeader 200"} {
		for _, method := range []string{"GET", "HEAD"} {
			s.Do(t, method, "http://"+host+".test/")
			length := map[string]string{"templates GET": "0"}[host+" "+method]
			o := <-observations
			calls, _, _ := strings.Cut(o.calls, ", Write \"\"")
			if calls != want || o.header.Get("Content-Length") != length || o.unhandled != true {
				t.Errorf("%s, %s: it calls %s with the Content-Length %q, and the variable unhandled is %v", host, method, o.calls, o.header.Get("Content-Length"), o.unhandled)
			}
		}
	}
}

// TestReverseProxyRemovesTheServer has an upstream that sends no header field of its own.
func TestReverseProxyRemovesTheServer(t *testing.T) {
	reliedOn(t, "restoreSiteHeader")
	observed, observations := observe(t)
	app := testcaddy.Backend(t, func(w http.ResponseWriter, _ *http.Request) { w.Header()["Date"] = nil })
	s := testcaddy.Start(t, "http://a.test:0 {\n"+observed+"\nreverse_proxy "+app+"\n}")
	s.Get(t, "http://a.test/")
	o := <-observations
	if o.before.Get("Server") == "" || o.header["Server"] != nil {
		t.Errorf("before WriteHeader, reverse_proxy makes %v of the header %v, want no Server", o.header, o.before)
	}
}

// TestReverseProxyAbortsAsNetHTTPDoes has an upstream break off in the body of its response.
func TestReverseProxyAbortsAsNetHTTPDoes(t *testing.T) {
	reliedOn(t, "serve")
	observed, observations := observe(t)
	s := testcaddy.Start(t, "http://a.test:0 {\n"+observed+"\nreverse_proxy "+testcaddy.Backend(t, testcaddy.MissingPage)+"\n}")
	s.Get(t, "http://a.test/breaks")
	if o := <-observations; o.panicked != http.ErrAbortHandler || !strings.HasPrefix(o.calls, "WriteHeader 404, ") {
		t.Errorf("after %s, it panics with %v, want http.ErrAbortHandler", o.calls, o.panicked)
	}
}

// probe is a directive that sets a variable to its argument.
func init() {
	httpcaddyfile.RegisterDirective("probe", func(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
		h.Next() // consume directive name
		matcherSet, err := h.ExtractMatcherSet()
		if err != nil {
			return nil, err
		}
		h.Next() // consume it again: ExtractMatcherSet has reset the dispenser
		var name string
		if !h.AllArgs(&name) {
			return nil, h.ArgErr()
		}
		probed = append(probed, probedBlock{name, maps.Clone(h.BlockState), h.BlockState, h.State, h.IsNamedRoute()})
		h.BlockState["probe "+name] = true
		return h.NewRoute(matcherSet, caddyhttp.VarsMiddleware{"probe": name}), nil
	})
	httpcaddyfile.RegisterDirectiveOrder("probe", httpcaddyfile.Before, "redir")
}

// probedBlock is what a probe finds in its block.
type probedBlock struct {
	name              string
	found             map[string]any // the content of the block's state
	blockState, state map[string]any
	isNamedRoute      bool
}

var probed []probedBlock // what all probes have found since a test has reset it

// TestCaddySortsAndMergesRoutes has directives with several matchers in one block, and the same in a route block.
func TestCaddySortsAndMergesRoutes(t *testing.T) {
	reliedOn(t, "parseCaddyfile")
	var config struct {
		Apps struct {
			HTTP struct {
				Servers map[string]struct{ Routes []probedRoute }
			}
		}
	}
	const directives = "probe a\nprobe /x/* b\nprobe /x/y c\nprobe /x/y d\nprobe e\n"
	if err := json.Unmarshal(testcaddy.Adapt(t, ":80 {\n"+directives+"}\n:81 {\nroute {\n"+directives+"}\n}"), &config); err != nil {
		t.Fatal(err)
	}
	for server, want := range map[string]string{"srv0": "/x/y: c d, /x/*: b, a e", "srv1": "a, /x/*: b, /x/y: c d, e"} {
		routes := config.Apps.HTTP.Servers[server].Routes
		if server == "srv1" {
			routes = routes[0].Handle[0].Routes
		}
		var got []string
		for _, route := range routes {
			got = append(got, route.String())
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("%s: the routes are %s, want %s: the most specific first unless in a route block, and neighbours of one matcher in one", server, got, want)
		}
	}
}

// probedRoute is a route of probes.
type probedRoute struct {
	Match  []struct{ Path []string }
	Handle []struct {
		Probe  string
		Routes []probedRoute
	}
}

func (r probedRoute) String() string {
	var s []string
	for _, m := range r.Match {
		s = append(s, strings.Join(m.Path, " ")+":")
	}
	for _, h := range r.Handle {
		s = append(s, h.Probe)
	}
	return strings.Join(s, " ")
}

// TestBlockStateIsTheBlocks has blocks of every kind, two directives in each.
func TestBlockStateIsTheBlocks(t *testing.T) {
	reliedOn(t, "groupOf")
	probed = nil
	testcaddy.Adapt(t, strings.ReplaceAll(`
&(one) {
	PROBE one
	handle {
		PROBE in-one
	}
}
&(two) {
	PROBE two
}
:80 {
	PROBE site
	handle /a {
		PROBE a
		route {
			PROBE in-a
		}
	}
	handle /b {
		PROBE b
	}
	handle_errors {
		PROBE errors
	}
	reverse_proxy localhost:1 {
		handle_response {
			PROBE responses
		}
	}
}
:81 {
	PROBE site
}`, "PROBE", "probe first\nprobe"))

	blocks := make(map[string]map[string]any) // by the name of the second of each block
	states := make(map[bool]map[string]any)   // of named routes, and of the others
	var first probedBlock
	for i, p := range probed {
		if i%2 == 0 {
			first = p
			continue
		}
		if !same(p.blockState, first.blockState) || p.found["probe first"] == nil {
			t.Errorf("%s: the directives of one block have the states %v and %v, want one", p.name, first.blockState, p.blockState)
		}
		if known, ok := blocks[p.name]; ok && !same(known, p.blockState) {
			t.Errorf("two %ss have the states %v and %v, want one", p.name, known, p.blockState)
		}
		blocks[p.name] = p.blockState
		outer := map[string]string{"a": "site", "in-a": "a", "b": "site", "errors": "site", "responses": "site", "in-one": "one"}[p.name]
		if outer != "" && p.found["probe "+outer] == nil {
			t.Errorf("%s: the state is %v, want a copy of that of %s", p.name, p.found, outer)
		}
		inNamedRoute := p.name == "one" || p.name == "in-one" || p.name == "two"
		if p.isNamedRoute != inNamedRoute {
			t.Errorf("%s: IsNamedRoute is %v", p.name, p.isNamedRoute)
		}
		if known, ok := states[inNamedRoute]; ok && !same(known, p.state) {
			t.Errorf("%s: the State is %v, want that of all sites, or of all named routes, %v", p.name, p.state, known)
		}
		states[inNamedRoute] = p.state
	}
	if want := []string{"a", "b", "errors", "in-a", "in-one", "one", "responses", "site", "two"}; !slices.Equal(slices.Sorted(maps.Keys(blocks)), want) {
		t.Fatalf("got the blocks %v, want %v", slices.Sorted(maps.Keys(blocks)), want)
	}
	if same(states[true], states[false]) {
		t.Error("named routes and sites have one State, want two")
	}
	for name, block := range blocks {
		for other := range blocks {
			if name != other && same(block, blocks[other]) {
				t.Errorf("%s and %s have one state, want two", name, other)
			}
		}
	}
}

// same reports whether two maps are one.
func same(a, b map[string]any) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}
