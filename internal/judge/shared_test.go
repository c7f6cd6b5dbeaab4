package judge

import (
	"net/http"
	"sync"
	"testing"

	"github.com/caddy-notfound/notfound/internal/request"
	"github.com/caddy-notfound/notfound/internal/response"
)

// wantRunning checks that no further handler of a group begins.
func wantRunning(t *testing.T, r *request.Request, group string) {
	t.Helper()
	another := new(Judge)
	if another.Enter(&Options{Group: group}, r, nil) {
		t.Errorf("two handlers of the group %s run", group)
	}
}

// TestOneHandlerOfAGroupRuns has handlers of two groups and of none. The first of them leaves first, as where two
// chains of one request run at once. A handler that has ended is no longer in the way of another one of its group.
func TestOneHandlerOfAGroupRuns(t *testing.T) {
	r := situation{}.request()
	a := Options{Group: "a"}
	first := enter(t, a, r)
	second := enter(t, Options{Group: "b"}, r)
	wantRunning(t, r, "a")
	wantRunning(t, r, "b")
	enter(t, Options{}, r)
	enter(t, Options{}, r)
	first.Leave()
	wantRunning(t, r, "b")
	again := enter(t, a, r)
	second.Leave()
	wantRunning(t, r, "a")
	again.Leave()
	enter(t, a, r)
}

// TestChainsOfOneRequestRunAtOnce has a handler run the next ones twice at once, as dotvezz/caddy-mirror does, with one
// replacer. The race detector looks at it.
func TestChainsOfOneRequestRunAtOnce(t *testing.T) {
	e := situation{isMarked: true}
	r := e.request()
	outer := enter(t, Options{Group: "outer"}, r)
	const n = 20
	var begun, chains sync.WaitGroup
	begun.Add(n)
	for i := range n {
		chains.Go(func() {
			inner := enter(t, Options{Keep: keepMarked}, r)
			begun.Done()
			begun.Wait()
			if i%2 == 0 {
				dry := DryRun{Judge: inner}
				dry.Status(http.StatusNotFound, e.header())
				dry.Decide(nil, true)
			} else {
				inner.Restart()
				inner.Status(http.StatusNotFound, e.header())
			}
			inner.ClaimCount()
			r.Replacer.GetString(reasonPlaceholder)
			r.Replacer.GetString(causePlaceholder)
			inner.Leave()
		})
	}
	chains.Wait()
	want404(t, outer, e, response.Pass)
}
