package cache_test

// This file owns the tests of values that are stale, or soon will be.

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/cache"
)

// named is a loader that counts.
func named(name string, loads *atomic.Int64) cache.Loader[int64, user] {
	return func(_ context.Context, key int64) (user, error) {
		loads.Add(1)
		return user{key, name}, nil
	}
}

// stale stores a value whose soft end is over.
func stale(ctx context.Context, t *testing.T, c *cache.Cache[int64, user], key int64) {
	t.Helper()
	if err := c.Set(ctx, key, user{key, "old"}, cache.TTL(time.Minute), cache.SoftTTL(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	until(t, "the soft end", func() bool {
		before := c.Stats()
		if _, err := c.Get(ctx, key); err != nil {
			t.Fatal(err)
		}
		after := c.Stats()
		return after.Of(cache.EventStale) > before.Of(cache.EventStale)
	})
}

// TestStaleIsServed has many ask for a stale value: all get it at once, and one refresh brings the new one.
func TestStaleIsServed(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	var loads atomic.Int64
	release := make(chan struct{})
	slow := func(ctx context.Context, key int64) (user, error) {
		<-release
		return named("new", &loads)(ctx, key)
	}
	a, b := newCache(t, store), newCache(t, store)
	stale(ctx, t, a, 1)
	var all sync.WaitGroup
	for i := range 100 {
		all.Add(1)
		go func() {
			defer all.Done()
			v, err := []*cache.Cache[int64, user]{a, b}[i%2].GetOrLoad(ctx, 1, slow)
			if err != nil || v.Name != "old" {
				t.Error(v, err)
			}
		}()
	}
	all.Wait() // nobody waits for the load
	r := a.GetOrLoadMany(ctx, []int64{1}, func(context.Context, []int64) (map[int64]user, error) { return nil, errors.New("loaded") })
	if r[0].Err != nil || r[0].Value.Name != "old" {
		t.Error(r)
	}
	close(release)
	until(t, "the refresh", func() bool { v, err := b.Get(ctx, 1); return err == nil && v.Name == "new" })
	if loads.Load() != 1 {
		t.Errorf("%d loads", loads.Load())
	}
}

// TestRefreshFails has the source fail while a stale value is there: it is served on, and the source is not asked again at once.
func TestRefreshFails(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	c := newCache(t, store)
	stale(ctx, t, c, 1)
	var loads atomic.Int64
	fail := func(context.Context, int64) (user, error) {
		loads.Add(1)
		return user{}, errors.New("the source is down")
	}
	ask := func() {
		t.Helper()
		if v, err := c.GetOrLoad(ctx, 1, fail); err != nil || v.Name != "old" {
			t.Error(v, err)
		}
	}
	ask()
	until(t, "the failure", func() bool { s := c.Stats(); return s.Of(cache.EventLoadError) == 1 })
	until(t, "the pause", func() bool { ttl, ok := store.TTL("{user:v1:1}:lease"); return ok && ttl <= time.Second })
	trips := store.Trips()
	ask()
	until(t, "a second try", func() bool { return store.Trips() >= trips+2 })
	if loads.Load() != 1 {
		t.Errorf("%d loads within the pause", loads.Load())
	}
	store.Advance(2 * time.Second)
	until(t, "another load", func() bool { ask(); return loads.Load() == 2 })
}

func TestNegative(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	c := newCache(t, store)
	var loads atomic.Int64
	none := func(context.Context, int64) (user, error) {
		loads.Add(1)
		return user{}, cache.ErrNotFound
	}
	for range 3 {
		if _, err := c.GetOrLoad(ctx, 1, none); err != cache.ErrNotFound {
			t.Error(err)
		}
		until(t, "the negative value", func() bool { _, err := c.Get(ctx, 1); return err == cache.ErrNotFound })
	}
	if loads.Load() != 1 {
		t.Errorf("%d loads", loads.Load())
	}
	// Wrapped, it is what the caller gets; and it may be turned off for a call.
	wrapped := errors.Join(cache.ErrNotFound, errors.New("no row"))
	for range 2 {
		_, err := c.GetOrLoad(ctx, 2, func(context.Context, int64) (user, error) { return user{}, wrapped }, cache.NegativeTTL(cache.Off))
		if !errors.Is(err, cache.ErrNotFound) || err != wrapped {
			t.Error(err)
		}
	}
	if _, err := c.Get(ctx, 2); err != cache.ErrMiss {
		t.Error(err)
	}
}

// TestEarlyRefresh has values that took long to load be refreshed before their end, by chance, and others not.
func TestEarlyRefresh(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	var loads atomic.Int64
	c := newCache(t, store, func(o *options) { o.EarlyRefresh, o.TTL = 1, 24*time.Hour })
	if _, err := c.GetOrLoad(ctx, 1, named("quick", &loads)); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if _, err := c.GetOrLoad(ctx, 1, named("quick", &loads)); err != nil {
			t.Fatal(err)
		}
	}
	if loads.Load() != 1 {
		t.Errorf("%d loads of what is quick to load", loads.Load())
	}
	// A load of 25 ms and a life of 100 ms: refreshed at once with a chance of e^-4, so nearly surely within 1,000 tries.
	early := newCache(t, store, func(o *options) { o.EarlyRefresh, o.TTL, o.Prefix = 1, 100*time.Millisecond, "early" })
	slow := func(ctx context.Context, key int64) (user, error) {
		begun := time.Now()
		for time.Since(begun) < 25*time.Millisecond {
			time.Sleep(time.Millisecond) // it takes long, which is what is tested
		}
		return named("slow", &loads)(ctx, key)
	}
	until(t, "an early refresh", func() bool {
		if _, err := early.GetOrLoad(ctx, 1, slow); err != nil {
			t.Fatal(err)
		}
		s := early.Stats()
		return s.Of(cache.EventRefresh) > 0
	})
}

func TestFresh(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	c := newCache(t, store)
	var loads atomic.Int64
	_ = c.Set(ctx, 1, user{1, "old"})
	for i, name := range []string{"a", "b"} {
		v, err := c.GetOrLoad(ctx, 1, named(name, &loads), cache.Fresh())
		if err != nil || v.Name != name || loads.Load() != int64(i+1) {
			t.Error(v, err)
		}
		until(t, "the fill", func() bool { v, _ := c.Get(ctx, 1); return v.Name == name })
	}
}

// TestRefreshMax has one refresh run and no more: what is over that is counted, and tried again when there is room.
func TestRefreshMax(t *testing.T) {
	ctx := testContext(t)
	c := newCache(t, newStore(), func(o *options) { o.RefreshMax = 1 })
	stale(ctx, t, c, 1)
	stale(ctx, t, c, 2)
	loading, release := make(chan struct{}), make(chan struct{})
	_, err := c.GetOrLoad(ctx, 1, func(_ context.Context, key int64) (user, error) {
		close(loading)
		<-release
		return user{key, "new"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	<-loading
	var loads atomic.Int64
	for range 3 {
		if v, err := c.GetOrLoad(ctx, 2, named("new", &loads)); err != nil || v.Name != "old" {
			t.Error(v, err)
		}
	}
	expect(t, c, map[cache.Event]int64{cache.EventRefresh: 1, cache.EventRefreshSkipped: 3})
	close(release)
	until(t, "the second refresh", func() bool {
		v, err := c.GetOrLoad(ctx, 2, named("new", &loads))
		return err == nil && v.Name == "new"
	})
	if loads.Load() != 1 {
		t.Error(loads.Load(), "loads")
	}
}

// TestRefreshedByAnother has another process refresh a value while this one takes the lease for it: nothing is loaded, and the lease is given
// back.
func TestRefreshedByAnother(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	a, b := newCache(t, store), newCache(t, store)
	stale(ctx, t, a, 1)
	var once sync.Once
	var released atomic.Int64
	store.Fault(func(_ context.Context, op *cache.Op) error {
		switch op.Kind {
		case cache.OpAcquire:
			once.Do(func() { _ = b.Set(ctx, 1, user{1, "theirs"}, cache.TTL(time.Minute), cache.SoftTTL(50*time.Second)) })
		case cache.OpRelease:
			released.Add(1)
		}
		return nil
	})
	var loads atomic.Int64
	if v, err := a.GetOrLoad(ctx, 1, named("ours", &loads)); err != nil || v.Name != "old" {
		t.Error(v, err)
	}
	until(t, "the lease's release", func() bool { return released.Load() == 1 && len(store.Keys("{")) == 0 })
	if v, err := a.Get(ctx, 1); err != nil || v.Name != "theirs" || loads.Load() != 0 {
		t.Error(v, err, loads.Load())
	}
}
