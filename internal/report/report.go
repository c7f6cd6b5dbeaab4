// Package report counts which addresses clients miss, and from which links they came. A [Counter] counts a [Miss] at a
// time, in memory that is bounded whatever clients send. What it has counted is a [Report], in JSON or in a table for a
// terminal. Reports of many counters become one with [Merge], and a [Filter] chooses addresses of it.
//
// The package knows addresses and links. It knows neither requests nor Caddy.
package report

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Outcome is what became of a request for a missing address.
type Outcome uint8

const (
	Unanswered  Outcome = iota // the page, because nothing answered
	Error                      // the page, because a handler returned an error with status 404
	Response                   // the page, in place of a 404 response
	Passed                     // a 404 response that passed, and that `replace pages` lets pass
	Replaceable                // a 404 response that passed, and that `replace pages` would have replaced
	numOutcomes
)

var outcomeNames = [numOutcomes]string{"unanswered", "error", "response", "passed", "replaceable"}

// String returns unanswered, error, response, passed or replaceable.
func (o Outcome) String() string { return outcomeNames[o] }

// Report says which addresses were missed, the most frequent first.
type Report struct {
	Since     time.Time `json:"since"`
	Count     uint64    `json:"count"`             // of all addresses, even of those that are not in Addresses
	Capacity  int       `json:"capacity"`          // how many addresses there was room for
	Floor     uint64    `json:"floor"`             // how often an address may have been missed that there was no room for
	Partial   bool      `json:"partial,omitempty"` // whether a Filter left addresses out
	Addresses []Address `json:"addresses"`
}

// Address is an address that was missed.
type Address struct {
	Host      string    `json:"host"` // with the port, if there was one; empty for an address such as urn:x
	Path      string    `json:"path"`
	Count     uint64    `json:"count"`
	Overcount uint64    `json:"overcount"` // by how much Count may be too high
	Outcomes  Outcomes  `json:"outcomes"`  // which add up to Count less Overcount
	Links     Links     `json:"links"`
	First     time.Time `json:"first"`
	Last      time.Time `json:"last"`
}

// Outcomes says how many requests had which [Outcome].
type Outcomes struct {
	Unanswered  uint64 `json:"unanswered"`
	Error       uint64 `json:"error"`
	Response    uint64 `json:"response"`
	Passed      uint64 `json:"passed"`
	Replaceable uint64 `json:"replaceable"`
}

// all returns the numbers in the order of [Outcome].
func (o Outcomes) all() [numOutcomes]uint64 {
	return [...]uint64{o.Unanswered, o.Error, o.Response, o.Passed, o.Replaceable}
}

// Links says how many requests came by which [Link]. The others came by none.
type Links struct {
	Own   LinkCount `json:"own"`
	Other LinkCount `json:"other"`
}

// LinkCount says how many links of a kind led to an address, and which was the last: a URL without user information, query
// and fragment.
type LinkCount struct {
	Count uint64 `json:"count"`
	Last  string `json:"last"`
}

// sort sorts the addresses: the most frequent first, and of equally frequent ones the one that was missed last.
func (r *Report) sort() {
	slices.SortFunc(r.Addresses, func(a, b Address) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.Last.Compare(a.Last), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Path, b.Path))
	})
}

// Printable replaces what would do more to a terminal than print.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}
