// Package report counts which addresses clients miss, and from which links they came. A [Counter] counts a [Miss] at a
// time, in memory that is bounded whatever clients send. What it has counted is a [Report], which the admin API sends as
// JSON: a [Filter] chooses addresses of it, and [Report.WriteTable] writes it for a terminal.
//
// The package knows addresses and links. It knows neither requests nor Caddy.
package report

import (
	"cmp"
	"slices"
	"time"
)

// Report says which addresses were missed, the most frequent first.
type Report struct {
	Since     time.Time `json:"since"`
	Count     uint64    `json:"count"` // of all addresses, even of those that are not in Addresses
	Addresses []Address `json:"addresses"`
}

// Address is an address that was missed.
type Address struct {
	Host      string    `json:"host"` // with the port, if there was one; empty for an address such as urn:x
	Path      string    `json:"path"`
	Count     uint64    `json:"count"`
	Overcount uint64    `json:"overcount"` // by how much Count may be too high
	Causes    Causes    `json:"causes"`
	Kept      uint64    `json:"kept"`       // 404 responses that passed
	KeptPages uint64    `json:"kept_pages"` // those of them that `replace pages` would have replaced
	Linked    uint64    `json:"linked"`     // by requests that a link led to
	LastLink  string    `json:"last_link"`
	First     time.Time `json:"first"`
	Last      time.Time `json:"last"`
}

// Causes says how many pages were written for each cause.
type Causes struct {
	Unanswered uint64 `json:"unanswered"`
	Error      uint64 `json:"error"`
	Response   uint64 `json:"response"`
}

// sort sorts the addresses: the most frequent first, and of equally frequent ones the one that was missed last.
func (r *Report) sort() {
	slices.SortFunc(r.Addresses, func(a, b Address) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.Last.Compare(a.Last), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Path, b.Path))
	})
}
