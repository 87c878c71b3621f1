package cache

// This file owns the calls for many keys without a loader: one pipelined batch, partial results, an error for each key.

import (
	"context"
	"errors"
	"hash/maphash"
	"time"
)

// Result is what one key of a call came to.
type Result[V any] struct {
	Value V
	// Err is nil, ErrMiss, ErrNotFound, or what went wrong with this key.
	Err error
}

// Results are in the order of the keys.
type Results[V any] []Result[V]

// Err returns a ManyError of what went wrong, or nil. A miss is nothing that went wrong, and neither is a key that the source does not have.
func (r Results[V]) Err() error {
	var errs []error
	for i := range r {
		if err := r[i].Err; err != nil && err != ErrMiss && !errors.Is(err, ErrNotFound) {
			if errs == nil {
				errs = make([]error, len(r))
			}
			errs[i] = err
		}
	}
	if errs == nil {
		return nil
	}
	return &ManyError{errs}
}

// Item is a key with its value.
type Item[K comparable, V any] struct {
	Key   K
	Value V
	// TTL, if it is set, is this item's hard TTL, and takes the soft one away. Off keeps it for ever.
	TTL time.Duration
}

// GetMany returns the values of keys, in their order.
func (c *Cache[K, V]) GetMany(ctx context.Context, keys []K) Results[V] {
	return c.GetManyInto(ctx, keys, nil)
}

// GetManyInto is GetMany into results that are used again.
func (c *Cache[K, V]) GetManyInto(ctx context.Context, keys []K, results Results[V]) Results[V] {
	if cap(results) < len(keys) {
		results = make(Results[V], len(keys))
	}
	results = results[:len(keys)]
	s := c.get()
	defer c.put(s)
	for from := 0; from < len(keys); from += c.options.BatchMax {
		to := min(from+c.options.BatchMax, len(keys))
		c.getBatch(ctx, s, keys[from:to], results[from:to])
	}
	return results
}

// getBatch reads one batch. Keys that the first level has are not asked for.
func (c *Cache[K, V]) getBatch(ctx context.Context, s *scratch[V], keys []K, results []Result[V]) {
	s.key, s.ends = s.key[:0], s.ends[:0]
	if c.local != nil {
		s.hashes, s.stamps = s.hashes[:0], s.stamps[:0]
	}
	for i := range keys {
		from := len(s.key)
		var err error
		results[i] = Result[V]{Err: errAsked}
		if s.key, err = c.keys.append(s.key, &keys[i]); err != nil {
			results[i].Err = err
			continue
		}
		if c.local != nil {
			hash := maphash.Bytes(hashSeed, s.key[from:])
			if e, now := c.local.get(hash, keys[i]); e != nil {
				results[i].Value, results[i].Err = c.servedLocally(e, now)
				s.key = s.key[:from]
				continue
			}
			s.hashes, s.stamps = append(s.hashes, hash), append(s.stamps, c.local.begin(hash))
		}
		s.ends = append(s.ends, len(s.key))
	}
	if len(s.ends) == 0 {
		return
	}
	ops, from := s.size(len(s.ends)), 0
	for i, end := range s.ends {
		s.read(i, &ops[i], s.key[from:end:end])
		from = end
	}
	c.transport.Do(ctx, ops)
	var t tally
	next := 0
	for i := range results {
		if results[i].Err != errAsked {
			continue
		}
		var hash uint64
		var begun stamp
		if c.local != nil {
			hash, begun = s.hashes[next], s.stamps[next]
		}
		c.result(ctx, s, &ops[next], hash, begun, keys[i], &results[i], &t)
		s.done(next, &ops[next])
		next++
	}
	c.counters.tell(&t)
}

// errAsked marks the results that the store has to give.
var errAsked = errors.New("cache: asked for")

// result makes a result of what was read.
func (c *Cache[K, V]) result(ctx context.Context, s *scratch[V], op *Op, hash uint64, begun stamp, key K, to *Result[V], t *tally) {
	if err := c.take(ctx, s, op, hash, begun, key, &s.r, t); err != nil {
		to.Err = &StoreError{err}
		return
	}
	c.count(&s.r, t)
	switch s.r.state {
	case stateValue:
		to.Value, to.Err = s.r.value, nil
	case stateNegative:
		to.Err = ErrNotFound
	default:
		to.Err = ErrMiss
	}
}

