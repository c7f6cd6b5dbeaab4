package notfound

import (
	"net/http"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/judge"
	"github.com/caddy-notfound/notfound/internal/report"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

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
