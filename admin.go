package notfound

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notfound/notfound/internal/uri"
)

func init() {
	caddy.RegisterModule(adminReport{})
}

// adminReport serves the report of missing addresses on Caddy's admin API:
//
//	GET    /not_found/report?limit=20&linked=true&host=www.example.com
//	DELETE /not_found/report
//
// GET returns the report as JSON, the most frequent address first: all addresses or `limit` of them, only those
// with a Referer if `linked` is true, and only those of `host` if that is given, on any port or on the one that it
// has. DELETE returns the whole report and begins it again, in one step.
type adminReport struct{}

const reportPath = "/not_found/report"

// CaddyModule returns the Caddy module information.
func (adminReport) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "admin.api.not_found",
		New: func() caddy.Module { return new(adminReport) },
	}
}

// Routes returns the route of the report.
func (adminReport) Routes() []caddy.AdminRoute {
	return []caddy.AdminRoute{{Pattern: reportPath, Handler: caddy.AdminHandlerFunc(serveReport)}}
}

func serveReport(w http.ResponseWriter, r *http.Request) error {
	switch r.Method {
	case http.MethodGet:
		f, err := parseReportFilter(r.URL.RawQuery)
		if err != nil {
			return caddy.APIError{HTTPStatus: http.StatusBadRequest, Err: err}
		}
		s, ok := missed.snapshot()
		s.Addresses = f.apply(s.Addresses)
		return writeReport(w, s, ok)
	case http.MethodDelete:
		if r.URL.RawQuery != "" { // what it left out would be lost
			return caddy.APIError{
				HTTPStatus: http.StatusBadRequest,
				Err:        fmt.Errorf("DELETE takes no parameters, not %q: it returns the whole report and begins it again", r.URL.RawQuery),
			}
		}
		s, ok := missed.take()
		return writeReport(w, s, ok)
	default:
		w.Header().Set("Allow", "GET, DELETE")
		return caddy.APIError{
			HTTPStatus: http.StatusMethodNotAllowed,
			Err:        fmt.Errorf("method %s is not allowed; use GET or DELETE", r.Method),
		}
	}
}

func writeReport(w http.ResponseWriter, s reportSnapshot, ok bool) error {
	if !ok {
		return caddy.APIError{
			HTTPStatus: http.StatusNotFound,
			Err:        errors.New("no not_found handler has report enabled; give one the option report"),
		}
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(s)
}

// reportFilter chooses addresses of a report.
type reportFilter struct {
	limit  int // 0: all of them
	linked bool
	host   string // as parseHost returns it
}

func parseReportFilter(query string) (f reportFilter, err error) {
	params, err := url.ParseQuery(query)
	if err != nil {
		return f, fmt.Errorf("reading the query: %w", err)
	}
	for name, values := range params {
		if len(values) > 1 {
			return f, fmt.Errorf("%s is given %d times; give it once", name, len(values))
		}
		value := values[0]
		switch name {
		case "limit":
			if f.limit, err = strconv.Atoi(value); err != nil || f.limit < 1 {
				return f, fmt.Errorf("limit: %q is not a number of addresses; write it as in limit=20", value)
			}
		case "linked":
			if value != "true" && value != "false" {
				return f, fmt.Errorf("linked: %q is neither true nor false", value)
			}
			f.linked = value == "true"
		case "host":
			if f.host, err = parseHost(value); err != nil {
				return f, fmt.Errorf("host: %w", err)
			}
		default:
			return f, fmt.Errorf("unknown parameter %q; the parameters are limit, linked and host", name)
		}
	}
	return f, nil
}

// parseHost returns a host, with or without a port, as the report has it.
func parseHost(s string) (string, error) {
	host := strings.ToLower(s)
	if addr, err := netip.ParseAddr(host); err == nil && addr.Is6() {
		host = "[" + host + "]"
	}
	if !uri.ValidAuthority(host) {
		return "", fmt.Errorf("%q is not a host; write it as in www.example.com, localhost:8080 or ::1", s)
	}
	return host, nil
}

// query returns the filter as a query.
func (f reportFilter) query() string {
	params := make(url.Values)
	if f.limit > 0 {
		params.Set("limit", strconv.Itoa(f.limit))
	}
	if f.linked {
		params.Set("linked", "true")
	}
	if f.host != "" {
		params.Set("host", f.host)
	}
	return params.Encode()
}

func (f reportFilter) apply(addresses []addressSnapshot) []addressSnapshot {
	addresses = slices.DeleteFunc(addresses, func(a addressSnapshot) bool {
		withoutPort := a.Host[:max(strings.LastIndexByte(a.Host, ':'), 0)]
		return f.linked && a.Linked == 0 || f.host != "" && f.host != a.Host && f.host != withoutPort
	})
	if f.limit > 0 && f.limit < len(addresses) {
		addresses = addresses[:f.limit]
	}
	return addresses
}

// Interface guards
var _ caddy.AdminRouter = (*adminReport)(nil)
