//go:build !race

// The race detector takes ten times as long over a million addresses.

package report

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// TestKnownAddressIsCountedWithoutAllocation counts the same address again and again, with each of several links.
func TestKnownAddressIsCountedWithoutAllocation(t *testing.T) {
	address := []byte("http://www.example.com/" + strings.Repeat("%3C", 2*maxKey))
	var c Counter
	for i, referer := range []string{"https://b.test/" + strings.Repeat("<", 2*maxLink), "", "https://c.test/x?y#z", "/relative",
		"https://WWW.example.com:443/" + strings.Repeat("<", 2*maxKey-1), "http://www.example.com/" + strings.Repeat("<", 2*maxKey)} {
		miss := Miss{Address: address, Referer: referer, Outcome: Outcome(i % int(numOutcomes))}
		if got := testing.AllocsPerRun(100, func() {
			miss.Link = LinkOf(referer, address)
			c.Add(miss)
		}); got > 0 {
			t.Errorf("with the link %.40q, got %v allocations, want none", referer, got)
		}
	}
}

// TestMillionAddressesCostLittleMemory counts distinct addresses with distinct own and other links, all of maximal length.
func TestMillionAddressesCostLittleMemory(t *testing.T) {
	const million, most = 1_000_000, 1 << 20
	address := []byte("http://" + strings.Repeat("h", 100) + ".test/0000000/" + strings.Repeat("x", 2*maxKey))
	number := bytes.Index(address, []byte("0000000"))
	before := memoryInUse()
	var c Counter
	for i := range million {
		copy(address[number:], fmt.Appendf(nil, "%07d", i))
		c.Add(Miss{Address: address, Referer: string(address), Link: OwnLink})
		if i >= million-5*capacity { // by then, none of the others stays
			c.Add(Miss{Address: address, Referer: string(address[:len(address)-1]), Link: OtherLink})
		}
	}
	if rise := memoryInUse() - before; rise > most {
		t.Errorf("the memory in use rose by %d KiB, want at most %d", rise>>10, most>>10)
	} else {
		t.Logf("the memory in use rose by %d KiB", rise>>10)
	}

	r, _ := c.Snapshot()
	if r.Count != million+5*capacity || len(r.Addresses) != capacity {
		t.Errorf("got %d misses and %d addresses", r.Count, len(r.Addresses))
	}
	for _, a := range r.Addresses {
		if len(a.Host)+1+len(a.Path) != maxKey || len(a.Links.Own.Last) != maxLink || len(a.Links.Other.Last) != maxLink {
			t.Fatalf("got %+v, want %d bytes of the address and %d of each link", a, maxKey, maxLink)
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
