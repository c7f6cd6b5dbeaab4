package main

import (
	"strings"
	"testing"
)

// printed is what go test prints.
const printed = `goos: linux
goarch: amd64
pkg: github.com/caddy-notfound/notfound
BenchmarkPass/not_found         	    2000	       500.0 ns/op	     624 B/op	       8 allocs/op
BenchmarkPass/slow/one          	    2000	      2300 ns/op	    1624 B/op	      10 allocs/op
BenchmarkPass/calls_next        	    2000	       300.0 ns/op	     368 B/op	       7 allocs/op
BenchmarkOther/calls_next
PASS
`

func TestParseBenchmarks(t *testing.T) {
	all, err := parseBenchmarks(printed)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 3 {
		t.Fatalf("got %d benchmarks, want 3", len(all))
	}
	b := all[1]
	if b.group != "Pass" || b.name != "slow/one" || len(b.ns) != 1 || b.ns[0] != 2300 || b.bytes != 1624 || b.allocs != 10 {
		t.Errorf("got %+v", *b)
	}
}

// TestOwnIsWithoutTheRoute has the second round slow: what counts is the ratio within each.
func TestOwnIsWithoutTheRoute(t *testing.T) {
	all, err := parseBenchmarks(printed)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		b.ns = append(b.ns, 3*b.ns[0])
	}
	groups := []microGroup{{"Pass", "What passes"}}
	tables, err := microMarkdown(all, groups)
	if err != nil {
		t.Fatal(err)
	}
	const want = `
### What passes

|            |     time |      own | ratio | allocated | allocations |
|------------|---------:|---------:|------:|----------:|------------:|
| not_found  | 1,000 ns |   400 ns |  1.00 |     624 B |           8 |
| slow/one   | 4,600 ns | 4,000 ns | 10.00 |   1,624 B |          10 |
| calls_next |   600 ns |          |       |     368 B |           7 |
`
	if !strings.HasSuffix(tables, want) {
		t.Errorf("got\n%s\nwant\n%s", tables, want)
	}

	if _, err := microMarkdown(all[:2], groups); err == nil {
		t.Error("there is nothing to compare with, and no error")
	}
}