// SetMany stores items, each with its TTL. It returns nil, or a ManyError that says which failed.
func (c *Cache[K, V]) SetMany(ctx context.Context, items []Item[K, V], options ...CallOption) error {
	s := c.get()
	defer c.put(s)
	t := c.options.terms(options)
	var errs []error
	for from := 0; from < len(items); from += c.options.BatchMax {
		to := min(from+c.options.BatchMax, len(items))
		c.setBatch(ctx, s, items[from:to], t, func(i int, err error) {
			if errs == nil {
				errs = make([]error, len(items))
			}
			errs[from+i] = err
		})
	}
	if errs == nil {
		return nil
	}
	return &ManyError{errs}
}

func (c *Cache[K, V]) setBatch(ctx context.Context, s *scratch[V], items []Item[K, V], t terms, failed func(i int, err error)) {
	now := c.writing(ctx, &t)
	s.key, s.value, s.ends = s.key[:0], s.value[:0], s.ends[:0]
	ops := s.size(len(items))
	stored := 0
	for i := range items {
		item := &items[i]
		each := t
		if item.TTL != 0 {
			each.ttl, each.soft = item.TTL, 0
		}
		var err error
		keyFrom := len(s.key)
		if s.key, err = c.keys.append(s.key, &item.Key); err == nil {
			s.value, err = c.encode(s, s.value, &item.Value, &each, 0, now)
		}
		if err != nil {
			s.key = s.key[:keyFrom]
			failed(i, err)
			continue
		}
		// Key and Value are set below: the buffers may still move.
		ops[stored].Kind, ops[stored].TTL = OpSet, c.jitter(each.ttl)
		stored++
		s.ends = append(s.ends, i, len(s.key), len(s.value))
	}
	if ops = ops[:stored]; stored == 0 {
		return
	}
	keyFrom, valueFrom := 0, 0
	for i := range ops {
		keyEnd, valueEnd := s.ends[3*i+1], s.ends[3*i+2]
		ops[i].Key, ops[i].Value = s.key[keyFrom:keyEnd:keyEnd], s.value[valueFrom:valueEnd:valueEnd]
		keyFrom, valueFrom = keyEnd, valueEnd
	}
	c.transport.Do(ctx, ops)
	var counted tally
	for j := range ops {
		item := &items[s.ends[3*j]]
		ttl, soft := t.ttl, t.soft
		if item.TTL != 0 {
			ttl, soft = item.TTL, 0
		}
		var hash uint64
		if c.local != nil || !c.flights.none() {
			hash = maphash.Bytes(hashSeed, ops[j].Key)
			c.flights.forget(hash, item.Key)
		}
		c.wrote(ctx, hash, ops[j].Err, &item.Key, &item.Value, len(ops[j].Value), ttl, soft, &counted)
		if ops[j].Err != nil {
			failed(s.ends[3*j], &StoreError{ops[j].Err})
		}
	}
	c.counters.tell(&counted)
}

// DeleteMany deletes keys. It returns nil, or a ManyError that says which failed.
func (c *Cache[K, V]) DeleteMany(ctx context.Context, keys []K) error {
	s := c.get()
	defer c.put(s)
	var errs []error
	failed := func(i int, err error) {
		if errs == nil {
			errs = make([]error, len(keys))
		}
		errs[i] = err
	}
	for from := 0; from < len(keys); from += c.options.BatchMax {
		to := min(from+c.options.BatchMax, len(keys))
		c.deleteBatch(ctx, s, keys[from:to], func(i int, err error) { failed(from+i, err) })
	}
	if errs == nil {
		return nil
	}
	return &ManyError{errs}
}

func (c *Cache[K, V]) deleteBatch(ctx context.Context, s *scratch[V], keys []K, failed func(i int, err error)) {
	s.key, s.ends = s.key[:0], s.ends[:0]
	for i := range keys {
		from := len(s.key)
		var err error
		if s.key, err = c.keys.append(s.key, &keys[i]); err != nil {
			failed(i, err)
			continue
		}
		end := len(s.key)
		s.key = appendLease(s.key, s.key[from:end])
		s.ends = append(s.ends, i, end, len(s.key))
	}
	if len(s.ends) == 0 {
		return
	}
	ops, from := s.size(len(s.ends)/3), 0
	for i := range ops {
		end, leaseEnd := s.ends[3*i+1], s.ends[3*i+2]
		ops[i].Kind, ops[i].Key, ops[i].Lease = OpDelete, s.key[from:end:end], s.key[end:leaseEnd:leaseEnd]
		from = leaseEnd
	}
	c.transport.Do(ctx, ops)
	for i := range ops {
		c.changing(maphash.Bytes(hashSeed, ops[i].Key), keys[s.ends[3*i]])
		if ops[i].Err != nil {
			c.counters.failed(ctx)
			failed(s.ends[3*i], &StoreError{ops[i].Err})
		}
	}
}
