package notfound

import (
	"bytes"
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddy-notfound/notfound/internal/uri"
)

// missed is the report of missing addresses. It belongs to the process, not to a config, so that it outlives reloads.
var missed report

// report counts which addresses are missed most, with the Space-Saving algorithm (Metwally, Agrawal, El Abbadi:
// Efficient Computation of Frequent and Top-k Elements in Data Streams, 2005). It keeps maxAddresses counters. A new
// address takes over the lowest one, whose count it may have in excess. So memory is bounded, and an address
// that is missed more often than one time in maxAddresses is always there, whatever flood of others there is.
type report struct {
	mu        sync.Mutex
	reporters int // handlers that report
	since     time.Time
	count     uint64
	addresses map[string]*missedAddress // by key
	lowest    missedHeap
}

const (
	maxAddresses = 1000
	maxKey       = 300 // bytes of a host and a path
	maxLink      = 300 // bytes
)

// missedAddress is what is known of an address since its counter is its own.
type missedAddress struct {
	key              string // the host, a space and the path
	count, overcount uint64 // the second is by how much the first may be too high
	rank             uint64 // the count that has its place in the heap, which is looked at only if it gets to the top
	causes           [numCauses]uint64
	kept, keptPages  uint64
	linked           uint64
	lastLink         []byte
	first, last      int64 // ns since 1970
}

// missedHeap is a heap of addresses with the lowest rank on top.
type missedHeap []*missedAddress

func (h missedHeap) Len() int           { return len(h) }
func (h missedHeap) Less(i, j int) bool { return h[i].rank < h[j].rank }
func (h missedHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *missedHeap) Push(a any)        { *h = append(*h, a.(*missedAddress)) }
func (h *missedHeap) Pop() any          { panic("addresses only take each other's place") }

// register begins the report with the first handler that reports, unless it has begun.
func (r *report) register() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reporters++
	if r.since.IsZero() {
		r.since = time.Now()
	}
}

// unregister keeps what is counted, for the handlers of the next config. Where nothing is, the report has not begun: the
// config of the last handler may have failed to load.
func (r *report) unregister() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reporters--
	if r.reporters == 0 && r.count == 0 {
		r.since = time.Time{}
	}
}

// addPage counts a page. uri is the address on it, and referer the client's.
func (r *report) addPage(address []byte, referer string, c cause) {
	r.add(address, referer, func(a *missedAddress) { a.causes[c]++ })
}

// addKept counts a 404 response that passed. isPage tells whether `replace pages` would have replaced it.
func (r *report) addKept(address []byte, referer string, isPage bool) {
	r.add(address, referer, func(a *missedAddress) {
		a.kept++
		if isPage {
			a.keptPages++
		}
	})
}

func (r *report) add(address []byte, referer string, count func(*missedAddress)) {
	taken := takenPool.Get().(*struct{ key, link []byte })
	defer takenPool.Put(taken)
	taken.key, taken.link = appendKey(taken.key[:0], address), appendLink(taken.link[:0], referer)
	key, link := taken.key, taken.link
	now := time.Now().UnixNano()

	r.mu.Lock()
	defer r.mu.Unlock()
	if r.since.IsZero() { // a request of a config that is no longer there
		r.since = time.Unix(0, now)
	}
	a := r.addresses[string(key)]
	if a == nil {
		a = r.admit(string(key), now)
	}
	r.count++
	a.count++
	count(a)
	if len(link) > 0 {
		a.linked++
		a.lastLink = append(a.lastLink[:0], link...)
	}
	a.last = max(a.last, now)
}

// takenPool has room for what is taken of a request.
var takenPool = sync.Pool{New: func() any { return new(struct{ key, link []byte }) }}

// admit makes room for a new address. Its counter starts from the lowest count there is, of which it may have had any
// part.
func (r *report) admit(key string, now int64) *missedAddress {
	if r.addresses == nil {
		r.addresses = make(map[string]*missedAddress, maxAddresses)
	}
	if len(r.lowest) < maxAddresses {
		a := &missedAddress{key: key, first: now}
		heap.Push(&r.lowest, a)
		r.addresses[key] = a
		return a
	}
	for r.lowest[0].rank < r.lowest[0].count {
		r.lowest[0].rank = r.lowest[0].count
		heap.Fix(&r.lowest, 0)
	}
	a := r.lowest[0]
	delete(r.addresses, a.key)
	*a = missedAddress{key: key, count: a.count, overcount: a.count, rank: a.rank, lastLink: a.lastLink[:0], first: now}
	r.addresses[key] = a
	return a
}

// encodedHash is how the fragment of a request target or of a Referer begins on a page, for a # cannot stand there. A
// path may have it as well, and is cut there, too: what looks like a fragment may be as secret as one.
const encodedHash = "%23"

