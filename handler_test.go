package notfound

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestReplaceModes has 404 responses of every kind in each mode, alone and inside a handler that replaces all of them, and
// compares the reason that is logged for each that passes. A dry run is inside one that replaces none, which logs its own. A
// response begins with its method, its Sec-Fetch-Mode, or its body.
func TestReplaceModes(t *testing.T) {
	handlers := []*Handler{{}, {Replace: replacePages}, {Replace: replaceAll}, {Replace: replaceNone}, {DryRun: true}}
	outer := &Handler{Replace: replaceAll}
	core, logs := observer.New(zap.DebugLevel)
	for _, h := range append(handlers, outer) {
		if h != outer {
			h.Keep = []caddyhttp.ResponseMatcher{{Headers: http.Header{"X-Other": {"*"}}}, {Headers: http.Header{"X-Kept": {"*"}}}}
		}
		provision(t, h).logger = zap.New(core)
	}
	for _, tt := range []struct{ reasons, responses []string }{
		{[]string{"", "", "", "replace none", "dry_run"}, []string{
			"GET ", "GET text/html", "GET TEXT/HTML; charset=utf-8", "GET application/xhtml+xml", "GET  text/plain ;x=y", "GET ;",
			"GET application/json\nContent-Length: 0", "HEAD text/html\nContent-Length: 0",
		}},
		{[]string{"media type", "media type", "", "media type", "media type"}, []string{
			"GET application/json", "GET application/problem+json; charset=utf-8", "GET APPLICATION/VND.API+JSON", "GET application/xml", "GET image/png",
			"GET text/css", "GET text/event-stream", "GET text/htmlx", "GET application/grpc\nContent-Length: 0", "HEAD application/json\nContent-Length: 0", "cors image/png",
		}},
		{[]string{"script", "script", "", "script", "script"}, []string{"cors text/html", "same-origin "}},
		{[]string{"JSON", "JSON", "", "JSON", "JSON"}, []string{"{} text/plain", "{} "}},
		{[]string{"keep", "keep", "keep", "keep", "keep"}, []string{"GET text/html\nX-Kept: 1", "HEAD image/png\nX-Kept: 1", "cors \nX-Kept: 1"}},
	} {
		for _, response := range tt.responses {
			first, fields, _ := strings.Cut(response, " ")
			for i, want := range tt.reasons {
				for _, isInner := range []bool{false, true} {
					r, body := httptest.NewRequest(http.MethodGet, "http://a.test/x", nil), "theirs"
					switch {
					case first == "{}":
						body = first
					case first == strings.ToLower(first):
						r.Header.Set("Sec-Fetch-Mode", first)
					default:
						r.Method = first
					}
					theirs := caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
						for line := range strings.SplitSeq("Content-Type: "+fields, "\n") {
							field, value, _ := strings.Cut(line, ": ")
							w.Header().Set(field, value)
						}
						w.WriteHeader(http.StatusNotFound)
						_, err := io.WriteString(w, body)
						return err
					})
					rec, h, next := httptest.NewRecorder(), handlers[i], theirs
					if isInner {
						h, next = outer, func(w http.ResponseWriter, r *http.Request) error { return handlers[i].ServeHTTP(w, r, theirs) }
						if handlers[i].DryRun {
							h, want = handlers[3], want+tt.reasons[3]
						}
					}
					err, reason := h.ServeHTTP(rec, prepare(rec, r), next), ""
					for _, entry := range logs.TakeAll() {
						if entry.Message == "a 404 response passes" && entry.Level == zap.DebugLevel {
							logged := entry.ContextMap()
							reason += fmt.Sprint(logged["reason"])
							if logged["reason"] == "" || logged["method"] != r.Method || logged["content_type"] != rec.Header().Get("Content-Type") {
								t.Errorf("%q: got the log entry %v", response, logged)
							}
						}
					}
					if passed := rec.Body.String() == body; err != nil || reason != want || passed != (want != "") {
						t.Errorf("%q, handler %d, inside another: %v: got %.20q for the reason %q, %v, want the reason %q", response, i, isInner, rec.Body, reason, err, want)
					}
				}
			}
		}
	}
	for _, h := range handlers[:4] { // without a response, neither the mode nor keep applies
		for _, next := range []caddyhttp.HandlerFunc{testcaddy.EndOfChain, func(http.ResponseWriter, *http.Request) error { return caddyhttp.Error(404, nil) }} {
			rec := httptest.NewRecorder()
			rec.Header().Set("X-Kept", "1")
			if err := serve(h, rec, "GET", "/x", next); err != nil || rec.Body.String() != testcaddy.TextPage("GET", "http://a.test/x", "") {
				t.Errorf("replace %q: got %q, %v, want the page", h.Replace, rec.Body, err)
			}
		}
	}
}

// TestWhatWasDecidedIsForgotten has a handler between two not_found handlers call the next one twice, and discard its first
// response. The page is in JSON, which the outer one must not take for an application's.
func TestWhatWasDecidedIsForgotten(t *testing.T) {
	inner := provision(t, &Handler{Formats: []string{"json"}, Keep: []caddyhttp.ResponseMatcher{{Headers: http.Header{"X-Designed": {"*"}}}}})
	for name, tt := range map[string]struct {
		designed    []bool // the responses
		body, cause string
	}{
		"a page, then a response that passes": {[]bool{false, true}, "theirs", ""},
		"a response that passes, then a page": {[]bool{true, false}, "{", "response"},
	} {
		t.Run(name, func(t *testing.T) {
			var repl *caddy.Replacer
			rec := httptest.NewRecorder()
			err := serve(provision(t, &Handler{}), rec, "GET", "/x", func(w http.ResponseWriter, r *http.Request) error {
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
			if cause, _ := repl.GetString(causePlaceholder); err != nil || !strings.HasPrefix(rec.Body.String(), tt.body) || cause != tt.cause {
				t.Errorf("got %q for the cause %q, %v", rec.Body, cause, err)
			}
		})
	}
}

// TestChainsOfOneRequestRunAtOnce has a handler run the next one twice at once, as dotvezz/caddy-mirror does: with one replacer
// and separate variables.
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

// TestDecisionPrintsNothing puts the handlers' internal placeholder on a page.
func TestDecisionPrintsNothing(t *testing.T) {
	w := httptest.NewRecorder()
	err := serve(provision(t, &Handler{Footer: "x{http.not_found.decision}y"}), w, "GET", "/x", testcaddy.EndOfChain)
	if err != nil || !strings.HasSuffix(w.Body.String(), "\nxy\n") {
		t.Errorf("got %q, %v", w.Body, err)
	}
}
