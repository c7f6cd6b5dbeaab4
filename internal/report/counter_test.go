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

// TestCountsAreWithinTheirBounds compares the report of a counter that has little room with what was counted exactly.
func TestCountsAreWithinTheirBounds(t *testing.T) {
	const room = 30
	const misses = 20_000
	for name, number := range map[string]func(r *rand.Rand, i int) int{
		"some are frequent": func(r *rand.Rand, _ int) int {
			return int(rand.NewZipf(r, 1.1, 1, 2_000).Uint64())
		},
		"ten are frequent in a flood": func(r *rand.Rand, i int) int {
			if r.IntN(4) == 0 {
				return r.IntN(10)
			}
			return 10 + i
		},
		"all are equally frequent": func(_ *rand.Rand, i int) int { return i % 151 },
		"there is room for all":    func(r *rand.Rand, _ int) int { return r.IntN(room) },
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			c := Counter{room: room}
			var totals Totals
			var counts [NumLinks]map[string]uint64
			for link := range counts {
				counts[link] = make(map[string]uint64)
			}
			for i := range misses {
				m := Miss{
					Path:    fmt.Sprint("/", number(random, i)),
					Link:    Link(random.IntN(int(NumLinks))),
					Outcome: Outcome(random.IntN(int(NumOutcomes))),
				}
				c.Add(m)
				counts[m.Link][m.Path]++
				total := totals.all()[m.Link]
				total.Count++
				*total.Outcomes.all()[m.Outcome]++
			}

			r, _ := c.Snapshot()
			for link, total := range r.Links.all() {
				want := totals.all()[link]
				want.Floor = total.Floor
				if *total != *want {
					t.Errorf("%s: got the total %+v, want %+v", Link(link), total, want)
				}
				checkBounds(t, r, Link(link), counts[link])
			}
		})
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
		for _, n := range a.Outcomes.all() {
			sum += *n
		}
		if sum != least {
			t.Errorf("%s has the outcomes %+v, which do not add up to %d", a.Path, a.Outcomes, least)
		}
	}
	if len(reported) > r.Capacity {
		t.Errorf("%s has %d addresses, but room for only %d", link, len(reported), r.Capacity)
	}
	total := r.Links.all()[link]
	for path, n := range counts {
		if !reported[path] && (n > total.Floor || n > total.Count/uint64(r.Capacity)) {
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
	var counted table
	old := Miss{Path: "/old?y", Outcome: Replaceable}
	counted.add(&old, []byte("a.test /old"), []byte("http://b.test/old"), 1, 1)
	plain := Miss{Path: "/x", Outcome: Error}
	key := []byte("a.test /x")
	counted.add(&plain, key, nil, 2, 1)
	want := slot{key: "a.test /x", overcount: 1, outcomes: Outcomes{Error: 1}, first: 2, last: 2}
	if got := counted.slots[0]; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}

	linked := Miss{Path: "/x?y", Outcome: Error}
	counted.add(&linked, key, []byte("http://b.test/"), 4, 1)
	counted.add(&plain, key, nil, 3, 1)
	want.outcomes.Error = 3
	want.query = true
	want.link = "http://b.test/"
	want.last = 4
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
				c.Add(Miss{Path: fmt.Sprint("/", i%addresses), Link: Link(i % int(NumLinks))})
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
		for _, total := range r.Links.all() {
			count += total.Count
		}
		for _, a := range r.Addresses {
			sum += a.Outcomes.Unanswered
		}
	}
	if want := missed.Load(); count != want || sum != want {
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
		if !ok || !r.Since.Equal(begun) || !slices.Equal(r.paths(Own), []string{"/often", "/last", "/first"}) {
			t.Errorf("took %+v, %v, want what was missed since %s, the most frequent and then the last first", r, ok, begun)
		}
		r, ok = c.Snapshot()
		if !ok || !r.Since.Equal(time.Now()) || r.Links.Own.Count != 0 {
			t.Errorf("got %+v, %v, want nothing since it was taken", r, ok)
		}
	})
}
