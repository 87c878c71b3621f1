package cache_test

// This file owns the tests of the first level: what it serves, and when it may not.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/transport/memory"
)

// locally gets a key until the first level has it, and returns it.
func locally(ctx context.Context, t *testing.T, c *cache.Cache[int64, user], key int64) user {
	t.Helper()
	var v user
	until(t, "a hit in the first level", func() bool {
		before := c.Stats()
		var err error
		if v, err = c.Get(ctx, key); err != nil {
			t.Fatal(err)
		}
		after := c.Stats()
		return after.Of(cache.EventLocalHit) > before.Of(cache.EventLocalHit)
	})
	return v
}

func withLocal(l cache.Local) func(o *options) { return func(o *options) { o.Local = l } }

func TestLocalIsInvalidated(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	near, far := newCache(t, store, withLocal(&mapLocal{})), newCache(t, store)
	_ = far.Set(ctx, 1, user{1, "a"})
	if v := locally(ctx, t, near, 1); v.Name != "a" {
		t.Error(v)
	}
	trips := store.Trips()
	if _, err := near.Get(ctx, 1); err != nil || store.Trips() != trips {
		t.Error("a hit in the first level went to the store", err)
	}
	if r := near.GetMany(ctx, []int64{1}); r[0].Value.Name != "a" || store.Trips() != trips {
		t.Error(r)
	}
	if r := near.GetOrLoadMany(ctx, []int64{1}, nil); r[0].Value.Name != "a" || store.Trips() != trips {
		t.Error(r)
	}
	_ = far.Set(ctx, 1, user{1, "b"})
	if v, err := near.Get(ctx, 1); err != nil || v.Name != "b" {
		t.Error(v, err)
	}
	locally(ctx, t, near, 1)
	_ = far.Delete(ctx, 1)
	if _, err := near.Get(ctx, 1); err != cache.ErrMiss {
		t.Error(err)
	}
	_ = far.Set(ctx, 1, user{1, "c"})
	locally(ctx, t, near, 1)
	store.FlushAll()
	if _, err := near.Get(ctx, 1); err != cache.ErrMiss {
		t.Error(err)
	}
	// Its own writes.
	_ = near.Set(ctx, 1, user{1, "d"})
	if v := locally(ctx, t, near, 1); v.Name != "d" {
		t.Error(v)
	}
	if err := near.DeleteMany(ctx, []int64{1}); err != nil {
		t.Error(err)
	}
	if _, err := near.Get(ctx, 1); err != cache.ErrMiss {
		t.Error(err)
	}
}

// TestLocalWithoutConnection has the tracking break: nothing of the first level is believed until it is back, and nothing of before then.
func TestLocalWithoutConnection(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	c := newCache(t, store, withLocal(&mapLocal{}))
	_ = c.Set(ctx, 1, user{1, "a"})
	locally(ctx, t, c, 1)
	store.Break()
	for range 3 {
		trips := store.Trips()
		if _, err := c.Get(ctx, 1); err != nil || store.Trips() == trips {
			t.Error("served from a first level that hears nothing", err)
		}
	}
	store.Mend()
	trips := store.Trips()
	if _, err := c.Get(ctx, 1); err != nil || store.Trips() == trips {
		t.Error("served what was kept before the break", err)
	}
	locally(ctx, t, c, 1)
}

// TestLocalWithoutTracking has a transport that cannot tell of changes: what is kept is at most LocalTTL old.
func TestLocalWithoutTracking(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	far := newCache(t, store)
	c := newCache(t, untracked{store}, withLocal(&mapLocal{}), func(o *options) { o.LocalTTL = 50 * time.Millisecond })
	until(t, "a hit on what was just written", func() bool { // again where LocalTTL is over before it is read
		_ = c.Set(ctx, 1, user{1, "own"})
		trips := store.Trips()
		v, err := c.Get(ctx, 1)
		if err != nil || v.Name != "own" {
			t.Fatal(v, err)
		}
		return store.Trips() == trips
	})
	_ = far.Set(ctx, 1, user{1, "other"})
	until(t, "the end of LocalTTL", func() bool { v, err := c.Get(ctx, 1); return err == nil && v.Name == "other" })
}

