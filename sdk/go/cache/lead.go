package cache

// This file owns loading: leases, waiting for other processes, calling the loader, filling the store, refreshing.

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"runtime/debug"
	"time"
)

// task is one key of a call that loads.
type task[K comparable, V any] struct {
	key     K
	hash    uint64
	flight  *flight[V] // nil for a refresh
	encoded []byte
	lease   []byte
	held    bool   // the lease is ours
	ticket  []byte // what has to be at the lease when the value is stored; without it nothing is stored
	read    reading[V]
	err     error     // of reading or of the lease
	loaded  Result[V] // the loading goroutine's
	result  Result[V] // the caller's
}

// tokenBytes is the length of what tells one owner of a lease from another.
const tokenBytes = 16

// load has tasks loaded on a goroutine of its own, finishing their flights. down says that the store does not answer. It reports false
// when the cache is closed.
func (c *Cache[K, V]) load(ctx context.Context, tasks []*task[K, V], load tasksLoader[K, V], t terms, down bool) bool {
	return c.spawn(func() {
		detached, cancel := c.detach(ctx)
		defer cancel()
		l := &loading[K, V]{c: c, ctx: detached, load: load, terms: t, rest: tasks}
		defer l.end()
		// A loader that does not heed its context must not hold its callers.
		stop := context.AfterFunc(detached, l.late)
		defer stop()
		if down {
			l.run(tasks)
			return
		}
		l.withLeases()
	})
}

// detach makes the context of a load: the caller's values, and an end of its own.
func (c *Cache[K, V]) detach(ctx context.Context) (context.Context, context.CancelFunc) {
	timed, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), c.options.LoadTimeout, ErrLoadTimeout)
	stop := context.AfterFunc(c.ctx, cancel)
	return timed, func() {
		stop()
		cancel()
	}
}

// loading is one loading of several keys.
type loading[K comparable, V any] struct {
	c     *Cache[K, V]
	ctx   context.Context
	load  tasksLoader[K, V]
	terms terms
	token []byte
	rest  []*task[K, V] // all, for end and late
}

// late ends the flights when time is up.
func (l *loading[K, V]) late() {
	var zero V
	err := context.Cause(l.ctx)
	if l.c.ctx.Err() != nil {
		err = ErrClosed
	}
	for _, w := range l.rest {
		l.c.flights.finish(w.hash, w.flight, zero, stateMiss, err)
		l.c.flights.leave(w.hash, w.key, w.flight)
	}
}

// end ends what is left of the flights, however the goroutine ends: a loader may have called runtime.Goexit.
func (l *loading[K, V]) end() {
	var zero V
	for _, w := range l.rest {
		l.c.flights.finish(w.hash, w.flight, zero, stateMiss, errGoexit)
		l.c.flights.leave(w.hash, w.key, w.flight)
	}
}

var errGoexit = errors.New("cache: the loader ended its goroutine")

// withLeases loads what nobody else is loading, and waits for the rest. What others have been loading for too long it loads as well, with
// their ticket: of all who load, the first to come stores its value, and nobody does when the key was deleted since.
func (l *loading[K, V]) withLeases() {
	c := l.c
	l.token = newToken()
	c.leaseKeys(l.rest)
	waiting := l.rest
	woken := make(chan struct{}, 1)
	if c.local != nil { // before the first look, so that nothing is missed
		all := l.rest
		add(&c.wakers, all, woken)
		defer remove(&c.wakers, all, woken)
	}
	begun := time.Now()
	for pause, ok := waitPauseMin, true; ; {
		tooLong := time.Since(begun) > c.options.WaitMax
		join := tooLong || !c.options.waits
		c.acquire(l.ctx, waiting, l.token, join)
		var ours, others []*task[K, V]
		for _, w := range waiting {
			switch {
			case w.read.state != stateMiss && !l.terms.fresh:
				l.found(w, begun)
			case w.held || w.err != nil: // without a lease when the store fails
				ours = append(ours, w)
			case join:
				if tooLong {
					c.counters.add(EventWaitedTooLong, 1)
				}
				ours = append(ours, w)
			default:
				others = append(others, w)
			}
		}
		if len(ours) > 0 {
			l.run(ours)
		}
		if waiting = others; len(waiting) == 0 {
			return
		}
		if pause, ok = c.pause(l.ctx, pause, woken); !ok {
			return // late has ended the flights
		}
	}
}

