package report

import (
	"fmt"
	"testing"
)

// BenchmarkAdd counts a known address, and a new one each time, which displaces another; with and without a link.
func BenchmarkAdd(b *testing.B) {
	unknown := make([]string, 64*capacity) // when it starts over, the first ones are long gone
	for i := range unknown {
		unknown[i] = fmt.Sprintf("http://www.example.com/docs/%d", i)
	}
	known := unknown[:1]
	const link = "https://www.example.com/blog/lanterns?x=1"
	b.Run("known/no link", func(b *testing.B) { add(b, known, "") })
	b.Run("known/link", func(b *testing.B) { add(b, known, link) })
	b.Run("unknown/no link", func(b *testing.B) { add(b, unknown, "") })
	b.Run("unknown/link", func(b *testing.B) { add(b, unknown, link) })
}

// add counts addresses with a link, after others that fill the tables.
func add(b *testing.B, addresses []string, referer string) {
	b.ReportAllocs()
	r := Request{Method: "GET", Referer: referer}
	var c Counter
	for i := range capacity {
		r.Address = fmt.Sprintf("http://a.test/%d", i)
		c.Add(r.Miss(Passed))
	}
	for i := 0; b.Loop(); i++ {
		r.Address = addresses[i%len(addresses)]
		c.Add(r.Miss(Passed))
	}
}
