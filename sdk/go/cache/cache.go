package cache

// This file owns Cache: making and closing it, and the calls for one key without a loader.

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Cache is a cache of values of type V by keys of type K. Any number of goroutines may use it.
type Cache[K comparable, V any] struct {
	transport   Transport
	codec       Codec[V]
	options     Options[K, V]
	keys        keys[K]
	compressors [compressionMax + 1]Compressor
	counters    counters
	scratches   sync.Pool
	local       *level[K, V] // nil without a first level
	flights     flights[K, V]
	refreshes   atomic.Int64 // under way
	clock       *clock
	wakers      wakers
	toldPause   time.Duration // between two looks where changes are told

	ctx            context.Context // ends with Close
	cancel         context.CancelFunc
	cheapDeadlines bool // see DeadlineHeeder

	closing    sync.Mutex // guards background against Close
	closed     bool
	ended      chan struct{}  // made by Close, closed when background is over
	background sync.WaitGroup // goroutines that load, refresh and track
}

// New makes a cache. It does not talk to the store, except for the first level's tracking, which begins in the background.
func New[K comparable, V any](t Transport, codec Codec[V], options Options[K, V]) (*Cache[K, V], error) {
	if t == nil || codec == nil {
		return nil, errors.New("cache: a Transport and a Codec are needed")
	}
	if err := options.setDefaults(); err != nil {
		return nil, err
	}
	if !codec.ID().valid() {
		return nil, errCodecID
	}
	k, err := newKeys[K](options.Prefix, options.Version)
	if err != nil {
		return nil, err
	}
	c := &Cache[K, V]{transport: t, codec: codec, options: options, keys: k, clock: newClock(t), toldPause: waitPauseMax}
	for _, each := range append(options.Compressors, options.Compressor) {
		if each == nil {
			continue
		}
		if id := each.ID(); id == CompressionNone || id > compressionMax {
			return nil, fmt.Errorf("cache: a Compressor has the number %d; 1 to %d are possible", id, compressionMax)
		}
		c.compressors[each.ID()] = each
	}
	c.counters.observer = options.Observer
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.flights.init()
	_, c.cheapDeadlines = t.(DeadlineHeeder)
	if options.Local != nil {
		c.local = &level[K, V]{store: options.Local, ttl: options.LocalTTL}
		c.track()
	}
	return c, nil
}

// Close ends loads and refreshes that are under way, whose callers get ErrClosed, and waits for them, for CloseTimeout: a loader may not heed
// its context, and then it is ErrStillLoading. Called again, it waits again. A value that a caller has got is stored
// all the same, if the store answers within StoreTimeout and no other load of its key, which Close ends, has the lease; what a loader
// gives later is not. The Transport is not closed.
func (c *Cache[K, V]) Close() error {
	c.closing.Lock()
	if !c.closed {
		c.closed, c.ended = true, make(chan struct{})
		go func() { // ends with the last loader
			c.background.Wait()
			close(c.ended)
		}()
	}
	c.closing.Unlock()
	c.cancel()
	timer := time.NewTimer(c.options.CloseTimeout)
	defer timer.Stop()
	select {
	case <-c.ended:
		return nil
	case <-timer.C:
		return ErrStillLoading
	}
}

// spawn runs fn on a goroutine that Close waits for. It reports false when the cache is closed.
func (c *Cache[K, V]) spawn(fn func()) bool {
	c.closing.Lock()
	defer c.closing.Unlock()
	if c.closed {
		return false
	}
	c.background.Add(1)
	go func() { // ends with the load's timeout at the latest
		defer c.background.Done()
		fn()
	}()
	return true
}

// Stats returns what the cache has counted.
func (c *Cache[K, V]) Stats() Stats { return c.counters.stats() }

// Key returns the bytes that a key has in the store.
func (c *Cache[K, V]) Key(key K) (string, error) {
	b, err := c.keys.append(nil, &key)
	return string(b), err
}

// Get returns the value of a key, also when it is stale, as GetOrLoad would refresh it. ErrMiss says that there is none, ErrNotFound that the
// source has none; a StoreError that the store failed.
func (c *Cache[K, V]) Get(ctx context.Context, key K) (V, error) {
	if c.local != nil {
		if hash, ok := c.keys.hash(&key); ok {
			if e, now := c.local.get(hash, key); e != nil {
				return c.servedLocally(e, now)
			}
		}
	}
	s := c.get()
	v, err := c.getWith(ctx, s, key)
	c.put(s)
	return v, err
}

