package report

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// BenchmarkAdd counts an address that is known, and one that is new each time, for which another one must give way; with a
// link and without one; by one goroutine and by eight.
func BenchmarkAdd(b *testing.B) {
	const host = "www.example.com"
	paths := make([]string, 64*capacity) // when it begins again, the first ones are long gone
	for i := range paths {
		paths[i] = fmt.Sprintf("/docs/%d", i)
	}
	for name, referer := range map[string]string{"no link": "", "link": "https://www.example.com/blog/lanterns?x=1", "long link": "https://www.example.com/" + strings.Repeat("<", 1000)} {
		add := func(c *Counter, path string) {
			c.Add(Miss{Host: host, Path: path, Referer: referer, Link: LinkOf(referer, host, path)})
		}
		known := func() func(c *Counter) {
			return func(c *Counter) { add(c, "/docs/nothing/here?x=1") }
		}
		unknown := func() func(c *Counter) {
			i := 0
			return func(c *Counter) {
				i++
				add(c, paths[i%len(paths)])
			}
		}
		for which, make := range map[string]func() func(c *Counter){"known": known, "unknown": unknown} {
			full := func() *Counter {
				var c Counter
				for i := range 2 * capacity {
					add(&c, fmt.Sprintf("/%d", i))
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
	const host, target = "www.example.com", "/docs/nothing/here?x=1"
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
