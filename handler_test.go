package notfound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/judge"
	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/response"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// respond404 is a handler that answers with a 404 response.
func respond404(contentType, body string) caddyhttp.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(http.StatusNotFound)
		_, err := io.WriteString(w, body)
		return err
	}
}

// failWith is a handler that returns an error.
func failWith(err error) caddyhttp.HandlerFunc {
	return func(http.ResponseWriter, *http.Request) error { return err }
}

// modes are the modes of the option replace.
var modes = []string{judge.Pages, judge.Browsers, judge.All, judge.None}

const ourPage = "http://a.test/x" // the address on the page that serve asks for

func wantOurPage(t *testing.T, what string, w *httptest.ResponseRecorder) {
	t.Helper()
	if want := testcaddy.TextPage("GET", ourPage, ""); w.Code != http.StatusNotFound || w.Body.String() != want {
		t.Errorf("%s: got %d %q, want the page", what, w.Code, w.Body)
	}
}

// TestUnansweredRequestsAndErrorsGetThePageInEveryMode has a header that keep matches, but no response.
func TestUnansweredRequestsAndErrorsGetThePageInEveryMode(t *testing.T) {
	keep := []caddyhttp.ResponseMatcher{{Headers: http.Header{"X-Kept": {"*"}}}}
	for _, mode := range modes {
		h := provision(t, &Handler{Replace: mode, Keep: keep})
		for what, next := range map[string]caddyhttp.HandlerFunc{
			"unanswered": testcaddy.EndOfChain,
			"an error":   failWith(errMissing),
		} {
			w := httptest.NewRecorder()
			w.Header().Set("X-Kept", "1")
			if err := serve(h, w, "GET", "/x", next); err != nil {
				t.Error(err)
			}
			wantOurPage(t, mode+", "+what, w)
		}
	}
}

// TestPageTakesThePlaceOfAResponse has a handler set fields before its 404 and trailers after it, and break off.
func TestPageTakesThePlaceOfAResponse(t *testing.T) {
	w := httptest.NewRecorder()
	w.Header().Set("Content-Security-Policy", "default-src 'self'")
	err := serve(provision(t, &Handler{}), w, "GET", "/x", func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Security-Policy", "default-src *")
		w.Header().Set("Etag", `"1"`)
		w.Header().Set("Set-Cookie", "a=1")
		w.WriteHeader(http.StatusNotFound)
		w.Header().Set("X-Late", "1")
		w.Header().Set(http.TrailerPrefix+"X-Sum", "1")
		panic(http.ErrAbortHandler)
	})
	if err != nil {
		t.Error(err)
	}
	wantOurPage(t, "a response", w)
	want := http.Header{
		"Content-Security-Policy": {"default-src 'self'"},
		"Set-Cookie":              {"a=1"},
		"Content-Type":            {"text/plain; charset=utf-8"},
		"Content-Length":          {fmt.Sprint(w.Body.Len())},
		"X-Content-Type-Options":  {"nosniff"},
		"Cache-Control":           {"no-store"},
		"Vary":                    {"Accept"},
	}
	if got := w.Header(); !reflect.DeepEqual(got, want) {
		t.Errorf("got the header\n%v\nwant\n%v", got, want)
	}
}

// TestOuterHandlerLeavesTheInnerPage has an inner handler that sends JSON, which the outer one would let pass or
// replace.
func TestOuterHandlerLeavesTheInnerPage(t *testing.T) {
	inner := provision(t, &Handler{Formats: []string{"json"}})
	for _, mode := range modes {
		w := httptest.NewRecorder()
		outer := provision(t, &Handler{Replace: mode})
		err := serve(outer, w, "GET", "/x", func(w http.ResponseWriter, r *http.Request) error {
			return inner.ServeHTTP(w, r, respond404("text/html", "theirs"))
		})
		if err != nil || !strings.HasPrefix(w.Body.String(), `{"heading":`) {
			t.Errorf("inside replace %s: got %q, %v, want the inner page", mode, w.Body, err)
		}
	}
}