func (c *Cache[K, V]) getWith(ctx context.Context, s *scratch[V], key K) (v V, err error) {
	if s.key, err = c.keys.append(s.key[:0], &key); err != nil {
		return v, err
	}
	var hash uint64
	if c.local != nil {
		hash = maphash.Bytes(hashSeed, s.key)
		if e, now := c.local.get(hash, key); e != nil {
			return c.servedLocally(e, now)
		}
	}
	var t tally
	err = c.fetch(ctx, ctx, s, hash, key, &s.r, &t)
	if err == nil {
		c.count(&s.r, &t)
	}
	c.counters.tell(&t)
	if err != nil {
		return v, &StoreError{err}
	}
	switch s.r.state {
	case stateValue:
		return s.r.value, nil
	case stateNegative:
		return v, ErrNotFound
	}
	return v, ErrMiss
}

// servedLocally counts and returns an entry of the first level.
func (c *Cache[K, V]) servedLocally(e *localEntry[K, V], now int64) (V, error) {
	c.counters.add(EventLocalHit, 1)
	if e.state == stateNegative {
		c.counters.add(EventNegative, 1)
		return e.value, ErrNotFound
	}
	if e.fresh != 0 && now >= e.fresh {
		c.counters.add(EventStale, 1)
	}
	return e.value, nil
}

// count counts what was read from the store.
func (c *Cache[K, V]) count(r *reading[V], t *tally) {
	switch {
	case r.state == stateMiss:
		c.counters.add(EventMiss, 1)
		if r.why != EventMiss {
			c.counters.add(r.why, 1)
		}
		return
	case r.state == stateNegative:
		c.counters.add(EventNegative, 1)
	case r.stale:
		c.counters.add(EventStale, 1)
	}
	t.hits++
}

// fetch reads s.key from the store into r, which is on the heap, and into the first level. within is ctx, or what bound has made of it.
func (c *Cache[K, V]) fetch(ctx, within context.Context, s *scratch[V], hash uint64, key K, r *reading[V], t *tally) error {
	var from stamp
	if c.local != nil {
		from = c.local.begin(hash)
	}
	op := &s.size(1)[0]
	s.read(0, op, s.key)
	c.transport.Do(within, s.ops)
	err := c.take(ctx, s, op, hash, from, key, r, t)
	s.done(0, op)
	return err
}

// take makes a reading of an OpGet, a miss when that failed. ctx is the caller's.
func (c *Cache[K, V]) take(ctx context.Context, s *scratch[V], op *Op, hash uint64, from stamp, key K, r *reading[V], t *tally) error {
	*r = reading[V]{why: EventMiss}
	if op.Err != nil {
		c.counters.failed(ctx)
		return op.Err
	}
	if !op.Found {
		return nil
	}
	t.read += len(op.Value)
	c.decode(s, op.Value, r)
	if c.local != nil && r.state != stateMiss {
		c.keepLocally(hash, from, key, r, c.localTTL(r.state))
	}
	return nil
}

// localTTL is the longest that a value which was read may stay in the first level. How long its key has left in the store is not known:
// where changes are told the store tells of its expiry, and elsewhere LocalTTL is short.
func (c *Cache[K, V]) localTTL(s state) time.Duration {
	if s == stateNegative {
		return c.options.NegativeTTL
	}
	return c.options.TTL
}

// keepLocally puts a reading into the first level.
func (c *Cache[K, V]) keepLocally(hash uint64, from stamp, key K, r *reading[V], ttl time.Duration) {
	if !c.local.live.Load() {
		return
	}
	e := &localEntry[K, V]{key: key, value: r.value, state: r.state, load: r.load}
	if r.fresh != 0 {
		e.freshMs = r.fresh
		e.fresh = max(ticks()+(r.fresh-c.now())*int64(time.Millisecond), 1)
	}
	weight := 2 * (r.bytes + len(c.keys.prefix))
	if c.options.Weigh != nil {
		v := r.value // so that only this way puts one on the heap
		weight = c.options.Weigh(&v)
	}
	c.local.put(hash, from, e, ttl, weight)
}

