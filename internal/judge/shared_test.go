package judge

import "testing"

// TestOneHandlerOfAGroupRuns has handlers of two groups and of none, and two chains of one request at once, as some
// mirrors do. A handler that has ended is no longer in the way of another one of its group, and one that is running
// stays in the way.
func TestOneHandlerOfAGroupRuns(t *testing.T) {
	s := new(shared)
	of := func(group string) *Judge { return &Judge{options: &Options{Group: group}} }
	enter := func(j *Judge, want bool) *Judge {
		t.Helper()
		if s.enter(j) != want {
			t.Errorf("entered: %v", !want)
		}
		return j
	}
	first, second := enter(of("a"), true), enter(of("b"), true)
	enter(of("a"), false)
	enter(of("b"), false)
	enter(of(""), true)
	enter(of(""), true)
	s.leave(first)
	enter(of("b"), false)
	again := enter(of("a"), true)
	s.leave(second)
	enter(of("a"), false)
	s.leave(again)
	enter(of("a"), true)
}