// found finishes a task whose value is there, by another process or another call of this one.
func (l *loading[K, V]) found(w *task[K, V], begun time.Time) {
	l.c.counters.add(EventWaited, 1)
	l.finish(w, w.read.value, w.read.state, nil)
	l.c.flights.leave(w.hash, w.key, w.flight)
	if w.held {
		l.c.release(l.ctx, w, l.token)
	}
}

func (l *loading[K, V]) finish(w *task[K, V], v V, st state, err error) {
	if w.flight != nil {
		l.c.flights.finish(w.hash, w.flight, v, st, err)
	}
}

// run loads tasks, hands the values out, and then stores those that have a ticket.
func (l *loading[K, V]) run(tasks []*task[K, V]) {
	c := l.c
	// Once a time, since a batch of keys is loaded in one call and leases run meanwhile.
	stop := c.renewing(l.ctx, tasks, l.token)
	took := l.counted(tasks)
	keep := c.ctx.Err() == nil // asked before anybody has a value: who closes the cache when he has it leaves it to others
	stop()
	for _, w := range tasks {
		switch e := w.loaded.Err; {
		case e == nil:
			l.finish(w, w.loaded.Value, stateValue, nil)
		case notFound(e):
			l.finish(w, w.loaded.Value, stateNegative, loadedNotFound(e))
		default:
			if c.ctx.Err() != nil && errors.Is(e, context.Canceled) {
				e = ErrClosed // that is what has ended it
			}
			c.counters.add(EventLoadError, 1)
			l.finish(w, w.loaded.Value, stateMiss, e)
			if w.flight != nil { // there is nothing that would have to be stored first
				c.flights.leave(w.hash, w.key, w.flight)
			}
		}
	}
	// Not the load's context: it may have just ended, and the value is here.
	c.fill(context.WithoutCancel(l.ctx), tasks, &l.terms, took, keep)
	for _, w := range tasks {
		if w.flight != nil {
			c.flights.leave(w.hash, w.key, w.flight)
		}
	}
}

// counted calls the loader and counts that it was called.
func (l *loading[K, V]) counted(tasks []*task[K, V]) (took time.Duration) {
	c := l.c
	begun := time.Now()
	err := l.call(tasks)
	took = time.Since(begun)
	c.counters.add(EventLoad, len(tasks))
	if c.counters.observer != nil {
		if notFound(err) {
			err = nil
		}
		c.counters.observer.Load(took, len(tasks), err)
	}
	return took
}

// loadUncached loads tasks whose keys cannot be cached, on the caller's goroutine. Nobody else waits for them: their context ends with the
// caller's as well.
func (c *Cache[K, V]) loadUncached(ctx context.Context, tasks []*task[K, V], load tasksLoader[K, V]) {
	if c.ctx.Err() != nil {
		for _, w := range tasks {
			w.result.Err = ErrClosed
		}
		return
	}
	timed, cancel := context.WithTimeoutCause(ctx, c.options.LoadTimeout, ErrLoadTimeout)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	l := &loading[K, V]{c: c, ctx: timed, load: load}
	l.counted(tasks)
	for _, w := range tasks {
		if w.result = w.loaded; w.result.Err != nil && !notFound(w.result.Err) {
			c.counters.add(EventLoadError, 1)
		}
	}
}

// loadedNotFound keeps what a loader wrapped around ErrNotFound for those who waited.
func loadedNotFound(err error) error {
	if err == ErrNotFound {
		return nil // outcome says it
	}
	return err
}

// call calls the loader, and makes an error of a panic.
func (l *loading[K, V]) call(tasks []*task[K, V]) (err error) {
	defer func() {
		if p := recover(); p != nil {
			l.c.counters.add(EventLoadPanic, 1)
			err = &PanicError{p, debug.Stack()}
			for _, w := range tasks {
				w.loaded = Result[V]{Err: err}
			}
		}
	}()
	for _, w := range tasks {
		w.loaded = Result[V]{Err: errGoexit}
	}
	return l.load(l.ctx, tasks)
}

func newToken() []byte {
	var random [tokenBytes / 2]byte
	_, _ = rand.Read(random[:]) // never fails
	return hex.AppendEncode(make([]byte, 0, tokenBytes), random[:])
}
