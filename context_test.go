package notfound

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestContextEndsWithTheRequestOrEarlier cancels the request's own context, and what is derived from it.
func TestContextEndsWithTheRequestOrEarlier(t *testing.T) {
	type key struct{}
	for name, end := range map[string]func(cancel context.CancelFunc, c *cancelableContext){
		"request": func(cancel context.CancelFunc, _ *cancelableContext) { cancel() },
		"earlier": func(_ context.CancelFunc, c *cancelableContext) { c.cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			request, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
			defer cancel()
			c := &cancelableContext{Context: request}
			derived, stop := context.WithCancel(c)
			defer stop()
			if c.Err() != nil || derived.Err() != nil || derived.Value(key{}) != "value" {
				t.Fatalf("got %v, %v, %v", c.Err(), derived.Err(), derived.Value(key{}))
			}
			end(cancel, c)
			<-c.Done()
			<-derived.Done()
			if c.Err() != context.Canceled || (request.Err() != nil) != (name == "request") {
				t.Errorf("got %v, of the request %v", c.Err(), request.Err())
			}
		})
	}

	t.Run("before anything asked", func(t *testing.T) {
		c := &cancelableContext{Context: t.Context()}
		c.cancel()
		<-c.Done()
		if c.Err() != context.Canceled || t.Context().Err() != nil {
			t.Errorf("got %v, of the request %v", c.Err(), t.Context().Err())
		}
	})
}

// TestReleasedContextGoesOn derives contexts from one that was canceled, after it was released.
func TestReleasedContextGoesOn(t *testing.T) {
	type key struct{}
	request, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := &cancelableContext{Context: request}
	kept := context.WithValue(c, key{}, "value") // by a handler, in the request
	before, stop := context.WithCancel(c)
	defer stop()
	end := c.cancel
	end()
	c.release()
	end() // by a timer that was late
	if c.Err() != nil || kept.Err() != nil || before.Err() != context.Canceled {
		t.Errorf("got %v, %v of a derived context, %v of one that was derived before", c.Err(), kept.Err(), before.Err())
	}
	after, stop := context.WithCancel(kept)
	defer stop()
	if after.Err() != nil {
		t.Errorf("got %v of a context that is derived after", after.Err())
	}
	cancel()
	<-c.Done()
	<-after.Done()
}

// TestDerivedContextsNeedNoGoroutine derives contexts as http.Transport does, which derives a few for each request.
func TestDerivedContextsNeedNoGoroutine(t *testing.T) {
	ignored := goleak.IgnoreCurrent()
	c := &cancelableContext{Context: t.Context()}
	for range 100 {
		_, stop := context.WithCancel(c)
		defer stop()
	}
	if err := goleak.Find(ignored); err != nil {
		t.Error(err)
	}
}

// TestCompleteExchangeIsNotCanceled has a handler return in time after the page has replaced its response.
func TestCompleteExchangeIsNotCanceled(t *testing.T) {
	t.Parallel()
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
	select {
	case <-ctx.Done():
		t.Errorf("got %v", ctx.Err())
	case <-time.After(2 * maxStall):
	}
}
