package report

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Merge makes one report of several, which count for themselves: of Counters, or merged before (Cafaro, Pulimeno, Tempesta:
// A parallel space saving algorithm for frequent items and the Hurwitz zeta distribution, arXiv 1401.0702). Where a report
// lacks an address, that may have been missed as often as its Floor says, which is added to the Count and the Overcount of
// the address. Nothing is cut, and no floor is computed anew. So the bounds hold, and in whatever order reports are merged:
// an address was missed between Count less Overcount and Count times, and one that is not there at most Floor times.
//
// A report does not say when a link was followed, so the last link is that of the report that missed the address last.
func Merge(reports ...Report) (Report, error) {
	if len(reports) == 0 {
		return Report{}, errors.New("there is no report to merge")
	}
	merged := Report{Since: reports[0].Since.UTC(), Capacity: reports[0].Capacity, Addresses: []Address{}} // not nil, for JSON
	for i, r := range reports {
		if err := r.check(); err != nil {
			return Report{}, fmt.Errorf("report %d: %w", i+1, err)
		}
		if merged.Count+r.Count < r.Count {
			return Report{}, errors.New("the counts of the reports add up to too large a number")
		}
		merged.Count += r.Count // no other sum is greater
		merged.Floor += r.Floor
		merged.Capacity = min(merged.Capacity, r.Capacity)
		merged.Since = earliest(merged.Since, r.Since)
	}

	addresses := make(map[[2]string]*mergedAddress)
	for _, r := range reports {
		for _, a := range r.Addresses {
			key := [2]string{a.Host, a.Path}
			m := addresses[key]
			if m == nil {
				m = &mergedAddress{Address: Address{
					Host: a.Host, Path: a.Path, Count: merged.Floor, Overcount: merged.Floor, First: a.First.UTC(), Last: a.Last.UTC(),
				}}
				addresses[key] = m
			}
			m.add(a, r.Floor)
		}
	}
	for _, m := range addresses {
		m.Links = Links{m.own.LinkCount, m.other.LinkCount}
		merged.Addresses = append(merged.Addresses, m.Address)
	}
	merged.sort()
	return merged, nil
}

// mergedAddress is an address that begins as if every report lacked it.
type mergedAddress struct {
	Address
	own, other mergedLinks
}

// add adds what a report has of the address, in place of its floor.
func (m *mergedAddress) add(a Address, floor uint64) {
	m.Count += a.Count - floor
	m.Overcount -= floor - a.Overcount
	m.Outcomes.Unanswered += a.Outcomes.Unanswered
	m.Outcomes.Error += a.Outcomes.Error
	m.Outcomes.Response += a.Outcomes.Response
	m.Outcomes.Passed += a.Outcomes.Passed
	m.Outcomes.Replaceable += a.Outcomes.Replaceable
	m.own.add(a.Links.Own, a.Last)
	m.other.add(a.Links.Other, a.Last)
	m.First, m.Last = earliest(m.First, a.First), latest(m.Last, a.Last)
}

// mergedLinks are links of which the last is that of the report that missed the address last.
type mergedLinks struct {
	LinkCount
	missed time.Time
}

func (m *mergedLinks) add(l LinkCount, missed time.Time) {
	m.Count += l.Count
	if l.Count > 0 && cmp.Or(missed.Compare(m.missed), cmp.Compare(l.Last, m.Last)) > 0 {
		m.Last, m.missed = l.Last, missed
	}
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b.UTC()
	}
	return a
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b.UTC()
	}
	return a
}