// TestLocalRace has readers keep what they have read while a writer writes: what stays is what was written last.
func TestLocalRace(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	near, far := newCache(t, store, withLocal(&mapLocal{})), newCache(t, store)
	for round := range 200 {
		var all sync.WaitGroup
		for range 4 {
			all.Add(1)
			go func() {
				defer all.Done()
				for range 20 {
					if _, err := near.Get(ctx, 1); err != nil && err != cache.ErrMiss {
						t.Error(err)
					}
				}
			}()
		}
		want := fmt.Sprint(round)
		if err := far.Set(ctx, 1, user{1, want}); err != nil {
			t.Fatal(err)
		}
		// The store has told of it before Set returns: from here on nobody may see anything older.
		if v, err := near.Get(ctx, 1); err != nil || v.Name != want {
			t.Fatalf("round %s: %v, %v", want, v, err)
		}
		all.Wait()
		if v, err := near.Get(ctx, 1); err != nil || v.Name != want {
			t.Fatalf("round %s, later: %v, %v", want, v, err)
		}
	}
}

// TestLocalIsShared has two caches with the same keys and other types share a first level.
func TestLocalIsShared(t *testing.T) {
	ctx := testContext(t)
	store, l := newStore(), &mapLocal{}
	users := newCache(t, store, withLocal(l))
	names, err := cache.New(newStore(), cache.RawString{}, cache.Options[int64, string]{Prefix: "user", Version: 1, TTL: time.Minute, Local: l})
	if err != nil {
		t.Fatal(err)
	}
	defer names.Close()
	for range 3 {
		_ = users.Set(ctx, 1, user{1, "Ann"})
		_ = names.Set(ctx, 1, "Bob")
		for range 3 {
			if v, err := users.Get(ctx, 1); err != nil || v.Name != "Ann" {
				t.Error(v, err)
			}
			if v, err := names.Get(ctx, 1); err != nil || v != "Bob" {
				t.Error(v, err)
			}
		}
	}
}

// TestLocalStale has the first level hold a value beyond its soft end: it is served, and refreshed.
func TestLocalStale(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	c := newCache(t, store, withLocal(&mapLocal{}))
	var loads atomic.Int64
	_ = c.Set(ctx, 1, user{1, "old"}, cache.TTL(time.Minute), cache.SoftTTL(20*time.Millisecond))
	locally(ctx, t, c, 1)
	fail := func(context.Context, int64) (user, error) { return user{}, errors.New("loaded") }
	if v, err := c.GetOrLoad(ctx, 1, fail); err != nil || v.Name != "old" {
		t.Error(v, err)
	}
	until(t, "a stale hit in the first level", func() bool {
		_, _ = c.Get(ctx, 1)
		s := c.Stats()
		return s.Of(cache.EventStale) > 0
	})
	// On a machine that stalls the value is stale for the first caller already; then its loader was asked, and has failed, and the store's clock
	// would keep everybody from trying again.
	until(t, "the end of refreshes", func() bool { return !c.Refreshing() })
	store.Advance(2 * cache.DefaultRetryPause)
	until(t, "the refresh", func() bool {
		v, err := c.GetOrLoad(ctx, 1, named("new", &loads))
		return err == nil && v.Name == "new"
	})
}

// collide is a first level in which all keys have the same place.
type collide struct{ mapLocal }

func (l *collide) Get(uint64) (any, bool)         { return l.mapLocal.Get(0) }
func (l *collide) Set(_ uint64, entry any, n int) { l.mapLocal.Set(0, entry, n) }
func (l *collide) Delete(uint64)                  { l.mapLocal.Delete(0) }

// TestLocalCollisions: keys with the same hash do not get each other's values.
func TestLocalCollisions(t *testing.T) {
	ctx := testContext(t)
	c := newCache(t, newStore(), withLocal(&collide{}))
	for key := range int64(3) {
		if err := c.Set(ctx, key, user{key, "own"}); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		for key := range int64(3) {
			if v, err := c.Get(ctx, key); err != nil || v.ID != key {
				t.Error(key, v, err)
			}
		}
		if r := c.GetMany(ctx, []int64{2, 1, 0}); r[0].Value.ID != 2 || r[1].Value.ID != 1 || r[2].Value.ID != 0 {
			t.Error(r)
		}
	}
}

