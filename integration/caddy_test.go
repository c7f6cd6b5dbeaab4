package integration

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// The tests in this file are about Caddy alone: what not_found relies on without Caddy's documentation saying so. Each
// names the functions of the handler that rely on it, which have to change if it fails with a new version of Caddy.
//
// That Caddy sorts a block's routes and merges neighbours, and that the state of a block is its own, is what parseCaddyfile
// and groupOf rely on. TestOneOfEachBlockTakesEffect and TestBlocksHaveGroupsOfTheirOwn fail without it.

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
	// isUnhandled, isUnanswered, reachedEnd and setHandled rely on it
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
	// isBareStatus and errorOfRoute rely on it
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
	// isIntercepted, reachedEnd and isDecided rely on it
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
	// isUnanswered relies on it
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
	// restoreSiteHeader relies on it
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
	// serve relies on it
	observed, observations := observe(t)
	s := testcaddy.Start(t, "http://a.test:0 {\n"+observed+"\nreverse_proxy "+testcaddy.Backend(t, testcaddy.MissingPage)+"\n}")
	s.Get(t, "http://a.test/breaks")
	if o := <-observations; o.panicked != http.ErrAbortHandler || !strings.HasPrefix(o.calls, "WriteHeader 404, ") {
		t.Errorf("after %s, it panics with %v, want http.ErrAbortHandler", o.calls, o.panicked)
	}
}
