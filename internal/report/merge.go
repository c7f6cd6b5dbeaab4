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

// Merge makes one report of several that counted different requests: of Counters, or merged before (Cafaro, Pulimeno,
// Tempesta: A parallel space saving algorithm for frequent items and the Hurwitz zeta distribution, arXiv 1401.0702). Each
// kind of link is merged by itself. An address that a report lacks may have been missed there as often as the Floor says,
// which is added to its Count and its Overcount. Nothing is cut, and no floor is computed again. So the bounds hold in
// whatever order reports are merged: an address was missed between Count less Overcount and Count times, and one that is
// not there at most Floor times.
//
// The last link of an address is that of the report that missed it last, of those that have one.
func Merge(reports ...Report) (Report, error) {
	if len(reports) == 0 {
		return Report{}, errors.New("there is no report to merge")
	}
	merged := Report{Since: reports[0].Since, Capacity: reports[0].Capacity, Addresses: []Address{}} // not nil, for JSON
	type counted struct {
		Address
		floor uint64 // of the tables that have it
	}
	var all []counted
	for i, r := range reports {
		if err := r.check(); err != nil {
			return Report{}, fmt.Errorf("report %d: %w", i+1, err)
		}
		merged.Capacity = min(merged.Capacity, r.Capacity)
		merged.Since = earliest(merged.Since, r.Since)
		for link, sum := range merged.Links.all() {
			t := r.Links.all()[link]
			sum.Count += t.Count
			sum.Floor += t.Floor
			sum.Outcomes.add(&t.Outcomes)
		}
		for _, a := range r.Addresses {
			all = append(all, counted{a, r.Links.all()[a.Link].Floor})
		}
	}
	slices.SortFunc(all, func(a, b counted) int {
		return cmp.Or(compareKeys(&a.Address, &b.Address), a.Last.Compare(b.Last), cmp.Compare(a.LastLink, b.LastLink))
	})
	for i := 0; i < len(all); {
		m := all[i]
		for i++; i < len(all) && compareKeys(&all[i].Address, &m.Address) == 0; i++ {
			a := &all[i]
			m.floor += a.floor
			m.Count += a.Count
			m.Overcount += a.Overcount
			m.Outcomes.add(&a.Outcomes)
			m.Query = m.Query || a.Query
			m.LastLink = cmp.Or(a.LastLink, m.LastLink)
			m.First, m.Last = earliest(m.First, a.First), a.Last
		}
		absent := merged.Links.all()[m.Link].Floor - m.floor // at most, in the tables that lack it
		m.Count += absent
		m.Overcount += absent
		merged.Addresses = append(merged.Addresses, m.Address)
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

// Parse reads a report in JSON. It refuses one of another version, one that cannot be merged, and control characters. It
// does not verify the numbers.
func Parse(body []byte) (Report, error) {
	var read struct {
		Report
		Links struct{ Own, Other, None *Total } `json:"links"` // hides the report's, so that none is missing silently
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
	r.Links = Totals{*read.Links.Own, *read.Links.Other, *read.Links.None}
	return r, r.check()
}

// check refuses a report that lacks addresses, and so cannot be merged, and one with control characters.
func (r *Report) check() error {
	switch {
	case r.Capacity < 1:
		return fmt.Errorf("the capacity cannot be %d", r.Capacity)
	case r.Partial:
		return errors.New("it is partial, because a limit or a filter left addresses out; give the whole report")
	}
	var missing [NumLinks]uint64 // what the addresses do not add up to
	for link, t := range r.Links.all() {
		missing[link] = t.Count
	}
	for _, a := range r.Addresses {
		if !isKey(a.Host, a.Path) {
			return fmt.Errorf("%.100q is not an address as a report has it", a.Host+a.Path)
		}
		if string(appendLink(nil, a.LastLink)) != a.LastLink {
			return fmt.Errorf("%.100q is not a link as a report has it", a.LastLink)
		}
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
