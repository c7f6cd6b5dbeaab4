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

// Merge makes one report of several, which count for themselves: of Counters, or merged before (Cafaro, Pulimeno, Tempesta:
// A parallel space saving algorithm for frequent items and the Hurwitz zeta distribution, arXiv 1401.0702). Each kind of
// link is merged for itself. Where a report lacks an address, that may have been missed as often as the Floor says, which is
// added to the Count and the Overcount of the address. Nothing is cut, and no floor is computed anew. So the bounds hold, and
// in whatever order reports are merged: an address was missed between Count less Overcount and Count times, and one that is
// not there at most Floor times.
//
// The last link of an address is that of the report that missed it last, of those that have one.
func Merge(reports ...Report) (Report, error) {
	if len(reports) == 0 {
		return Report{}, errors.New("there is no report to merge")
	}
	merged := Report{Since: reports[0].Since, Capacity: reports[0].Capacity, Addresses: []Address{}} // not nil, for JSON
	// what each report has in place of its floor
	var all []Address
	for i, r := range reports {
		if err := r.check(); err != nil {
			return Report{}, fmt.Errorf("report %d: %w", i+1, err)
		}
		merged.Capacity = min(merged.Capacity, r.Capacity)
		merged.Since = earliest(merged.Since, r.Since)
		for link, sum := range merged.Links.all() {
			t := r.Links.all()[link]
			if sum.Count+t.Count < t.Count {
				return Report{}, errors.New("the counts of the reports add up to too large a number")
			}
			sum.Count += t.Count // no other sum is greater
			sum.Floor += t.Floor
			sum.Outcomes.add(&t.Outcomes)
		}
		for _, a := range r.Addresses {
			floor := r.Links.all()[a.Link].Floor
			a.Count -= floor
			a.Overcount -= floor // below 0, which adds up all the same
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b Address) int {
		return cmp.Or(cmp.Compare(a.Link, b.Link), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Path, b.Path),
			a.Last.Compare(b.Last), cmp.Compare(a.LastLink, b.LastLink))
	})
	for i, a := range all {
		if i == 0 || a.key() != all[i-1].key() {
			floor := merged.Links.all()[a.Link].Floor
			a.Count += floor
			a.Overcount += floor
			merged.Addresses = append(merged.Addresses, a)
			continue
		}
		m := &merged.Addresses[len(merged.Addresses)-1]
		m.Count += a.Count
		m.Overcount += a.Overcount
		m.Outcomes.add(&a.Outcomes)
		m.LastLink = cmp.Or(a.LastLink, m.LastLink)
		m.First, m.Last = earliest(m.First, a.First), a.Last
	}
	merged.sort()
	return merged, nil
}

// key is what makes an address one.
type key struct {
	link       Link
	host, path string
}

func (a *Address) key() key { return key{a.Link, a.Host, a.Path} }

func (o *Outcomes) add(more *Outcomes) {
	for i, n := range more.all() {
		*o.all()[i] += *n
	}
}

func earliest(a, b time.Time) time.Time { return slices.MinFunc([]time.Time{a, b}, time.Time.Compare) }

// Parse reads a report in JSON. It refuses one that neither a Counter nor Merge could have made, one of another version,
// and a partial one: what it returns can be merged, and does nothing to a terminal.
func Parse(body []byte) (Report, error) {
	var read struct {
		Report
		Links struct{ Own, Other, None *Total } `json:"links"` // in place of the report's, to see which are missing
	}
	if !json.Valid(body) { // which json.Unmarshal explains
		return Report{}, errors.New(Printable(json.Unmarshal(body, &read).Error()))
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

// check refuses a report that cannot be merged. For each kind of link, no sum of its numbers is greater than its count.
func (r *Report) check() error {
	switch {
	case r.Capacity < 1:
		return fmt.Errorf("the capacity cannot be %d", r.Capacity)
	case r.Partial:
		return errors.New("it is partial, because a limit or a filter left addresses out; give the whole report")
	case !isTime(r.Since):
		return errors.New("it does not say since when it counts")
	}
	var missing [NumLinks]uint64 // by how much the addresses do not add up to the count
	for link, t := range r.Links.all() {
		if !t.Outcomes.addUpTo(t.Count) || t.Floor > t.Count/uint64(r.Capacity) {
			return fmt.Errorf("%s: with a capacity of %d, the numbers %d cannot be", Link(link), r.Capacity, *t)
		}
		missing[link] = t.Count
	}
	known := make(map[key]bool, len(r.Addresses))
	for _, a := range r.Addresses {
		if !isKey(a.Host, a.Path) {
			return fmt.Errorf("%.100q is not an address as a report has it", a.Host+a.Path)
		}
		if known[a.key()] || !a.isPossible(r.Links.all()[a.Link]) {
			return fmt.Errorf("%s, %s%s: it is there twice, or its numbers, its times or its last link cannot be", a.Link, a.Host, a.Path)
		}
		known[a.key()] = true
		missing[a.Link] -= min(missing[a.Link], a.Count)
	}
	for link, n := range missing {
		if n > 0 {
			return fmt.Errorf("%s: addresses are missing, which were missed %d times", Link(link), n)
		}
	}
	return nil
}

// isPossible reports whether an address can be among those of a kind of link.
func (a *Address) isPossible(t *Total) bool {
	return t.Floor <= a.Count && a.Count <= t.Count && a.Overcount <= t.Floor && a.Overcount < a.Count &&
		a.Outcomes.addUpTo(a.Count-a.Overcount) &&
		isTime(a.First) && isTime(a.Last) && !a.Last.Before(a.First) &&
		(a.LastLink != "" || a.Link == None) && string(appendLink(nil, a.LastLink)) == a.LastLink
}

// addUpTo reports whether the outcomes add up to n, whatever numbers they are.
func (o *Outcomes) addUpTo(n uint64) bool {
	for _, of := range o.all() {
		if *of > n {
			return false
		}
		n -= *of
	}
	return n == 0
}

// isKey reports whether appendKey makes a host and a path.
func isKey(host, path string) bool {
	return (host == "" || uri.ValidAuthority(host) && (path == "" || path[0] == '/')) &&
		uri.EncodePath(path) == path &&
		string(appendKey(nil, host, path)) == host+" "+path
}

// isTime reports whether a time is given as a report has it.
func isTime(t time.Time) bool { return !t.IsZero() && t.Location() == time.UTC }
