package cache

// This file owns the round trips of a load: reading many keys, taking and renewing leases, filling the store. StoreTimeout bounds each of
// them as a whole, however many batches it takes: a store that hangs must not cost its callers one StoreTimeout for each.

import (
	"bytes"
	"context"
	"sync"
	"time"
)

// readTasks reads the keys of tasks, in batches.
func (c *Cache[K, V]) readTasks(ctx context.Context, tasks []*task[K, V]) {
	within, bound := c.bound(ctx)
	defer bound.end()
	s := c.get()
	defer c.put(s)
	var t tally
	defer func() { c.counters.tell(&t) }()
	for len(tasks) > 0 {
		n := min(len(tasks), c.options.BatchMax)
		ops := s.size(n)
		stamps := make([]stamp, n)
		for i, w := range tasks[:n] {
			s.read(i, &ops[i], w.encoded)
			if c.local != nil {
				stamps[i] = c.local.begin(w.hash)
			}
		}
		c.transport.Do(within, ops)
		for i, w := range tasks[:n] {
			w.err = c.take(ctx, s, &ops[i], w.hash, stamps[i], w.key, &w.read, &t)
			s.done(i, &ops[i])
		}
		tasks = tasks[n:]
	}
}

// leaseKeys makes the keys of the tasks' leases.
func (c *Cache[K, V]) leaseKeys(tasks []*task[K, V]) {
	var arena []byte
	for _, w := range tasks {
		from := len(arena)
		arena = appendLease(arena, w.encoded)
		w.lease = arena[from:len(arena):len(arena)]
	}
}

// acquire tries for the leases of tasks, and reads the keys behind that: a value that was stored before the lease became free is seen. With
// join, a lease that somebody else has is read, to store with his ticket: it is gone once the key was deleted, and never comes back.
func (c *Cache[K, V]) acquire(ctx context.Context, tasks []*task[K, V], token []byte, join bool) {
	within, bound := c.bound(ctx)
	defer bound.end()
	s := c.get()
	defer c.put(s)
	var t tally
	defer func() { c.counters.tell(&t) }()
	each := 2
	if join {
		each = 3
	}
	for len(tasks) > 0 {
		n := min(len(tasks), max(c.options.BatchMax/each, 1))
		ops := s.size(each * n)
		stamps := make([]stamp, n)
		for i, w := range tasks[:n] {
			ops[each*i] = Op{Kind: OpAcquire, Key: w.encoded, Lease: w.lease, Token: token, TTL: c.options.LeaseTTL}
			s.read(i, &ops[each*i+1], w.encoded)
			if join {
				ops[each*i+2] = Op{Kind: OpGet, Key: w.lease}
			}
			if c.local != nil {
				stamps[i] = c.local.begin(w.hash)
			}
		}
		c.transport.Do(within, ops)
		for i, w := range tasks[:n] {
			lease, value := &ops[each*i], &ops[each*i+1]
			if w.held = lease.Err == nil && lease.Found; w.held {
				w.ticket = token
			} else if join && lease.Err == nil && ops[each*i+2].Err == nil && ops[each*i+2].Found {
				w.ticket = bytes.Clone(ops[each*i+2].Value)
			}
			if w.err = c.take(ctx, s, value, w.hash, stamps[i], w.key, &w.read, &t); lease.Err != nil {
				c.counters.failed(ctx)
				w.err = lease.Err
			}
			s.done(i, value)
		}
		tasks = tasks[n:]
	}
}

// release gives one lease back.
func (c *Cache[K, V]) release(ctx context.Context, w *task[K, V], token []byte) {
	within, bound := c.bound(ctx)
	defer bound.end()
	s := c.get()
	defer c.put(s)
	op := &s.size(1)[0]
	*op = Op{Kind: OpRelease, Key: w.encoded, Lease: w.lease, Token: token}
	c.transport.Do(within, s.ops)
	if op.Err != nil {
		c.counters.failed(ctx)
	}
	w.held = false
}