// appendKey appends the host of an address, a space and its path, without the query and the fragment. An address on a
// page has no user information.
func appendKey(b, address []byte) []byte {
	address, _, _ = bytes.Cut(address, []byte("?"))
	address, _, _ = bytes.Cut(address, []byte(encodedHash))
	path := address
	if i := bytes.IndexByte(address, ':'); i >= 0 && bytes.HasPrefix(address[i:], []byte("://")) {
		path = address[i+len("://"):]
		end := bytes.IndexByte(path, '/')
		if end < 0 {
			end = len(path)
		}
		from := len(b)
		b = append(b, path[:min(end, maxKey-1)]...)
		for i := from; i < len(b); i++ {
			if 'A' <= b[i] && b[i] <= 'Z' {
				b[i] += 'a' - 'A' // a host has no case
			}
		}
		path = path[end:]
	}
	b = append(b, ' ')
	return append(b, uri.CutEncoded(path, maxKey-len(b))...)
}

// appendLink appends a Referer without its query, fragment and user information. It appends nothing if that is no
// http or https URL with a host, or if its host is too long to be one.
func appendLink(b []byte, referer string) []byte {
	referer, _, _ = strings.Cut(referer, "?")
	referer, _, _ = strings.Cut(referer, "#")
	referer, _, _ = strings.Cut(referer, encodedHash)
	scheme, rest, ok := strings.Cut(referer, "://")
	if !ok || !uri.IsHTTP(scheme) {
		return b
	}
	authority, path := rest, ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	authority = authority[strings.LastIndexByte(authority, '@')+1:]
	if !uri.ValidAuthority(authority) || len(scheme)+len("://")+len(authority) > maxLink {
		return b
	}
	b = append(b, scheme...)
	b = append(b, "://"...)
	b = append(b, authority...)
	b = uri.AppendPath(b, path[:min(len(path), maxLink)])
	return uri.CutEncoded(b, maxLink)
}

// reportSnapshot is the report at one time.
type reportSnapshot struct {
	Since     time.Time         `json:"since"`
	Count     uint64            `json:"count"`
	Addresses []addressSnapshot `json:"addresses"`
}

type addressSnapshot struct {
	Host      string         `json:"host"`
	Path      string         `json:"path"`
	Count     uint64         `json:"count"`
	Overcount uint64         `json:"overcount"`
	Causes    causesSnapshot `json:"causes"`
	Kept      uint64         `json:"kept"`
	KeptPages uint64         `json:"kept_pages"`
	Linked    uint64         `json:"linked"`
	LastLink  string         `json:"last_link"`
	First     time.Time      `json:"first"`
	Last      time.Time      `json:"last"`
}

type causesSnapshot struct {
	Unanswered uint64 `json:"unanswered"`
	Error      uint64 `json:"error"`
	Response   uint64 `json:"response"`
}

// snapshot returns the report, most frequent address first, and of equally frequent ones the one that was missed last.
// It returns false if no handler ever reported.
func (r *report) snapshot() (reportSnapshot, bool) { return r.read(false) }

// take returns the report as snapshot does, and begins it again. Every request is in the one or in the other.
func (r *report) take() (reportSnapshot, bool) { return r.read(true) }

func (r *report) read(anew bool) (reportSnapshot, bool) {
	s, addresses, ok := r.copy(anew)
	slices.SortFunc(addresses, func(a, b missedAddress) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(b.last, a.last), cmp.Compare(a.key, b.key))
	})
	s.Addresses = make([]addressSnapshot, len(addresses)) // not nil, for JSON
	for i, a := range addresses {
		host, path, _ := strings.Cut(a.key, " ")
		s.Addresses[i] = addressSnapshot{
			Host: host, Path: path,
			Count: a.count, Overcount: a.overcount,
			Causes: causesSnapshot{a.causes[causeUnanswered], a.causes[causeError], a.causes[causeResponse]},
			Kept:   a.kept, KeptPages: a.keptPages,
			Linked: a.linked, LastLink: string(a.lastLink),
			First: time.Unix(0, a.first).UTC(), Last: time.Unix(0, a.last).UTC(),
		}
	}
	return s, ok
}

// copy copies the addresses, and no more, while requests wait. If anew, the report begins again before the next request.
func (r *report) copy(anew bool) (s reportSnapshot, addresses []missedAddress, ok bool) {
	addresses = make([]missedAddress, 0, maxAddresses)
	links := make([]byte, 0, maxAddresses*maxLink)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.lowest {
		links = append(links, a.lastLink...)
		copied := *a
		copied.lastLink = links[len(links)-len(a.lastLink):]
		addresses = append(addresses, copied)
	}
	s, ok = reportSnapshot{Since: r.since.UTC(), Count: r.count}, r.reporters > 0 || r.count > 0
	if anew {
		r.since, r.count, r.addresses, r.lowest = time.Time{}, 0, nil, nil
		if r.reporters > 0 {
			r.since = time.Now()
		}
	}
	return s, addresses, ok
}
