package cache

// This file owns GetOrLoad and GetOrLoadMany as their callers see them: what is cached, whom to wait for, what is handed out.

import (
	"context"
	"errors"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"time"

	"github.com/weft-db/weft/sdk/go/internal/deadline"
)

// Loader loads one value from the source. ErrNotFound says that there is none. Its context has the values of the caller's and ends with
// Options.LoadTimeout or the cache, but not with the caller: others may wait for the value too. It may run on any goroutine.
type Loader[K comparable, V any] func(ctx context.Context, key K) (V, error)

// ManyLoader loads the values of keys that differ from one another. A key that is not in the map has none. With an error, the values that
// are in the map count all the same, and the error is that of the other keys.
type ManyLoader[K comparable, V any] func(ctx context.Context, missing []K) (map[K]V, error)

// GetOrLoad returns the value of a key, loading it if it is not cached. Of all who ask for a key at the same time, in this process and
// in others, one loads. A stale value is returned at once, and refreshed in the background. What was loaded is returned
// while it is being stored: a Get right behind it may still miss.
//
// A failure of the store never fails the call: then it loads. Callers who waited together get the same value, and must not
// change what it points to.
func (c *Cache[K, V]) GetOrLoad(ctx context.Context, key K, load Loader[K, V], options ...CallOption) (V, error) {
	t := c.options.terms(options)
	if c.local != nil && !t.fresh {
		if hash, ok := c.keys.hash(&key); ok {
			if e, now := c.local.get(hash, key); e != nil {
				return c.hitLocally(ctx, hash, key, e, now, load, t)
			}
		}
	}
	s := c.get()
	defer c.put(s)
	var err error
	if s.key, err = c.keys.append(s.key[:0], &key); err != nil {
		w := &task[K, V]{key: key}
		c.loadUncached(ctx, []*task[K, V]{w}, single(load))
		return w.result.Value, w.result.Err
	}
	hash := maphash.Bytes(hashSeed, s.key)
	if c.local != nil && !t.fresh {
		if e, now := c.local.get(hash, key); e != nil {
			return c.hitLocally(ctx, hash, key, e, now, load, t)
		}
	}
	for {
		f, leads := c.flights.join(hash, key, t.fresh, &s.flight)
		if leads {
			return c.leadOne(ctx, s, hash, key, f, load, t)
		}
		v, st, err := c.flights.wait(ctx, f)
		if err == errLeft {
			continue
		}
		if ctx.Err() == nil {
			c.counters.add(EventCoalesced, 1)
		}
		return outcome(v, st, err)
	}
}

// hitLocally serves an entry of the first level, and has it refreshed if that is due.
func (c *Cache[K, V]) hitLocally(ctx context.Context, hash uint64, key K, e *localEntry[K, V], now int64, load Loader[K, V], t terms) (V, error) {
	if e.fresh != 0 && c.early(e.fresh-now, e.load) {
		c.refresh(ctx, hash, key, e.freshMs, single(load), t)
	}
	return c.servedLocally(e, now)
}

// outcome is what a caller gets of a flight.
func outcome[V any](v V, st state, err error) (V, error) {
	if err == nil && st == stateNegative {
		err = ErrNotFound
	}
	return v, err
}

// leadOne finishes a flight: it reads on the caller's goroutine, and has everything else done on another.
func (c *Cache[K, V]) leadOne(ctx context.Context, s *scratch[V], hash uint64, key K, f *flight[V], load Loader[K, V], t terms) (V, error) {
	left := true // unless said otherwise, also by a panic of the transport
	defer func() {
		if left {
			var zero V
			c.flights.finish(hash, f, zero, stateMiss, errLeft)
			c.flights.leave(hash, key, f)
		}
	}()
	s.r = reading[V]{}
	r := &s.r
	var err error
	if !t.fresh {
		var counted tally
		bounded, bound := c.bound(ctx)
		err = c.fetch(ctx, bounded, s, hash, key, r, &counted)
		bound.end()
		if err != nil && ctx.Err() != nil {
			return r.value, context.Cause(ctx)
		}
		c.count(r, &counted)
		c.counters.tell(&counted)
	}
	if r.state != stateMiss {
		left = false
		if c.flights.land(hash, key, f, r.value, r.state) {
			s.flight = f
		}
		if r.fresh != 0 {
			c.refreshIfDue(ctx, hash, key, r, single(load), t)
		}
		return outcome(r.value, r.state, nil)
	}
	c.flights.watch(hash, f)
	missing := []*task[K, V]{{key: key, hash: hash, flight: f, encoded: append([]byte(nil), s.key...)}}
	if !c.load(ctx, missing, single(load), t, err != nil) {
		return r.value, ErrClosed
	}
	left = false
	v, st, err := c.flights.wait(ctx, f)
	return outcome(v, st, err)
}

