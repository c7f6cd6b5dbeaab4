package report

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkAdd counts an address that is known, and one that is new each time, for which another one must give way; with a
// link and without one; by one goroutine and by eight.
func BenchmarkAdd(b *testing.B) {
	host := []byte("www.example.com")
	for name, referer := range map[string]string{"no link": "", "link": "https://www.example.com/blog/lanterns?x=1", "long link": "https://www.example.com/" + strings.Repeat("<", 1000)} {
		add := func(c *Counter, path []byte) {
			c.Add(Miss{Host: host, Path: path, Referer: referer, Link: LinkOf(referer, host, path)})
		}
		known := func() func(c *Counter) {
			path := []byte("/docs/nothing/here?x=1")
			return func(c *Counter) { add(c, path) }
		}
		unknown := func() func(c *Counter) {
			i, path := 0, make([]byte, 0, 100)
			return func(c *Counter) {
				i++
				path = strconv.AppendInt(append(path[:0], "/docs/"...), int64(i), 10)
				add(c, path)
			}
		}
		for which, make := range map[string]func() func(c *Counter){"known": known, "unknown": unknown} {
			full := func() *Counter {
				var c Counter
				for i := range 2 * capacity {
					add(&c, fmt.Appendf(nil, "/%d", i))
				}
				known()(&c)
				return &c
			}
			b.Run(which+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				c, one := full(), make()
				for b.Loop() {
					one(c)
				}
			})
			b.Run(which+"/contended/"+name, func(b *testing.B) {
				c := full()
				b.SetParallelism(max(1, 8/runtime.GOMAXPROCS(0)))
				b.RunParallel(func(pb *testing.PB) {
					for one := make(); pb.Next(); {
						one(c)
					}
				})
			})
		}
	}
}

// BenchmarkLinkOf is what a page costs that no report counts, for the label of its metric.
func BenchmarkLinkOf(b *testing.B) {
	host, target := []byte("www.example.com"), []byte("/docs/nothing/here?x=1")
	for name, referer := range map[string]string{
		"nothing":     "",
		"own":         "https://www.example.com/blog/lanterns?x=1",
		"other":       "https://search.example/results?q=lanterns",
		"the address": "http://www.example.com/docs/nothing/here?x=1",
		"long":        "https://www.example.com/" + strings.Repeat("<", 1000),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				LinkOf(referer, host, target)
			}
		})
	}
}
