package notfound

import "testing"

// TestOneHandlerOfAGroupRuns has handlers of two groups and of none, and two chains of one request at once, as some mirrors
// do. A handler that has ended is no longer in the way of another one of its group, and one that is running stays in the way.
func TestOneHandlerOfAGroupRuns(t *testing.T) {
	d := new(decision)
	of := func(group string) *responseWriter { return &responseWriter{handler: &Handler{Group: group}} }
	enter := func(x *responseWriter, want bool) *responseWriter {
		t.Helper()
		if d.enter(x) != want {
			t.Errorf("entered: %v", !want)
		}
		return x
	}
	first, second := enter(of("a"), true), enter(of("b"), true)
	enter(of("a"), false)
	enter(of("b"), false)
	enter(of(""), true)
	enter(of(""), true)
	d.leave(first)
	enter(of("b"), false)
	again := enter(of("a"), true)
	d.leave(second)
	enter(of("a"), false)
	d.leave(again)
	enter(of("a"), true)
}
