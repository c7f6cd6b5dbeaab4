package report

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// ask asks for the report, or for report.txt, as the admin API does.
func ask(method, file, query string) (*httptest.ResponseRecorder, error) {
	w := httptest.NewRecorder()
	path := "/not_found/" + file
	err := errors.New("the admin API has no " + path)
	for _, route := range (adminReport{}).Routes() {
		if route.Pattern == path {
			err = route.Handler.ServeHTTP(w, httptest.NewRequest(method, path+query, nil))
		}
	}
	return w, err
}

func askReport(method, query string) (*httptest.ResponseRecorder, error) {
	return ask(method, "report", query)
}

func askText(method, query string) (*httptest.ResponseRecorder, error) {
	return ask(method, "report.txt", query)
}

// wantReport returns the report, in JSON.
func wantReport(t *testing.T, method string) string {
	t.Helper()
	w, err := askReport(method, "")
	if err != nil {
		t.Fatal(err)
	}
	body := w.Body.String()
	if mediaType := w.Header().Get("Content-Type"); mediaType != "application/json" {
		t.Fatalf("got %s, %s", mediaType, body)
	}
	return body
}

func TestDeleteGivesTheWholeReportAndStartsOver(t *testing.T) {
	Missed.Begin()
	Missed.Take()
	Missed.Add(Miss{Host: "a.test", Path: "/x"})
	before := wantReport(t, http.MethodGet)
	if strings.Count(before, `"path":"/x"`) != 1 {
		t.Errorf("GET: got %s, want one address", before)
	}
	_, err := askReport(http.MethodDelete, "?link=own")
	wantRefused(t, err, http.StatusBadRequest, `DELETE takes no parameters, but has "link=own"`)
	if taken := wantReport(t, http.MethodDelete); taken != before {
		t.Errorf("DELETE: got %s, want %s as with GET", taken, before)
	}
	if after := wantReport(t, http.MethodGet); !strings.Contains(after, `"addresses":[]`) {
		t.Errorf("after DELETE: got %s, want an empty report", after)
	}
}

func TestReportIsRefused(t *testing.T) {
	w, err := askReport(http.MethodPost, "")
	wantRefused(t, err, http.StatusMethodNotAllowed, "method POST is not allowed; use GET or DELETE")
	if allow := w.Header().Get("Allow"); allow != "GET, DELETE" {
		t.Errorf("got Allow %q", allow)
	}
	_, err = askReport(http.MethodGet, "?limit=1")
	wantRefused(t, err, http.StatusBadRequest, `GET takes no parameters, but has "limit=1"`)
	Missed = Counter{} // which has not begun
	_, err = askReport(http.MethodGet, "")
	const why = "no not_found handler has had report enabled; write the option report or dry_run in one"
	wantRefused(t, err, http.StatusNotFound, why)
}

func TestTextHasWhatTheQueryChooses(t *testing.T) {
	Missed.Begin()
	Missed.Take()
	for i := range 30 {
		Missed.Add(Miss{Host: "a.test", Path: fmt.Sprint("/", i), Link: NoLink})
	}
	Missed.Add(Miss{Host: "a.test", Path: "/error", Link: NoLink, Outcome: OutcomeError})
	for query, rows := range map[string]int{
		"":                            20,
		"?limit=0&outcome=unanswered": 30,
		"?link=none&limit=1":          1,
		"?outcome=error&link=":        1,
		"?host=b.test":                0,
		"?host=A.test&limit=%32":      2,
	} {
		w, err := askText(http.MethodGet, query)
		isText := w.Header().Get("Content-Type") == "text/plain; charset=utf-8"
		if got := strings.Count(w.Body.String(), "  a.test/"); err != nil || !isText || got != rows {
			t.Errorf("%s: got %v, %v and\n%s\nwant %d addresses", query, err, w.Header(), w.Body, rows)
		}
	}
}

func TestTextIsRefused(t *testing.T) {
	Missed.Begin()
	for query, message := range map[string]string{
		"?limit=-1":           `limit: "-1" is not a number of addresses; write one such as 20, or 0 for all of them`,
		"?limit=x":            `limit: "x" is not a number of addresses`,
		"?link=any":           `link: "any" is unknown; write one of own, other, none`,
		"?outcome=none":       `outcome: "none" is unknown; write one of unanswered, error, response, passed, replaceable`,
		"?host=http://a.test": `host: "http://a.test" is not a host; write it as in www.example.com`,
		"?hosts=a.test":       `the query: "hosts" is unknown; write one of limit, link, outcome, host`,
		"?=5":                 `the query: "" is unknown; write one of limit, link, outcome, host`,
		"?link=own&link=none": `the query: "link" is there 2 times; write it once`,
		"?link=own;limit=5":   "the query: invalid semicolon separator in query",
		"?limit=%zz":          `the query: invalid URL escape "%zz"`,
	} {
		_, err := askText(http.MethodGet, query)
		wantRefused(t, err, http.StatusBadRequest, message)
	}
	w, err := askText(http.MethodDelete, "")
	wantRefused(t, err, http.StatusMethodNotAllowed, "method DELETE is not allowed; use GET")
	if allow := w.Header().Get("Allow"); allow != "GET" {
		t.Errorf("got Allow %q", allow)
	}
	Missed = Counter{} // which has not begun
	_, err = askText(http.MethodGet, "")
	wantRefused(t, err, http.StatusNotFound, "no not_found handler has had report enabled")
}

func wantRefused(t *testing.T, err error, status int, message string) {
	t.Helper()
	refused, ok := err.(caddy.APIError)
	if !ok || refused.HTTPStatus != status || !strings.HasPrefix(refused.Err.Error(), message) {
		t.Errorf("got %+v, want %d with %s", err, status, message)
	}
}

// TestFullTablesCanBeRead fills the tables with the longest addresses and links, of a character that JSON may escape.
func TestFullTablesCanBeRead(t *testing.T) {
	Missed.Begin()
	Missed.Take()
	long := strings.Repeat("&", 500)
	for i := range 1000 {
		path := fmt.Sprint("/", i, long)
		for link := range NumLinks {
			m := Miss{Host: "a.test", Path: path, Link: link}
			m.Referer = "http://a.test" + path
			Missed.Add(m)
		}
	}
	body := wantReport(t, http.MethodDelete)
	if n := strings.Count(body, `"path":`); n != 3000 || len(body) > 4<<20 {
		t.Errorf("got %d addresses in %d bytes", n, len(body))
	}
}
