// Package report counts which addresses clients miss, and from which links they came. A [Counter] counts a [Miss] at a
// time, in memory that is bounded whatever clients send. What it has counted is a [Report], which the admin API sends as
// JSON: a [Filter] chooses addresses of it, and [Report.WriteTable] writes it for a terminal.
//
// The package knows addresses and links. It knows neither requests nor Caddy.
package report

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

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

// Parse reads a report in JSON.
func Parse(body []byte) (r Report, err error) {
	return r, json.Unmarshal(body, &r)
}

// sort sorts the addresses: the most frequent first, and of equally frequent ones the one that was missed last.
func (r *Report) sort() {
	slices.SortFunc(r.Addresses, func(a, b Address) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.Last.Compare(a.Last), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Path, b.Path))
	})
}
