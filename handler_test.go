package notfound

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/judge"
	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/response"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// theirPage is a handler that answers with a 404 page.
var theirPage = script(stepHTML, step404, stepTheirs)

// errHandled is an error that an error route handles.
var errHandled = caddyhttp.Error(http.StatusNotFound, errors.New("handled"))

// observe has a handler log to what is returned.
func observe(h *Handler) *observer.ObservedLogs {
	core, logs := observer.New(zap.DebugLevel)
	h.logger = zap.New(core)
	return logs
}

// TestLogSaysWhatHappened has a handler inside another one, which logs nothing.
func TestLogSaysWhatHappened(t *testing.T) {
	t.Parallel()
	h := provision(t, &Handler{})
	outer := provision(t, &Handler{Replace: judge.All})
	logsOfOuter := observe(outer)
	for name, tt := range map[string]struct {
		next    caddyhttp.HandlerFunc
		handled error // the request is in the error route of this error
		want    map[string]any
	}{
		"the page for a response": {
			next: script(stepSet("Content-Type", "image/png", "text/html"), step404, stepTheirs),
			want: map[string]any{
				"cause":                 "response",
				"format":                "text",
				"replaced_content_type": "text/html",
			},
		},
		"the page for an error in an error route": {
			next:    script(stepMissing),
			handled: errHandled,
			want: map[string]any{
				"cause":  "error",
				"format": "text",
				"error":  errMissing.Error(),
			},
		},
		"the page at the end of an error route": {
			next:    testcaddy.EndOfChain,
			handled: errHandled,
			want: map[string]any{
				"cause":  "error",
				"format": "text",
				"error":  errHandled.Error(),
			},
		},
		"a response that passes": {
			next: script(stepSet("Content-Type", "text/html", "image/png"), step404),
			want: map[string]any{
				"reason":       "media type",
				"content_type": "image/png",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			logs := observe(h)
			route := func(w http.ResponseWriter, r *http.Request) error {
				if tt.handled != nil {
					r = inErrorRoute(r, tt.handled)
				}
				return inside(outer, inside(h, tt.next))(w, r)
			}
			answer(t, route, get())
			tt.want["method"] = "GET"
			tt.want["uri"] = ourPage
			if logs.Len() != 1 {
				t.Fatalf("got the entries %v", logs.All())
			}
			got := logs.All()[0].ContextMap()
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	if logsOfOuter.Len() > 0 {
		t.Errorf("the outer handler logs %v", logsOfOuter.All())
	}
}

// TestDryRunLogsWhatThePageWouldAnswer has an entry for each cause, and one for a response that passes anyway.
func TestDryRunLogsWhatThePageWouldAnswer(t *testing.T) {
	t.Parallel()
	h := provision(t, &Handler{DryRun: true})
	if h.counter == nil {
		t.Error("nothing is counted")
	}
	for name, tt := range map[string]struct {
		next    caddyhttp.HandlerFunc
		message string
		field   string
		want    string
	}{
		"the end of the chain": {
			next:    testcaddy.EndOfChain,
			message: "the page would answer",
			field:   "cause",
			want:    "unanswered",
		},
		"an error": {
			next:    script(stepMissing),
			message: "the page would answer",
			field:   "cause",
			want:    "error",
		},
		"a page": {
			next:    theirPage,
			message: "the page would answer",
			field:   "cause",
			want:    "response",
		},
		"an image": {
			next:    script(stepSet("Content-Type", "image/png"), step404),
			message: "a 404 response passes",
			field:   "reason",
			want:    "media type",
		},
	} {
		logs := observe(h)
		_ = inside(h, tt.next)(httptest.NewRecorder(), prepare(httptest.NewRecorder(), get()))
		if logs.Len() != 1 {
			t.Fatalf("%s: got the entries %v", name, logs.All())
		}
		entry := logs.All()[0]
		fields := entry.ContextMap()
		isComplete := fields["method"] == "GET" && fields["uri"] == ourPage
		if entry.Message != tt.message || fields[tt.field] != tt.want || !isComplete {
			t.Errorf("%s: got %q with %v, want %q with the %s %s", name, entry.Message, fields, tt.message, tt.field, tt.want)
		}
	}
}

// TestErrorThatThePageHidesIsLogged has a handler return an error after it has written a 404 response. Without the
// page, Caddy would log it.
func TestErrorThatThePageHidesIsLogged(t *testing.T) {
	t.Parallel()
	h := provision(t, &Handler{})
	for name, tt := range map[string]struct {
		err      error
		isLogged bool
	}{
		"an error":                        {err: errBroken, isLogged: true},
		"a 404 error":                     {err: errMissing},
		"the end of what a body may have": {err: response.ErrReplaced},
		"no error":                        {},
	} {
		logs := observe(h)
		next := func(w http.ResponseWriter, r *http.Request) error {
			_ = theirPage(w, r)
			return tt.err
		}
		res := answer(t, inside(h, next), get())
		res.WantPage(t, "GET", ourPage, "")
		want := 0
		if tt.isLogged {
			want = 1
		}
		entries := logs.FilterLevelExact(zap.ErrorLevel)
		ofIt := entries.FilterField(zap.Error(tt.err))
		if entries.Len() != want || ofIt.Len() != want {
			t.Errorf("%s: got the entries %v, want %d", name, entries.All(), want)
		}
	}
}

// TestEmptyWriteTakesEffectAtTheEnd has a handler write nothing. A write of nothing has Caddy's header handler send the
// deferred changes of the header, but an error that follows may get the page.
func TestEmptyWriteTakesEffectAtTheEnd(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		isDry bool
		steps []step
		want  int // writes to the writer below
	}{
		"an empty write":    {steps: []step{stepNothing}, want: 1},
		"an error follows":  {steps: []step{stepNothing, stepBroken}},
		"no write":          {},
		"an ignored status": {steps: []step{stepEnd, stepStatus(200)}, want: 1},
		"a dry run":         {steps: []step{stepNothing, stepEnd, stepStatus(200)}, isDry: true, want: 1},
	} {
		h := provision(t, &Handler{DryRun: tt.isDry})
		w := &countingWriter{ResponseWriter: httptest.NewRecorder()}
		r := inErrorRoute(prepare(w, get()), errBroken) // where the page answers nothing
		_ = inside(h, script(tt.steps...))(w, r)
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

// changing changes a request as request_header and rewrite do, and then calls the next handler.
func changing(next caddyhttp.HandlerFunc) caddyhttp.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		r.Header.Set("Sec-Fetch-Dest", "empty")
		r.Header.Set("Sec-Fetch-Mode", "cors")
		r.Header.Set("Accept", "text/html")
		r.Header.Set("Referer", "https://changed.test/")
		r.Host = "changed.test"
		r.Method = http.MethodHead
		r.URL.RawQuery = "url=/changed"
		return next(w, r)
	}
}

// TestRequestCountsAsTheClientSentIt has the next handlers change the request. On the page and in the report, the
// address comes from the query of the original request. The page is at another host, and a link from the one that the
// client addressed is own.
func TestRequestCountsAsTheClientSentIt(t *testing.T) {
	h := provision(t, &Handler{
		BaseURL: "https://b.test",
		URI:     "{http.request.uri.query.url}",
		Report:  true,
	})
	for name, tt := range map[string]struct {
		next    caddyhttp.HandlerFunc
		outcome report.Outcome
		link    report.Link
	}{
		"a page": {
			next:    theirPage,
			outcome: report.OutcomeResponse,
			link:    report.OwnLink,
		},
		"an answer for a program": {
			next:    script(stepSet("Content-Type", "application/json"), step404),
			outcome: report.OutcomePassed,
			link:    report.NoLink,
		},
		"JSON as text": { // which the response to HEAD does not show
			next:    script(stepText, step404, stepObject),
			outcome: report.OutcomePassed,
			link:    report.NoLink,
		},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://a.test/404?url=/x", nil)
		r.Header.Set("Referer", "https://a.test/blog?token#z")
		report.Missed.Take()
		res := answer(t, inside(h, changing(tt.next)), r)
		if tt.outcome == report.OutcomeResponse {
			res.WantPage(t, "GET", "https://b.test/x", "")
		}

		got, _ := report.Missed.Snapshot()
		if len(got.Addresses) != 1 {
			t.Fatalf("%s: got the report %+v, want one address", name, got)
		}
		a := got.Addresses[0]
		outcome := a.Outcomes.String()
		if a.Link != tt.link || outcome != tt.outcome.String() {
			t.Errorf("%s: got %s, %s, want %s, %s", name, a.Link, outcome, tt.link, tt.outcome)
		}
		if a.Host+a.Path != "b.test/x" || a.LastLink != "https://a.test/blog" {
			t.Errorf("%s: got the address %s%s, and the link %s", name, a.Host, a.Path, a.LastLink)
		}
	}
}

// TestPageThatTakesTheirPlaceVaries has a page in place of a response that other clients get, and pages that everybody
// gets.
func TestPageThatTakesTheirPlaceVaries(t *testing.T) {
	t.Parallel()
	const byClient = "Accept, Sec-Fetch-Mode, Upgrade-Insecure-Requests"
	for name, tt := range map[string]struct {
		replace string
		next    caddyhttp.HandlerFunc
		want    string
	}{
		"pages":           {replace: judge.Pages, next: theirPage, want: byClient},
		"browsers":        {replace: judge.Browsers, next: theirPage, want: byClient},
		"all":             {replace: judge.All, next: theirPage, want: "Accept"},
		"nothing answers": {next: testcaddy.EndOfChain, want: "Accept"},
		"an error":        {next: script(stepMissing), want: "Accept"},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			r := httptest.NewRequest(method, ourPage, nil)
			r.Header.Set("Accept", "text/html")
			res := answer(t, inside(provision(t, &Handler{Replace: tt.replace}), tt.next), r)
			if got := res.Header.Get("Vary"); got != tt.want {
				t.Errorf("%s, %s: got Vary %q", method, name, got)
			}
		}
	}
}

// TestDeferredOperations has a site's header directives wait until the page is sent. Vary is one line, whatever they add.
// A policy that they set or add takes the place of the page's own. A match of the status has the last word, and of two
// directives the outer one.
func TestDeferredOperations(t *testing.T) {
	const policy = "Content-Security-Policy"
	for _, tt := range []struct{ operation, field, want string }{
		{"header +Vary Cookie", "Vary", "Cookie, Accept"},
		{"header {\n+Vary Cookie\n-Server\n}", "Vary", "Accept, Cookie"},
		{"header >Vary Cookie", "Vary", "Cookie, Accept"},
		{"header {\nmatch status 404\n+Vary Cookie\n}", "Vary", "Accept, Cookie"},
		{"header {\nmatch status 404\nVary Cookie\n}", "Vary", "Cookie, Accept"},
		{"header {\nmatch status 404\n-Vary\n}", "Vary", "Accept"},
		{"header +Vary Accept\nheader {\n+Vary Cookie\ndefer\n}", "Vary", "Accept, Cookie"},

		{"header >Content-Security-Policy 'none' *", policy, "the page's"},
		{"header >Content-Security-Policy .* x", policy, "the page's"},
		{"header -Content-Security-Policy", policy, "the page's"},
		{"header ?Content-Security-Policy x", policy, "the page's"},
		{"header >Content-Security-Policy x", policy, "x"},
		{"header {\ndefer\n+Content-Security-Policy x\n}", policy, "x"},
		{"header {\nmatch status 404\nContent-Security-Policy x\n}", policy, "x"},

		{"header {\nmatch status 4xx\nCache-Control max-age=10\n}\nheader >Cache-Control max-age=99", "Cache-Control", "max-age=10"},
		{"header >X-Who outer\nheader >X-Who inner", "X-Who", "outer"},
	} {
		r := get()
		r.Header.Set("Accept", "text/html")
		res := answer(t, compile(t, "route {\n"+tt.operation+"\nnot_found\n}", testcaddy.EndOfChain), r)
		want := tt.want
		if want == "the page's" {
			want = testcaddy.PagePolicy(t, res.Content)
		}
		got, hasPage := res.Header[tt.field], strings.Contains(res.Content, "HTTP ERROR 404")
		if !slices.Equal(got, []string{want}) || !hasPage {
			t.Errorf("%s: got %s %q, want %q; the page is there: %v", tt.operation, tt.field, got, want, hasPage)
		}
	}
}

// TestVariablesAreNotWrittenOnceTheNextHandlerRuns shows the ID of the request, which Caddy writes to its variables
// when it is first expanded. reverse_proxy reads them to dial, and a dial may outlive the response.
func TestVariablesAreNotWrittenOnceTheNextHandlerRuns(t *testing.T) {
	t.Parallel()
	template := testcaddy.TempFile(t, "404.txt", `{{.Placeholder "http.request.uuid"}}`)
	for name, h := range map[string]*Handler{
		"a page":     {Footer: "{http.request.uuid}"},
		"a template": {Template: map[string][]string{"text": {template}}},
		"a dry run":  {BaseURL: "https://e.test/{http.request.uuid}", DryRun: true},
		"a path":     {Template: map[string][]string{"text": {"sites/{http.request.uuid}/404.txt"}}, DryRun: true},
	} {
		var vars, before map[string]any
		next := func(w http.ResponseWriter, r *http.Request) error {
			ctx := r.Context()
			vars = ctx.Value(caddyhttp.VarsCtxKey).(map[string]any)
			before = maps.Clone(vars)
			return theirPage(w, r)
		}
		provision(t, h)
		res := answer(t, inside(h, next), get())
		id := fmt.Sprint(before["uuid"])
		if len(id) != 36 || !reflect.DeepEqual(vars, before) {
			t.Errorf("%s: got the variables %v, want %v", name, vars, before)
		}
		page := strings.TrimSpace(res.Content)
		if !h.DryRun && !strings.HasSuffix(page, id) {
			t.Errorf("%s: got %q, want the ID", name, res.Content)
		}
	}
}

// TestReplaceNoneCountsWhatPagesWouldReplace has a page and an answer for a program pass.
func TestReplaceNoneCountsWhatPagesWouldReplace(t *testing.T) {
	h := provision(t, &Handler{Report: true, Replace: judge.None})
	for want, next := range map[report.Outcome]caddyhttp.HandlerFunc{
		report.OutcomeReplaceable: theirPage,
		report.OutcomePassed:      script(stepSet("Content-Type", "application/json"), step404),
	} {
		report.Missed.Take()
		answer(t, inside(h, next), get())
		counted, _ := report.Missed.Snapshot()
		if len(counted.Addresses) != 1 || counted.Addresses[0].Outcomes.String() != want.String() {
			t.Errorf("got the addresses %+v, want one that is %s", counted.Addresses, want)
		}
	}
}

// TestWhatAProgramFetchesIsNoLink sends a Referer of the same host with every request. A script that asks for HTML by
// name follows a link, and shows what it gets.
func TestWhatAProgramFetchesIsNoLink(t *testing.T) {
	const html = "text/html, */*"
	h := provision(t, &Handler{Report: true})
	for name, tt := range map[string]struct {
		accept string
		mode   string // Sec-Fetch-Mode
		dest   string // Sec-Fetch-Dest
		want   report.Link
	}{
		"a navigation":      {accept: html, mode: "navigate", dest: "document", want: report.OwnLink},
		"a prefetched page": {accept: html, mode: "no-cors", dest: "empty", want: report.OwnLink},
		"htmx":              {accept: html, mode: "same-origin", dest: "empty", want: report.OwnLink},
		"fetch":             {mode: "same-origin", dest: "empty", want: report.NoLink},
		"fetch in node":     {mode: "cors", want: report.NoLink},
		"a missing image":   {mode: "no-cors", dest: "image", want: report.OwnLink},

		// A worker that passes a request on has the destination empty.
		"an image by a service worker": {mode: "no-cors", dest: "empty", want: report.OwnLink},
	} {
		r := get()
		r.Header = http.Header{"Accept": {tt.accept}, "Sec-Fetch-Mode": {tt.mode}, "Sec-Fetch-Dest": {tt.dest}}
		r.Header.Set("Referer", "http://a.test/blog")
		report.Missed.Take()
		answer(t, inside(h, testcaddy.EndOfChain), r)
		counted, _ := report.Missed.Snapshot()
		if len(counted.Addresses) != 1 || counted.Addresses[0].Link != tt.want {
			t.Errorf("%s: got the addresses %+v, want one of the link %s", name, counted.Addresses, tt.want)
		}
	}
}

// TestPageIsNotCountedByAnOuterHandler has a handler without the report write the page inside one with it.
func TestPageIsNotCountedByAnOuterHandler(t *testing.T) {
	outer, inner := provision(t, &Handler{Report: true}), provision(t, &Handler{})
	report.Missed.Take()
	answer(t, inside(outer, inside(inner, testcaddy.EndOfChain)), get())
	if counted, _ := report.Missed.Snapshot(); len(counted.Addresses) > 0 {
		t.Errorf("got the addresses %+v", counted.Addresses)
	}
}

// TestSiteFieldsAreThoseOnEntry has the next handlers change the site's language: for a response, and for one that
// intercept has routes for, which end in an error.
func TestSiteFieldsAreThoseOnEntry(t *testing.T) {
	t.Parallel()
	language := stepSet("Content-Language", "de")
	intercepted := step{"intercept", func(_ http.ResponseWriter, r *http.Request) error {
		r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer).Set("http.intercept.status_code", 404)
		return errMissing
	}}
	for _, next := range []caddyhttp.HandlerFunc{script(language, stepHTML, step404, stepTheirs), script(language, intercepted)} {
		h := provision(t, &Handler{})
		site := func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Content-Language", "en")
			return inside(h, next)(w, r)
		}
		answer(t, site, get()).WantHeader(t, "Content-Language", "en")
	}
}

