package cache

// This file owns single flight: who fetches or loads a key, and who waits for that.

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// flight is one fetching or loading of a key. Its table's shard guards everything but done's being closed.
type flight[V any] struct {
	done   chan struct{} // made by the first who waits
	value  V
	state  state // stateMiss until it is over without an error
	err    error
	over   bool
	alone  bool // asked for with Fresh: what is cached is passed over
	joined int  // callers that wait, or have waited
}

// flights has the flights of all keys of a cache, whether one was asked for or many.
type flights[K comparable, V any] struct {
	flying atomic.Int64 // no fewer than there are
	shards [32]flightShard[K, V]
}

type flightShard[K comparable, V any] struct {
	mu         sync.Mutex
	flying     map[K]*flight[V]
	refreshing map[K]struct{} // keys that are being refreshed while their stale value is served
	_          [40]byte
}

func (t *flights[K, V]) init() {
	for i := range t.shards {
		t.shards[i].flying = map[K]*flight[V]{}
		t.shards[i].refreshing = map[K]struct{}{}
	}
}

func (t *flights[K, V]) shard(hash uint64) *flightShard[K, V] {
	return &t.shards[hash>>32%uint64(len(t.shards))]
}

// join returns the flight of a key, and whether it is new and the caller has to finish it. A caller who wants a fresh value does not
// join one that may bring a cached one, but takes its place. A spare flight, if there is one, is used for it.
func (t *flights[K, V]) join(hash uint64, key K, fresh bool, spare **flight[V]) (f *flight[V], leads bool) {
	s := t.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if f = s.flying[key]; f != nil && (f.alone || !fresh) {
		if f.done == nil {
			f.done = make(chan struct{})
			if f.over {
				close(f.done)
			}
		}
		f.joined++
		return f, false
	}
	if f == nil {
		t.flying.Add(1)
	}
	if f = *spare; f == nil {
		f = &flight[V]{}
	}
	*spare = nil
	f.alone = fresh
	s.flying[key] = f
	return f, true
}

// finish hands the outcome to all who wait; the first outcome counts. The flight stays in the table until it is left.
func (t *flights[K, V]) finish(hash uint64, f *flight[V], value V, st state, err error) {
	s := t.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.over {
		return
	}
	f.value, f.state, f.err, f.over = value, st, err, true
	if f.done != nil {
		close(f.done)
	}
}

// land is finish and leave. It reports whether nobody has joined, and so nobody ever will: then the flight is as good as new.
func (t *flights[K, V]) land(hash uint64, key K, f *flight[V], value V, st state) (spare bool) {
	s := t.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flying[key] == f {
		delete(s.flying, key)
		t.flying.Add(-1)
	}
	if f.joined == 0 && !f.over && f.done == nil {
		*f = flight[V]{}
		return true
	}
	if !f.over {
		f.value, f.state, f.over = value, st, true
		if f.done != nil {
			close(f.done)
		}
	}
	return false
}

// leave takes a flight out of the table: who comes later begins anew.
func (t *flights[K, V]) leave(hash uint64, key K, f *flight[V]) {
	s := t.shard(hash)
	s.mu.Lock()
	if s.flying[key] == f {
		delete(s.flying, key)
		t.flying.Add(-1)
	}
	s.mu.Unlock()
}

// none reports that there is nothing to forget.
func (t *flights[K, V]) none() bool { return t.flying.Load() == 0 }

// forget takes whatever flight a key has out of the table, because the key has been written: who comes later must not get what was read
// or loaded before that.
func (t *flights[K, V]) forget(hash uint64, key K) {
	s := t.shard(hash)
	s.mu.Lock()
	if _, there := s.flying[key]; there {
		delete(s.flying, key)
		t.flying.Add(-1)
	}
	s.mu.Unlock()
}

// wait returns the outcome of a flight that the caller has joined, or the context's error.
func (t *flights[K, V]) wait(ctx context.Context, f *flight[V]) (V, state, error) {
	select {
	case <-f.done:
		return f.value, f.state, f.err
	default:
	}
	select {
	case <-f.done:
		return f.value, f.state, f.err
	case <-ctx.Done():
		var zero V
		return zero, stateMiss, context.Cause(ctx)
	}
}

// watch makes a flight that the caller leads one that it can wait for.
func (t *flights[K, V]) watch(hash uint64, f *flight[V]) {
	s := t.shard(hash)
	s.mu.Lock()
	if f.done == nil {
		f.done = make(chan struct{})
		if f.over {
			close(f.done)
		}
	}
	s.mu.Unlock()
}

// beginRefresh reports whether the caller is to refresh the key.
func (t *flights[K, V]) beginRefresh(hash uint64, key K) bool {
	s := t.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.refreshing[key]; ok {
		return false
	}
	s.refreshing[key] = struct{}{}
	return true
}

func (t *flights[K, V]) endRefresh(hash uint64, key K) {
	s := t.shard(hash)
	s.mu.Lock()
	delete(s.refreshing, key)
	s.mu.Unlock()
}

// errLeft is the outcome of a flight whose leader was cancelled while it only read: those who waited try themselves.
var errLeft = errors.New("cache: the caller who was reading has gone")
