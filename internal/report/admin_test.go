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

// ofAdminAPI asks for the report as the admin API does.
func ofAdminAPI(t *testing.T, method string) (Report, string) {
	t.Helper()
	w := httptest.NewRecorder()
	if err := serveReport(w, httptest.NewRequest(method, Path, nil)); err != nil {
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
	before, _ := ofAdminAPI(t, http.MethodGet)
	if len(before.Addresses) != 1 {
		t.Errorf("GET: got %+v, want one address", before)
	}
	for target, want := range map[string]caddy.APIError{
		"GET ?limit=1":     {HTTPStatus: http.StatusBadRequest, Message: `GET takes no parameters, not "limit=1"`},
		"DELETE ?link=own": {HTTPStatus: http.StatusBadRequest, Message: `DELETE takes no parameters, not "link=own"`},
		"POST ": {
			HTTPStatus: http.StatusMethodNotAllowed,
			Message:    "method POST is not allowed; use GET or DELETE",
		},
	} {
		method, query, _ := strings.Cut(target, " ")
		w := httptest.NewRecorder()
		err, ok := serveReport(w, httptest.NewRequest(method, Path+query, nil)).(caddy.APIError)
		if !ok || err.HTTPStatus != want.HTTPStatus || !strings.HasPrefix(err.Err.Error(), want.Message) {
			t.Errorf("%s: got %+v, want %+v", target, err, want)
		}
	}
	if taken, _ := ofAdminAPI(t, http.MethodDelete); !reflect.DeepEqual(taken, before) {
		t.Errorf("DELETE: got %+v, want %+v as with GET", taken, before)
	}
	after, body := ofAdminAPI(t, http.MethodGet)
	if !after.Since.After(before.Since) || !strings.Contains(body, `"addresses":[]`) {
		t.Errorf("after DELETE: got %s, want an empty report that begins later", body)
	}
}

func TestReportThatHasNotBegunIsRefused(t *testing.T) {
	w := httptest.NewRecorder()
	err, ok := writeReport(w, Report{}, false).(caddy.APIError)
	const why = "no not_found handler has had report enabled; give one the option report"
	if !ok || err.HTTPStatus != 404 || err.Err.Error() != why || w.Body.Len() > 0 {
		t.Errorf("got %+v and %q, want 404 with %s", err, w.Body, why)
	}
}

// TestFullTablesCanBeRead fills the tables with the longest addresses and links, of a character that JSON may escape.
func TestFullTablesCanBeRead(t *testing.T) {
	Missed.Begin()
	Missed.Take()
	long := strings.Repeat("&", 500)
	for i := range 1000 {
		for link := range NumLinks {
			path := fmt.Sprint("/", i, long)
			Missed.Add(Miss{Host: "a.test", Path: path, Referer: "http://a.test" + path, Link: link})
		}
	}
	r, body := ofAdminAPI(t, http.MethodDelete)
	if len(r.Addresses) != 3000 || len(body) > 4<<20 {
		t.Errorf("got %d addresses in %d bytes", len(r.Addresses), len(body))
	}
}
