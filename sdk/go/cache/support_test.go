package cache_test

// This file owns what the tests of this package share.

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/transport/memory"
)

// testWait bounds everything that a test waits for; it is never a pause.
const testWait = 240 * time.Second

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testWait)
	t.Cleanup(cancel)
	return ctx
}

type user struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

type options = cache.Options[int64, user]

// make returns a cache of users over a store in memory, with changes to its options.
func newCache(t testing.TB, store cache.Transport, change ...func(o *options)) *cache.Cache[int64, user] {
	t.Helper()
	// A store that does not answer in time is a case of its own.
	o := options{Prefix: "user", Version: 1, TTL: time.Minute, NegativeTTL: 10 * time.Second, StoreTimeout: testWait, LoadTimeout: testWait}
	for _, f := range change {
		f(&o)
	}
	c, err := cache.New(store, cache.JSON[user]{}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// newStore returns a store whose clock stands still but for Advance: what is stored with a time neither expires nor ages while a busy machine
// keeps the test waiting.
func newStore() *memory.Store {
	begun := time.Now()
	return &memory.Store{Now: func() time.Time { return begun }}
}

// expect checks counts.
func expect(t testing.TB, c interface{ Stats() cache.Stats }, want map[cache.Event]int64) {
	t.Helper()
	stats := c.Stats()
	for event, n := range want {
		if got := stats.Of(event); got != n {
			t.Errorf("%v: %d, want %d", event, got, n)
		}
	}
}

// until waits for something that another goroutine brings about.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(testWait); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not happen", what)
		}
	}
}

// mapLocal is a Local without a bound.
type mapLocal struct {
	mu      sync.Mutex
	entries map[uint64]any
	bytes   map[uint64]int
}

func (l *mapLocal) Get(hash uint64) (any, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.entries[hash]
	return e, ok
}

func (l *mapLocal) Set(hash uint64, entry any, bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries == nil {
		l.entries, l.bytes = map[uint64]any{}, map[uint64]int{}
	}
	l.entries[hash], l.bytes[hash] = entry, bytes
}

func (l *mapLocal) Delete(hash uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, hash)
}

// untracked is a transport that cannot tell of changes.
type untracked struct{ store *memory.Store }

func (u untracked) Do(ctx context.Context, ops []cache.Op) { u.store.Do(ctx, ops) }
