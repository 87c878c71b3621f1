// Package memory is a store in memory for unit tests of what uses a cache: no server, a clock that the test sets, faults on demand.
package memory

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/weft-db/weft/sdk/go/cache"
)

// Store is a [cache.Transport], and a [cache.Tracker]. The zero value is ready. It is for tests: nothing is evicted.
type Store struct {
	// Now, if it is set, is the clock. It has to be set before the Store is used.
	Now func() time.Time

	mu       sync.Mutex
	entries  map[string]entry
	shift    time.Duration
	fault    func(ctx context.Context, op *cache.Op) error
	trips    int64
	trackers map[*tracker]struct{}
}

// entry is a key's value: a string or a hash.
type entry struct {
	value   []byte
	hash    map[string]string
	expires time.Time // zero: never
}

type tracker struct {
	prefix string
	events cache.TrackEvents
}

// ErrWrongType is what an operation on a hash fails with at a key that has none, and the other way round.
var ErrWrongType = errors.New("memory: the key holds another kind of value")

// Advance moves the clock on.
func (s *Store) Advance(d time.Duration) {
	s.mu.Lock()
	s.shift += d
	keys := make([]string, 0, len(s.entries))
	for key := range s.entries {
		keys = append(keys, key)
	}
	s.mu.Unlock()
	for _, key := range keys {
		s.expire(key)
	}
}

// Fault has f called before each operation, outside any lock; its error fails the operation. It may wait, and nil takes it away.
func (s *Store) Fault(f func(ctx context.Context, op *cache.Op) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Trips returns how often Do was called.
func (s *Store) Trips() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trips
}

// Keys returns the keys with a prefix that have not expired, in no order.
func (s *Store) Keys(prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []string
	for k := range s.entries {
		if _, ok := s.find(k); ok && strings.HasPrefix(k, prefix) {
			keys = append(keys, k)
		}
	}
	return keys
}

// Value returns a copy of the bytes at a key.
func (s *Store) Value(key string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.find(key)
	return bytes.Clone(e.value), ok && e.hash == nil
}

// Put stores bytes at a key, as another program would.
func (s *Store) Put(key string, value []byte, ttl time.Duration) {
	s.mu.Lock()
	s.store(key, entry{value: bytes.Clone(value)}, ttl)
	tell := s.tell(key)
	s.mu.Unlock()
	tell()
}

// TTL returns what is left of a key's life, 0 if it has no end, and whether it is there.
func (s *Store) TTL(key string) (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.find(key)
	if !ok || e.expires.IsZero() {
		return 0, ok
	}
	return e.expires.Sub(s.now()), true
}

// FlushAll deletes everything.
func (s *Store) FlushAll() {
	s.mu.Lock()
	s.entries = nil
	trackers := s.trackersOf("")
	s.mu.Unlock()
	for _, t := range trackers {
		t.events.Flush()
	}
}

// Break has the trackers hear that the connection is lost, and Mend that it is back.
func (s *Store) Break() { s.live(false) }

// Mend is the opposite of Break.
func (s *Store) Mend() { s.live(true) }

func (s *Store) live(live bool) {
	s.mu.Lock()
	trackers := s.trackersOf("")
	s.mu.Unlock()
	for _, t := range trackers {
		t.events.Live(live)
	}
}

// Track is that of a cache.Tracker.
func (s *Store) Track(ctx context.Context, prefix string, events cache.TrackEvents) error {
	t := &tracker{prefix, events}
	s.mu.Lock()
	if s.trackers == nil {
		s.trackers = map[*tracker]struct{}{}
	}
	s.trackers[t] = struct{}{}
	s.mu.Unlock()
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.trackers, t)
	})
	events.Live(true)
	return nil
}

// Time is that of a cache.Clock. It has no faults.
func (s *Store) Time(ctx context.Context) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now(), context.Cause(ctx)
}

// trackersOf returns the trackers that are told of a key, or all for the empty one.
func (s *Store) trackersOf(key string) []*tracker {
	var told []*tracker
	for t := range s.trackers {
		if key == "" || strings.HasPrefix(key, t.prefix) {
			told = append(told, t)
		}
	}
	return told
}

// tell returns what tells the trackers of a key, to be called without the lock.
func (s *Store) tell(key string) func() {
	told := s.trackersOf(key)
	return func() {
		for _, t := range told {
			t.events.Invalidate([]byte(key))
		}
	}
}

func (s *Store) now() time.Time {
	if s.Now != nil {
		return s.Now().Add(s.shift)
	}
	return time.Now().Add(s.shift)
}

