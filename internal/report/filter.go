package report

import (
	"fmt"
	"slices"
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

// Check refuses values that choose nothing.
func (f *Filter) Check() error {
	if f.Limit < 0 {
		return fmt.Errorf("limit: %d is not a number of addresses; write --limit 20, or --limit 0 for all of them", f.Limit)
	}
	if f.Host != "" && !uri.ValidAuthority(f.Host) {
		return fmt.Errorf("host: %q is not a host; write --host www.example.com", f.Host)
	}
	if err := checkName("link", f.Link, linkNames[:]); err != nil {
		return err
	}
	return checkName("outcome", f.Outcome, outcomeNames[:])
}

func checkName(flag, name string, names []string) error {
	if name == "" || slices.Contains(names, name) {
		return nil
	}
	return fmt.Errorf("%s: %q is unknown; write one of %s", flag, name, strings.Join(names, ", "))
}

// choose returns the addresses of one kind of link that the filter chooses, whatever the limit.
func (f *Filter) choose(r *Report, link Link) (chosen []Address) {
	for _, a := range r.Addresses {
		hadOutcome := f.Outcome == "" || a.Outcomes.countOf(f.Outcome) > 0
		isOfHost := f.Host == "" || sameHost(a.Host, f.Host)
		if a.Link == link && hadOutcome && isOfHost {
			chosen = append(chosen, a)
		}
	}
	return chosen
}
