package notfound

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestAnswersWhenNothingElseDoes has nothing answer, a 404 error and a 404 response, before the handlers that make most
// of each.
func TestAnswersWhenNothingElseDoes(t *testing.T) {
	root := "root " + filepath.Dir(testcaddy.TempFile(t, "file.txt", "a file")) + "\n"
	const intercept = "intercept {\n@x status 418\nhandle_response @x {\nrespond no\n}\n}\n"
	wrapped := func(http.ResponseWriter, *http.Request, caddyhttp.Handler) error {
		return fmt.Errorf("looking it up: %w", caddyhttp.Error(http.StatusNotFound, nil))
	}
	tests := map[string]struct{ site, cause string }{
		"nothing":                 {"", "unanswered"},
		"handle without an end":   {"handle /other {\nrespond no\n}", "unanswered"},
		"before intercept":        {"intercept {\nhandle_response {\nrespond no\n}\n}", "unanswered"},
		"before templates":        {"templates", "unanswered"},
		"before all of them":      {"encode\n" + intercept + "templates", "unanswered"},
		"before a rewrite":        {"rewrite /elsewhere", "unanswered"},
		"error":                   {"error 404", "error"},
		"error in a handle block": {"handle {\nerror 404\n}", "error"},
		"error in a named route":  {"invoke broken", "error"},
		"wrapped error":           {testcaddy.Directive(t, wrapped), "error"},
		"file_server":             {root + "file_server", "error"},
		"file_server, encoded":    {root + "encode\ntemplates\n" + intercept + "file_server {\nprecompressed gzip\n}", "error"},
		"try_files":               {root + "try_files {path} =404\nfile_server", "error"},
		"page":                    {`respond "<h1>nope</h1>" 404`, "response"},
		"empty 404":               {"respond 404", "response"},
	}
	sites := make(map[string]string)
	for name, tt := range tests {
		sites[name] = tt.site
	}
	s, hosts := testcaddy.StartSites(t, "&(broken) {\nerror 404\n}\n", sites)

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			uri := "http://" + hosts[name] + "/docs/nothing?x=1"
			get, head := s.Get(t, uri), s.Do(t, "HEAD", uri)
			get.WantPage(t, "GET", uri, "")
			head.Want(t, http.StatusNotFound, "")
			if got, want := head.Undated(), get.Undated(); !reflect.DeepEqual(got, want) {
				t.Errorf("HEAD has the header %v, GET has %v", got, want)
			}
			for _, entry := range s.Logs.WaitForHost(t, "handled request", hosts[name], 2) {
				if entry["cause"] != tt.cause {
					t.Errorf("the access log has the cause %v, want %s", entry["cause"], tt.cause)
				}
			}
		})
	}
}

// TestWhatWasDecidedIsForgotten has a handler between two not_found handlers call the next one twice, and discard what
// comes of it the first time.
func TestWhatWasDecidedIsForgotten(t *testing.T) {
	inner := provision(t, &Handler{Keep: []caddyhttp.ResponseMatcher{{Headers: http.Header{"X-Designed": {"*"}}}}})
	for name, tt := range map[string]struct {
		designed    []bool // the responses
		body, cause string
	}{
		"a page, then a response that passes": {[]bool{false, true}, "theirs", ""},
		"a response that passes, then a page": {[]bool{true, false}, testcaddy.TextPage("GET", "http://a.test/x", ""), "response"},
	} {
		t.Run(name, func(t *testing.T) {
			var repl *caddy.Replacer
			rec := httptest.NewRecorder()
			err := serve(provision(t, &Handler{Replace: replaceAll}), rec, "GET", "/x", func(w http.ResponseWriter, r *http.Request) error {
				repl = r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
				for i, designed := range tt.designed {
					w := w
					if i == 0 {
						w = httptest.NewRecorder()
					}
					if err := inner.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
						if designed {
							w.Header().Set("X-Designed", "1")
						}
						w.WriteHeader(http.StatusNotFound)
						_, err := io.WriteString(w, "theirs")
						return err
					})); err != nil {
						return err
					}
				}
				return nil
			})
			if cause, _ := repl.GetString(causePlaceholder); err != nil || rec.Body.String() != tt.body || cause != tt.cause {
				t.Errorf("got %q for the cause %q, %v", rec.Body, cause, err)
			}
		})
	}
}