// TestChainsOfOneRequestRunAtOnce has a handler run the next one twice at once, as dotvezz/caddy-mirror does: with one
// replacer and separate variables.
func TestChainsOfOneRequestRunAtOnce(t *testing.T) {
	outer := provision(t, &Handler{Group: "outer", Report: true})
	inner := provision(t, &Handler{Replace: judge.None, Report: true})
	for range 20 {
		var chains, arrived sync.WaitGroup
		arrived.Add(2)
		next := caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
			arrived.Done()
			arrived.Wait()
			return respond404("text/html", "theirs")(w, r)
		})
		run := func(w http.ResponseWriter, r *http.Request) {
			vars := maps.Clone(r.Context().Value(caddyhttp.VarsCtxKey).(map[string]any))
			r = r.Clone(context.WithValue(r.Context(), caddyhttp.VarsCtxKey, vars))
			chains.Go(func() {
				if err := inner.ServeHTTP(w, r, next); err != nil {
					t.Error(err)
				}
			})
		}
		w := httptest.NewRecorder()
		err := serve(outer, w, "GET", "/x", func(w http.ResponseWriter, r *http.Request) error {
			run(w, r)
			run(httptest.NewRecorder(), r)
			chains.Wait()
			return nil
		})
		if err != nil || w.Body.String() != "theirs" {
			t.Errorf("got %q, %v, want the response that the inner one lets pass", w.Body, err)
		}
	}
}

// TestGroupRunsAgainOnceItHasEnded has a plugin call a dry run twice for one request, and discard what came of it the
// first time. The request counts once.
func TestGroupRunsAgainOnceItHasEnded(t *testing.T) {
	h := provision(t, &Handler{DryRun: true, Group: "a"})
	report.Missed.Take()
	w := httptest.NewRecorder()
	r := prepare(w, httptest.NewRequest(http.MethodGet, "/x", nil))
	_ = h.ServeHTTP(httptest.NewRecorder(), r, failWith(caddyhttp.Error(http.StatusGone, nil)))
	_ = h.ServeHTTP(w, r, failWith(errMissing))
	if got, _ := report.Missed.Snapshot(); got.Links.None.Count != 1 {
		t.Errorf("got %+v, want one request", got.Links)
	}
}

// TestDryRunCountsTheStatusZero has the writer below panic over it, as net/http does.
func TestDryRunCountsTheStatusZero(t *testing.T) {
	report.Missed.Take()
	w := panickingWriter{httptest.NewRecorder()}
	defer func() {
		got, _ := report.Missed.Snapshot()
		if p := recover(); p != "status 0" || got.Links.None.Outcomes != (report.Outcomes{Unanswered: 1}) {
			t.Errorf("got the panic %v, and the report %+v", p, got.Links)
		}
	}()
	_ = serve(provision(t, &Handler{DryRun: true}), w, "GET", "/x", func(w http.ResponseWriter, r *http.Request) error {
		_ = testcaddy.EndOfChain(w, r)
		w.WriteHeader(0)
		return nil
	})
}

type panickingWriter struct{ http.ResponseWriter }

func (panickingWriter) WriteHeader(status int) { panic(fmt.Sprint("status ", status)) }

// TestPlaceholderOfTheHandlersPrintsNothing puts it on a page.
func TestPlaceholderOfTheHandlersPrintsNothing(t *testing.T) {
	w := httptest.NewRecorder()
	h := provision(t, &Handler{Footer: "x{http.not_found.decision}y"})
	err := serve(h, w, "GET", "/x", testcaddy.EndOfChain)
	if err != nil || !strings.HasSuffix(w.Body.String(), "\nxy\n") {
		t.Errorf("got %q, %v", w.Body, err)
	}
}

// observe has a handler log to what is returned.
func observe(h *Handler) *observer.ObservedLogs {
	core, logs := observer.New(zap.DebugLevel)
	h.logger = zap.New(core)
	return logs
}

// TestLogSaysWhatHappened has a page in the place of a response, and a response that passes, through a handler around
// the one that lets it pass.
func TestLogSaysWhatHappened(t *testing.T) {
	h, outer := provision(t, &Handler{}), provision(t, &Handler{Replace: judge.All})
	logs, logsOfOuter := observe(h), observe(outer)
	for _, contentType := range []string{"text/html", "image/png"} {
		w := httptest.NewRecorder()
		err := serve(outer, w, "GET", "/x", func(w http.ResponseWriter, r *http.Request) error {
			return h.ServeHTTP(w, r, respond404(contentType, "theirs"))
		})
		if err != nil {
			t.Error(err)
		}
	}
	entries := logs.All()
	if len(entries) != 2 || logsOfOuter.Len() != 0 {
		t.Fatalf("got the entries %v, and of the outer one %v", entries, logsOfOuter.All())
	}
	for i, want := range []map[string]any{
		{"cause": "response", "method": "GET", "uri": ourPage, "format": "text", "replaced_content_type": "text/html"},
		{"reason": "media type", "method": "GET", "uri": ourPage, "content_type": "image/png"},
	} {
		if got := entries[i].ContextMap(); !reflect.DeepEqual(got, want) {
			t.Errorf("got %s %v, want %v", entries[i].Message, got, want)
		}
	}
}

