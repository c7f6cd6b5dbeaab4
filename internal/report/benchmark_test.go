package report

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkAdd counts an address that is known, and one that is new each time, for which another one must give way; with a
// link and without one; and by all cores at once.
func BenchmarkAdd(b *testing.B) {
	known := []byte("http://www.example.com/docs/nothing/here?x=1")
	for name, referer := range map[string]string{"no link": "", "link": "https://www.example.com/blog/lanterns?x=1", "long link": "https://www.example.com/" + strings.Repeat("<", 1000)} {
		full := func() *Counter {
			var c Counter
			for i := range 2 * capacity {
				c.Add(Miss{Address: fmt.Appendf(nil, "http://www.example.com/docs/%d", i), Referer: referer, Link: LinkOf(referer, known)})
			}
			c.Add(Miss{Address: known, Referer: referer, Link: LinkOf(referer, known)})
			return &c
		}
		b.Run("known/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for c := full(); b.Loop(); {
				c.Add(Miss{Address: known, Referer: referer, Link: LinkOf(referer, known)})
			}
		})
		b.Run("unknown/"+name, func(b *testing.B) {
			b.ReportAllocs()
			i, address := 0, make([]byte, 0, 100)
			for c := full(); b.Loop(); i++ {
				address = fmt.Appendf(address[:0], "http://www.example.com/%d", i)
				c.Add(Miss{Address: address, Referer: referer, Link: LinkOf(referer, known)})
			}
		})
		b.Run("contended/"+name, func(b *testing.B) {
			c := full()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					c.Add(Miss{Address: known, Referer: referer, Link: LinkOf(referer, known)})
				}
			})
		})
	}
}

// BenchmarkLinkOf is what a page costs that no report counts, for the label of its metric.
func BenchmarkLinkOf(b *testing.B) {
	address := []byte("http://www.example.com/docs/nothing/here?x=1")
	for name, referer := range map[string]string{
		"nothing":     "",
		"own":         "https://www.example.com/blog/lanterns?x=1",
		"other":       "https://search.example/results?q=lanterns",
		"the address": string(address),
		"long":        "https://www.example.com/" + strings.Repeat("<", 1000),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				LinkOf(referer, address)
			}
		})
	}
}