// TestChainsOfOneRequestRunAtOnce has a handler run the next one twice at once, as dotvezz/caddy-mirror does: with one
// replacer, and with variables of their own.
func TestChainsOfOneRequestRunAtOnce(t *testing.T) {
	outer, inner := provision(t, &Handler{Group: "outer", Report: true}), provision(t, &Handler{Replace: replaceNone, Report: true})
	for range 20 {
		rec := httptest.NewRecorder()
		err := serve(outer, rec, "GET", "/x", func(w http.ResponseWriter, r *http.Request) error {
			var chains, arrived sync.WaitGroup
			arrived.Add(2)
			for _, w := range []http.ResponseWriter{w, httptest.NewRecorder()} {
				vars := maps.Clone(r.Context().Value(caddyhttp.VarsCtxKey).(map[string]any))
				r := r.Clone(context.WithValue(r.Context(), caddyhttp.VarsCtxKey, vars))
				chains.Go(func() {
					if err := inner.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
						arrived.Done()
						arrived.Wait()
						w.WriteHeader(http.StatusNotFound)
						_, err := io.WriteString(w, "theirs")
						return err
					})); err != nil {
						t.Error(err)
					}
				})
			}
			chains.Wait()
			return nil
		})
		if err != nil || rec.Body.String() != "theirs" {
			t.Errorf("got %q, %v, want the response that the inner one lets pass", rec.Body, err)
		}
	}
}

// TestDecisionPrintsNothing names the placeholder by which the handlers of a request share their decision.
func TestDecisionPrintsNothing(t *testing.T) {
	w := httptest.NewRecorder()
	err := serve(provision(t, &Handler{Footer: "x{http.not_found.decision}y"}), w, "GET", "/x", testcaddy.EndOfChain)
	if err != nil || !strings.HasSuffix(w.Body.String(), "\nxy\n") {
		t.Errorf("got %q, %v", w.Body, err)
	}
}

// TestOneHandlerOfAGroupRuns nests handlers as JSON can: of one group, of another, and of none.
func TestOneHandlerOfAGroupRuns(t *testing.T) {
	for name, tt := range map[string]struct {
		groups []string // from the outermost to the innermost
		want   int      // whose page it is
	}{
		"of one group":                    {[]string{"a", "a"}, 0},
		"of two groups":                   {[]string{"a", "b"}, 1},
		"of one group, another between":   {[]string{"a", "b", "a"}, 1},
		"of none":                         {[]string{"", ""}, 1},
		"of two groups, in turn":          {[]string{"a", "b", "a", "b"}, 1},
		"of one group, one of none after": {[]string{"a", "a", ""}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			chain := caddyhttp.HandlerFunc(testcaddy.EndOfChain)
			for i, group := range slices.Backward(tt.groups) {
				h, next := provision(t, &Handler{Group: group, ContextPath: fmt.Sprint("/", i)}), chain
				chain = func(w http.ResponseWriter, r *http.Request) error { return h.ServeHTTP(w, r, next) }
			}
			rec := httptest.NewRecorder()
			r := httptest.NewRequest("GET", "http://a.test/x", nil)
			if err := chain(rec, prepare(rec, r)); err != nil {
				t.Fatal(err)
			}
			if want := testcaddy.TextPage("GET", "http://a.test/x", fmt.Sprint("/", tt.want)); rec.Body.String() != want {
				t.Errorf("got %q, want %q", rec.Body, want)
			}
		})
	}
}
