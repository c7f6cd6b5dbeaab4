package report

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2"
)

// Missed is the counter of this process. It outlives config reloads.
var Missed Counter

func init() {
	caddy.RegisterModule(adminReport{})
}

// adminReport serves the report of missing addresses on Caddy's admin API:
//
//	GET    /not_found/report
//	DELETE /not_found/report
//	GET    /not_found/report.txt?link=own&limit=10
//
// GET returns the report as JSON. DELETE returns the same and starts over, in one step. The text is for a terminal, as
// curl prints it, and lists the addresses that the query chooses, see [Filter].
type adminReport struct{}

// CaddyModule returns the Caddy module information.
func (adminReport) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "admin.api.not_found",
		New: func() caddy.Module { return new(adminReport) },
	}
}

// Routes returns the routes of the report.
func (adminReport) Routes() []caddy.AdminRoute {
	return []caddy.AdminRoute{
		{Pattern: "/not_found/report", Handler: caddy.AdminHandlerFunc(serveReport)},
		{Pattern: "/not_found/report.txt", Handler: caddy.AdminHandlerFunc(serveText)},
	}
}

func serveText(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", "GET")
		return refuse(http.StatusMethodNotAllowed, "method %s is not allowed; use GET", r.Method)
	}
	f, err := parseFilter(r.URL.RawQuery)
	if err != nil {
		return refuse(http.StatusBadRequest, "%w", err)
	}
	s, ok := Missed.Snapshot()
	if !ok {
		return errNotBegun
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	return s.WriteText(w, f)
}

var errNotBegun = refuse(http.StatusNotFound,
	"no not_found handler has had report enabled; write the option report or dry_run in one")

func serveReport(w http.ResponseWriter, r *http.Request) error {
	read := Missed.Snapshot
	switch r.Method {
	case http.MethodGet:
	case http.MethodDelete:
		read = Missed.Take
	default:
		w.Header().Set("Allow", "GET, DELETE")
		return refuse(http.StatusMethodNotAllowed, "method %s is not allowed; use GET or DELETE", r.Method)
	}
	if r.URL.RawQuery != "" { // a DELETE that ignored a filter would lose the rest
		const why = "%s takes no parameters, but has %q; the report is always whole"
		return refuse(http.StatusBadRequest, why, r.Method, r.URL.RawQuery)
	}
	s, ok := read()
	if !ok {
		return errNotBegun
	}
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false) // otherwise, a table full of & would take six times the room; a URI has no <
	return e.Encode(s)
}

func refuse(status int, format string, args ...any) error {
	return caddy.APIError{HTTPStatus: status, Err: fmt.Errorf(format, args...)}
}

// Interface guards
var _ caddy.AdminRouter = (*adminReport)(nil)
