package cache

// This file owns the first level: what is in it, when it may be believed, invalidation.

import (
	"context"
	"hash/maphash"
	"sync/atomic"
	"time"
)

// Local is a store in this process, bounded in bytes; the module cache/local has one. It is used by many goroutines at once, and may be
// shared by caches: an entry is checked by who gets it.
type Local interface {
	// Get returns the entry of a hash.
	Get(hash uint64) (entry any, ok bool)
	// Set keeps an entry, which counts with so many bytes, in place of the one before; or drops both, if it thinks so.
	Set(hash uint64, entry any, bytes int)
	// Delete drops the entry of a hash.
	Delete(hash uint64)
}

// hashSeed is one for the process, since caches may share a Local.
var hashSeed = maphash.MakeSeed()

// begun is what the clock of the first level counts from.
var begun = time.Now()

// ticks are nanoseconds of the monotonic clock.
func ticks() int64 { return int64(time.Since(begun)) }

// coarse is a clock for hits, since asking the real one costs as much as everything else. It is kept by a goroutine that ends when nobody
// has asked for a while, and about coarseStep behind.
var coarse struct {
	now     atomic.Int64 // ticks; 0: ask the real one
	asked   atomic.Bool
	running atomic.Bool
}

// Bounds of the coarse clock.
const (
	coarseStep  = 2 * time.Millisecond
	coarseSteps = 100 // without being asked, after which it ends
)

func coarseTicks() int64 {
	now := coarse.now.Load()
	if now != 0 {
		if !coarse.asked.Load() {
			coarse.asked.Store(true)
		}
		return now
	}
	if coarse.running.CompareAndSwap(false, true) {
		go keepCoarse() // ends when nobody has asked for coarseSteps
	}
	return ticks()
}

func keepCoarse() {
	ticker := time.NewTicker(coarseStep)
	defer ticker.Stop()
	for idle := 0; idle < coarseSteps; idle++ {
		coarse.now.Store(ticks())
		<-ticker.C
		if coarse.asked.Swap(false) {
			idle = 0
		}
	}
	coarse.now.Store(0)
	coarse.running.Store(false)
}

// entryBytes is about what an entry costs beyond key and value: itself, and its place in the Local.
const entryBytes = 160

// localEntry is what a Local keeps. It never changes.
type localEntry[K comparable, V any] struct {
	level *level[K, V]
	epoch uint64
	key   K
	value V
	state state
	load  time.Duration
	until int64 // ticks

	// The soft end, or 0, by both clocks.
	fresh   int64
	freshMs int64
}

// level is a cache's part of a Local.
type level[K comparable, V any] struct {
	store Local
	ttl   time.Duration // where changes are not told
	told  atomic.Bool   // the transport tells of changes
	live  atomic.Bool   // the entries may be believed
	epoch atomic.Uint64 // entries of another one may not be believed
	// generations are counted up by every change of a key that falls into them, so that a value which was read before the change is not
	// kept after it.
	generations [1024]atomic.Uint64
}

func (l *level[K, V]) generation(hash uint64) *atomic.Uint64 {
	return &l.generations[hash%uint64(len(l.generations))]
}

// stamp is when somebody began to fetch a value.
type stamp struct{ epoch, generation uint64 }

// begin is called before a value is fetched.
func (l *level[K, V]) begin(hash uint64) stamp {
	return stamp{l.epoch.Load(), l.generation(hash).Load()}
}

// get returns the entry of a key.
func (l *level[K, V]) get(hash uint64, key K) (*localEntry[K, V], int64) {
	if !l.live.Load() {
		return nil, 0
	}
	found, ok := l.store.Get(hash)
	if !ok {
		return nil, 0
	}
	e, ok := found.(*localEntry[K, V])
	if !ok || e.level != l || e.epoch != l.epoch.Load() || e.key != key {
		return nil, 0
	}
	now := coarseTicks()
	if now >= e.until {
		return nil, 0
	}
	return e, now
}

// put keeps a value that was fetched since begin, unless it has changed. ttl is what is left of its life, 0 for ever.
func (l *level[K, V]) put(hash uint64, from stamp, e *localEntry[K, V], ttl time.Duration, bytes int) {
	if !l.told.Load() && (ttl <= 0 || ttl > l.ttl) {
		ttl = l.ttl
	}
	now := ticks()
	e.level, e.epoch = l, from.epoch
	if e.until = 1<<63 - 1; ttl > 0 {
		e.until = now + int64(ttl)
	}
	if !l.live.Load() || l.begin(hash) != from {
		return
	}
	l.store.Set(hash, e, bytes+entryBytes)
	if l.begin(hash) != from { // changed between the two
		l.store.Delete(hash)
	}
}

// drop forgets a key, also for those who are fetching it.
func (l *level[K, V]) drop(hash uint64) {
	l.generation(hash).Add(1)
	l.store.Delete(hash)
}

// flush forgets everything. The Local finds out by itself: entries of another epoch are never used and so the first to go.
func (l *level[K, V]) flush() { l.epoch.Add(1) }

// track begins to listen, and returns at once. Without a tracker, or when the store has none, entries live by their short TTL.
func (c *Cache[K, V]) track() {
	l := c.local
	tracker, ok := c.transport.(Tracker)
	if !ok {
		l.live.Store(true)
		return
	}
	l.told.Store(true)
	events := TrackEvents{
		Invalidate: func(key []byte) {
			c.counters.add(EventInvalidated, 1)
			hash := maphash.Bytes(hashSeed, key)
			l.drop(hash)
			c.wakers.wake(hash)
		},
		Flush: func() {
			c.counters.add(EventFlushed, 1)
			l.flush()
			c.wakers.wakeAll()
		},
		Live: func(live bool) {
			if !live {
				l.live.Store(false)
			}
			l.flush()
			c.counters.add(EventFlushed, 1)
			if live {
				l.live.Store(true)
			}
			c.wakers.wakeAll() // they look more often, or less
		},
	}
	c.background.Add(1)
	go func() { // ends when tracking flows, or with the cache
		defer c.background.Done()
		for pause := trackPauseMin; ; pause = min(2*pause, trackPauseMax) {
			err := tracker.Track(c.ctx, string(c.keys.prefix), events)
			switch {
			case err == nil || c.ctx.Err() != nil:
				return
			case isNoTracking(err):
				l.told.Store(false)
				l.flush()
				l.live.Store(true)
				return
			}
			c.counters.add(EventStoreError, 1)
			if !sleep(c.ctx, jittered(pause)) {
				return
			}
		}
	}()
}

// Bounds of the pause between attempts to begin tracking.
const (
	trackPauseMin = 50 * time.Millisecond
	trackPauseMax = 5 * time.Second
)

// sleep waits, and reports false when the context ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
