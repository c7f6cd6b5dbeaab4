package report

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestFrequentAddressesAreFoundInAFlood counts addresses that are more frequent than one time in capacity, each to a
// different degree, among many that come once.
func TestFrequentAddressesAreFoundInAFlood(t *testing.T) {
	const n, frequent = 300_000, 100
	random := rand.New(rand.NewPCG(1, 2))
	var c Counter
	counts := make(map[string]uint64) // by path
	for i := range n {
		path := fmt.Sprintf("/flood/%d", i)
		if random.IntN(2) == 0 {
			path = fmt.Sprintf("/frequent/%d", min(random.IntN(frequent), random.IntN(frequent), random.IntN(frequent)))
		}
		counts[path]++
		c.Add(Miss{Address: []byte("http://a.test" + path + "?" + fmt.Sprint(i))})
	}

	s, _ := c.Snapshot()
	if s.Count != n || len(s.Addresses) != capacity {
		t.Errorf("got %d pages and %d addresses, want %d and %d", s.Count, len(s.Addresses), n, capacity)
	}
	var sum uint64
	found := make(map[string]bool)
	for i, a := range s.Addresses {
		sum += a.Count
		found[a.Path] = true
		if want := counts[a.Path]; want < a.Count-a.Overcount || want > a.Count {
			t.Errorf("%s: got %d, of which %d may be too much; it was missed %d times", a.Path, a.Count, a.Overcount, want)
		}
		if got, want := a.Outcomes.Unanswered, a.Count-a.Overcount; got != want {
			t.Errorf("%s: got %d unanswered requests, want %d, which its counter had since it is its own", a.Path, got, want)
		}
		if i > 0 && a.Count > s.Addresses[i-1].Count {
			t.Errorf("%s is more frequent than the one before it", a.Path)
		}
	}
	if sum != n { // which is why no count can be too high by more than n/capacity
		t.Errorf("the counts add up to %d, want %d", sum, n)
	}
	needed := 0
	for path, count := range counts {
		if count > n/capacity {
			if needed++; !found[path] {
				t.Errorf("%s was missed %d times and is not there", path, count)
			}
		}
	}
	if needed < frequent/2 {
		t.Errorf("only %d addresses were frequent", needed)
	}
}

// TestTakenOverCounterBeginsAnew has an address take the place of another one that had everything.
func TestTakenOverCounterBeginsAnew(t *testing.T) {
	var c Counter
	c.Add(Miss{Address: []byte("http://a.test/old"), Referer: "http://b.test/a-long-link", Link: OtherLink, Outcome: Replaceable})
	for i := range capacity - 1 {
		for range 2 {
			c.Add(Miss{Address: fmt.Appendf(nil, "http://a.test/%d", i)})
		}
	}
	before := time.Now()
	c.Add(Miss{Address: []byte("http://a.test/new"), Outcome: Error})

	s, _ := c.Snapshot()
	got := make(map[string]Address)
	for _, a := range s.Addresses {
		got[a.Path] = a
	}
	if _, ok := got["/old"]; ok {
		t.Error("the least frequent address is still there")
	}
	first, last := got["/new"].First, got["/new"].Last
	if first.Before(before) || last != first {
		t.Errorf("it was missed first at %s and last at %s, want once after %s", first, last, before)
	}
	want := Address{
		Host: "a.test", Path: "/new", Count: 2, Overcount: 1, Outcomes: Outcomes{Error: 1},
		First: first, Last: last,
	}
	if got["/new"] != want {
		t.Errorf("got %+v, want %+v", got["/new"], want)
	}
}

func TestOfEquallyFrequentAddressesTheNewestIsFirst(t *testing.T) {
	var c Counter
	for _, path := range []string{"/c", "/a", "/d", "/b", "/a", "/c"} {
		for now := time.Now().UnixNano(); time.Now().UnixNano() == now; { // where the clock is coarse
		}
		c.Add(Miss{Address: []byte("http://a.test" + path)})
	}
	s, _ := c.Snapshot()
	var paths []string
	for _, a := range s.Addresses {
		paths = append(paths, a.Path)
	}
	if got := strings.Join(paths, " "); got != "/c /a /b /d" {
		t.Errorf("got %s, want /c /a /b /d", got)
	}
}

