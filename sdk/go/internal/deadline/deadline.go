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

// Err is that of a context.Context. It is not nil from the time, or the parent's end, on: that of what Done has made may say so a little later,
// and who waits with a timer of his own must not take the time between for success.
func (c *Context) Err() error {
	c.mu.Lock()
	armed, over := c.armed, c.over
	c.mu.Unlock()
	if armed != nil {
		if err := armed.Err(); err != nil {
			return err
		}
	}
	switch {
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

// Cause is context.Cause for who has given up because ctx has ended. It is never nil: context.Cause is, before Go 1.25, for a Context whose
// parent could end and has not.
func Cause(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return context.DeadlineExceeded
}