// find returns what is at a key, deleting it if it has expired.
func (s *Store) find(key string) (entry, bool) {
	e, ok := s.entries[key]
	if ok && !e.expires.IsZero() && !s.now().Before(e.expires) {
		delete(s.entries, key)
		return entry{}, false
	}
	return e, ok
}

// expire tells of a key that has come to its end.
func (s *Store) expire(key string) {
	s.mu.Lock()
	_, before := s.entries[key]
	_, there := s.find(key)
	tell := s.tell(key)
	s.mu.Unlock()
	if before && !there {
		tell()
	}
}

func (s *Store) store(key string, e entry, ttl time.Duration) {
	if ttl > 0 {
		e.expires = s.now().Add(ttl)
		if len(s.trackers) > 0 {
			time.AfterFunc(ttl, func() { s.expire(key) })
		}
	}
	if s.entries == nil {
		s.entries = map[string]entry{}
	}
	s.entries[key] = e
}

// Do is that of a cache.Transport.
func (s *Store) Do(ctx context.Context, ops []cache.Op) {
	s.mu.Lock()
	s.trips++
	fault := s.fault
	s.mu.Unlock()
	for i := range ops {
		op := &ops[i]
		op.Found, op.Err = false, nil
		if fault != nil {
			op.Err = fault(ctx, op)
		}
		if op.Err == nil && ctx.Err() != nil {
			op.Err = context.Cause(ctx)
		}
		if op.Err != nil {
			continue
		}
		s.mu.Lock()
		changed := s.run(op)
		tell := func() {}
		if changed != "" {
			tell = s.tell(changed)
		}
		s.mu.Unlock()
		tell()
	}
}

// run runs one operation and returns the key that it has changed.
func (s *Store) run(op *cache.Op) (changed string) {
	key := string(op.Key)
	e, there := s.find(key)
	switch op.Kind {
	case cache.OpGet:
		if there && e.hash != nil {
			op.Err = ErrWrongType
			return ""
		}
		op.Found = there
		op.Value = append(op.Value, e.value...)
		return ""
	case cache.OpSet:
		s.store(key, entry{value: bytes.Clone(op.Value)}, op.TTL)
		return key
	case cache.OpDelete:
		delete(s.entries, key)
		delete(s.entries, string(op.Lease))
		op.Found = there
		return key
	case cache.OpAcquire, cache.OpFill, cache.OpRelease, cache.OpRenew:
		return s.lease(op, key)
	case cache.OpHashGet, cache.OpHashSet, cache.OpHashUpdate:
		return s.hash(op, key, e, there)
	}
	op.Err = errors.New("memory: no such operation")
	return ""
}

func (s *Store) lease(op *cache.Op, key string) (changed string) {
	lease := string(op.Lease)
	held, there := s.find(lease)
	if op.Kind == cache.OpAcquire {
		if op.Found = !there; op.Found {
			s.store(lease, entry{value: bytes.Clone(op.Token)}, op.TTL)
		}
		return ""
	}
	op.Found = there && bytes.Equal(held.value, op.Token)
	if !op.Found {
		return ""
	}
	switch op.Kind {
	case cache.OpRenew:
		s.store(lease, held, op.TTL)
		return ""
	case cache.OpFill:
		s.store(key, entry{value: bytes.Clone(op.Value)}, op.TTL)
		changed = key
	}
	delete(s.entries, lease)
	return changed
}

func (s *Store) hash(op *cache.Op, key string, e entry, there bool) (changed string) {
	if op.Kind != cache.OpHashGet && (len(op.Fields) == 0 || len(op.Fields)%2 != 0) {
		op.Err = errors.New("memory: a hash needs fields")
		return ""
	}
	if there && e.hash == nil && op.Kind != cache.OpHashSet {
		op.Err = ErrWrongType
		return ""
	}
	switch op.Kind {
	case cache.OpHashGet:
		op.Values = op.Values[:0]
		for _, name := range op.Fields {
			var value []byte
			if text, ok := e.hash[string(name)]; ok {
				value, op.Found = append([]byte{}, text...), true
			}
			op.Values = append(op.Values, value)
		}
		if len(op.Fields) == 0 {
			for name, text := range e.hash {
				op.Values = append(op.Values, []byte(name), []byte(text))
			}
			op.Found = there
		}
		return ""
	case cache.OpHashSet:
		e = entry{hash: map[string]string{}}
	default:
		if op.Found = there; !there {
			return ""
		}
	}
	for i := 0; i+1 < len(op.Fields); i += 2 {
		e.hash[string(op.Fields[i])] = string(op.Fields[i+1])
	}
	if op.Kind == cache.OpHashSet {
		s.store(key, e, op.TTL)
	}
	return key
}
