package report

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// missOf returns a request for an address, with the kind of link that a Referer makes of it.
func missOf(host, path, referer string) Miss {
	return Miss{Host: host, Path: path, Referer: referer, Link: LinkOf(referer, host, path, "")}
}

// miss counts a request for a path of a.test.
func (c *Counter) miss(path, referer string, o Outcome) {
	m := missOf("a.test", path, referer)
	m.Outcome = o
	c.Add(m)
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

// TestNewAddressTakesASlotWithTheLowestCount has streams in which counts rise in every order.
func TestNewAddressTakesASlotWithTheLowestCount(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		c, few := Counter{room: 1 + random.IntN(12)}, 1+random.IntN(30)
		for n := range 200 {
			path := fmt.Sprint("/", min(random.IntN(few), random.IntN(few)))
			if random.IntN(3) == 0 {
				path = fmt.Sprint("/new/", n)
			}
			before, _ := c.Snapshot()
			c.miss(path, "", Error)
			after, _ := c.Snapshot()
			now := after.paths(None)
			for _, a := range before.Addresses {
				if !slices.Contains(now, a.Path) && a.Count != before.Links.None.Floor {
					t.Fatalf("%s gave way with the count %d, and the lowest was %d", a.Path, a.Count, before.Links.None.Floor)
				}
			}
		}
	}
}

// TestSlotThatIsTakenOverStartsOver has an address take the place of another one that had everything.
func TestSlotThatIsTakenOverStartsOver(t *testing.T) {
	c := Counter{room: 2}
	c.Add(Miss{Host: "a.test", Path: "/old", Referer: "http://b.test/a-long-link", Link: None, Outcome: Replaceable})
	c.miss("/1", "", Error)
	c.miss("/1", "", Error)
	before := time.Now()
	c.miss("/new", "", Error)

	r, _ := c.Snapshot()
	got := r.Addresses[0] // it is the newest of two with the same count
	if got.First.Before(before) || got.Last != got.First {
		t.Errorf("it was missed first at %s and last at %s, want once after %s", got.First, got.Last, before)
	}
	want := Address{Link: None, Host: "a.test", Path: "/new", Count: 2, Overcount: 1, Outcomes: Outcomes{Error: 1}, First: got.First, Last: got.Last}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestNoCountIsLost has several goroutines count, while others read the report, and one takes it again and again.
func TestNoCountIsLost(t *testing.T) {
	const goroutines, rounds, addresses, takes = 8, 10_000, 50, 10
	var c Counter
	c.Begin()
	var missed, taken atomic.Int64
	var counting sync.WaitGroup
	for i := range goroutines {
		counting.Go(func() {
			for j := 0; j < rounds || taken.Load() < takes; j++ {
				path := fmt.Sprintf("/%d", (i+j)%addresses)
				c.miss(path, [...]string{"http://a.test" + path + "/x", "http://b.test" + path + "/x", ""}[j%3], Error)
				missed.Add(1)
			}
		})
	}
	var done atomic.Bool
	go func() {
		counting.Wait()
		done.Store(true)
	}()
	var count, sum uint64
	for running := true; running; taken.Add(1) {
		running = !done.Load()
		read, _ := c.Snapshot()
		if err := read.check(); err != nil {
			t.Error(err)
		}
		r, _ := c.Take()
		for _, total := range r.Links.all() {
			count += total.Count
		}
		for _, a := range r.Addresses {
			sum += a.Outcomes.Error
			if a.Link != None && !strings.HasSuffix(a.LastLink, ".test"+a.Path+"/x") {
				t.Errorf("%s has the link %q of another address", a.Path, a.LastLink)
			}
		}
	}
	if want := uint64(missed.Load()); count != want || sum != want {
		t.Errorf("got %d misses, and %d by address, want %d", count, sum, want)
	}
}

// TestLastTimeLinkAndQueryStay has a request without a link, which gets the lock after one that came later.
func TestLastTimeLinkAndQueryStay(t *testing.T) {
	var counted table
	counted.add([]byte("a.test /x"), []byte("http://b.test/"), true, Error, 2, 1)
	counted.add([]byte("a.test /x"), nil, false, Error, 1, 1)
	if got := counted.slots[0]; got.last != 2 || got.link != "http://b.test/" || !got.query {
		t.Errorf("it was missed last at %d, by the link %q, with a query: %v", got.last, got.link, got.query)
	}
}

func TestReportBeginsWithTheFirstHandler(t *testing.T) {
	var c Counter
	later := func() time.Time {
		for now := time.Now().UnixNano(); time.Now().UnixNano() == now; { // where the clock is coarse
		}
		return time.Now()
	}
	c.Take()
	if r, ok := c.Snapshot(); ok {
		t.Errorf("without a handler, there is the report %+v", r)
	}
	before := later()
	c.Begin()
	after := later()
	c.miss("/x", "", Error)
	c.Begin()
	if r, ok := c.Take(); !ok || r.Since.Before(before) || r.Since.After(after) || r.Links.None.Count != 1 {
		t.Errorf("took %+v, %v, want what was counted since %s", r, ok, before)
	}
	if r, ok := c.Snapshot(); !ok || r.Since.Before(after) || r.Links.None.Count != 0 {
		t.Errorf("once taken, got %+v, %v, want nothing since %s", r, ok, after)
	}
}
