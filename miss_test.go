package notfound

import (
	"cmp"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// of404 is a handler that answers with a 404 of a type, or returns a 404 error if that is "error". It changes the request,
// as request_header and rewrite do.
func of404(contentType, body string) caddyhttp.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		r.Header.Set("Sec-Fetch-Dest", "changed")
		r.Header.Set("Sec-Fetch-Mode", "changed")
		r.Header.Set("Accept", "text/html")
		r.Header.Set("Referer", "https://changed.test/")
		r.Header.Set("X-Original-URI", "/changed")
		r.URL.RawQuery = "url=/changed"
		if contentType == "error" {
			return caddyhttp.Error(http.StatusNotFound, nil)
		}
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("X-Error-Page", "1")
		w.WriteHeader(http.StatusNotFound)
		_, err := io.WriteString(w, body)
		return err
	}
}

// TestWhatAProgramFetchedHasNoLink sends requests that ask for the page, and others, with a Referer of the same host.
func TestWhatAProgramFetchedHasNoLink(t *testing.T) {
	const ofHost = "http://a.test/blog"
	keep := []caddyhttp.ResponseMatcher{{Headers: http.Header{"X-Error-Page": {"*"}}}}
	fetch := http.Header{"Sec-Fetch-Dest": {"empty"}, "Accept": {"*/*"}}
	script := http.Header{"Sec-Fetch-Dest": {"empty"}, "Sec-Fetch-Mode": {"cors"}, "Accept": {"*/*"}}
	html := of404("text/html", "<p>no")
	text := of404("text/plain", "no")
	failing := of404("error", "")
	jsonAnswer := of404("application/json", "{}")
	jsonAsText := of404("text/plain", "{}")
	for name, tt := range map[string]struct {
		handler Handler
		method  string
		target  string
		header  http.Header
		next    caddyhttp.HandlerFunc // nil: the end of the chain
		link    report.Link
		outcome report.Outcome
	}{
		"unanswered":        {},
		"a page":            {next: html, outcome: report.Response},
		"a form":            {next: html, outcome: report.Response, method: http.MethodPost},
		"WebDAV":            {next: html, outcome: report.Response, method: "PROPFIND", link: report.None},
		"an icon":           {target: "/favicon.ico", link: report.None},
		"a link to an icon": {target: "/favicon.ico?v=2"},

		"unanswered, fetched": {header: fetch, link: report.None},
		"an error, fetched":   {header: fetch, next: failing, outcome: report.Error, link: report.None},
		"text, fetched":       {header: fetch, next: text, outcome: report.Response, link: report.None},
		"text for a script":   {header: script, next: text, outcome: report.Passed, link: report.None},
		"text for node":       {header: http.Header{"Sec-Fetch-Mode": {"cors"}}, next: text, outcome: report.Passed},
		"HTML that a script loads": {
			header: http.Header{"Sec-Fetch-Dest": {"empty"}, "Accept": {"TEXT/HTML, application/xhtml+xml"}},
		},
		"a download": {
			header:  http.Header{"Sec-Fetch-Dest": {"empty"}, "Sec-Fetch-Mode": {"navigate"}, "Accept": {"*/*"}},
			next:    text,
			outcome: report.Response,
		},
		"a script element": {
			header:  http.Header{"Sec-Fetch-Dest": {"script"}, "Sec-Fetch-Mode": {"cors"}},
			next:    html,
			outcome: report.Response,
		},

		"JSON":                         {next: jsonAnswer, outcome: report.Passed, link: report.None},
		"JSON that is kept":            {handler: Handler{Keep: keep}, next: jsonAnswer, outcome: report.Passed, link: report.None},
		"JSON that is replaced":        {handler: Handler{Replace: replaceAll}, next: jsonAnswer, outcome: report.Response, link: report.None},
		"JSON as text":                 {next: jsonAsText, outcome: report.Passed, link: report.None},
		"JSON as text, replace none":   {handler: Handler{Replace: replaceNone}, next: jsonAsText, outcome: report.Passed, link: report.None},
		"JSON as text that is kept":    {handler: Handler{Keep: keep}, next: jsonAsText, outcome: report.Passed},
		"a page that is kept":          {handler: Handler{Keep: keep}, next: html, outcome: report.Passed},
		"a page, and none is replaced": {handler: Handler{Replace: replaceNone}, next: html, outcome: report.Replaceable},

		"a page of another host": {header: http.Header{"Referer": {"http://b.test/"}}, next: html, outcome: report.Response, link: report.Other},
		"JSON of another host":   {header: http.Header{"Referer": {"http://b.test/"}}, next: jsonAnswer, outcome: report.Passed, link: report.None},
		"the address itself":     {header: http.Header{"Referer": {"http://a.test/x"}}, link: report.None},
	} {
		t.Run(name, func(t *testing.T) {
			missed.Take()
			tt.handler.Report = true
			h := provision(t, &tt.handler)
			r := httptest.NewRequest(cmp.Or(tt.method, http.MethodGet), cmp.Or(tt.target, "/x"), nil)
			r.Host = "a.test"
			r.Header.Set("Referer", ofHost)
			maps.Copy(r.Header, tt.header)
			lastLink := r.Header.Get("Referer")
			if lastLink == "http://a.test/x" {
				lastLink = ""
			}
			next := tt.next
			if next == nil {
				next = testcaddy.EndOfChain
			}
			w := httptest.NewRecorder()
			if err := h.ServeHTTP(w, prepare(w, r), next); err != nil {
				t.Fatal(err)
			}
			got, _ := missed.Snapshot()
			a := got.Addresses[0]
			if a.Link != tt.link || a.Outcomes.String() != tt.outcome.String() || a.LastLink != lastLink {
				t.Errorf("got %+v, want %s, %s and the last link %q", a, tt.link, tt.outcome, lastLink)
			}
		})
	}
}