// TestDryRunEndsWithItsHandler has the handler of a group run again, as in a named route that an error route invokes.
func TestDryRunEndsWithItsHandler(t *testing.T) {
	t.Parallel()
	h := provision(t, &Handler{DryRun: true, Group: "a"})
	logs := observe(h)
	r := prepare(httptest.NewRecorder(), get())
	for want := 1; want <= 2; want++ {
		_ = inside(h, testcaddy.EndOfChain)(httptest.NewRecorder(), r)
		if got := logs.Len(); got != want {
			t.Errorf("got %d log entries, want %d", got, want)
		}
	}
}

// cuttingWriter cuts a file when the header is sent.
type cuttingWriter struct {
	http.ResponseWriter
	file string
}

func (w cuttingWriter) WriteHeader(int) { _ = os.Truncate(w.file, 1) }

// TestPageThatIsCutEndsItsConnection has a site cut its page while it is sent.
func TestPageThatIsCutEndsItsConnection(t *testing.T) {
	file := testcaddy.TempFile(t, "a.test.txt", strings.Repeat("x", 100<<10))
	path := filepath.ToSlash(filepath.Dir(file)) + "/{http.request.host}.txt"
	h := provision(t, &Handler{Template: map[string][]string{"text": {path}}})
	defer func() {
		if p := recover(); p != http.ErrAbortHandler {
			t.Errorf("got the panic %v", p)
		}
	}()
	w := cuttingWriter{httptest.NewRecorder(), file}
	_ = inside(h, testcaddy.EndOfChain)(w, prepare(w, get()))
}
