package notfound

import (
	"context"
	"sync"
	"sync/atomic"
)

// cancelableContext is the context of a request for the next handlers. It is the request's own, but can be
// canceled early: that ends an exchange with an upstream whose response nobody waits for any more, while the
// client's connection goes on.
//
// Most requests never ask whether they are done, so what can be canceled is derived only when one does.
type cancelableContext struct {
	context.Context // the request's own
	deriving        sync.Once
	own             derivedContext
	derived         atomic.Pointer[derivedContext] // own, from when it is derived until it is released
	released        atomic.Bool
}

type derivedContext struct {
	context.Context
	cancel context.CancelFunc
}

// derive returns the context that can be canceled.
func (c *cancelableContext) derive() *derivedContext {
	c.deriving.Do(func() {
		// cancel is not lost: the request's own context ends with the request, and this one with it
		c.own.Context, c.own.cancel = context.WithCancel(c.Context)
		c.derived.Store(&c.own)
	})
	return &c.own
}

// release makes the context the request's own again, whatever was canceled. The request keeps it after not_found
// has returned, and the caller may derive other contexts from it.
func (c *cancelableContext) release() {
	c.released.Store(true)
	c.derived.Store(nil)
}

// Done implements context.Context.
func (c *cancelableContext) Done() <-chan struct{} {
	if c.released.Load() {
		return c.Context.Done()
	}
	return c.derive().Done()
}

// Err implements context.Context.
func (c *cancelableContext) Err() error {
	if d := c.derived.Load(); d != nil {
		return d.Err()
	}
	return c.Context.Err()
}

// Value implements context.Context. It asks the context that Done comes from: package context finds out this
// way whether it needs a goroutine for each context that is derived from this one.
func (c *cancelableContext) Value(key any) any {
	if d := c.derived.Load(); d != nil {
		return d.Value(key)
	}
	return c.Context.Value(key)
}
