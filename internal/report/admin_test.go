package report

import (
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

func TestReportThatHasNotBegunIsRefused(t *testing.T) {
	w := httptest.NewRecorder()
	err, ok := writeReport(w, Report{}, false).(caddy.APIError)
	const why = "no not_found handler has had report enabled; give one the option report"
	if !ok || err.HTTPStatus != 404 || err.Err.Error() != why || w.Body.Len() > 0 {
		t.Errorf("got %+v and %q, want 404 with %s", err, w.Body, why)
	}
}
