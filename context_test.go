package notfound

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestContextEndsWithTheRequestOrEarlier(t *testing.T) {
	type key struct{}
	for name, end := range map[string]func(cancel context.CancelFunc, e *cancelableContext){
		"request": func(cancel context.CancelFunc, _ *cancelableContext) { cancel() },
		"earlier": func(_ context.CancelFunc, e *cancelableContext) { e.derive().cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			request, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
			defer cancel()
			e := &cancelableContext{Context: request}
			derived, stop := context.WithCancel(e)
			defer stop()
			if e.Err() != nil || derived.Err() != nil || derived.Value(key{}) != "value" {
				t.Fatalf("got %v, %v, %v", e.Err(), derived.Err(), derived.Value(key{}))
			}
			end(cancel, e)
			<-e.Done()
			<-derived.Done()
			if e.Err() != context.Canceled || (request.Err() != nil) != (name == "request") {
				t.Errorf("got %v, of the request %v", e.Err(), request.Err())
			}
		})
	}

	t.Run("before anybody asked", func(t *testing.T) {
		e := &cancelableContext{Context: t.Context()}
		e.derive().cancel()
		<-e.Done()
		if e.Err() != context.Canceled || t.Context().Err() != nil {
			t.Errorf("got %v, of the request %v", e.Err(), t.Context().Err())
		}
	})
}

// TestReleasedContextGoesOn derives contexts from one that was canceled, after it was released.
func TestReleasedContextGoesOn(t *testing.T) {
	type key struct{}
	request, cancel := context.WithCancel(t.Context())
	defer cancel()
	e := &cancelableContext{Context: request}
	kept := context.WithValue(e, key{}, "value") // by a handler, in the request
	before, stop := context.WithCancel(e)
	defer stop()
	end := e.derive().cancel
	end()
	e.release()
	end() // by a timer that was late
	if e.Err() != nil || kept.Err() != nil || before.Err() != context.Canceled {
		t.Errorf("got %v, %v of a derived context, %v of one that was derived before", e.Err(), kept.Err(), before.Err())
	}
	after, stop := context.WithCancel(kept)
	defer stop()
	if after.Err() != nil {
		t.Errorf("got %v of a context that is derived after", after.Err())
	}
	cancel()
	<-e.Done()
	<-after.Done()
}

// TestDerivedContextsNeedNoGoroutine derives contexts as http.Transport does, a few for each request.
func TestDerivedContextsNeedNoGoroutine(t *testing.T) {
	e := &cancelableContext{Context: t.Context()}
	for range 100 {
		_, stop := context.WithCancel(e)
		defer stop()
	}
	buf := make([]byte, 1<<20)
	stacks := string(buf[:runtime.Stack(buf, true)])
	if n := strings.Count(stacks, "propagateCancel"); n > 0 {
		t.Errorf("%d goroutines wait for a context", n)
	}
}

// TestCompleteExchangeIsNotCanceled has a handler return in time after the page took the place of its response.
func TestCompleteExchangeIsNotCanceled(t *testing.T) {
	var ctx context.Context
	if err := serve(provision(t, &Handler{}), httptest.NewRecorder(), "GET", "/x", func(w http.ResponseWriter, r *http.Request) error {
		var stop context.CancelFunc
		ctx, stop = context.WithCancel(r.Context())
		t.Cleanup(stop)
		w.WriteHeader(http.StatusNotFound)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * maxStall)
	if ctx.Err() != nil {
		t.Errorf("got %v", ctx.Err())
	}
}
