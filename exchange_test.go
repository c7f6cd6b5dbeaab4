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

func TestExchangeEndsWithTheRequestOrEarlier(t *testing.T) {
	type key struct{}
	for name, end := range map[string]func(cancel context.CancelFunc, e *exchange){
		"request": func(cancel context.CancelFunc, _ *exchange) { cancel() },
		"cut":     func(_ context.CancelFunc, e *exchange) { e.cut() },
	} {
		t.Run(name, func(t *testing.T) {
			request, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
			defer cancel()
			e := &exchange{Context: request}
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

	t.Run("cut before anybody asked", func(t *testing.T) {
		e := &exchange{Context: t.Context()}
		e.cut()
		<-e.Done()
		if e.Err() != context.Canceled || t.Context().Err() != nil {
			t.Errorf("got %v, of the request %v", e.Err(), t.Context().Err())
		}
	})
}

// TestDerivedContextsNeedNoGoroutine derives contexts as http.Transport does, a few for each request.
func TestDerivedContextsNeedNoGoroutine(t *testing.T) {
	e := &exchange{Context: t.Context()}
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

// TestCompleteExchangeIsNotCut has a handler return in time after the page took the place of its response.
func TestCompleteExchangeIsNotCut(t *testing.T) {
	var ctx context.Context
	if err := serve(provision(t, &Handler{}), httptest.NewRecorder(), "GET", "/x", func(w http.ResponseWriter, r *http.Request) error {
		ctx = r.Context()
		w.WriteHeader(http.StatusNotFound)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * maxDropTime)
	if ctx.Err() != nil {
		t.Errorf("got %v", ctx.Err())
	}
}