// TestURI looks for the address of the option uri on the page and in the report.
func TestURI(t *testing.T) {
	for value, want := range map[string]struct{ page, reported string }{
		"/docs/nothing?x=1":              {page: "http://a.test/docs/nothing?x=1", reported: "a.test/docs/nothing"},
		"https://me@shop.test/a%20b?x#y": {page: "https://shop.test/a%20b?x", reported: "shop.test/a%20b"},
		"ftp://evil":                     {page: "http://a.test/404?url=ftp%3A%2F%2Fevil", reported: "a.test/404"},
	} {
		for _, option := range []string{"{http.request.uri.query.url}", "{http.request.header.X-Original-URI}"} {
			for _, h := range []*Handler{{Report: true}, {Report: true, Replace: replaceNone}, {DryRun: true}} {
				h.URI = option
				missed.Take()
				w := httptest.NewRecorder()
				r := httptest.NewRequest(http.MethodGet, "/404?url="+url.QueryEscape(value), nil)
				r.Host = "a.test"
				r.Header.Set("X-Original-URI", value)
				_ = provision(t, h).ServeHTTP(w, prepare(w, r), of404("text/html", "no"))
				got, _ := missed.Snapshot()
				if address := got.Addresses[0].Host + got.Addresses[0].Path; address != want.reported {
					t.Errorf("%s of %q: the report has %q, want %q", option, value, address, want.reported)
				}
				isPage := strings.Contains(w.Body.String(), "\nURI: "+want.page+"\n")
				if isPage != (!h.DryRun && h.Replace == "") {
					t.Errorf("%s of %q: got %s, want the address %s on a page", option, value, w.Body, want.page)
				}
			}
		}
	}
}

// TestDryRunEnds has a plugin call a dry run twice for one request, and discard what came of it the first time.
func TestDryRunEnds(t *testing.T) {
	h := provision(t, &Handler{DryRun: true, Group: "a"})
	missed.Take()
	w := httptest.NewRecorder()
	r := prepare(w, httptest.NewRequest(http.MethodGet, "/x", nil))
	for _, status := range []int{http.StatusGone, http.StatusNotFound} {
		_ = h.ServeHTTP(httptest.NewRecorder(), r, caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error {
			return caddyhttp.Error(status, nil)
		}))
	}
	if got, _ := missed.Snapshot(); len(got.Addresses) != 1 {
		t.Errorf("got %+v, want one address", got.Addresses)
	}
}
