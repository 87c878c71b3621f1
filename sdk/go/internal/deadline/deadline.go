// Package deadline has a context that is cheap as long as it does not end: what a round trip over this SDK's client is bounded with.
package deadline

import (
	"context"
	"sync"
	"time"
)

// Context ends at a time, or with its parent. It is one piece of memory: unlike context.WithDeadline it makes a timer and a channel only when it
// is asked for Done, so that who waits with a timer of his own never pays for them.
type Context struct {
	parent context.Context
	at     time.Time

	mu    sync.Mutex
	over  bool   // End was called
	armed *armed // by the first Done
}

// armed is what has timer and channel.
type armed struct {
	context.Context
	cancel context.CancelFunc
}

// New makes a context. End has to be called when it is not needed any more.
func New(parent context.Context, at time.Time) *Context { return &Context{parent: parent, at: at} }

// Parent returns what else ends the context.
func (c *Context) Parent() context.Context { return c.parent }

// Deadline is that of a context.Context.
func (c *Context) Deadline() (time.Time, bool) { return c.at, true }

// Done is that of a context.Context.
func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.armed == nil {
		c.armed = &armed{}
		c.armed.Context, c.armed.cancel = context.WithDeadline(c.parent, c.at)
		if c.over {
			c.armed.cancel()
		}
	}
	return c.armed.Done()
}

// Err is that of a context.Context.
func (c *Context) Err() error {
	c.mu.Lock()
	armed, over := c.armed, c.over
	c.mu.Unlock()
	switch {
	case armed != nil:
		return armed.Err()
	case over:
		return context.Canceled
	case c.parent.Err() != nil:
		return c.parent.Err()
	case !time.Now().Before(c.at):
		return context.DeadlineExceeded
	}
	return nil
}

// Value is that of a context.Context. Package context finds its own contexts by it, and so needs no goroutine for those made of this one.
func (c *Context) Value(key any) any {
	c.mu.Lock()
	armed := c.armed
	c.mu.Unlock()
	if armed != nil {
		return armed.Value(key)
	}
	return c.parent.Value(key)
}

// End ends the context, as the function that context.WithDeadline returns.
func (c *Context) End() {
	c.mu.Lock()
	armed := c.armed
	c.over = true
	c.mu.Unlock()
	if armed != nil {
		armed.cancel()
	}
}
