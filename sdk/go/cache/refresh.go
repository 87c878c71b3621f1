package cache

// This file owns refreshing: a value that is still served is loaded anew in the background, by one process.

import (
	"context"
	"time"
)

// refresh loads a key in the background, if nobody else does. seen is when the value that was served stops being fresh.
func (c *Cache[K, V]) refresh(ctx context.Context, hash uint64, key K, seen int64, load tasksLoader[K, V], t terms) {
	if !c.flights.beginRefresh(hash, key) {
		return
	}
	done := func() {
		c.refreshes.Add(-1)
		c.flights.endRefresh(hash, key)
	}
	if c.refreshes.Add(1) > int64(c.options.RefreshMax) {
		c.counters.add(EventRefreshSkipped, 1)
		done()
		return
	}
	if !c.spawn(func() {
		defer done()
		c.refreshNow(ctx, hash, key, seen, load, t)
	}) {
		done()
	}
}

func (c *Cache[K, V]) refreshNow(ctx context.Context, hash uint64, key K, seen int64, load tasksLoader[K, V], t terms) {
	detached, cancel := c.detach(ctx)
	defer cancel()
	encoded, err := c.keys.append(nil, &key)
	if err != nil {
		return
	}
	if c.learn(detached); c.options.EarlyRefresh <= 0 && c.now() < seen {
		return // it seemed stale by this machine's clock, which is wrong
	}
	w := &task[K, V]{key: key, hash: hash, encoded: encoded}
	l := &loading[K, V]{c: c, ctx: detached, load: load, terms: t}
	l.token = newToken()
	alone := []*task[K, V]{w}
	c.leaseKeys(alone)
	c.acquire(detached, alone, l.token, !c.options.waits)
	if w.ticket == nil {
		return // another process does it, or the store is away
	}
	if w.read.state != stateMiss && (w.read.fresh == 0 || w.read.fresh > seen) { // another has done it
		if w.held {
			c.release(detached, w, l.token)
		}
		return
	}
	c.counters.add(EventRefresh, 1)
	l.run(alone)
}

// refreshIfDue refreshes a value that was read from the store if it is stale or soon will be.
func (c *Cache[K, V]) refreshIfDue(ctx context.Context, hash uint64, key K, r *reading[V], load tasksLoader[K, V], t terms) {
	if r.fresh != 0 && c.early((r.fresh-c.now())*int64(time.Millisecond), r.load) {
		c.refresh(ctx, hash, key, r.fresh, load, t)
	}
}
