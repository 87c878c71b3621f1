package cache

// This file owns the time by which values stop being fresh: the store's, as far as that is known, since the clocks of the processes that use it
// may differ.

import (
	"context"
	"sync/atomic"
	"time"
)

// Bounds of asking for the store's time.
const (
	clockEvery = time.Minute // after which it is asked for again
	clockRetry = time.Second // the same, when it could not be had
	clockTrip  = time.Second // a reply that took longer says too little
)

// clock tells the store's time. It is asked for before a value with a soft end is stored for the first time, and then once a minute in the
// background; between that the monotonic clock goes on from it. Where the store's time cannot be had, it is this machine's.
type clock struct {
	source Clock            // nil if the transport has none
	wall   func() time.Time // this machine's
	asking chan struct{}    // holds a value while somebody asks
	behind atomic.Bool      // somebody asks, or will, in the background
	asked  atomic.Int64     // ticks of the last answer, 0: never
	known  atomic.Bool
	ahead  atomic.Int64 // if known, what has to be added to ticks for nanoseconds since 1970
}

func newClock(t Transport) *clock {
	c := &clock{wall: time.Now, asking: make(chan struct{}, 1)}
	c.source, _ = t.(Clock)
	return c
}

// now returns milliseconds since 1970, and whether the store should be asked.
func (c *clock) now() (ms int64, due bool) {
	now, every := ticks(), clockEvery
	if c.known.Load() {
		ms = (now + c.ahead.Load()) / int64(time.Millisecond)
	} else {
		ms, every = c.wall().UnixMilli(), clockRetry
	}
	asked := c.asked.Load()
	return ms, c.source != nil && (asked == 0 || now-asked >= int64(every))
}

// ask asks the store, unless somebody else has just done it; who comes meanwhile waits.
func (c *clock) ask(ctx context.Context) {
	select {
	case c.asking <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-c.asking }()
	if _, due := c.now(); !due {
		return
	}
	before := ticks()
	at, err := c.source.Time(ctx)
	after := ticks()
	defer c.asked.Store(after) // when it is known: who comes meanwhile waits
	if err != nil || after-before > int64(clockTrip) {
		return
	}
	c.ahead.Store(at.UnixNano() - (before + (after-before)/2))
	c.known.Store(true)
}

// now returns the store's time for who reads: milliseconds since 1970.
func (c *Cache[K, V]) now() int64 {
	ms, due := c.clock.now()
	if due && c.clock.behind.CompareAndSwap(false, true) {
		done := func() { c.clock.behind.Store(false) }
		if !c.spawn(func() {
			defer done()
			within, bound := c.bound(c.ctx)
			defer bound.end()
			c.clock.ask(within)
		}) {
			done()
		}
	}
	return ms
}

// writing returns the store's time for who writes. Everybody believes what it writes: if the time was never known, it waits for that.
func (c *Cache[K, V]) writing(ctx context.Context, t *terms) int64 {
	if t.soft <= 0 && c.options.EarlyRefresh <= 0 { // no soft end, no time
		return 0
	}
	c.learn(ctx)
	return c.now()
}

// learn waits for the store's time, if that was never known.
func (c *Cache[K, V]) learn(ctx context.Context) {
	if _, due := c.clock.now(); due && !c.clock.known.Load() {
		within, bound := c.bound(ctx)
		defer bound.end()
		c.clock.ask(within)
	}
}
