package report

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// TestSlotThatIsTakenOverStartsOver has a new address take over the slot of one that had everything. Then a request
// without a link gets the lock after a later one.
func TestSlotThatIsTakenOverStartsOver(t *testing.T) {
	var counted table
	counted.add(&Miss{Path: "/old?y", Outcome: Replaceable}, []byte("a.test /old"), []byte("http://b.test/old"), 1, 1)
	counted.add(&Miss{Path: "/x", Outcome: Error}, []byte("a.test /x"), nil, 2, 1)
	want := slot{key: "a.test /x", overcount: 1, outcomes: Outcomes{Error: 1}, first: 2, last: 2}
	if got := counted.slots[0]; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	counted.add(&Miss{Path: "/x?y", Outcome: Error}, []byte("a.test /x"), []byte("http://b.test/"), 4, 1)
	counted.add(&Miss{Path: "/x", Outcome: Error}, []byte("a.test /x"), nil, 3, 1)
	want.outcomes, want.query, want.link, want.last = Outcomes{Error: 3}, true, "http://b.test/", 4
	if got := counted.slots[0]; got != want || counted.counts[0] != 4 {
		t.Errorf("got %+v with the count %d, want %+v with 4", got, counted.counts[0], want)
	}
}

// TestNoCountIsLost counts in several goroutines, while another one reads the report and takes it, again and again.
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

func TestReportBeginsWithTheFirstHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Counter
		c.Take()
		if r, ok := c.Snapshot(); ok {
			t.Errorf("without a handler, there is the report %+v", r)
		}
		for _, begin := range []func(){c.Begin, func() { c.Take() }} {
			time.Sleep(time.Second)
			since := time.Now()
			begin()
			time.Sleep(time.Second)
			c.Begin()
			if r, ok := c.Snapshot(); !ok || !r.Since.Equal(since) || r.Links.None.Count != 0 {
				t.Errorf("got %+v, %v, want nothing since %s", r, ok, since)
			}
			c.miss("/x", "", Error)
		}
		if r, _ := c.Take(); r.Links.None.Count != 1 || !r.Addresses[0].Last.Equal(time.Now()) {
			t.Errorf("took %+v, want what was counted since the last time", r)
		}
	})
}
