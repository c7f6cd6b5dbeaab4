// Package report counts which addresses clients miss, and by which kind of link they came. A [Counter] counts each
// [Miss], in memory that is bounded whatever clients send. A [Report] says what was counted, as JSON, or as text for a
// terminal, for which a [Filter] chooses addresses.
package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Outcome is what a request for a missing address counts as.
type Outcome uint8

// The first outcomes are the causes of a page.
const (
	OutcomeUnanswered  Outcome = iota // no handler answered
	OutcomeError                      // a handler returned an error with status 404
	OutcomeResponse                   // the page took the place of a 404 response
	OutcomePassed                     // a 404 response passed
	OutcomeReplaceable                // a 404 response that passed only because of dry_run or `replace none`
	NumOutcomes
)

var outcomeNames = [NumOutcomes]string{"unanswered", "error", "response", "passed", "replaceable"}

// OutcomeNames returns the names that people read, by [Outcome].
func OutcomeNames() []string { return outcomeNames[:] }

// String returns the name that people read, for example unanswered.
func (o Outcome) String() string { return outcomeNames[o] }

// Link is the kind of link that led to a missing address.
type Link uint8

const (
	OwnLink   Link = iota // a page of the same host, which has a broken link
	OtherLink             // a page of another host
	NoLink                // nobody followed a link
	NumLinks
)

var linkNames = [NumLinks]string{"own", "other", "none"}

// String returns own, other or none.
func (l Link) String() string { return linkNames[l] }

// MarshalText implements encoding.TextMarshaler, for JSON.
func (l Link) MarshalText() ([]byte, error) {
	return []byte(l.String()), nil
}

// Report says which addresses were missed: first those that an own link led to, then those of other links, then the
// rest; of each kind, the most frequent first.
type Report struct {
	Since     time.Time      `json:"since"`
	Capacity  int            `json:"capacity"` // how many addresses of each kind of link there was room for
	Links     map[Link]Total `json:"links"`
	Addresses []Address      `json:"addresses"`
}

// Total counts the requests of one kind of link, even those for addresses that are no longer there.
type Total struct {
	Count    uint64   `json:"count"`
	Floor    uint64   `json:"floor"` // how often an address may have been missed for which there was no room
	Outcomes Outcomes `json:"outcomes"`
	Browsers uint64   `json:"browsers"` // how many of the requests opened a page
}

// Address is an address that one kind of link led to.
type Address struct {
	Link      Link      `json:"link"`
	Host      string    `json:"host"` // with the port, if there was one; empty for an address such as urn:x
	Path      string    `json:"path"`
	Query     bool      `json:"query"` // whether some request had a query, which is not kept
	Count     uint64    `json:"count"`
	Overcount uint64    `json:"overcount"` // by how much Count may be too high
	Outcomes  Outcomes  `json:"outcomes"`  // which add up to Count less Overcount
	Browsers  uint64    `json:"browsers"`  // how many of these requests opened a page
	LastLink  string    `json:"last_link"` // a URL without user information, query and fragment; empty: none
	First     time.Time `json:"first"`
	Last      time.Time `json:"last"`
}

// Outcomes says how many requests had which [Outcome].
type Outcomes [NumOutcomes]uint64

// MarshalJSON implements json.Marshaler. The keys are the names that people read.
func (o Outcomes) MarshalJSON() ([]byte, error) {
	counts := make(map[string]uint64)
	for i, n := range o {
		counts[outcomeNames[i]] = n
	}
	return json.Marshal(counts)
}

// String lists the outcomes with their counts, or names the only one.
func (o Outcomes) String() string {
	var name string
	var counts []string
	for i, n := range o {
		if n > 0 {
			name = outcomeNames[i]
			counts = append(counts, fmt.Sprintf("%d %s", n, name))
		}
	}
	if len(counts) == 1 {
		return name
	}
	return strings.Join(counts, ", ")
}