// TestLocalKeepsTheSoftEnd of what is written, by one and by many, each with its own.
func TestLocalKeepsTheSoftEnd(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	soft := func(o *options) { o.TTL, o.SoftTTL, o.LocalTTL = 2*time.Hour, time.Hour, time.Hour }
	c := newCache(t, untracked{store}, withLocal(&mapLocal{}), soft)
	items := []cache.Item[int64, user]{{Key: 2}, {Key: 3, TTL: 2 * time.Hour}}
	if err := errors.Join(c.Set(ctx, 1, user{}), c.SetMany(ctx, items)); err != nil {
		t.Fatal(err)
	}
	trips := store.Trips()
	for key := range int64(3) {
		if _, err := c.Get(ctx, key+1); err != nil {
			t.Error(err)
		}
	}
	if store.Trips() != trips {
		t.Error("what was just written is not in the first level")
	}
	expect(t, c, map[cache.Event]int64{cache.EventLocalHit: 3, cache.EventStale: 0})
	// An item with a TTL of its own has no soft end, neither here nor in the store.
	over := []cache.Item[int64, user]{{Key: 4}, {Key: 5, TTL: time.Hour}}
	if err := c.SetMany(ctx, over, cache.SoftTTL(time.Nanosecond)); err != nil {
		t.Fatal(err)
	}
	far := newCache(t, store)
	until(t, "the soft end of the first", func() bool {
		_, _ = c.Get(ctx, 4)
		_, _ = far.Get(ctx, 4)
		s, f := c.Stats(), far.Stats()
		return s.Of(cache.EventStale) > 0 && f.Of(cache.EventStale) > 0
	})
	was, wasFar := c.Stats(), far.Stats()
	_, err := c.Get(ctx, 5)
	_, errFar := far.Get(ctx, 5)
	if err := errors.Join(err, errFar); err != nil {
		t.Error(err)
	}
	expect(t, c, map[cache.Event]int64{cache.EventStale: was.Of(cache.EventStale)})
	expect(t, far, map[cache.Event]int64{cache.EventStale: wasFar.Of(cache.EventStale)})
}

// TestWaitersAreWoken has another process load what this one waits for: where the store tells of changes the value comes without another look,
// and so does the end of the lease with everything else.
func TestWaitersAreWoken(t *testing.T) {
	lease := "{user:v1:1}:lease"
	for name, c := range map[string]struct {
		happen func(store *memory.Store)
		want   string
	}{
		"stored": {func(store *memory.Store) {
			fill := []cache.Op{{Kind: cache.OpFill, Key: []byte("user:v1:1"), Lease: []byte(lease), Token: []byte("theirs"), Value: encoded(t)}}
			if store.Do(t.Context(), fill); !fill[0].Found {
				t.Error(fill[0].Err)
			}
		}, "theirs"},
		"flushed": {func(store *memory.Store) { store.FlushAll() }, "ours"},
		"breaks": {func(store *memory.Store) { // it looks as often as without
			store.Break()
			store.FlushAll()
		}, "ours"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := testContext(t)
			store := newStore()
			users := newCache(t, store, withLocal(&mapLocal{}))
			users.SetToldPause(2 * testWait) // no look by itself
			until(t, "tracking", users.Told)
			store.Put(lease, []byte("theirs"), time.Hour)
			done := make(chan user, 1)
			looks := store.Trips()
			go func() {
				v, err := users.GetOrLoad(ctx, 1, func(context.Context, int64) (user, error) { return user{1, "ours"}, nil })
				if err != nil {
					t.Error(err)
				}
				done <- v
			}()
			until(t, "a look in vain", func() bool { return users.Waiting() == 1 && store.Trips() >= looks+2 })
			c.happen(store)
			select {
			case v := <-done:
				if v.Name != c.want {
					t.Error(v)
				}
			case <-ctx.Done():
				t.Fatal("not woken")
			}
			until(t, "the end of the wait", func() bool { return users.Waiting() == 0 })
		})
	}
}

// encoded is a user as a cache stores it.
func encoded(t *testing.T) []byte {
	t.Helper()
	store := newStore()
	if err := newCache(t, store).Set(t.Context(), 1, user{1, "theirs"}); err != nil {
		t.Fatal(err)
	}
	stored, _ := store.Value("user:v1:1")
	return stored
}