// bound gives the context of a round trip that a load depends on an end. Its second result has to be ended.
func (c *Cache[K, V]) bound(ctx context.Context) (context.Context, bounding) {
	if c.options.StoreTimeout <= 0 {
		return ctx, bounding{}
	}
	now := time.Now()
	if end, ok := ctx.Deadline(); ok && end.Sub(now) <= c.options.StoreTimeout {
		return ctx, bounding{}
	}
	if c.cheapDeadlines {
		d := deadline.New(ctx, now.Add(c.options.StoreTimeout))
		return d, bounding{deadline: d}
	}
	ctx, cancel := context.WithDeadline(ctx, now.Add(c.options.StoreTimeout))
	return ctx, bounding{cancel: cancel}
}

// bounding is what bound has made.
type bounding struct {
	deadline *deadline.Context
	cancel   context.CancelFunc
}

func (b bounding) end() {
	switch {
	case b.deadline != nil:
		b.deadline.End()
	case b.cancel != nil:
		b.cancel()
	}
}

// early reports whether to refresh a value now that stays fresh for left nanoseconds and took so long to load: always behind that, and
// before it by chance, so that most likely one of many callers does it in time.
func (c *Cache[K, V]) early(left int64, load time.Duration) bool {
	if left <= 0 {
		return true
	}
	beta := c.options.EarlyRefresh * float64(load)
	if beta <= 0 || float64(left) > 20*beta { // e^-20
		return false
	}
	return -math.Log(1-rand.Float64())*beta >= float64(left)
}

// GetOrLoadMany is GetOrLoad for many keys: what is cached comes in one batch, and the loader is called once with just the keys that are
// missing, as far as no others are loading them; keys that are too long to be cached are a call of their own. Results are in the order of keys,
// each with an error of its own.
func (c *Cache[K, V]) GetOrLoadMany(ctx context.Context, keys []K, load ManyLoader[K, V], options ...CallOption) Results[V] {
	results := make(Results[V], len(keys))
	t := c.options.terms(options)
	wanted := make([]*task[K, V], 0, len(keys))
	byKey := make(map[K]*task[K, V], len(keys))
	of := make([]*task[K, V], len(keys))
	var arena []byte
	var uncached []*task[K, V] // whose keys are too long
	for i, key := range keys {
		if of[i] = byKey[key]; of[i] != nil {
			continue // twice in one call
		}
		w := &task[K, V]{key: key}
		of[i], byKey[key] = w, w
		from := len(arena)
		var err error
		if arena, err = c.keys.append(arena, &key); err != nil {
			uncached = append(uncached, w)
			continue
		}
		w.encoded = arena[from:len(arena):len(arena)]
		w.hash = maphash.Bytes(hashSeed, w.encoded)
		wanted = append(wanted, w)
	}
	if c.local != nil && !t.fresh {
		wanted = c.servedManyLocally(ctx, wanted, load, t)
	}
	for len(wanted) > 0 {
		wanted = c.getOrLoadOnce(ctx, wanted, load, t)
	}
	if len(uncached) > 0 {
		c.loadUncached(ctx, uncached, many(load))
	}
	for i := range results {
		results[i] = of[i].result
	}
	return results
}

// servedManyLocally takes those out of wanted that the first level has.
func (c *Cache[K, V]) servedManyLocally(ctx context.Context, wanted []*task[K, V], load ManyLoader[K, V], t terms) []*task[K, V] {
	rest := wanted[:0]
	for _, w := range wanted {
		e, now := c.local.get(w.hash, w.key)
		if e == nil {
			rest = append(rest, w)
			continue
		}
		if e.fresh != 0 && c.early(e.fresh-now, e.load) {
			c.refresh(ctx, w.hash, w.key, e.freshMs, many(load), t)
		}
		w.result.Value, w.result.Err = c.servedLocally(e, now)
	}
	return rest
}

