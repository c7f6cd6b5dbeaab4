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
	limit int    // how many of each kind of link, the first ones of the report; 0 is all of them
	link  string // only those of this kind of link
	why   string // only those that had this outcome
	host  string // only those of this host, as a report has it; without a port, on any
}

// ParseFilter parses a filter in the query of a URL, as in limit=20&link=own&why=response&host=www.example.com.
func ParseFilter(query string) (f Filter, err error) {
	params, err := url.ParseQuery(query)
	if err != nil {
		return f, fmt.Errorf("reading the query: %w", err)
	}
	for name, values := range params {
		if len(values) > 1 {
			return f, fmt.Errorf("%s is given %d times; give it once", name, len(values))
		}
		if err := f.Set(name, values[0]); err != nil {
			return f, err
		}
	}
	return f, nil
}

// Set sets one of the parameters limit, link, why and host.
func (f *Filter) Set(name, value string) (err error) {
	switch name {
	case "limit":
		if f.limit, err = strconv.Atoi(value); err != nil || f.limit < 1 {
			return fmt.Errorf("limit: %q is not a number of addresses; write it as in limit=20", value)
		}
	case "link":
		f.link = value
		return new(Link).UnmarshalText([]byte(value))
	case "why":
		if f.why = value; !slices.Contains(outcomeNames[:], value) {
			return fmt.Errorf("why: %q is not an outcome; it is one of %s", value, strings.Join(outcomeNames[:], ", "))
		}
	case "host":
		host := strings.ToLower(value)
		if addr, err := netip.ParseAddr(host); err == nil && addr.Is6() {
			host = "[" + host + "]"
		}
		if !uri.ValidAuthority(host) {
			return fmt.Errorf("host: %q is not a host; write it as in www.example.com, localhost:8080 or ::1", value)
		}
		f.host = host
	default:
		return fmt.Errorf("unknown parameter %q; the parameters are limit, link, why and host", name)
	}
	return nil
}

// Apply removes the addresses from a report that the filter does not choose.
func (f Filter) Apply(r *Report) {
	before := len(r.Addresses)
	var chosen [NumLinks]int
	r.Addresses = slices.DeleteFunc(r.Addresses, func(a Address) bool {
		if !f.chooses(&a) {
			return true
		}
		chosen[a.Link]++
		return f.limit > 0 && chosen[a.Link] > f.limit
	})
	r.Partial = r.Partial || len(r.Addresses) < before
}

// chooses reports whether the filter chooses an address, but for the limit.
func (f *Filter) chooses(a *Address) bool {
	if f.link != "" && f.link != a.Link.String() ||
		f.why != "" && *a.Outcomes.all()[slices.Index(outcomeNames[:], f.why)] == 0 {
		return false
	}
	withoutPort := a.Host[:max(strings.LastIndexByte(a.Host, ':'), 0)]
	return f.host == "" || f.host == a.Host || f.host == withoutPort
}
