package cache

// This file owns how long a load waits for another process before it looks again, and what wakes it: where the store tells of changes, it tells
// of the value that another process has stored.

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of the pause between two looks at a value that another process is loading. Where the store tells of changes a look finds only what it
// does not tell of: an owner that has died, or could not load.
const (
	waitPauseMin = 4 * time.Millisecond
	waitPauseMax = 200 * time.Millisecond
)

// wakers are the loads that wait, by the hash of each key that they wait for.
type wakers struct {
	waiting atomic.Int64 // how many keys are waited for, so that nobody takes the lock in vain
	mu      sync.Mutex
	of      map[uint64][]chan struct{}
}

// add has changes of the tasks' keys wake who receives from woken, which has room for one.
func add[K comparable, V any](w *wakers, tasks []*task[K, V], woken chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = map[uint64][]chan struct{}{}
	}
	for _, t := range tasks {
		w.of[t.hash] = append(w.of[t.hash], woken)
	}
	w.waiting.Add(int64(len(tasks)))
}

// remove is the opposite of add.
func remove[K comparable, V any](w *wakers, tasks []*task[K, V], woken chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range tasks {
		all := w.of[t.hash]
		for i := range all {
			if all[i] == woken {
				all[i] = all[len(all)-1]
				all = all[:len(all)-1]
				break
			}
		}
		if w.of[t.hash] = all; len(all) == 0 {
			delete(w.of, t.hash)
		}
	}
	w.waiting.Add(-int64(len(tasks)))
}

// wake wakes who waits for a key.
func (w *wakers) wake(hash uint64) {
	if w.waiting.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, woken := range w.of[hash] {
		signal(woken)
	}
}

// wakeAll wakes all: it cannot be told what has changed.
func (w *wakers) wakeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, all := range w.of {
		for _, woken := range all {
			signal(woken)
		}
	}
}

func signal(woken chan struct{}) {
	select {
	case woken <- struct{}{}:
	default: // it is about to look
	}
}

// told reports whether the store tells of changes now.
func (c *Cache[K, V]) told() bool {
	return c.local != nil && c.local.told.Load() && c.local.live.Load()
}

// pause waits until it is time for a look, and reports false when the context ends first. last is the pause before, and the result the next one.
func (c *Cache[K, V]) pause(ctx context.Context, last time.Duration, woken chan struct{}) (next time.Duration, ok bool) {
	wait := last
	if c.told() {
		wait = c.toldPause
	}
	timer := time.NewTimer(jittered(wait))
	defer timer.Stop()
	select {
	case <-woken:
		return waitPauseMin, true
	case <-timer.C:
		return min(last*3/2, waitPauseMax), true
	case <-ctx.Done():
		return 0, false
	}
}
