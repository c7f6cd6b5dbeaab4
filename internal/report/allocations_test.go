//go:build !race

// The race detector takes ten times as long over so many addresses.

package report

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// TestKnownAddressIsCountedWithoutAllocation sends links as browsers do, which encode what a URI cannot have.
func TestKnownAddressIsCountedWithoutAllocation(t *testing.T) {
	long := "/" + strings.Repeat("%3C", 2*maxKey)
	address := "http://www.example.com" + long
	var c Counter
	for _, referer := range []string{
		"",
		"/relative",
		"https://b.test" + long,
		"https://WWW.example.com:443/%3C" + long,
		"http://www.example.com" + long,
	} {
		got := testing.AllocsPerRun(100, func() {
			c.Add(NewMiss(address, "www.example.com", "GET", referer))
		})
		if got > 0 {
			t.Errorf("with the link %.40q, got %v allocations, want none", referer, got)
		}
	}
}

// TestManyAddressesCostLittleMemory counts distinct addresses of each kind, each with a link of its own. Those that
// remain have the maximum length.
func TestManyAddressesCostLittleMemory(t *testing.T) {
	const most = 2 << 20
	addresses := 100_000 // a hundred times as many as there is room for
	if testing.Short() {
		addresses = 20 * capacity
	}
	long := []byte("/0000000/" + strings.Repeat("x", 2*maxKey))
	before := memoryInUse()
	var c Counter
	for i := range addresses {
		path := fmt.Appendf(long[:1], "%07d", i)
		if i >= addresses-5*capacity {
			path = long
		}
		for link := range NumLinks {
			m := Miss{Host: "a.test", Path: string(path), Link: link}
			m.Referer = "http://b.test" + m.Path
			c.Add(m)
		}
	}
	if rise := memoryInUse() - before; rise > most {
		t.Errorf("the memory in use rose by %d KiB, want at most %d", rise>>10, most>>10)
	} else {
		t.Logf("the memory in use rose by %d KiB", rise>>10)
	}

	r, _ := c.Snapshot()
	for link := range NumLinks {
		total := r.Links[link]
		kept := len(r.paths(Link(link)))
		if total.Count != uint64(addresses) || total.Floor != uint64(addresses/capacity) || kept != capacity {
			t.Errorf("%s: got %+v and %d addresses", Link(link), total, kept)
		}
	}
	for _, a := range r.Addresses {
		key := a.Host + " " + a.Path
		if len(key) != maxKey || len(a.LastLink) != maxLink {
			t.Fatalf("got %+v, want %d bytes of the address and %d of the link", a, maxKey, maxLink)
		}
	}
}

func memoryInUse() int64 {
	runtime.GC()
	runtime.GC() // what a finalizer held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
