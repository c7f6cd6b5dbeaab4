package report

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-notfound/notfound/internal/uri"
)

// Filter chooses addresses of a report. The zero value chooses all of them.
type Filter struct {
	Limit   int    // how many addresses of each kind of link, the most frequent ones; 0: all
	Link    string // only addresses that this kind of link led to; empty: any
	Outcome string // only addresses that had this outcome; empty: any
	Host    string // only addresses of this host, with its port unless that is a default one; empty: any
}

// filterNames are the names of a filter's fields in a query.
var filterNames = []string{"limit", "link", "outcome", "host"}

// parseFilter returns the filter of a query. It refuses a query that would choose nothing, or would be ignored in part.
func parseFilter(rawQuery string) (f Filter, err error) {
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return f, fmt.Errorf("the query: %w", err)
	}
	for name, values := range query {
		if !slices.Contains(filterNames, name) {
			return f, unknown("the query", name, filterNames)
		}
		if len(values) > 1 {
			return f, fmt.Errorf("the query: %q is there %d times; write it once", name, len(values))
		}
	}
	f = Filter{
		Limit:   20,
		Link:    query.Get("link"),
		Outcome: query.Get("outcome"),
		Host:    query.Get("host"),
	}
	if limit := query.Get("limit"); limit != "" {
		f.Limit, err = strconv.Atoi(limit)
		if err != nil || f.Limit < 0 {
			return f, fmt.Errorf("limit: %q is not a number of addresses; write one such as 20, or 0 for all of them", limit)
		}
	}
	if f.Host != "" && !uri.ValidAuthority(f.Host) {
		return f, fmt.Errorf("host: %q is not a host; write it as in www.example.com", f.Host)
	}
	if err := checkName("link", f.Link, linkNames[:]); err != nil {
		return f, err
	}
	return f, checkName("outcome", f.Outcome, outcomeNames[:])
}

func checkName(of, name string, names []string) error {
	if name == "" || slices.Contains(names, name) {
		return nil
	}
	return unknown(of, name, names)
}

func unknown(of, name string, names []string) error {
	return fmt.Errorf("%s: %q is unknown; write one of %s", of, name, strings.Join(names, ", "))
}

// choose returns the addresses of one kind of link that the filter chooses, whatever the limit.
func (f *Filter) choose(r *Report, link Link) (chosen []Address) {
	outcome := slices.Index(outcomeNames[:], f.Outcome) // -1: any
	for _, a := range r.Addresses {
		hadOutcome := outcome < 0 || a.Outcomes[outcome] > 0
		isOfHost := f.Host == "" || sameHost(a.Host, f.Host)
		if a.Link == link && hadOutcome && isOfHost {
			chosen = append(chosen, a)
		}
	}
	return chosen
}
