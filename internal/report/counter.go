package report

import (
	"cmp"
	"container/heap"
	"strings"
	"sync"
	"time"
)

// capacity is how many addresses a Counter has room for.
const capacity = 1000

// Miss is a request for a missing address.
type Miss struct {
	Address []byte // as it is on the page: a URI without user information
	Referer string // as the client sent it
	Link    Link   // what LinkOf finds
	Outcome Outcome
}

// Counter counts which addresses are missed most, with the Space-Saving algorithm (Metwally, Agrawal, El Abbadi:
// Efficient Computation of Frequent and Top-k Elements in Data Streams, 2005). It has a fixed number of slots. A new
// address takes over the slot with the lowest count, which it may have in excess. So memory is bounded, and an address
// that is missed more often than one time in as many as there are slots is always there, whatever flood of others there
// is.
//
// The zero value is ready. All methods may be called at the same time.
type Counter struct {
	room int // for how many addresses, if not for capacity: tests do with less

	mu        sync.Mutex
	reporters int // handlers that are registered
	since     time.Time
	count     uint64
	slots     map[string]*slot // by key
	lowest    slotHeap
}

func (c *Counter) capacity() int { return cmp.Or(c.room, capacity) }

// slot has what was counted for an address since it took over this slot.
type slot struct {
	key              string // the host, a space and the path
	count, overcount uint64 // the second is by how much the first may be too high
	rank             uint64 // the count that has its place in the heap, which is looked at only if it gets to the top
	outcomes         [numOutcomes]uint64
	own, other       linkCount
	first, last      int64 // ns since 1970
}

// linkCount has the links of one kind to an address: how many there were, and the last of them. Its bytes have their place
// here, whatever their number, so that the size of a slot is known and no link costs an allocation.
type linkCount struct {
	count  uint64
	length uint16
	last   [maxLink]byte
}

func (l *linkCount) add(link []byte) {
	l.count++
	l.length = uint16(copy(l.last[:], link))
}

func (l *linkCount) snapshot() LinkCount { return LinkCount{l.count, string(l.last[:l.length])} }

// slotHeap is a heap of slots with the lowest rank on top.
type slotHeap []*slot

func (h slotHeap) Len() int           { return len(h) }
func (h slotHeap) Less(i, j int) bool { return h[i].rank < h[j].rank }
func (h slotHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *slotHeap) Push(a any)        { *h = append(*h, a.(*slot)) }
func (h *slotHeap) Pop() any          { panic("slots are only taken over") }

// Register begins the report with the first handler that reports, unless it has begun.
func (c *Counter) Register() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reporters++
	if c.since.IsZero() {
		c.since = time.Now()
	}
}

// Unregister keeps what is counted, for the handlers of the next config. Where nothing is, the report has not begun: the
// config of the last handler may have failed to load.
func (c *Counter) Unregister() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reporters--
	if c.reporters == 0 && c.count == 0 {
		c.since = time.Time{}
	}
}

// Add counts a request. It keeps nothing of what m refers to.
func (c *Counter) Add(m Miss) {
	var keyBytes [maxKey]byte
	var linkBytes [3 * maxLink]byte // it is cut once it is percent-encoded
	key, link := appendKey(keyBytes[:0], m.Address), linkBytes[:0]
	if m.Link != NoLink {
		link = appendLink(link, m.Referer)
	}
	now := time.Now().UnixNano()

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since.IsZero() { // a request of a config that is no longer there
		c.since = time.Unix(0, now)
	}
	s := c.slots[string(key)]
	if s == nil {
		s = c.admit(string(key), now)
	}
	c.count++
	s.count++
	s.outcomes[m.Outcome]++
	switch {
	case len(link) == 0: // or a report could have a link that it does not know
	case m.Link == OwnLink:
		s.own.add(link)
	case m.Link == OtherLink:
		s.other.add(link)
	}
	s.last = max(s.last, now)
}

// admit makes room for a new address. It begins with the lowest count there is, of which it may have had any part.
func (c *Counter) admit(key string, now int64) *slot {
	if c.slots == nil {
		c.slots = make(map[string]*slot, c.capacity())
	}
	if len(c.lowest) < c.capacity() {
		s := &slot{key: key, first: now}
		heap.Push(&c.lowest, s)
		c.slots[key] = s
		return s
	}
	for c.lowest[0].rank < c.lowest[0].count {
		c.lowest[0].rank = c.lowest[0].count
		heap.Fix(&c.lowest, 0)
	}
	s := c.lowest[0]
	delete(c.slots, s.key)
	*s = slot{key: key, count: s.count, overcount: s.count, rank: s.rank, first: now}
	c.slots[key] = s
	return s
}

// Snapshot returns the report. It returns false if no handler ever reported.
func (c *Counter) Snapshot() (Report, bool) { return c.read(false) }

// Take returns the report as Snapshot does, and begins it again. Every request is in the one or in the other.
func (c *Counter) Take() (Report, bool) { return c.read(true) }

func (c *Counter) read(anew bool) (Report, bool) {
	r, slots, ok := c.copy(anew)
	r.Addresses = make([]Address, len(slots)) // not nil, for JSON
	for i, s := range slots {
		host, path, _ := strings.Cut(s.key, " ")
		r.Addresses[i] = Address{
			Host: host, Path: path,
			Count: s.count, Overcount: s.overcount,
			Outcomes: Outcomes{s.outcomes[Unanswered], s.outcomes[Error], s.outcomes[Response], s.outcomes[Passed], s.outcomes[Replaceable]},
			Links:    Links{s.own.snapshot(), s.other.snapshot()},
			First:    time.Unix(0, s.first).UTC(), Last: time.Unix(0, s.last).UTC(),
		}
	}
	r.sort()
	if n := len(slots); n == r.Capacity {
		r.Floor = r.Addresses[n-1].Count
	}
	return r, ok
}

// copy copies the slots, and no more, while requests wait. If anew, the report begins again before the next request.
func (c *Counter) copy(anew bool) (r Report, slots []slot, ok bool) {
	slots = make([]slot, 0, c.capacity())
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.lowest {
		slots = append(slots, *s)
	}
	r, ok = Report{Since: c.since.UTC(), Count: c.count, Capacity: c.capacity()}, c.reporters > 0 || c.count > 0
	if anew {
		c.since, c.count, c.slots, c.lowest = time.Time{}, 0, nil, nil
		if c.reporters > 0 {
			c.since = time.Now()
		}
	}
	return r, slots, ok
}
