package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/caddy-notfound/notfound/internal/uri"
)

// Parse reads a report in JSON. It refuses one that neither a Counter nor Merge could have made, and a partial one: what
// it returns can be merged, and does nothing to a terminal.
func Parse(body []byte) (Report, error) {
	var r Report
	if err := json.Unmarshal(body, &r); err != nil {
		return Report{}, errors.New(Printable(err.Error())) // a time that is wrong is quoted, and not all of it is escaped
	}
	if err := r.check(); err != nil {
		return Report{}, err
	}
	return r, nil
}

// check refuses a report that cannot be merged. No sum of its numbers is greater than Count.
func (r *Report) check() error {
	switch {
	case r.Capacity < 1:
		return fmt.Errorf("it is not a report of not_found: its capacity is %d", r.Capacity)
	case r.Partial:
		return errors.New("it is partial, because a limit or a filter left addresses out; give the whole report")
	case !isTime(r.Since):
		return errors.New("it does not say since when it counts")
	case r.Floor > r.Count/uint64(r.Capacity):
		return fmt.Errorf("with a count of %d and a capacity of %d, the floor cannot be %d", r.Count, r.Capacity, r.Floor)
	}
	known := make(map[[2]string]bool, len(r.Addresses))
	missed, missing := r.Count, r.Count // by how much the addresses do not add up to Count, without their overcounts and with them
	for _, a := range r.Addresses {
		if !isKey(a.Host, a.Path) {
			return fmt.Errorf("%.100q is not an address as a report has it", a.Host+a.Path)
		}
		if known[[2]string{a.Host, a.Path}] {
			return fmt.Errorf("%s%s is there twice", a.Host, a.Path)
		}
		known[[2]string{a.Host, a.Path}] = true
		if err := a.check(r.Count, r.Floor); err != nil {
			return fmt.Errorf("%s%s: %w", a.Host, a.Path, err)
		}
		if a.Count-a.Overcount > missed {
			return fmt.Errorf("the addresses were missed more often than the count %d says", r.Count)
		}
		missed -= a.Count - a.Overcount
		missing -= min(missing, a.Count)
	}
	if missing > 0 {
		return fmt.Errorf("addresses are missing: the others do not add up to the count %d", r.Count)
	}
	return nil
}

func (a *Address) check(count, floor uint64) error {
	switch {
	case a.Count > count || a.Count < floor || a.Overcount > floor || a.Overcount >= a.Count:
		return fmt.Errorf("in a report with the count %d and the floor %d, it cannot have the count %d and the overcount %d",
			count, floor, a.Count, a.Overcount)
	case !isTime(a.First) || !isTime(a.Last) || a.Last.Before(a.First):
		return errors.New("it does not say when it was missed first and last")
	}
	left := a.Count - a.Overcount
	for _, n := range a.Outcomes.all() {
		if n > left {
			return fmt.Errorf("the outcomes %v add up to more than its count less its overcount", a.Outcomes.all())
		}
		left -= n
	}
	if left > 0 {
		return fmt.Errorf("the outcomes %v add up to less than its count less its overcount", a.Outcomes.all())
	}
	own, other := a.Links.Own, a.Links.Other
	if total := a.Count - a.Overcount; own.Count > total || other.Count > total-own.Count {
		return fmt.Errorf("%d own and %d other links led to it, which is more than its count less its overcount", own.Count, other.Count)
	}
	for _, l := range []LinkCount{own, other} {
		if (l.Count > 0) != (l.Last != "") || string(appendLink(nil, l.Last)) != l.Last {
			return fmt.Errorf("of %d links, %.100q cannot be the last", l.Count, l.Last)
		}
	}
	return nil
}

// isKey reports whether appendKey makes a host and a path.
func isKey(host, path string) bool {
	address := path
	if host != "" {
		address = "http://" + host + path
	}
	return (host == "" || uri.ValidAuthority(host)) && string(uri.AppendPath(nil, path)) == path &&
		string(appendKey(nil, []byte(address))) == host+" "+path
}

// isTime reports whether a time is given, and JSON can have it in UTC.
func isTime(t time.Time) bool {
	year := t.UTC().Year()
	return !t.IsZero() && 1 <= year && year <= 9999
}