// renewing renews the leases of tasks until stop is called. A load that is over before a third of the TTL costs a timer.
func (c *Cache[K, V]) renewing(ctx context.Context, tasks []*task[K, V], token []byte) (stop func()) {
	var ops []Op
	for _, w := range tasks {
		if w.held {
			ops = append(ops, Op{Kind: OpRenew, Key: w.encoded, Lease: w.lease, Token: token, TTL: c.options.LeaseTTL})
		}
	}
	if len(ops) == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var mu sync.Mutex // held while renewing
	var timer *time.Timer
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(c.options.LeaseTTL/3, func() {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		for from := 0; from < len(ops); from += c.options.BatchMax {
			bounded, bound := c.bound(ctx)
			c.transport.Do(bounded, ops[from:min(from+c.options.BatchMax, len(ops))])
			bound.end()
		}
		if ctx.Err() != nil { // also what was given up because of that
			return
		}
		for i := range ops {
			if ops[i].Err != nil {
				c.counters.failed(ctx)
			}
		}
		timer.Reset(c.options.LeaseTTL / 3)
	})
	return func() {
		cancel()
		timer.Stop()
		mu.Lock() // what is under way must not renew what is then released
		defer mu.Unlock()
	}
}

// fill stores what was loaded, or that there is nothing, and gives the leases back; without keep just that: the cache was closed before the
// loader came back. It never stores without a ticket: the key may have been deleted since the value was read from the source.
func (c *Cache[K, V]) fill(ctx context.Context, tasks []*task[K, V], t *terms, took time.Duration, keep bool) {
	within, bound := c.bound(ctx)
	defer bound.end()
	s := c.get()
	defer c.put(s)
	now := c.writing(ctx, t)
	for len(tasks) > 0 {
		n := min(len(tasks), c.options.BatchMax)
		ops := s.size(n)[:0]
		of := make([]*task[K, V], 0, n)
		s.value = s.value[:0]
		ends := s.ends[:0]
		for _, w := range tasks[:n] {
			op := Op{Key: w.encoded, Lease: w.lease, Token: w.ticket}
			if w.ticket == nil || !c.fillOp(s, w, &op, t, took, now, keep) {
				continue
			}
			// Value is set below: the buffer may still move.
			ops, of, ends = append(ops, op), append(of, w), append(ends, len(s.value))
		}
		from := 0
		for i := range ops {
			ops[i].Value = s.value[from:ends[i]:ends[i]]
			from = ends[i]
		}
		if len(ops) > 0 {
			c.transport.Do(within, ops)
		}
		var counted tally
		for i := range ops {
			c.filled(ctx, of[i], &ops[i], t, &counted)
		}
		c.counters.tell(&counted)
		s.ends = ends
		tasks = tasks[n:]
	}
}

// fillOp makes the operation that a loaded task needs, if it needs one, appending its value to s.value.
func (c *Cache[K, V]) fillOp(s *scratch[V], w *task[K, V], op *Op, t *terms, took time.Duration, now int64, keep bool) bool {
	op.Kind = OpFill
	err := w.loaded.Err
	switch {
	case !keep: // others need not wait for the lease to end
	case err == nil:
		if s.value, err = c.encode(s, s.value, &w.loaded.Value, t, took, now); err == nil {
			op.TTL = c.jitter(t.ttl)
			return true
		}
		c.counters.add(EventEncodeError, 1)
	case notFound(err) && t.negative > 0:
		s.value = encodeNegative(s.value, c.codec.ID())
		op.TTL = c.jitter(t.negative)
		return true
	case w.flight == nil && w.held && !notFound(err) && c.options.RetryPause > 0:
		op.Kind, op.TTL = OpRenew, c.options.RetryPause // nobody tries again before that
		return true
	}
	op.Kind = OpRelease
	return w.held
}

// filled sees to the counts and the first level after an operation of fill.
func (c *Cache[K, V]) filled(ctx context.Context, w *task[K, V], op *Op, t *terms, counted *tally) {
	if op.Kind != OpFill {
		if op.Err != nil {
			c.counters.failed(ctx)
		}
		return
	}
	if op.Err == nil && !op.Found {
		c.counters.add(EventFillDropped, 1)
		return
	}
	if w.loaded.Err != nil {
		c.wrote(ctx, w.hash, op.Err, &w.key, nil, len(op.Value), t.negative, 0, counted)
		return
	}
	c.wrote(ctx, w.hash, op.Err, &w.key, &w.loaded.Value, len(op.Value), t.ttl, t.soft, counted)
}
