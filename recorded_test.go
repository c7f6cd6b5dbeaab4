package notfound

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notfound/notfound/internal/judge"
	"github.com/caddy-notfound/notfound/internal/testcaddy"
)

// TestRecorded404s replays the 404s of real applications: to the clients that they were recorded with, to a browser,
// and to a program. Each passes as it is, but for Vary, or the page takes its place.
func TestRecorded404s(t *testing.T) {
	t.Parallel()
	h := provision(t, &Handler{})
	for _, rec := range testcaddy.Recordings() {
		for client, header := range map[string]http.Header{
			"recorded": rec.Request,
			"browser":  {"Accept": {"text/html,application/xhtml+xml,*/*;q=0.8"}},
			"program":  {"Accept": {"*/*"}},
		} {
			if got, want := passes(t, h, &rec, header), slices.Contains(rec.PassesTo, client); got != want {
				t.Errorf("%s, to %s: it passes: %v", rec, client, got)
			}
		}
	}
}

// TestRecordedRouters replays the 404s of applications whose pages a router in the browser can fetch.
func TestRecordedRouters(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{judge.Pages, judge.Browsers} {
		h := provision(t, &Handler{Replace: mode})
		for _, rec := range testcaddy.RouterRecordings() {
			if got, want := passes(t, h, &rec, rec.Request), slices.Contains(rec.PassesIn, mode); got != want {
				t.Errorf("%s, replace %s: it passes: %v", rec, mode, got)
			}
		}
	}
}

// passes replays a 404 to a client, and reports whether it passes. Otherwise, the client gets the page.
func passes(t *testing.T, h *Handler, rec *testcaddy.Recording, header http.Header) bool {
	t.Helper()
	replay := func(w http.ResponseWriter, _ *http.Request) error {
		rec.Replay(w)
		return nil
	}
	r := httptest.NewRequest(rec.Method, rec.Target, nil)
	r.Header = header
	theirs := answer(t, replay, r)
	got := answer(t, inside(h, replay), r)
	theirs.Header.Del("Vary")
	got.Header.Del("Vary")
	isTheirs := reflect.DeepEqual(got.Header, theirs.Header) && got.Content == theirs.Content
	isPage := got.Header.Get("Content-Location") == "" // which every recording has
	if isTheirs == isPage {
		t.Errorf("%s: got neither the 404 nor the page, but %v\n%.200s", rec, got.Header, got.Content)
	}
	return isTheirs
}

// TestRecordingsNameVersions holds that a recording can be made again, and that the document has the right numbers.
func TestRecordingsNameVersions(t *testing.T) {
	recordings, routers := testcaddy.Recordings(), testcaddy.RouterRecordings()
	const document = "docs/applications.md"
	wantItems(t, document, readFile(t, document), `\[(\d+) of (?:their\s404s|the\snewest\sframeworks)\]`,
		strconv.Itoa(len(recordings)), strconv.Itoa(len(routers)))
	version := regexp.MustCompile(` v?\d+(\.\d|-\d\d-|\d{5})`)
	for _, rec := range slices.Concat(recordings, routers) {
		if !version.MatchString(rec.Application) {
			t.Errorf("%s names no version", rec)
		}
	}
}

// TestRecordedClients asks as real clients do, and as every part of a page does in real browsers. For an unanswered
// address, each gets the page in one format. An application's 404 passes, or the same page takes its place.
func TestRecordedClients(t *testing.T) {
	t.Parallel()
	applications := map[string]caddyhttp.HandlerFunc{
		"HTML":       script(stepHTML, step404, stepTheirs),
		"plain text": script(stepText, step404, stepTheirs),
	}
	for _, mode := range []string{judge.Pages, judge.Browsers} {
		h := provision(t, &Handler{Replace: mode})
		for _, rec := range testcaddy.RecordedRequests() {
			wantFormat := func(what string, next caddyhttp.HandlerFunc, want string) {
				t.Helper()
				r := httptest.NewRequest(rec.Method, ourPage, nil)
				r.Header = rec.Request
				if got := formatOf(answer(t, inside(h, next), r)); got != want {
					t.Errorf("%s, replace %s, %s: got the format %q, want %q", rec, mode, what, got, want)
				}
			}
			wantFormat("an unanswered address", testcaddy.EndOfChain, rec.Format)
			want := rec.Format
			if slices.Contains(rec.PassesIn, mode) {
				want = "" // the application's own, which is no page
			}
			for what, application := range applications {
				wantFormat("a 404 in "+what, application, want)
			}
		}
	}
}

// formatOf returns the name of a page's format. It is empty for a 404 of an application here, whose Content-Type has no
// charset.
func formatOf(res testcaddy.Response) string {
	for _, format := range testcaddy.Formats {
		if res.Header.Get("Content-Type") == format.ContentType {
			return format.Name
		}
	}
	return ""
}

// TestListsOfClients finds the clients of the documented table among the recorded ones. Each name stands for all
// clients that begin with it, and the name of a browser for a page that it opens.
func TestListsOfClients(t *testing.T) {
	table := between(t, "docs/representations.md", "\n| Format | Clients | Why |\n|---|---|---|\n", "\n\n")
	for row := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(row, " | ")
		format := strings.Trim(cells[0], "| `")
		for name := range strings.SplitSeq(cells[1], ", ") {
			var got []string
			for _, rec := range testcaddy.RecordedRequests() {
				isForPage := rec.Kind == "" || rec.Kind == "nav:typed"
				if isForPage && strings.HasPrefix(rec.Client+" ", name+" ") {
					got = append(got, rec.Format)
				}
			}
			if !slices.Equal(slices.Compact(got), []string{format}) {
				t.Errorf("the recorded requests of %s have the formats %q, want %s", name, got, format)
			}
		}
	}
}
