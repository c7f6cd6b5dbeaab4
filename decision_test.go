package notfound

import (
	"testing"
)

// TestChainsEndInAnyOrder has two chains of one request run at once, as some mirrors do. A handler that has ended is no
// longer in the way of another one of its group, and one that is running stays in the way.
func TestChainsEndInAnyOrder(t *testing.T) {
	d := new(decision)
	of := func(group string) *exchange { return &exchange{handler: &Handler{Group: group}} }
	enter := func(x *exchange, want bool) *exchange {
		t.Helper()
		if d.enter(x) != want {
			t.Errorf("entered: %v", !want)
		}
		return x
	}
	first, second := enter(of("a"), true), enter(of("b"), true)
	enter(of("a"), false)
	d.leave(first)
	enter(of("b"), false)
	again := enter(of("a"), true)
	d.leave(second)
	enter(of("a"), false)
	d.leave(again)
	enter(of("a"), true)
}