// getOrLoadOnce decides all tasks but those whose flight was left by who led it, which it returns. It finishes its own flights without
// waiting for those of others, so that two calls never wait for each other.
func (c *Cache[K, V]) getOrLoadOnce(ctx context.Context, wanted []*task[K, V], load ManyLoader[K, V], t terms) (again []*task[K, V]) {
	var own, others []*task[K, V]
	var spare *flight[V] // there is none
	for _, w := range wanted {
		var leads bool
		if w.flight, leads = c.flights.join(w.hash, w.key, t.fresh, &spare); leads {
			own = append(own, w)
		} else {
			others = append(others, w)
		}
	}
	missing, down := c.leadMany(ctx, own, load, t)
	if len(missing) > 0 {
		for _, w := range missing {
			c.flights.watch(w.hash, w.flight)
		}
		if !c.load(ctx, missing, many(load), t, down) {
			c.leftAll(missing)
			for _, w := range missing {
				w.result.Err = ErrClosed
			}
			missing = nil
		}
	}
	for _, w := range missing {
		v, st, err := c.flights.wait(ctx, w.flight)
		w.result.Value, w.result.Err = outcome(v, st, err)
	}
	for _, w := range others {
		v, st, err := c.flights.wait(ctx, w.flight)
		if err == errLeft {
			again = append(again, w)
			continue
		}
		if ctx.Err() == nil {
			c.counters.add(EventCoalesced, 1)
		}
		w.result.Value, w.result.Err = outcome(v, st, err)
	}
	return again
}

// leadMany reads the tasks whose flights the caller leads and finishes those that are cached. It returns the others, and whether the
// store failed.
func (c *Cache[K, V]) leadMany(ctx context.Context, own []*task[K, V], load ManyLoader[K, V], t terms) (missing []*task[K, V], down bool) {
	if t.fresh || len(own) == 0 {
		return own, false
	}
	left := own // by a panic of the transport
	defer func() { c.leftAll(left) }()
	c.readTasks(ctx, own)
	gone := ctx.Err() != nil
	var counted tally
	for _, w := range own {
		switch {
		case w.err != nil && gone:
			w.result.Err = context.Cause(ctx)
			c.leftAll([]*task[K, V]{w})
		case w.read.state == stateMiss:
			down = down || w.err != nil
			c.count(&w.read, &counted)
			missing = append(missing, w)
		default:
			c.count(&w.read, &counted)
			c.flights.finish(w.hash, w.flight, w.read.value, w.read.state, nil)
			c.flights.leave(w.hash, w.key, w.flight)
			w.result.Value, w.result.Err = outcome(w.read.value, w.read.state, nil)
			c.refreshIfDue(ctx, w.hash, w.key, &w.read, many(load), t)
		}
	}
	left = nil
	c.counters.tell(&counted)
	return missing, down
}

// leftAll ends flights without an outcome: who waits tries for himself.
func (c *Cache[K, V]) leftAll(tasks []*task[K, V]) {
	var zero V
	for _, w := range tasks {
		c.flights.finish(w.hash, w.flight, zero, stateMiss, errLeft)
		c.flights.leave(w.hash, w.key, w.flight)
	}
}

// tasksLoader is what both kinds of loaders are made into: it sets loaded of each task.
type tasksLoader[K comparable, V any] func(ctx context.Context, tasks []*task[K, V]) error

func single[K comparable, V any](load Loader[K, V]) tasksLoader[K, V] {
	return func(ctx context.Context, tasks []*task[K, V]) error {
		w := tasks[0]
		w.loaded.Value, w.loaded.Err = load(ctx, w.key)
		return w.loaded.Err
	}
}

func many[K comparable, V any](load ManyLoader[K, V]) tasksLoader[K, V] {
	return func(ctx context.Context, tasks []*task[K, V]) error {
		missing := make([]K, len(tasks))
		for i, w := range tasks {
			missing[i] = w.key
		}
		values, err := load(ctx, missing)
		for _, w := range tasks {
			v, ok := values[w.key]
			switch {
			case ok:
				w.loaded = Result[V]{Value: v}
			case err != nil:
				w.loaded = Result[V]{Err: err}
			default:
				w.loaded = Result[V]{Err: ErrNotFound}
			}
		}
		return err
	}
}

func notFound(err error) bool { return errors.Is(err, ErrNotFound) }
