package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caddy-notfound/notfound/internal/uri"
)

// Merge makes one report of one or more that counted different requests: of Counters, or merged before (Cafaro, Pulimeno,
// Tempesta: A parallel space saving algorithm for frequent items and the Hurwitz zeta distribution, arXiv 1401.0702). An
// address that a report lacks may have been missed there as often as the Floor says, which is added to its Count and its
// Overcount. Nothing is cut, and no floor is computed again. So the bounds hold in whatever order reports are merged: an
// address was missed between Count less Overcount and Count times, and one that is not there at most Floor times.
func Merge(reports ...Report) (Report, error) {
	merged := Report{Since: reports[0].Since, Capacity: reports[0].Capacity, Addresses: []Address{}} // not nil, for JSON
	type counted struct {
		*Address
		floor uint64 // of the tables that have it
	}
	var all []counted
	for i, r := range reports {
		if merged.Partial = r.Partial; r.Partial && len(reports) > 1 {
			return Report{}, fmt.Errorf("report %d is partial, because a limit or a filter left addresses out; give the whole report", i+1)
		}
		merged.Capacity = min(merged.Capacity, r.Capacity)
		merged.Since = earliest(merged.Since, r.Since)
		for link, sum := range merged.Links.all() {
			t := r.Links.all()[link]
			sum.Count += t.Count
			sum.Floor += t.Floor
			sum.Outcomes.add(&t.Outcomes)
		}
		for i := range r.Addresses {
			a := &r.Addresses[i]
			all = append(all, counted{a, r.Links.all()[a.Link].Floor})
		}
	}
	slices.SortFunc(all, func(a, b counted) int {
		return cmp.Or(compareKeys(a.Address, b.Address), a.Last.Compare(b.Last), cmp.Compare(a.LastLink, b.LastLink))
	})
	for i := 0; i < len(all); {
		m, floor := *all[i].Address, all[i].floor
		for i++; i < len(all) && compareKeys(all[i].Address, &m) == 0; i++ {
			a := all[i]
			floor += a.floor
			m.Count += a.Count
			m.Overcount += a.Overcount
			m.Outcomes.add(&a.Outcomes)
			m.Query = m.Query || a.Query
			m.LastLink = cmp.Or(a.LastLink, m.LastLink)
			m.First, m.Last = earliest(m.First, a.First), a.Last
		}
		absent := merged.Links.all()[m.Link].Floor - floor // at most, in the tables that lack it
		m.Count += absent
		m.Overcount += absent
		merged.Addresses = append(merged.Addresses, m)
	}
	merged.sort()
	return merged, nil
}

// compareKeys compares the link, the host and the path.
func compareKeys(a, b *Address) int {
	return cmp.Or(cmp.Compare(a.Link, b.Link), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Path, b.Path))
}

func (o *Outcomes) add(more *Outcomes) {
	for i, n := range more.all() {
		*o.all()[i] += *n
	}
}

func earliest(a, b time.Time) time.Time { return slices.MinFunc([]time.Time{a, b}, time.Time.Compare) }

// Parse reads a report in JSON. It refuses one of another version, one whose addresses do not add up, and control
// characters. It does not verify the numbers. The first address that is none ends it, so memory stays within a small
// multiple of the body.
func Parse(body []byte) (Report, error) {
	var read struct {
		Report
		Addresses addresses                         `json:"addresses"` // hides the report's
		Links     struct{ Own, Other, None *Total } `json:"links"`     // so that none is missing silently
	}
	if !json.Valid(body) {
		return Report{}, json.Unmarshal(body, &read) // which says why, and quotes what it names
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(&read)
	if l := read.Links; err == nil && (l.Own == nil || l.Other == nil || l.None == nil) {
		err = errors.New("it lacks a kind of link")
	}
	if err != nil {
		return Report{}, fmt.Errorf("it is not a report, or was made by another version of not_found: %s", Printable(err.Error()))
	}
	r := read.Report
	r.Links, r.Addresses = Totals{*read.Links.Own, *read.Links.Other, *read.Links.None}, read.Addresses
	return r, r.check()
}

// addresses are those of a report in JSON.
type addresses []Address

// UnmarshalJSON decodes an address at a time: 3 bytes of JSON would take 168 of memory.
func (all *addresses) UnmarshalJSON(body []byte) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if bracket, _ := d.Token(); bracket != json.Delim('[') {
		return errors.New("the addresses are no list")
	}
	for d.More() {
		var a Address
		if err := d.Decode(&a); err != nil {
			return err
		}
		if err := a.check(); err != nil {
			return err
		}
		*all = append(*all, a)
	}
	return nil
}

// check refuses an address that no [Counter] has.
func (a *Address) check() error {
	switch {
	case a.Host+a.Path == "" || !isKey(a.Host, a.Path):
		return fmt.Errorf("%.100q is not an address as a report has it", a.Host+a.Path)
	case string(appendLink(nil, a.LastLink)) != a.LastLink:
		return fmt.Errorf("%.100q is not a link as a report has it", a.LastLink)
	case a.Count == 0 || a.First.IsZero() || a.Last.IsZero():
		return fmt.Errorf("%q has no count, or no first or last time", a.Host+a.Path)
	}
	return nil
}

// check refuses a report that lacks addresses without saying so.
func (r *Report) check() error {
	if r.Capacity < 1 {
		return fmt.Errorf("the capacity cannot be %d", r.Capacity)
	}
	if r.Partial {
		return nil
	}
	var missing [NumLinks]uint64 // what the addresses do not add up to
	for link, t := range r.Links.all() {
		missing[link] = t.Count
	}
	for _, a := range r.Addresses {
		missing[a.Link] -= min(missing[a.Link], a.Count)
	}
	for link, n := range missing {
		if n > 0 {
			return fmt.Errorf("%s: addresses are missing, which were missed %d times", Link(link), n)
		}
	}
	return nil
}

// isKey reports whether appendKey makes a host and a path.
func isKey(host, path string) bool {
	return (host == "" || uri.ValidAuthority(host) && (path == "" || path[0] == '/')) &&
		uri.EncodePath(path) == path &&
		string(appendKey(nil, host, path)) == host+" "+path
}
