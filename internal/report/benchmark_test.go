package report

import (
	"fmt"
	"testing"
)

// BenchmarkAdd counts a known address, and a new one each time, which displaces another; with and without a link.
func BenchmarkAdd(b *testing.B) {
	const host = "www.example.com"
	paths := make([]string, 64*capacity) // when it starts over, the first ones are long gone
	for i := range paths {
		paths[i] = fmt.Sprintf("/docs/%d", i)
	}
	for name, referer := range map[string]string{"no link": "", "link": "https://www.example.com/blog/lanterns?x=1"} {
		for which, paths := range map[string][]string{"known": {"/docs/nothing/here?x=1"}, "unknown": paths} {
			b.Run(which+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				var c Counter
				add := func(path string) {
					c.Add(Miss{Host: host, Path: path, Referer: referer, Link: linkOf(referer, host, path, "")})
				}
				for i := range 2 * capacity {
					add(fmt.Sprintf("/%d", i))
				}
				add(paths[0])
				for i := 0; b.Loop(); i++ {
					add(paths[i%len(paths)])
				}
			})
		}
	}
}
