package report

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// askAdminAPI asks for the report as the admin API does.
func askAdminAPI(method, query string) (*httptest.ResponseRecorder, error) {
	w := httptest.NewRecorder()
	return w, serveReport(w, httptest.NewRequest(method, Path+query, nil))
}

// wantReport reads the report.
func wantReport(t *testing.T, method string) (Report, string) {
	t.Helper()
	w, err := askAdminAPI(method, "")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Parse(w.Body.Bytes())
	if err != nil || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("got %v %s, %v", w.Header(), w.Body, err)
	}
	return r, w.Body.String()
}

func TestDeleteGivesTheWholeReportAndStartsOver(t *testing.T) {
	Missed.Begin()
	Missed.Take()
	Missed.Add(Miss{Host: "a.test", Path: "/x"})
	before, _ := wantReport(t, http.MethodGet)
	if len(before.Addresses) != 1 {
		t.Errorf("GET: got %+v, want one address", before)
	}
	_, err := askAdminAPI(http.MethodDelete, "?link=own")
	wantRefused(t, err, http.StatusBadRequest, `DELETE takes no parameters, but has "link=own"`)
	taken, _ := wantReport(t, http.MethodDelete)
	if !reflect.DeepEqual(taken, before) {
		t.Errorf("DELETE: got %+v, want %+v as with GET", taken, before)
	}
	_, body := wantReport(t, http.MethodGet)
	if !strings.Contains(body, `"addresses":[]`) {
		t.Errorf("after DELETE: got %s, want an empty report", body)
	}
}

func TestReportIsRefused(t *testing.T) {
	w, err := askAdminAPI(http.MethodPost, "")
	wantRefused(t, err, http.StatusMethodNotAllowed, "method POST is not allowed; use GET or DELETE")
	if allow := w.Header().Get("Allow"); allow != "GET, DELETE" {
		t.Errorf("got Allow %q", allow)
	}
	_, err = askAdminAPI(http.MethodGet, "?limit=1")
	wantRefused(t, err, http.StatusBadRequest, `GET takes no parameters, but has "limit=1"`)
	err = writeReport(httptest.NewRecorder(), Report{}, false) // it has not begun
	const why = "no not_found handler has had report enabled; write the option report or dry_run in one"
	wantRefused(t, err, http.StatusNotFound, why)
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
	r, body := wantReport(t, http.MethodDelete)
	if len(r.Addresses) != 3000 || len(body) > 4<<20 {
		t.Errorf("got %d addresses in %d bytes", len(r.Addresses), len(body))
	}
}
