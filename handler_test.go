package notfound

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"slices"
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
	tests := map[string]struct{ site, cause string }{
		"nothing":                 {"", "unanswered"},
		"handle without an end":   {"handle /other {\nrespond no\n}", "unanswered"},
		"before intercept":        {"intercept {\nhandle_response {\nrespond no\n}\n}", "unanswered"},
		"before templates":        {"templates", "unanswered"},
		"before encode":           {"encode", "unanswered"},
		"before all of them":      {"encode\n" + intercept + "templates", "unanswered"},
		"before a rewrite":        {"rewrite /elsewhere", "unanswered"},
		"error":                   {"error 404", "error"},
		"error with a message":    {`error "gone fishing" 404`, "error"},
		"error in a handle block": {"handle {\nerror 404\n}", "error"},
		"error in a named route":  {"invoke broken", "error"},
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

// TestPassesEverythingElse has each kind of answer that the page must not touch.
func TestPassesEverythingElse(t *testing.T) {
	root := "root " + filepath.Dir(testcaddy.TempFile(t, "file.txt", "a file")) + "\n"
	api := testcaddy.Backend(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"status":404}`)
	})
	empty := testcaddy.Backend(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "0")
	})
	tests := map[string]struct {
		site    string
		status  int
		content string
	}{
		"200":                      {`respond "hello"`, 200, "hello"},
		"empty 200":                {"respond 200", 200, ""},
		"empty 200 with templates": {"templates\nrespond 200", 200, ""},
		"empty 200 of a backend":   {"templates\nreverse_proxy " + empty, 200, ""},
		"204":                      {"respond 204", 204, ""},
		"301":                      {"redir * /elsewhere permanent", 301, ""},
		"403":                      {"error 403", 403, ""},
		"405":                      {`respond "only GET" 405`, 405, "only GET"},
		"410":                      {`respond "gone" 410`, 410, "gone"},
		"418":                      {`respond "teapot" 418`, 418, "teapot"},
		"500":                      {"error 500", 500, ""},
		"502 of a dead backend":    {"reverse_proxy 127.0.0.1:1", 502, ""},
		"a file":                   {root + "file_server", 200, "a file"},
		"a rendered file":          {root + "templates\nfile_server", 200, "a file"},
		"404 of an API":            {"reverse_proxy " + api, 404, `{"status":404}`},
		"handled 500":              {"error 500\nhandle_errors {\nrespond \"sorry\" 500\n}", 500, "sorry"},
	}
	sites := make(map[string]string)
	for name, tt := range tests {
		sites[name] = tt.site
	}
	s, hosts := testcaddy.StartSites(t, "", sites)

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			uri := "http://" + hosts[name] + "/file.txt"
			s.Get(t, uri).Want(t, tt.status, tt.content)
			s.Do(t, "HEAD", uri).Want(t, tt.status, "")
			for _, entry := range s.Logs.WaitForHost(t, "handled request", hosts[name], 2) {
				if entry["cause"] != "" {
					t.Errorf("the access log has the cause %v, want none", entry["cause"])
				}
			}
		})
	}
}

// TestAnswersOfEveryKindCount has the next handler answer in every possible way. To return without writing is one:
// net/http makes an empty 200 of it.
func TestAnswersOfEveryKindCount(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter) error{
		"nothing":           func(w http.ResponseWriter) error { return nil },
		"a header":          func(w http.ResponseWriter) error { w.Header().Set("Allow", "GET"); return nil },
		"a 103 alone":       func(w http.ResponseWriter) error { w.WriteHeader(103); return nil },
		"an empty 200":      func(w http.ResponseWriter) error { w.WriteHeader(200); return nil },
		"an empty write":    func(w http.ResponseWriter) error { _, err := w.Write(nil); return err },
		"a flush":           func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() },
		"an upgrade":        func(w http.ResponseWriter) error { w.WriteHeader(101); return nil },
		"a 404 after a 204": func(w http.ResponseWriter) error { w.WriteHeader(204); w.WriteHeader(404); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			rec := httptest.NewRecorder()
			if err := serve(provision(t, &Handler{}), rec, "GET", "/x", func(w http.ResponseWriter, _ *http.Request) error { return answer(w) }); err != nil {
				t.Error(err)
			}
			if rec.Body.Len() > 0 || rec.Code == 404 {
				t.Errorf("got %d %q, want the handler's own answer", rec.Code, rec.Body)
			}
		})
	}

	t.Run("an empty write is not an answer", func(t *testing.T) {
		rec := httptest.NewRecorder()
		if err := serve(provision(t, &Handler{}), rec, "GET", "/x", func(w http.ResponseWriter, _ *http.Request) error {
			_, err := w.Write(nil)
			return cmp.Or(err, error(caddyhttp.Error(404, nil)))
		}); err != nil || rec.Body.Len() == 0 || rec.Code != 404 {
			t.Errorf("got %d %q, %v, want the page", rec.Code, rec.Body, err)
		}
	})

	t.Run("a 103 is not an answer", func(t *testing.T) {
		rec := httptest.NewRecorder()
		if err := serve(provision(t, &Handler{}), rec, "GET", "/x", func(w http.ResponseWriter, r *http.Request) error {
			w.WriteHeader(103)
			return testcaddy.EndOfChain(w, r)
		}); err != nil || rec.Body.Len() == 0 {
			t.Errorf("got %d %q, %v, want the page", rec.Code, rec.Body, err)
		}
	})

	t.Run("a hijacked connection", func(t *testing.T) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := serve(provision(t, &Handler{}), w, "GET", "/x", func(w http.ResponseWriter, _ *http.Request) error {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					return err
				}
				defer conn.Close()
				_, err = io.WriteString(conn, "HTTP/1.1 299 Mine\r\nContent-Length: 0\r\n\r\n")
				return err
			}); err != nil {
				t.Error(err)
			}
		}))
		defer server.Close()
		res, err := http.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != 299 {
			t.Errorf("got %s, want what was written to the connection", res.Status)
		}
	})
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
	outer, inner := provision(t, &Handler{Group: "outer", Report: true}), provision(t, &Handler{Group: "inner", Replace: replaceNone, Report: true})
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
