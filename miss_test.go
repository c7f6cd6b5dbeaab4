package notfound

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// of404 is a handler that answers with a 404 of a type, or returns a 404 error if that is "error". It changes the request,
// as request_header does.
func of404(contentType, body string) caddyhttp.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		r.Header.Set("Sec-Fetch-Dest", "changed")
		r.Header.Set("Sec-Fetch-Mode", "changed")
		r.Header.Set("Accept", "text/html")
		r.Header.Set("Referer", "https://changed.test/")
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
		"a page that is kept from all": {Handler{Keep: keep, Replace: replaceAll}, html, nil, report.Own, report.Passed},
		"a page, and none is replaced": {Handler{Replace: replaceNone}, html, nil, report.Own, report.Replaceable},
		"JSON, and none is replaced":   {Handler{Replace: replaceNone}, answer, nil, report.None, report.Passed},
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
				name, value, _ := strings.Cut(field, ":")
				if name == "" {
					r.Method = value
					continue
				}
				r.Header.Set(name, strings.TrimSpace(value))
			}
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
			if a.Link != tt.link || a.Outcomes.String() != tt.outcome.String() || a.LastLink != wantLast || a.Host+a.Path != "a.test/x" {
				t.Errorf("got %+v, want %s, %s and the last link %q", a, tt.link, tt.outcome, wantLast)
			}
		})
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

// TestErrorOfAnAdminAPIIsPrintable has bytes that act on a terminal in what an admin API answers.
func TestErrorOfAnAdminAPIIsPrintable(t *testing.T) {
	const acts = "\x1b[2J\x1b]0;x\x07\u009b31m"
	message, err := json.Marshal(map[string]string{"error": acts})
	if err != nil {
		t.Fatal(err)
	}
	for name, h := range map[string]http.HandlerFunc{
		"an error":        func(w http.ResponseWriter, _ *http.Request) { http.Error(w, acts, http.StatusInternalServerError) },
		"the API's error": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400); _, _ = w.Write(message) },
		"not a report":    func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, acts) },
		"JSON of its own": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(message) },
		"an odd status":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(418); _, _ = io.WriteString(w, "{"+acts) },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := askReport(testcaddy.Backend(t, h))
			if err == nil || strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Errorf("got the error %q", err)
			}
			if isAPIs := strings.HasPrefix(fmt.Sprint(err), "the admin API at "); isAPIs != (name == "the API's error") {
				t.Errorf("got the error %q, which is the API's: %v", err, isAPIs)
			}
		})
	}
}
