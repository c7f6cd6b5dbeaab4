package report

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bounds of a Counter: 2 MiB in all.
const (
	capacity = 1000 // addresses of each kind of link
	maxKey   = 240  // bytes of a host and a path
	maxLink  = 240  // bytes
)

// Miss is a request for a missing address. Host and Path are as on the page. The query and the fragment are not kept.
type Miss struct {
	Host, Path string
	Referer    string // as the client sent it, if it is a link, see linkOf; else empty
	Link       Link
	Outcome    Outcome
	OpensPage  bool // a browser opens a page, or another client asks for HTML by name
}

// Counter counts which addresses are missed most. Each kind of link has a table of its own, so that no flood of one
// kind takes the place of another one's addresses.
//
// The zero value is ready. All methods may be called at the same time.
type Counter struct {
	room int // for addresses of each kind; 0: capacity (tests set less)

	mu     sync.Mutex
	since  time.Time // zero: it has not begun
	tables [NumLinks]table
}

// Begin begins the report, unless it has begun.
func (c *Counter) Begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since.IsZero() {
		c.since = time.Now()
	}
}

// Add counts a request. It keeps nothing of what m refers to.
func (c *Counter) Add(m Miss) {
	var keyBytes [maxKey]byte
	var linkBytes [maxLink]byte
	key := appendKey(keyBytes[:0], m.Host, m.Path)
	link := appendLink(linkBytes[:0], m.Referer)
	now := time.Now().UnixNano()

	c.mu.Lock()
	defer c.mu.Unlock()
	c.tables[m.Link].add(&m, key, link, now, cmp.Or(c.room, capacity))
}

// Snapshot returns the report. It returns false if that has not begun.
func (c *Counter) Snapshot() (Report, bool) { return c.read(false) }

// Take returns the report as Snapshot does, and starts over. Every request is in the one report or in the next.
func (c *Counter) Take() (Report, bool) { return c.read(true) }

func (c *Counter) read(startOver bool) (Report, bool) {
	c.mu.Lock() // only to copy, because requests wait
	tables, since := c.tables, c.since
	if startOver && !since.IsZero() {
		c.tables, c.since = [NumLinks]table{}, time.Now()
	} else {
		for link := range tables {
			t := &tables[link]
			t.slots = slices.Clone(t.slots)
			t.counts = slices.Clone(t.counts)
		}
	}
	c.mu.Unlock()

	r := Report{
		Since:     since.UTC(),
		Capacity:  cmp.Or(c.room, capacity),
		Links:     make(map[Link]Total),
		Addresses: []Address{}, // not nil, for JSON
	}
	for link := range NumLinks {
		tables[link].addTo(&r, link)
	}
	slices.SortFunc(r.Addresses, func(a, b Address) int {
		return cmp.Or(
			cmp.Compare(a.Link, b.Link),
			cmp.Compare(b.Count, a.Count),
			b.Last.Compare(a.Last), // of equally frequent ones, the one that was missed last
		)
	})
	return r, !since.IsZero()
}

// table counts the addresses of one kind of link, with the Space-Saving algorithm (Metwally, Agrawal, El Abbadi:
// Efficient Computation of Frequent and Top-k Elements in Data Streams, 2005). The number of slots is fixed. A new
// address takes over a slot with the lowest count, by which its own count may then be too high. So memory is bounded,
// and an address that gets more than 1/len(slots) of the requests is always there, however many others there are.
type table struct {
	index  map[string]int // of slots, by key
	slots  []slot
	counts []uint64 // of slots, in a slice of their own, which is fast to search
	Total           // of all requests, but for the floor

	// No count is less than floor. Counts only rise, so no slot before next has the floor any more.
	floor uint64
	next  int
}

// slot is what was counted for an address since it took over this slot.
type slot struct {
	key         string // the host, a space and the path
	overcount   uint64 // by how much the count may be too high
	outcomes    Outcomes
	browsers    uint64
	query       bool   // some request had one
	link        string // the last one
	first, last int64  // ns since 1970
}

// add counts a request. Its key and its link are made before the lock is held.
func (t *table) add(m *Miss, key, link []byte, now int64, room int) {
	i, ok := t.index[string(key)]
	if !ok {
		i = t.admit(string(key), now, room)
	}
	t.Count++
	t.Outcomes[m.Outcome]++
	t.counts[i]++
	s := &t.slots[i]
	s.outcomes[m.Outcome]++
	if m.OpensPage {
		t.Browsers++
		s.browsers++
	}
	s.last = max(s.last, now)
	s.query = s.query || strings.Contains(m.Path, "?")
	if len(link) > 0 && s.link != string(link) {
		s.link = string(link)
	}
}

// admit makes room for a new address, and returns the index of its slot. Once the table is full, the address begins
// with the lowest count, any part of which may be its own.
func (t *table) admit(key string, now int64, room int) (i int) {
	if t.index == nil {
		t.index = make(map[string]int, room)
		t.slots = make([]slot, 0, room) // append would take more
	}
	if len(t.slots) < room {
		i = len(t.slots)
		t.slots = append(t.slots, slot{})
		t.counts = append(t.counts, 0)
	} else {
		i = t.lowest()
		delete(t.index, t.slots[i].key)
	}
	t.slots[i] = slot{key: key, overcount: t.counts[i], first: now}
	t.index[key] = i
	return i
}

// lowest returns the index of a slot with the lowest count.
func (t *table) lowest() int {
	i := slices.Index(t.counts[t.next:], t.floor)
	if i < 0 {
		t.floor, t.next = slices.Min(t.counts), 0
		i = slices.Index(t.counts, t.floor)
	}
	i += t.next
	t.next = i + 1
	return i
}

// addTo adds the addresses of the table to a report.
func (t *table) addTo(r *Report, link Link) {
	if len(t.counts) == r.Capacity {
		t.Floor = slices.Min(t.counts)
	}
	r.Links[link] = t.Total
	for i, s := range t.slots {
		host, path, _ := strings.Cut(s.key, " ")
		r.Addresses = append(r.Addresses, Address{
			Link:      link,
			Host:      host,
			Path:      path,
			Query:     s.query,
			Count:     t.counts[i],
			Overcount: s.overcount,
			Outcomes:  s.outcomes,
			Browsers:  s.browsers,
			LastLink:  s.link,
			First:     time.Unix(0, s.first).UTC(),
			Last:      time.Unix(0, s.last).UTC(),
		})
	}
}
