package notfound

import (
	"context"
	"sync/atomic"
)

// exchange is the context of a request for the next handlers. It is the request's own, but can be canceled
// early: that ends the exchange with an upstream whose response nobody waits for any more, while the client's
// connection goes on.
//
// Most requests never ask whether they are done, so the cancelable context is derived only when one does.
type exchange struct {
	context.Context
	cancelable atomic.Pointer[cancelable]
}

type cancelable struct {
	context.Context
	cancel context.CancelFunc
}

func (e *exchange) derive() *cancelable {
	if c := e.cancelable.Load(); c != nil {
		return c
	}
	// not lost: the request's own context ends with the request, and this one with it
	ctx, cancel := context.WithCancel(e.Context)
	if !e.cancelable.CompareAndSwap(nil, &cancelable{ctx, cancel}) {
		cancel()
	}
	return e.cancelable.Load()
}

// release makes the context the request's own again. The request keeps it after not_found returned, and what is
// derived from it from now on must not be canceled with what the next handlers did.
func (e *exchange) release() { e.cancelable.Store(nil) }

// Done implements context.Context.
func (e *exchange) Done() <-chan struct{} { return e.derive().Done() }

// Err implements context.Context.
func (e *exchange) Err() error {
	if c := e.cancelable.Load(); c != nil {
		return c.Err()
	}
	return e.Context.Err()
}

// Value implements context.Context. It asks the context that Done comes from, as the context package
// does to find out whether it can do without a goroutine for each context derived from this one.
func (e *exchange) Value(key any) any {
	if c := e.cancelable.Load(); c != nil {
		return c.Value(key)
	}
	return e.Context.Value(key)
}
