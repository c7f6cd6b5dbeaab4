//go:build linux

package main

import (
	"testing"
	"time"
)

// TestRatioIsThatOfTheSums has four starts. The first and the last have the same alignment. A start in which
// there were few requests counts less.
func TestRatioIsThatOfTheSums(t *testing.T) {
	own := cell{1, protocols[0].name}
	reference := cell{0, protocols[0].name}
	tb := table{group: group{Sites: []site{{}, {Against: 0}}}}
	for _, requests := range []int{10, 20, 5, 30} {
		tb.samples = append(tb.samples, sample{
			own:       {time.Second, requests},
			reference: {time.Second, 10},
		})
	}
	ratio, lowest, highest := tb.ratio(1, protocols[0])
	if ratio != 40.0/65 || lowest != 0.5 || highest != 2 { // 20/40 of the first and the last, 10/20, and 10/5
		t.Errorf("got %v (%v to %v)", ratio, lowest, highest)
	}
}
