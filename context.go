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
	isDerived       atomic.Bool
	isReleased      atomic.Bool

	mu            sync.Mutex // for what follows, until isDerived
	derived       context.Context
	cancelDerived context.CancelFunc
}

// derive returns the context that can be canceled.
func (c *cancelableContext) derive() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.derived == nil {
		// canceled at the latest with the request's own context, which ends with the request
		c.derived, c.cancelDerived = context.WithCancel(c.Context)
		c.isDerived.Store(true)
	}
	return c.derived
}

// cancel ends the context early.
func (c *cancelableContext) cancel() {
	c.derive()
	c.cancelDerived()
}

// release makes the context the request's own again, whatever was canceled. The request keeps it after not_found
// has returned, and the caller may derive other contexts from it.
func (c *cancelableContext) release() { c.isReleased.Store(true) }

// current returns the derived context from when it is derived until it is released, else the request's own.
func (c *cancelableContext) current() context.Context {
	if c.isDerived.Load() && !c.isReleased.Load() {
		return c.derived
	}
	return c.Context
}

// Done implements context.Context.
func (c *cancelableContext) Done() <-chan struct{} {
	if c.isReleased.Load() {
		return c.Context.Done()
	}
	return c.derive().Done()
}

// Err implements context.Context.
func (c *cancelableContext) Err() error { return c.current().Err() }

// Value implements context.Context. It asks the context that Done comes from: package context finds out this
// way whether it needs a goroutine for each context that is derived from this one.
func (c *cancelableContext) Value(key any) any { return c.current().Value(key) }
