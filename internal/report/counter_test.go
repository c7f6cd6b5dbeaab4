package report

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// miss counts a request for a path of a.test, with a link to it unless the Referer is empty.
func (c *Counter) miss(path, referer string, o Outcome) {
	host, target := []byte("a.test"), []byte(path)
	c.Add(Miss{Host: host, Path: target, Referer: referer, Link: LinkOf(referer, host, target), Outcome: o})
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

// TestReportOfAFewMisses has each kind of link, and an address that is in all of them.
func TestReportOfAFewMisses(t *testing.T) {
	var c Counter
	begin := time.Now()
	c.miss("/x?y", "http://A.TEST:80/blog?token", Unanswered)
	c.miss("/x", "http://a.test/shop", Error)
	c.miss("/x", "https://b.test/", Error)
	c.miss("/x", "", Response)
	c.Add(Miss{Host: []byte("a.test"), Path: []byte("/api"), Referer: "http://a.test/shop", Link: None, Outcome: Passed})
	c.miss("/api", "", Replaceable)
	end := time.Now()

	r, ok := c.Snapshot()
	if !ok || r.Since.Before(begin.Add(-time.Second)) || r.Since.After(end) {
		t.Errorf("got the report since %s, %v, want one since %s", r.Since, ok, begin)
	}
	for i := range r.Addresses {
		a := &r.Addresses[i]
		if a.First.After(a.Last) || a.First.Before(r.Since) || a.Last.After(end) {
			t.Errorf("%s%s was missed first at %s and last at %s", a.Host, a.Path, a.First, a.Last)
		}
		a.First, a.Last = time.Time{}, time.Time{}
	}
	r.Since = time.Time{}
	want := Report{
		Capacity: capacity,
		Links: Totals{
			Own:   Total{Count: 2, Outcomes: Outcomes{Unanswered: 1, Error: 1}},
			Other: Total{Count: 1, Outcomes: Outcomes{Error: 1}},
			None:  Total{Count: 3, Outcomes: Outcomes{Response: 1, Passed: 1, Replaceable: 1}},
		},
		Addresses: []Address{
			{Link: Own, Host: "a.test", Path: "/x", Count: 2, Outcomes: Outcomes{Unanswered: 1, Error: 1}, LastLink: "http://a.test/shop"},
			{Link: Other, Host: "a.test", Path: "/x", Count: 1, Outcomes: Outcomes{Error: 1}, LastLink: "https://b.test/"},
			{Link: None, Host: "a.test", Path: "/api", Count: 2, Outcomes: Outcomes{Passed: 1, Replaceable: 1}, LastLink: "http://a.test/shop"},
			{Link: None, Host: "a.test", Path: "/x", Count: 1, Outcomes: Outcomes{Response: 1}},
		},
	}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("got\n%+v\nwant\n%+v", r, want)
	}
}

// TestFrequentAddressesAreFoundInAFlood counts addresses that are more frequent than one time in capacity, each to a
// different degree, among many that come once.
func TestFrequentAddressesAreFoundInAFlood(t *testing.T) {
	t.Parallel()
	const n, frequent = 200_000, 100
	random := rand.New(rand.NewPCG(1, 2))
	var c Counter
	counts := make(map[string]uint64) // by path
	for i := range n {
		path := fmt.Sprintf("/flood/%d", i)
		if random.IntN(2) == 0 {
			path = fmt.Sprintf("/frequent/%d", min(random.IntN(frequent), random.IntN(frequent), random.IntN(frequent)))
		}
		counts[path]++
		c.miss(path, "", Unanswered)
	}
	r, _ := c.Snapshot()
	checkBounds(t, r, r.Links.None, counts)
	if r.Links.None.Count != n || len(r.Addresses) != capacity {
		t.Errorf("got %d misses and %d addresses, want %d and %d", r.Links.None.Count, len(r.Addresses), n, capacity)
	}
	var sum uint64
	for _, a := range r.Addresses {
		sum += a.Count
	}
	if sum != n { // which is why no count can be too high by more than n/capacity
		t.Errorf("the counts add up to %d, want %d", sum, n)
	}
}

// checkBounds checks addresses of one kind of link against how often each path was missed.
func checkBounds(t *testing.T, r Report, total Total, counts map[string]uint64) {
	t.Helper()
	found := make(map[string]bool)
	for i, a := range r.Addresses {
		found[a.Path] = true
		if n := counts[a.Path]; n < a.Count-a.Overcount || n > a.Count {
			t.Errorf("%s: got %d, of which %d may be too much; it was missed %d times", a.Path, a.Count, a.Overcount, n)
		}
		if i > 0 && a.Count > r.Addresses[i-1].Count {
			t.Errorf("%s is more frequent than the one before it", a.Path)
		}
	}
	for path, n := range counts {
		if !found[path] && (n > total.Floor || n > total.Count/uint64(r.Capacity)) {
			t.Errorf("%s was missed %d times and is not there; the floor is %d", path, n, total.Floor)
		}
	}
}

// TestNewAddressTakesASlotWithTheLowestCount has streams in which counts rise in every order.
func TestNewAddressTakesASlotWithTheLowestCount(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		c := Counter{room: 1 + random.IntN(12)}
		few := 1 + random.IntN(30)
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
	c.Add(Miss{Host: []byte("a.test"), Path: []byte("/old"), Referer: "http://b.test/a-long-link", Link: None, Outcome: Replaceable})
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
	done := make(chan struct{})
	go func() {
		counting.Wait()
		close(done)
	}()
	var count, sum uint64
	for running := true; running; taken.Add(1) {
		select {
		case <-done:
			running = false
		default:
		}
		read, _ := c.Snapshot()
		if err := read.check(); err != nil && !read.Since.IsZero() {
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

// TestSinceIsWhenCountingBegan registers handlers as configs do that are loaded, fail to load, and go.
func TestSinceIsWhenCountingBegan(t *testing.T) {
	var c Counter
	since := func(wantOK bool) time.Time {
		t.Helper()
		s, ok := c.Snapshot()
		if ok != wantOK {
			t.Fatalf("it is %v that there is a report, want %v", ok, wantOK)
		}
		return s.Since
	}
	later := func() time.Time {
		for now := time.Now().UnixNano(); time.Now().UnixNano() == now; { // where the clock is coarse
		}
		return time.Now()
	}
	c.Register() // a config that fails to load
	c.Unregister()
	since(false)

	begin := later()
	c.Register()
	first := since(true)
	if first.Before(begin) {
		t.Errorf("the report dates from %s, when a config failed to load, want after %s", first, begin)
	}
	c.Register() // another config, which fails to load
	c.Unregister()
	c.miss("/x", "", Error)
	c.Unregister() // a config without a handler that reports
	if got := since(true); !got.Equal(first) {
		t.Errorf("the report dates from %s, want %s", got, first)
	}
	if r, ok := c.Take(); !ok || r.Links.None.Count != 1 || !r.Since.Equal(first) {
		t.Errorf("took %+v, %v", r, ok)
	}
	since(false)

	begin = later()
	c.miss("/late", "", Error) // by a handler of the last config
	if got := since(true); got.Before(begin) {
		t.Errorf("the report dates from %s, want from its first miss after %s", got, begin)
	}
	c.Register()
	begin = later()
	if c.Take(); since(true).Before(begin) {
		t.Errorf("once taken, the report dates from %s, want after %s", since(true), begin)
	}
}