// TestEmptyWriteTakesEffectAtTheEnd has a handler write nothing, for which deferred header operations wait.
func TestEmptyWriteTakesEffectAtTheEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want int // writes to the writer below
	}{
		"nothing follows":  {nil, 1},
		"an error follows": {caddyhttp.Error(http.StatusGone, nil), 0},
	} {
		w := &countingWriter{ResponseWriter: httptest.NewRecorder()}
		_ = serve(provision(t, &Handler{}), w, "GET", "/x", func(w http.ResponseWriter, _ *http.Request) error {
			_, _ = w.Write(nil)
			return tt.err
		})
		if w.writes != tt.want {
			t.Errorf("%s: got %d writes, want %d", name, w.writes, tt.want)
		}
	}
}

type countingWriter struct {
	http.ResponseWriter
	writes int
}

func (w *countingWriter) Write(p []byte) (int, error) {
	w.writes++
	return w.ResponseWriter.Write(p)
}

// TestLogNamesTheErrorThatThePageAnswers has an error of the next handler, and one that an error route handles.
func TestLogNamesTheErrorThatThePageAnswers(t *testing.T) {
	handled := caddyhttp.Error(http.StatusNotFound, errors.New("handled"))
	for name, tt := range map[string]struct {
		next caddyhttp.HandlerFunc
		want error
	}{
		"the end of an error route": {testcaddy.EndOfChain, handled},
		"an error in it":            {failWith(errMissing), errMissing},
	} {
		h := provision(t, &Handler{})
		logs := observe(h)
		w := httptest.NewRecorder()
		r := prepare(w, httptest.NewRequest("GET", ourPage, nil))
		r = r.WithContext(context.WithValue(r.Context(), caddyhttp.ErrorCtxKey, error(handled)))
		if err := h.ServeHTTP(w, r, tt.next); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := logs.All()[0].ContextMap()["error"]; got != tt.want.Error() {
			t.Errorf("%s: got the error %v, want %v", name, got, tt.want)
		}
	}
}

// TestErrorThatThePageHidesIsLogged has a handler return an error in an error route, or after it has written a 404
// response. Without the page, Caddy would log it.
func TestErrorThatThePageHidesIsLogged(t *testing.T) {
	broken := errors.New("broken")
	after404 := func(err error) caddyhttp.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) error {
			return errors.Join(respond404("text/html", "theirs")(w, r), err)
		}
	}
	for name, tt := range map[string]struct {
		handled error // in the error route of this error
		next    caddyhttp.HandlerFunc
		want    error
	}{
		"an error in an error route":  {errMissing, failWith(broken), broken},
		"an error after a 404":        {nil, after404(broken), broken},
		"the end of the drained body": {nil, after404(response.ErrReplaced), nil},
		"a 404 error in one":          {errMissing, failWith(errMissing), nil},
		"a 404 error after a 404":     {nil, after404(errMissing), nil},
		"no error after a 404":        {nil, after404(nil), nil},
		"a 404 error alone":           {nil, failWith(errMissing), nil},
		"the end of an error's route": {errMissing, testcaddy.EndOfChain, nil},
	} {
		h := provision(t, &Handler{})
		logs := observe(h)
		w := httptest.NewRecorder()
		r := prepare(w, httptest.NewRequest("GET", ourPage, nil))
		if tt.handled != nil {
			r = r.WithContext(context.WithValue(r.Context(), caddyhttp.ErrorCtxKey, tt.handled))
		}
		if err := h.ServeHTTP(w, r, tt.next); err != nil {
			t.Errorf("%s: got the error %v", name, err)
		}
		wantOurPage(t, name, w)
		entries := logs.FilterLevelExact(zap.ErrorLevel).All()
		if tt.want == nil && len(entries) > 0 {
			t.Errorf("%s: %v is logged", name, entries)
		}
		if tt.want != nil && (len(entries) != 1 || entries[0].ContextMap()["error"] != "broken") {
			t.Errorf("%s: got the entries %v, want the error", name, entries)
		}
	}
}

// changing changes a request as request_header and rewrite do, and then calls the next handler.
func changing(next caddyhttp.HandlerFunc) caddyhttp.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		r.Header.Set("Sec-Fetch-Dest", "empty")
		r.Header.Set("Sec-Fetch-Mode", "cors")
		r.Header.Set("Accept", "text/html")
		r.Header.Set("Referer", "https://changed.test/")
		r.Header.Set("X-Original-URI", "/changed")
		r.Host = "changed.test"
		r.URL.RawQuery = "url=/changed"
		return next(w, r)
	}
}

