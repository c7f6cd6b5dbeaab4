package report

import (
	"fmt"
	"testing"
)

// BenchmarkAdd counts a known address, and a new one each time, which displaces another; with and without a link.
func BenchmarkAdd(b *testing.B) {
	addresses := make([]string, 64*capacity) // when it starts over, the first ones are long gone
	for i := range addresses {
		addresses[i] = fmt.Sprintf("http://www.example.com/docs/%d", i)
	}
	referers := map[string]string{
		"no link": "",
		"link":    "https://www.example.com/blog/lanterns?x=1",
	}
	for name, referer := range referers {
		b.Run("known/"+name, func(b *testing.B) {
			count(b, addresses[:1], referer)
		})
		b.Run("unknown/"+name, func(b *testing.B) {
			count(b, addresses, referer)
		})
	}
}

// count counts addresses with a link, after others that fill the tables.
func count(b *testing.B, addresses []string, referer string) {
	b.ReportAllocs()
	r := Request{Method: "GET", Referer: referer}
	var c Counter
	for i := range capacity {
		r.Address = fmt.Sprintf("http://a.test/%d", i)
		c.Add(r.Miss(OutcomePassed))
	}
	for i := 0; b.Loop(); i++ {
		r.Address = addresses[i%len(addresses)]
		c.Add(r.Miss(OutcomePassed))
	}
}