// TestNoCountIsLost has several goroutines count, while others read the report.
func TestNoCountIsLost(t *testing.T) {
	const goroutines, rounds, addresses = 8, 10_000, 50
	var c Counter
	var counting, reading sync.WaitGroup
	done := make(chan struct{})
	reading.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			var sum uint64
			s, _ := c.Snapshot()
			for _, a := range s.Addresses {
				sum += a.Count
				if a.Links.Own.Last != "http://a.test"+a.Path+"/"+strings.Repeat("x", 100) {
					t.Errorf("%s has the link %q of another address", a.Path, a.Links.Own.Last)
				}
			}
			if sum != s.Count {
				t.Errorf("the counts add up to %d, and not to %d", sum, s.Count)
			}
		}
	})
	for i := range goroutines {
		counting.Go(func() {
			for j := range rounds {
				uri := fmt.Sprintf("http://a.test/%d", (i+j)%addresses)
				c.Add(Miss{Address: []byte(uri), Referer: uri + "/" + strings.Repeat("x", 100), Link: OwnLink, Outcome: Response})
			}
		})
	}
	counting.Wait()
	close(done)
	reading.Wait()

	s, _ := c.Snapshot()
	if s.Count != goroutines*rounds || len(s.Addresses) != addresses {
		t.Errorf("got %d pages and %d addresses, want %d and %d", s.Count, len(s.Addresses), goroutines*rounds, addresses)
	}
	for _, a := range s.Addresses {
		if a.Count != goroutines*rounds/addresses || a.Outcomes.Response != a.Count || a.Links.Own.Count != a.Count || a.Overcount != 0 {
			t.Errorf("got %+v, want everything %d times", a, goroutines*rounds/addresses)
		}
	}
}

// TestTakingLosesNothing has several goroutines count, while another one takes the report again and again.
func TestTakingLosesNothing(t *testing.T) {
	const goroutines, rounds, addresses, takes = 4, 20_000, 50, 10
	var c Counter
	var missed, taken atomic.Int64
	var counting sync.WaitGroup
	for i := range goroutines {
		counting.Go(func() {
			for j := 0; j < rounds || taken.Load() < takes; j++ {
				c.Add(Miss{Address: fmt.Appendf(nil, "http://a.test/%d", (i+j)%addresses), Outcome: Error})
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
	take := func() {
		r, _ := c.Take()
		count += r.Count
		for _, a := range r.Addresses {
			sum += a.Outcomes.Error
		}
	}
	for running := true; running; taken.Add(1) {
		select {
		case <-done:
			running = false
		default:
		}
		take()
	}
	if want := uint64(missed.Load()); count != want || sum != want {
		t.Errorf("got %d pages, and %d by address, want %d", count, sum, want)
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
		t.Helper()
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
	c.Add(Miss{Address: []byte("http://a.test/x"), Outcome: Error})
	c.Unregister() // a config without a handler that reports
	if got := since(true); !got.Equal(first) {
		t.Errorf("the report dates from %s, want %s", got, first)
	}
	if s, ok := c.Take(); !ok || s.Count != 1 || !s.Since.Equal(first) {
		t.Errorf("took %+v, %v", s, ok)
	}
	since(false)

	begin = later()
	c.Add(Miss{Address: []byte("http://a.test/late"), Outcome: Error}) // by a handler of the last config
	if got := since(true); got.Before(begin) {
		t.Errorf("the report dates from %s, want from its first page after %s", got, begin)
	}
	c.Register()
	begin = later()
	if c.Take(); since(true).Before(begin) {
		t.Errorf("once taken, the report dates from %s, want after %s", since(true), begin)
	}
}