// TestRequestCountsAsTheClientSentIt has each kind of outcome. The next handlers change the request.
func TestRequestCountsAsTheClientSentIt(t *testing.T) {
	html := respond404("text/html", "theirs")
	for name, tt := range map[string]struct {
		handler Handler
		next    caddyhttp.HandlerFunc
		outcome report.Outcome
		link    report.Link
	}{
		"unanswered":            {Handler{}, testcaddy.EndOfChain, report.Unanswered, report.Own},
		"an error":              {Handler{}, failWith(errMissing), report.Error, report.Own},
		"a page":                {Handler{}, html, report.Response, report.Own},
		"JSON":                  {Handler{}, respond404("application/json", "{}"), report.Passed, report.None},
		"replace none":          {Handler{Replace: judge.None}, html, report.Replaceable, report.Own},
		"a dry run":             {Handler{DryRun: true}, html, report.Replaceable, report.Own},
		"a dry run's end":       {Handler{DryRun: true}, testcaddy.EndOfChain, report.Unanswered, report.Own},
		"a dry run of an error": {Handler{DryRun: true}, failWith(errMissing), report.Error, report.Own},
	} {
		tt.handler.Report = true
		report.Missed.Take()
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "http://a.test/x?y", nil)
		r.Header.Set("Referer", "https://a.test/blog?token#z")
		_ = provision(t, &tt.handler).ServeHTTP(w, prepare(w, r), changing(tt.next))
		got, _ := report.Missed.Snapshot()
		if len(got.Addresses) != 1 {
			t.Errorf("%s: got %+v, want one address", name, got)
			continue
		}
		a := got.Addresses[0]
		if a.Link != tt.link || a.Outcomes.String() != tt.outcome.String() {
			t.Errorf("%s: got %s, %s, want %s, %s", name, a.Link, a.Outcomes, tt.link, tt.outcome)
		}
		if a.Host+a.Path != "a.test/x" || a.LastLink != "https://a.test/blog" {
			t.Errorf("%s: got the address %s%s, and the link %s", name, a.Host, a.Path, a.LastLink)
		}
	}
}

// TestURI looks for the address of the option uri on the page and in the report.
func TestURI(t *testing.T) {
	for value, want := range map[string]struct{ page, reported string }{
		"/docs/nothing?x=1":              {"http://a.test/docs/nothing?x=1", "a.test/docs/nothing"},
		"https://me@shop.test/a%20b?x#y": {"https://shop.test/a%20b?x", "shop.test/a%20b"},
		"ftp://evil":                     {"http://a.test/404?url=ftp%3A%2F%2Fevil", "a.test/404"},
	} {
		for _, option := range []string{"{http.request.uri.query.url}", "{http.request.header.X-Original-URI}"} {
			ask := func(h *Handler) (body, reported string) {
				h.URI = option
				report.Missed.Take()
				w := httptest.NewRecorder()
				r := httptest.NewRequest(http.MethodGet, "/404?url="+url.QueryEscape(value), nil)
				r.Host = "a.test"
				r.Header.Set("X-Original-URI", value)
				_ = provision(t, h).ServeHTTP(w, prepare(w, r), changing(respond404("text/html", "theirs")))
				got, _ := report.Missed.Snapshot()
				return w.Body.String(), got.Addresses[0].Host + got.Addresses[0].Path
			}
			body, reported := ask(&Handler{Report: true})
			if !strings.Contains(body, "\nURI: "+want.page+"\n") || reported != want.reported {
				t.Errorf("%s of %q: got %q, and the report has %s", option, value, body, reported)
			}
			if _, reported := ask(&Handler{DryRun: true}); reported != want.reported {
				t.Errorf("%s of %q: in a dry run, the report has %s", option, value, reported)
			}
		}
	}
}

// TestVariablesAreNotWrittenOnceTheNextHandlerRuns shows the ID of the request, which Caddy writes to its variables
// when it is first expanded. reverse_proxy reads them to dial, and a dial may outlive the response.
func TestVariablesAreNotWrittenOnceTheNextHandlerRuns(t *testing.T) {
	template := testcaddy.TempFile(t, "404.html", `{{.Placeholder "http.request.uuid"}}`)
	for name, h := range map[string]*Handler{
		"a page":     {Footer: "{http.request.uuid}"},
		"a template": {Template: map[string]string{"html": template}, Formats: []string{"html"}},
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
		if err != nil || len(id) != 36 || !reflect.DeepEqual(vars, before) {
			t.Errorf("%s: got %v, and the variables %v, want %v", name, err, vars, before)
		}
		if !h.DryRun && !strings.HasSuffix(strings.TrimSpace(w.Body.String()), id) {
			t.Errorf("%s: got %q, want the ID", name, w.Body)
		}
	}
}
