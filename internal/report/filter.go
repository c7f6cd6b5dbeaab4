package report

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-notfound/notfound/internal/uri"
)

// Filter chooses addresses of a report. The zero value chooses all of them.
type Filter struct {
	Limit  int    // how many, the first ones of the report; 0 is all of them
	Linked bool   // only those that a link led to
	Host   string // only those of this host, as ParseHost returns it; without a port, on any
}

// ParseFilter parses a filter in the query of a URL, as in limit=20&linked=true&host=www.example.com.
func ParseFilter(query string) (f Filter, err error) {
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
			if f.Limit, err = strconv.Atoi(value); err != nil || f.Limit < 1 {
				return f, fmt.Errorf("limit: %q is not a number of addresses; write it as in limit=20", value)
			}
		case "linked":
			if value != "true" && value != "false" {
				return f, fmt.Errorf("linked: %q is neither true nor false", value)
			}
			f.Linked = value == "true"
		case "host":
			if f.Host, err = ParseHost(value); err != nil {
				return f, fmt.Errorf("host: %w", err)
			}
		default:
			return f, fmt.Errorf("unknown parameter %q; the parameters are limit, linked and host", name)
		}
	}
	return f, nil
}

// ParseHost returns a host, with or without a port, as a report has it.
func ParseHost(s string) (string, error) {
	host := strings.ToLower(s)
	if addr, err := netip.ParseAddr(host); err == nil && addr.Is6() {
		host = "[" + host + "]"
	}
	if !uri.ValidAuthority(host) {
		return "", fmt.Errorf("%q is not a host; write it as in www.example.com, localhost:8080 or ::1", s)
	}
	return host, nil
}

// Query returns the filter as ParseFilter takes it.
func (f Filter) Query() string {
	params := make(url.Values)
	if f.Limit > 0 {
		params.Set("limit", strconv.Itoa(f.Limit))
	}
	if f.Linked {
		params.Set("linked", "true")
	}
	if f.Host != "" {
		params.Set("host", f.Host)
	}
	return params.Encode()
}

// Apply removes from a report what the filter does not choose.
func (f Filter) Apply(r *Report) {
	r.Addresses = slices.DeleteFunc(r.Addresses, func(a Address) bool {
		withoutPort := a.Host[:max(strings.LastIndexByte(a.Host, ':'), 0)]
		return f.Linked && a.Linked == 0 || f.Host != "" && f.Host != a.Host && f.Host != withoutPort
	})
	if f.Limit > 0 && f.Limit < len(r.Addresses) {
		r.Addresses = r.Addresses[:f.Limit]
	}
}