// Set stores a value. Unlike Delete it does not end loads that are under way: what one of them has read from the source before may be stored over it.
// Where that matters, delete the key when the source has changed, and have it loaded.
func (c *Cache[K, V]) Set(ctx context.Context, key K, value V, options ...CallOption) error {
	s := c.get()
	err := c.setWith(ctx, s, &key, &value, options)
	c.put(s)
	return err
}

func (c *Cache[K, V]) setWith(ctx context.Context, s *scratch[V], key *K, value *V, options []CallOption) (err error) {
	if s.key, err = c.keys.append(s.key[:0], key); err != nil {
		return err
	}
	t := c.options.terms(options)
	if s.value, err = c.encode(s, s.value[:0], value, &t, 0, c.writing(ctx, &t)); err != nil {
		return err
	}
	return c.store(ctx, s, t.ttl, t.soft, key, value)
}

// store writes s.value at s.key. value is nil for a negative one.
func (c *Cache[K, V]) store(ctx context.Context, s *scratch[V], ttl, soft time.Duration, key *K, value *V) error {
	op := &s.size(1)[0]
	op.Kind, op.Key, op.Value, op.TTL = OpSet, s.key, s.value, c.jitter(ttl)
	c.transport.Do(ctx, s.ops)
	err := op.Err
	var hash uint64
	if c.local != nil || !c.flights.none() {
		hash = maphash.Bytes(hashSeed, s.key)
		c.flights.forget(hash, *key)
	}
	var t tally
	c.wrote(ctx, hash, err, key, value, len(s.value), ttl, soft, &t)
	c.counters.tell(&t)
	if err != nil {
		return &StoreError{err}
	}
	return nil
}

// wrote sees to the counts and the first level after a value was written, or may have been.
func (c *Cache[K, V]) wrote(ctx context.Context, hash uint64, err error, key *K, value *V, bytes int, ttl, soft time.Duration, t *tally) {
	if err != nil {
		c.counters.failed(ctx)
	} else {
		t.stored++
		t.written += bytes
	}
	if c.local == nil {
		return
	}
	c.local.drop(hash)
	if err != nil || c.local.told.Load() { // this write will be told of, and would take the entry away again
		return
	}
	r := reading[V]{state: stateNegative, bytes: bytes}
	if value != nil {
		r.state, r.value = stateValue, *value
		if soft > 0 {
			r.fresh = c.now() + soft.Milliseconds()
		}
	}
	c.keepLocally(hash, c.local.begin(hash), *key, &r, ttl)
}

// SetNotFound stores that the source has no such value, for NegativeTTL.
func (c *Cache[K, V]) SetNotFound(ctx context.Context, key K, options ...CallOption) error {
	t := c.options.terms(options)
	if t.negative <= 0 {
		return errors.New("cache: NegativeTTL is not set")
	}
	s := c.get()
	defer c.put(s)
	var err error
	if s.key, err = c.keys.append(s.key[:0], &key); err != nil {
		return err
	}
	s.value = encodeNegative(s.value[:0], c.codec.ID())
	return c.store(ctx, s, t.negative, 0, &key, nil)
}

// Delete deletes a key. What somebody began to load before it is not stored after it.
func (c *Cache[K, V]) Delete(ctx context.Context, key K) error {
	s := c.get()
	defer c.put(s)
	var err error
	if s.key, err = c.keys.append(s.key[:0], &key); err != nil {
		return err
	}
	end := len(s.key)
	op := &s.size(1)[0]
	op.Kind = OpDelete
	s.key = appendLease(s.key, s.key[:end])
	op.Key, op.Lease = s.key[:end:end], s.key[end:]
	hash := maphash.Bytes(hashSeed, op.Key)
	c.changing(hash, key)
	c.transport.Do(ctx, s.ops)
	c.changing(hash, key)
	if op.Err != nil {
		c.counters.failed(ctx)
		return &StoreError{op.Err}
	}
	return nil
}

// changing drops a key from this process, before and after it is deleted in the store.
func (c *Cache[K, V]) changing(hash uint64, key K) {
	c.flights.forget(hash, key)
	if c.local != nil {
		c.local.drop(hash)
	}
}

// jittered is a pause with a random half.
func jittered(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

func isNoTracking(err error) bool { return errors.Is(err, ErrNoTracking) }
