package notfound

import (
	"io"
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

// TestWhatAProgramFetchedHasNoLink sends requests from a page of the same host, or of another one, or with no Referer at all.
func TestWhatAProgramFetchedHasNoLink(t *testing.T) {
	keep := []caddyhttp.ResponseMatcher{{Headers: http.Header{"X-Error-Page": {"*"}}}}
	html, text, empty := of404("text/html", "<p>no"), of404("text/plain", "no"), of404("", "")
	answer, failing := of404("application/json", "{}"), of404("error", "")
	const fetch, ofPage = "Sec-Fetch-Dest: empty", "Sec-Fetch-Dest: document"
	const cors, sameOrigin, navigate, noCORS = "Sec-Fetch-Mode: cors", "Sec-Fetch-Mode: same-origin", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Mode: no-cors"
	for name, tt := range map[string]struct {
		handler Handler
		next    caddyhttp.HandlerFunc
		fields  []string
		link    report.Link
		outcome report.Outcome
	}{
		"unanswered":                   {Handler{}, testcaddy.EndOfChain, nil, report.Own, report.Unanswered},
		"unanswered, of a page":        {Handler{}, testcaddy.EndOfChain, []string{ofPage, "Accept: text/html"}, report.Own, report.Unanswered},
		"unanswered, fetched":          {Handler{}, testcaddy.EndOfChain, []string{fetch, "Accept: */*"}, report.None, report.Unanswered},
		"a link that a script follows": {Handler{}, testcaddy.EndOfChain, []string{fetch, "Accept: TEXT/HTML, application/xhtml+xml"}, report.Own, report.Unanswered},
		"error":                        {Handler{}, failing, nil, report.Own, report.Error},
		"a page":                       {Handler{}, html, nil, report.Own, report.Response},
		"JSON":                         {Handler{}, answer, nil, report.None, report.Passed},
		"text for a script":            {Handler{}, text, []string{fetch, cors, "Accept: */*"}, report.None, report.Passed},
		"text for node's fetch":        {Handler{}, text, []string{cors}, report.Own, report.Passed},
		"a fragment for a script":      {Handler{}, html, []string{fetch, sameOrigin, "Accept: text/html"}, report.Own, report.Passed},
		"nothing for a script":         {Handler{}, empty, []string{fetch, cors}, report.None, report.Passed},
		"all for a script":             {Handler{Replace: replaceAll}, text, []string{fetch, cors}, report.None, report.Response},
		"text for a script, dry run":   {Handler{DryRun: true}, text, []string{fetch, cors}, report.None, report.Passed},
		"an error for a script":        {Handler{}, failing, []string{fetch, cors}, report.None, report.Error},
		"JSON under another label":     {Handler{}, of404("text/html", "{}"), []string{"Accept: */*"}, report.None, report.Passed},
		"the same, replace none":       {Handler{Replace: replaceNone}, of404("", " {"), nil, report.None, report.Passed},
		"the same, dry run":            {Handler{DryRun: true}, of404("text/plain", "{"), nil, report.None, report.Passed},
		"the same, replace all":        {Handler{Replace: replaceAll, DryRun: true}, of404("text/plain", "{"), nil, report.Own, report.Replaceable},
		"the same, kept":               {Handler{Keep: keep}, of404("text/plain", "{"), nil, report.Own, report.Passed},
		"the same, for a browser":      {Handler{}, of404("text/html", "{"), []string{"Accept: text/html"}, report.Own, report.Response},
		"an icon that nobody names":    {Handler{}, testcaddy.EndOfChain, []string{"/favicon.ico"}, report.None, report.Unanswered},
		"an icon with a query":         {Handler{}, testcaddy.EndOfChain, []string{"/favicon.ico?v=2"}, report.Own, report.Unanswered},
		"an icon of a folder":          {Handler{}, testcaddy.EndOfChain, []string{"/blog/favicon.ico"}, report.Own, report.Unanswered},
		"what a worker passes on":      {Handler{}, html, []string{fetch, navigate, "Accept: text/html"}, report.Own, report.Response},
		"a download":                   {Handler{}, text, []string{fetch, navigate, "Accept: */*"}, report.Own, report.Response},
		"a prefetched page":            {Handler{}, html, []string{fetch, noCORS, "Accept: text/html"}, report.Own, report.Response},
		"a script element":             {Handler{}, html, []string{"Sec-Fetch-Dest: script", cors}, report.Own, report.Response},
		"a form":                       {Handler{}, html, []string{":POST"}, report.Own, report.Response},
		"a folder of WebDAV":           {Handler{}, html, []string{":PROPFIND"}, report.None, report.Response},
		"an empty response, fetched":   {Handler{}, empty, []string{fetch}, report.None, report.Response},
		"text, fetched":                {Handler{}, text, []string{fetch}, report.None, report.Response},
		"an image of a page":           {Handler{}, empty, []string{"Sec-Fetch-Dest: image"}, report.Own, report.Response},
		"JSON that is replaced":        {Handler{Replace: replaceAll}, answer, nil, report.None, report.Response},
		"a page that is kept":          {Handler{Keep: keep}, html, nil, report.Own, report.Passed},
		"JSON that is kept":            {Handler{Keep: keep}, answer, nil, report.None, report.Passed},
		"JSON, dry run of all":         {Handler{Replace: replaceAll, DryRun: true}, answer, nil, report.None, report.Replaceable},
		"a page, and none is replaced": {Handler{Replace: replaceNone}, html, nil, report.Own, report.Replaceable},
		"JSON for a page of another":   {Handler{}, answer, []string{"Referer: https://b.test/blog"}, report.None, report.Passed},
		"a page of another host":       {Handler{}, html, []string{"Referer: https://b.test/blog"}, report.Other, report.Response},
		"fetched, and no link":         {Handler{}, html, []string{"Referer:", fetch}, report.None, report.Response},
		"the address itself, and JSON": {Handler{}, answer, []string{"Referer: http://a.test/x?y"}, report.None, report.Passed},
		"a page without a Referer":     {Handler{}, html, []string{"Referer:"}, report.None, report.Response},
		"a Referer with a backslash":   {Handler{}, html, []string{`Referer: http://evil.example\@a.test/`}, report.None, report.Response},
	} {
		t.Run(name, func(t *testing.T) {
			tt.handler.Report = true
			h := provision(t, &tt.handler)
			r := httptest.NewRequest(http.MethodGet, "/x?y", nil)
			r.Host = "a.test"
			r.Header.Set("Referer", "https://a.test/blog?token#z")
			for _, field := range tt.fields {
				switch name, value, _ := strings.Cut(field, ":"); {
				case name == "":
					r.Method = value
				case name[0] == '/':
					r.RequestURI = name
				default:
					r.Header.Set(name, strings.TrimSpace(value))
				}
			}
			path, _, _ := strings.Cut(r.RequestURI, "?")
			wantLast, _, _ := strings.Cut(r.Header.Get("Referer"), "?")
			if strings.HasSuffix(wantLast, "/x") || strings.Contains(wantLast, `\`) {
				wantLast = ""
			}
			missed.Take()
			w := httptest.NewRecorder()
			if err := h.ServeHTTP(w, prepare(w, r), tt.next); err != nil {
				t.Fatal(err)
			}
			got, _ := missed.Snapshot()
			if len(got.Addresses) != 1 {
				t.Fatalf("got %+v, want one address", got)
			}
			a := got.Addresses[0]
			if a.Link != tt.link || a.Outcomes.String() != tt.outcome.String() || a.LastLink != wantLast || a.Host+a.Path != "a.test"+path {
				t.Errorf("got %+v, want %s, %s and the last link %q", a, tt.link, tt.outcome, wantLast)
			}
		})
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
			for _, h := range []*Handler{{Report: true}, {Report: true, Replace: replaceNone}, {DryRun: true}} {
				for _, contentType := range []string{"text/html", "error"} {
					h.URI = option
					missed.Take()
					w := httptest.NewRecorder()
					r := httptest.NewRequest(http.MethodGet, "/404?url="+url.QueryEscape(value), nil)
					r.Host = "a.test"
					r.Header.Set("X-Original-URI", value)
					_ = provision(t, h).ServeHTTP(w, prepare(w, r), of404(contentType, "no"))
					got, _ := missed.Snapshot()
					isPage := !h.DryRun && (contentType == "error" || h.Replace == "")
					if len(got.Addresses) != 1 || got.Addresses[0].Host+got.Addresses[0].Path != want.reported || strings.Contains(w.Body.String(), "\nURI: "+want.page+"\n") != isPage {
						t.Errorf("%s of %q, replace %q, dry run: %v, %s: got %q, and the report has %+v", option, value, h.Replace, h.DryRun, contentType, w.Body, got.Addresses)
					}
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
