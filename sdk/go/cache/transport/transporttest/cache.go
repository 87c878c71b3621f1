package transporttest

// This file owns the tests of a cache on top of the transport: its calls, leases, stampedes, tracking.

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/cache"
)

type record struct {
	ID   int
	Name string
}

func (s *suite) newCache(t *testing.T, change ...func(o *cache.Options[int, record])) *cache.Cache[int, record] {
	t.Helper()
	// A store that does not answer in time is a case of its own, and so is an owner of a lease who is late.
	o := cache.Options[int, record]{Prefix: s.prefix + t.Name(), TTL: time.Hour, NegativeTTL: time.Hour, StoreTimeout: wait, LeaseTTL: wait,
		LoadTimeout: wait}
	for _, f := range change {
		f(&o)
	}
	c, err := cache.New(s.tr, cache.JSON[record]{}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// cache goes through a cache's calls.
func (s *suite) cache(t *testing.T) {
	ctx := testContext(t)
	c := s.newCache(t)
	var keys []int
	var calls atomic.Int64
	for i := range 300 {
		keys = append(keys, i)
	}
	load := func(_ context.Context, missing []int) (map[int]record, error) {
		calls.Add(1)
		values := map[int]record{}
		for _, k := range missing {
			if k%3 != 0 {
				values[k] = record{k, fmt.Sprint(k)}
			}
		}
		return values, nil
	}
	for range 2 {
		results := c.GetOrLoadMany(ctx, keys, load)
		for i, r := range results {
			if i%3 == 0 && r.Err != cache.ErrNotFound || i%3 != 0 && (r.Err != nil || r.Value != record{i, fmt.Sprint(i)}) {
				t.Fatal(i, r)
			}
		}
		until(t, "the fill", func() bool {
			return !slices.ContainsFunc(c.GetMany(ctx, keys), func(r cache.Result[record]) bool { return r.Err == cache.ErrMiss })
		})
	}
	if calls.Load() != 1 {
		t.Errorf("%d loads", calls.Load())
	}
	if err := c.Delete(ctx, 1); err != nil {
		t.Error(err)
	}
	v, err := c.GetOrLoad(ctx, 1, func(ctx context.Context, key int) (record, error) {
		return record{key, "old"}, c.Delete(ctx, key)
	})
	if err != nil || v.Name != "old" {
		t.Error(v, err)
	}
	until(t, "the end of the fill", func() bool { s := c.Stats(); return s.Of(cache.EventFillDropped) == 1 })
	if _, err := c.Get(ctx, 1); err != cache.ErrMiss {
		t.Error("what was deleted while it was loading is there:", err)
	}
	stats := c.Stats()
	if n := stats.Of(cache.EventStoreError); n != 0 {
		t.Errorf("%d errors of the store", n)
	}
}

// late has somebody else hold the lease for too long: what is loaded meanwhile is stored, unless the key was deleted.
func (s *suite) late(t *testing.T) {
	ctx := testContext(t)
	for _, deleted := range []bool{false, true} {
		c := s.newCache(t, func(o *cache.Options[int, record]) {
			o.Prefix += fmt.Sprint(deleted)
			o.WaitMax = 20 * time.Millisecond
		})
		name, _ := c.Key(1)
		lease := []byte("{" + name + "}:lease")
		s.do(t, cache.Op{Kind: cache.OpAcquire, Key: []byte(name), Lease: lease, Token: []byte("slow"), TTL: wait})
		v, err := c.GetOrLoad(ctx, 1, func(ctx context.Context, key int) (record, error) {
			if deleted {
				return record{key, "loaded"}, c.Delete(ctx, key)
			}
			return record{key, "loaded"}, nil
		})
		if err != nil || v.Name != "loaded" {
			t.Error(v, err)
		}
		until(t, "the end of the fill", func() bool {
			s := c.Stats()
			return s.Of(cache.EventStored)+s.Of(cache.EventFillDropped) == 1
		})
		if _, err := c.Get(ctx, 1); (err == cache.ErrMiss) != deleted {
			t.Errorf("deleted %v: %v", deleted, err)
		}
		if op := s.do(t, cache.Op{Kind: cache.OpFill, Key: []byte(name), Lease: lease, Token: []byte("slow"), Value: []byte("old")}); op.Found {
			t.Error("the slow one has stored too")
		}
	}
}

// stampede has several caches, as of several processes, miss the same keys: one load of each.
func (s *suite) stampede(t *testing.T) {
	ctx := testContext(t)
	var loads [3]atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		c := s.newCache(t)
		for g := range 50 {
			all.Add(1)
			go func() {
				defer all.Done()
				v, err := c.GetOrLoad(ctx, g%3, func(_ context.Context, key int) (record, error) {
					loads[key].Add(1)
					return record{key, "loaded"}, nil
				})
				if err != nil || v.ID != g%3 || v.Name != "loaded" {
					t.Error(v, err)
				}
			}()
		}
	}
	all.Wait()
	for i := range loads {
		if n := loads[i].Load(); n != 1 {
			t.Errorf("key %d was loaded %d times", i, n)
		}
	}
}

// local is a first level without a bound.
type local struct{ sync.Map }

func (l *local) Get(hash uint64) (any, bool)       { return l.Load(hash) }
func (l *local) Set(hash uint64, entry any, _ int) { l.Store(hash, entry) }
func (l *local) Delete(hash uint64)                { l.Map.Delete(hash) }

// tracking has one cache's first level hear of what another writes, deletes, and lets expire.
func (s *suite) tracking(t *testing.T) {
	if _, ok := s.tr.(cache.Tracker); !ok {
		t.Skip("the transport cannot tell of changes")
	}
	ctx := testContext(t)
	near := s.newCache(t, func(o *cache.Options[int, record]) { o.Local = &local{} })
	far := s.newCache(t)
	locally := func() {
		t.Helper()
		until(t, "a hit in the first level", func() bool {
			before := near.Stats()
			if _, err := near.Get(ctx, 1); err != nil {
				t.Fatal(err)
			}
			after := near.Stats()
			return after.Of(cache.EventLocalHit) > before.Of(cache.EventLocalHit)
		})
	}
	for i := range 20 {
		want := record{1, fmt.Sprint(i)}
		if err := far.Set(ctx, 1, want); err != nil {
			t.Fatal(err)
		}
		until(t, "the news", func() bool { v, err := near.Get(ctx, 1); return err == nil && v == want })
		locally()
	}
	if err := far.Delete(ctx, 1); err != nil {
		t.Fatal(err)
	}
	until(t, "the news of a deletion", func() bool { _, err := near.Get(ctx, 1); return err == cache.ErrMiss })
	until(t, "the value", func() bool { // again where it has expired before it was read
		if err := far.Set(ctx, 1, record{1, "short"}, cache.TTL(300*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		_, err := near.Get(ctx, 1)
		return err == nil
	})
	until(t, "the news of an expiry", func() bool { _, err := near.Get(ctx, 1); return err == cache.ErrMiss })
	// What it writes itself.
	if err := near.Set(ctx, 1, record{1, "own"}); err != nil {
		t.Fatal(err)
	}
	if v, err := near.Get(ctx, 1); err != nil || v.Name != "own" {
		t.Error(v, err)
	}
	locally()
	stats := near.Stats()
	if stats.Of(cache.EventInvalidated) < 20 {
		t.Error(stats.Of(cache.EventInvalidated), "invalidations")
	}
}
