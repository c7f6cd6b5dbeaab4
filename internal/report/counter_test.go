package report

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestCountsAreWithinTheirBounds compares the report of a counter with what was counted exactly. Half of the misses are
// a flood of new addresses, for which one counter has room, and the others have not.
func TestCountsAreWithinTheirBounds(t *testing.T) {
	const misses = 20_000
	const known = 2_000
	for _, room := range []int{1, 30, misses} {
		random := rand.New(rand.NewPCG(1, 2))
		frequent := rand.NewZipf(random, 1.1, 1, known)
		c := Counter{room: room}
		var totals [NumLinks]Total
		var counts [NumLinks]map[string]uint64
		for link := range counts {
			counts[link] = make(map[string]uint64)
		}
		for i := range misses {
			number := uint64(known + i)
			if random.IntN(2) == 0 {
				number = frequent.Uint64()
			}
			m := Miss{
				Path:      fmt.Sprint("/", number),
				Link:      Link(random.IntN(int(NumLinks))),
				Outcome:   Outcome(random.IntN(int(NumOutcomes))),
				OpensPage: i%3 == 0,
			}
			c.Add(m)
			counts[m.Link][m.Path]++
			total := &totals[m.Link]
			total.Count++
			total.Outcomes[m.Outcome]++
			if m.OpensPage {
				total.Browsers++
			}
		}

		r, _ := c.Snapshot()
		for link := range NumLinks {
			total := r.Links[link]
			want := totals[link]
			want.Floor = total.Floor
			if total != want {
				t.Errorf("%s: got the total %+v, want %+v", Link(link), total, want)
			}
			checkBounds(t, r, Link(link), counts[link])
		}
	}
}

// checkBounds compares the addresses of a kind of link with how often each path was missed.
func checkBounds(t *testing.T, r Report, link Link, counts map[string]uint64) {
	t.Helper()
	reported := make(map[string]bool)
	for _, a := range r.Addresses {
		if a.Link != link {
			continue
		}
		reported[a.Path] = true
		least := a.Count - a.Overcount
		if n := counts[a.Path]; n < least || n > a.Count {
			t.Errorf("%s was missed %d times, which is not between %d and %d", a.Path, n, least, a.Count)
		}
		var sum uint64
		for _, n := range a.Outcomes {
			sum += n
		}
		if sum != least {
			t.Errorf("%s has the outcomes %+v, which do not add up to %d", a.Path, a.Outcomes, least)
		}
	}
	if len(reported) > r.Capacity {
		t.Errorf("%s has %d addresses, but room for only %d", link, len(reported), r.Capacity)
	}
	total := r.Links[link]
	most := min(total.Floor, total.Count/uint64(r.Capacity))
	for path, n := range counts {
		if n > most && !reported[path] {
			t.Errorf("%s was missed %d times and is not in the report, whose floor is %d", path, n, total.Floor)
		}
	}
}

// paths returns the paths of a kind of link, in the order of the report.
func (r *Report) paths(link Link) (paths []string) {
	for _, a := range r.Addresses {
		if a.Link == link {
			paths = append(paths, a.Path)
		}
	}
	return paths
}

// TestSlotThatIsTakenOverStartsOver has a new address take over the slot of one that had everything. Then a request
// without a link gets the lock after a later one.
func TestSlotThatIsTakenOverStartsOver(t *testing.T) {
	const room = 1
	var counted table
	old := Miss{Path: "/old?y", Outcome: OutcomeReplaceable, OpensPage: true}
	counted.add(&old, []byte("a.test /old"), []byte("http://b.test/old"), 1, room)
	missed := Miss{Path: "/x", Outcome: OutcomeError}
	key := []byte("a.test /x")
	counted.add(&missed, key, nil, 2, room)
	want := slot{key: "a.test /x", overcount: 1, first: 2, last: 2}
	want.outcomes[OutcomeError] = 1
	wantSlot(t, counted, want)

	withQuery := Miss{Path: "/x?y", Outcome: OutcomeError, OpensPage: true}
	counted.add(&withQuery, key, []byte("http://b.test/"), 4, room)
	counted.add(&missed, key, nil, 3, room)
	want.outcomes[OutcomeError] = 3
	want.browsers = 1
	want.query = true
	want.link = "http://b.test/"
	want.last = 4
	wantSlot(t, counted, want)
}

func wantSlot(t *testing.T, counted table, want slot) {
	t.Helper()
	if got := counted.slots[0]; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestNoCountIsLost counts in several goroutines, while another one takes the report again and again.
func TestNoCountIsLost(t *testing.T) {
	const addresses = 50
	const takes = 100
	var c Counter
	c.Begin()
	var missed atomic.Uint64
	var done atomic.Bool
	var counting sync.WaitGroup
	for range 8 {
		counting.Go(func() {
			for i := 0; !done.Load(); i++ {
				path := fmt.Sprint("/", i%addresses)
				link := Link(i % int(NumLinks))
				c.Add(Miss{Path: path, Link: link})
				missed.Add(1)
			}
		})
	}
	var count, sum uint64
	for i := range takes + 1 {
		if i == takes {
			done.Store(true)
			counting.Wait()
		}
		c.Snapshot()
		r, _ := c.Take()
		for link := range NumLinks {
			total := r.Links[link]
			count += total.Count
		}
		for _, a := range r.Addresses {
			sum += a.Outcomes[OutcomeUnanswered]
		}
	}
	want := missed.Load()
	if count != want || sum != want {
		t.Errorf("got %d misses, and %d by address, want %d", count, sum, want)
	}
}

func TestReportBeginsWithTheFirstHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Counter
		c.Take()
		if r, ok := c.Snapshot(); ok {
			t.Errorf("without a handler, there is the report %+v", r)
		}
		begun := time.Now()
		c.Begin()
		time.Sleep(time.Second)
		c.Begin()
		for _, path := range []string{"/often", "/often", "/first", "/last"} {
			time.Sleep(time.Second)
			c.Add(Miss{Path: path})
		}
		r, ok := c.Take()
		if !ok || !r.Since.Equal(begun) {
			t.Errorf("took %+v, %v, want what was missed since %s", r, ok, begun)
		}
		got := r.paths(OwnLink)
		want := []string{"/often", "/last", "/first"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q: the most frequent first, and then the last", got, want)
		}
		r, ok = c.Snapshot()
		isNew := ok && r.Since.Equal(time.Now())
		if !isNew || r.Links[OwnLink].Count != 0 {
			t.Errorf("got %+v, %v, want nothing since it was taken", r, ok)
		}
	})
}
