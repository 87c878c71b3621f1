package cache_test

// This file owns the tests of loading: stampedes, leases, trouble with loaders and stores.

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/cache"
)

// TestStampede has 1,000 goroutines miss the same key at the same time: one load.
func TestStampede(t *testing.T) {
	const n = 1000
	ctx := testContext(t)
	c := newCache(t, newStore())
	var loads atomic.Int64
	release := make(chan struct{})
	load := func(context.Context, int64) (user, error) {
		loads.Add(1)
		<-release
		return user{1, "Ann"}, nil
	}
	var all sync.WaitGroup
	for range n {
		all.Add(1)
		go func() {
			defer all.Done()
			if v, err := c.GetOrLoad(ctx, 1, load); err != nil || v.Name != "Ann" {
				t.Error(v, err)
			}
		}()
	}
	until(t, "the load", func() bool { return loads.Load() > 0 })
	close(release)
	all.Wait()
	if loads.Load() != 1 {
		t.Errorf("%d loads", loads.Load())
	}
	stats := c.Stats()
	if stats.Of(cache.EventLoad) != 1 || stats.Of(cache.EventCoalesced)+stats.Of(cache.EventHit)+1 != n {
		t.Error(stats)
	}
	t.Logf("%d goroutines: %d load, %d coalesced, %d hits", n, loads.Load(), stats.Of(cache.EventCoalesced), stats.Of(cache.EventHit))
}

// TestStampedeOfProcesses has 10 caches, which share nothing but the store, miss the same key: one load, and nobody fails.
func TestStampedeOfProcesses(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	var loads atomic.Int64
	release := make(chan struct{})
	load := func(context.Context, int64) (user, error) {
		loads.Add(1)
		<-release
		return user{1, "Ann"}, nil
	}
	var all sync.WaitGroup
	var caches []*cache.Cache[int64, user]
	for range 10 {
		caches = append(caches, newCache(t, store))
	}
	for i := range 100 {
		all.Add(1)
		go func() {
			defer all.Done()
			if v, err := caches[i%10].GetOrLoad(ctx, 1, load); err != nil || v.Name != "Ann" {
				t.Error(v, err)
			}
		}()
	}
	until(t, "everybody's miss", func() bool {
		n := int64(0)
		for _, c := range caches {
			s := c.Stats()
			n += s.Of(cache.EventMiss)
		}
		return n >= 10
	})
	close(release)
	all.Wait()
	if loads.Load() != 1 {
		t.Errorf("%d loads", loads.Load())
	}
	if left := store.Keys("{"); len(left) != 0 {
		t.Error("leases are left:", left)
	}
}

// TestDeadOwner has the owner of a lease die: the lease ends, and another process loads.
func TestDeadOwner(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	c := newCache(t, store)
	store.Put("{user:v1:1}:lease", []byte("a token of the dead"), 3*time.Second)
	var loads atomic.Int64
	done := make(chan error)
	go func() {
		v, err := c.GetOrLoad(ctx, 1, func(context.Context, int64) (user, error) {
			loads.Add(1)
			return user{1, "Ann"}, nil
		})
		if v.Name != "Ann" {
			err = errors.Join(err, errors.New("not the value"))
		}
		done <- err
	}()
	until(t, "the first tries", func() bool { return store.Trips() > 3 })
	if loads.Load() != 0 {
		t.Error("loaded in spite of the lease")
	}
	store.Advance(3 * time.Second)
	if err := <-done; err != nil || loads.Load() != 1 {
		t.Error(err, loads.Load())
	}
}

// withoutLease are the ways in which a process loads what it has no lease for.
var withoutLease = map[string]struct {
	change func(o *options)
	lease  bool // somebody else has it
	fault  func(ctx context.Context, op *cache.Op) error
	stored int64 // when nothing is deleted
}{
	"waited too long": {change: func(o *options) { o.WaitMax = 20 * time.Millisecond }, lease: true, stored: 1},
	"nobody waits":    {change: func(o *options) { o.LeaseTTL = cache.Off }, lease: true, stored: 1},
	"no leases": {change: func(*options) {}, fault: func(_ context.Context, op *cache.Op) error {
		if op.Kind == cache.OpAcquire {
			return errors.New("OOM command not allowed when used memory > 'maxmemory'.")
		}
		return nil
	}},
}

// filled waits for so many loaded values to be stored or dropped, and for the cache to end.
func filled(t *testing.T, c *cache.Cache[int64, user], n int64) {
	t.Helper()
	until(t, "the fill", func() bool { s := c.Stats(); return s.Of(cache.EventStored)+s.Of(cache.EventFillDropped) >= n })
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestSlowOwner has another process load for too long, or leases fail: the waiters load for themselves. What they store is not stored a second
// time by the slow one.
func TestSlowOwner(t *testing.T) {
	for name, c := range withoutLease {
		t.Run(name, func(t *testing.T) {
			ctx := testContext(t)
			store := newStore()
			users := newCache(t, store, c.change)
			if c.lease {
				store.Put("{user:v1:1}:lease", []byte("a token of the slow"), time.Hour)
			}
			store.Fault(c.fault)
			v, err := users.GetOrLoad(ctx, 1, func(context.Context, int64) (user, error) { return user{1, "Ann"}, nil })
			if err != nil || v.Name != "Ann" {
				t.Error(v, err)
			}
			filled(t, users, c.stored)
			waited := int64(0)
			if name == "waited too long" {
				waited = 1
			}
			expect(t, users, map[cache.Event]int64{cache.EventWaitedTooLong: waited, cache.EventLoad: 1, cache.EventStored: c.stored})
			if _, ok := store.Value("user:v1:1"); ok != (c.stored == 1) {
				t.Error("stored:", ok)
			}
			slow := []cache.Op{{Kind: cache.OpFill, Key: []byte("user:v1:1"), Lease: []byte("{user:v1:1}:lease"), Token: []byte("a token of the slow")}}
			if store.Do(ctx, slow); slow[0].Found {
				t.Error("the slow one has stored over it")
			}
		})
	}
}

// TestDeadOwnerAndTheDefaults: with WaitMax as it is by default, who waits for an owner that is dead has time left to load.
func TestDeadOwnerAndTheDefaults(t *testing.T) {
	store := newStore()
	users := newCache(t, store, func(o *options) { o.LoadTimeout = 4 * time.Second })
	store.Put("{user:v1:1}:lease", []byte("a token of the dead"), time.Hour)
	v, err := users.GetOrLoad(testContext(t), 1, func(context.Context, int64) (user, error) { return user{1, "Ann"}, nil })
	if err != nil || v.Name != "Ann" {
		t.Error(v, err)
	}
	expect(t, users, map[cache.Event]int64{cache.EventWaitedTooLong: 1, cache.EventLoad: 1})
}

// TestDeletedWhileLoadingWithoutLease has a key deleted while its old value is loaded by somebody who has no lease: it is not stored.
func TestDeletedWhileLoadingWithoutLease(t *testing.T) {
	for name, c := range withoutLease {
		t.Run(name, func(t *testing.T) {
			ctx := testContext(t)
			store := newStore()
			users, other := newCache(t, store, c.change), newCache(t, store)
			if c.lease {
				store.Put("{user:v1:1}:lease", []byte("a token of the slow"), time.Hour)
			}
			store.Fault(c.fault)
			v, err := users.GetOrLoad(ctx, 1, func(ctx context.Context, key int64) (user, error) {
				return user{1, "old"}, other.Delete(ctx, key)
			})
			if err != nil || v.Name != "old" {
				t.Error(v, err)
			}
			filled(t, users, c.stored)
			expect(t, users, map[cache.Event]int64{cache.EventLoad: 1, cache.EventStored: 0, cache.EventFillDropped: c.stored})
			if _, err := other.Get(ctx, 1); err != cache.ErrMiss {
				t.Error("the old value was stored:", err)
			}
		})
	}
}

// TestLeaseOfOneFails has the lease of one key of two not be given: its value is handed out and not stored.
func TestLeaseOfOneFails(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	c := newCache(t, store)
	store.Fault(func(_ context.Context, op *cache.Op) error {
		if op.Kind == cache.OpAcquire && string(op.Key) == "user:v1:2" {
			return errors.New("refused")
		}
		return nil
	})
	results := c.GetOrLoadMany(ctx, []int64{1, 2}, func(context.Context, []int64) (map[int64]user, error) {
		return map[int64]user{1: {1, "Ann"}, 2: {2, "Bob"}}, nil
	})
	if err := results.Err(); err != nil || results[1].Value.Name != "Bob" {
		t.Error(results)
	}
	filled(t, c, 1)
	if keys := store.Keys(""); !slices.Equal(keys, []string{"user:v1:1"}) {
		t.Error(keys)
	}
}

// TestNobodyWaits has two processes without leases load the same at the same time: both do, and the first one's value stays.
func TestNobodyWaits(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	off := func(o *options) { o.LeaseTTL = cache.Off }
	a, b := newCache(t, store, off), newCache(t, store, off)
	v, err := a.GetOrLoad(ctx, 1, func(ctx context.Context, key int64) (user, error) {
		if v, err := b.GetOrLoad(ctx, 1, func(context.Context, int64) (user, error) { return user{1, "second"}, nil }); err != nil || v.Name != "second" {
			t.Error(v, err)
		}
		filled(t, b, 1)
		return user{1, "first"}, nil
	})
	if err != nil || v.Name != "first" {
		t.Error(v, err)
	}
	filled(t, a, 1)
	expect(t, a, map[cache.Event]int64{cache.EventLoad: 1, cache.EventStored: 0, cache.EventFillDropped: 1})
	expect(t, b, map[cache.Event]int64{cache.EventLoad: 1, cache.EventStored: 1})
	if left := store.Keys("{"); len(left) != 0 {
		t.Error("leases are left:", left)
	}
}

// TestLeaseIsRenewed has a load take longer than the lease: it is still one load. It is the renewals that count, not whether they come in
// time.
func TestLeaseIsRenewed(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	c := newCache(t, store, func(o *options) { o.LeaseTTL = 60 * time.Millisecond })
	var renewed atomic.Int64
	store.Fault(func(_ context.Context, op *cache.Op) error {
		if op.Kind == cache.OpRenew {
			renewed.Add(1)
		}
		return nil
	})
	v, err := c.GetOrLoad(ctx, 1, func(context.Context, int64) (user, error) {
		until(t, "renewal", func() bool { return renewed.Load() >= 3 })
		return user{1, "Ann"}, nil
	})
	if err != nil || v.Name != "Ann" {
		t.Error(v, err)
	}
	until(t, "the fill", func() bool { s := c.Stats(); return s.Of(cache.EventStored) == 1 })
}

// TestDeletedWhileLoading has a key deleted while its old value is being loaded: that is returned and not stored.
func TestDeletedWhileLoading(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	c := newCache(t, store)
	v, err := c.GetOrLoad(ctx, 1, func(ctx context.Context, key int64) (user, error) {
		return user{1, "old"}, c.Delete(ctx, key)
	})
	if err != nil || v.Name != "old" {
		t.Error(v, err)
	}
	until(t, "the end of the flight", func() bool { s := c.Stats(); return s.Of(cache.EventFillDropped) == 1 })
	if _, err := c.Get(ctx, 1); err != cache.ErrMiss {
		t.Error("the old value was stored:", err)
	}
}

// TestOppositeOrders has calls for many take the same keys in opposite orders, and calls for one between them: no deadlock, and each key
// is loaded once.
func TestOppositeOrders(t *testing.T) {
	ctx := testContext(t)
	c := newCache(t, newStore())
	const n = 50
	var keys []int64
	for i := range int64(n) {
		keys = append(keys, i)
	}
	back := slices.Clone(keys)
	slices.Reverse(back)
	var mu sync.Mutex
	loads := map[int64]int{}
	loaded := func(key int64) user {
		mu.Lock()
		defer mu.Unlock()
		loads[key]++
		return user{key, fmt.Sprint(key)}
	}
	many := func(_ context.Context, missing []int64) (map[int64]user, error) {
		values := map[int64]user{}
		for _, key := range missing {
			values[key] = loaded(key)
			runtime.Gosched()
		}
		return values, nil
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Add(2)
		go func() {
			defer all.Done()
			order := keys
			if i%2 == 1 {
				order = back
			}
			results := c.GetOrLoadMany(ctx, order, many)
			for j, key := range order {
				if r := results[j]; r.Err != nil || r.Value.ID != key {
					t.Error(key, r)
				}
			}
		}()
		go func() {
			defer all.Done()
			for key := range int64(n) {
				v, err := c.GetOrLoad(ctx, (key*7)%n, func(_ context.Context, key int64) (user, error) { return loaded(key), nil })
				if err != nil || v.ID != (key*7)%n {
					t.Error(key, v, err)
				}
			}
		}()
	}
	all.Wait()
	for key, times := range loads {
		if times != 1 {
			t.Errorf("key %d was loaded %d times", key, times)
		}
	}
}

// TestLoadManyAsksForWhatIsMissing counts the calls of the loader and its keys.
func TestLoadManyAsksForWhatIsMissing(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	c := newCache(t, store)
	_ = c.Set(ctx, 2, user{2, "stored"})
	_ = c.SetNotFound(ctx, 5)
	before := store.Trips()
	failed := errors.New("failed")
	var calls [][]int64
	results := c.GetOrLoadMany(ctx, []int64{1, 2, 3, 4, 5, 1}, func(_ context.Context, missing []int64) (map[int64]user, error) {
		calls = append(calls, slices.Clone(missing))
		return map[int64]user{1: {1, "loaded"}, 4: {4, "loaded"}}, failed
	})
	if len(calls) != 1 || !slices.Equal(calls[0], []int64{1, 3, 4}) {
		t.Error(calls)
	}
	for i, want := range []struct {
		name string
		err  error
	}{{"loaded", nil}, {"stored", nil}, {"", failed}, {"loaded", nil}, {"", cache.ErrNotFound}, {"loaded", nil}} {
		if results[i].Value.Name != want.name || results[i].Err != want.err {
			t.Error(i, results[i])
		}
	}
	until(t, "the fill", func() bool { return len(store.Keys("user")) == 4 && len(store.Keys("{")) == 0 })
	if trips := store.Trips() - before; trips != 3 {
		t.Error(trips, "round trips; reading, the leases, and storing are 3")
	}
	// What the loader does not know is remembered.
	results = c.GetOrLoadMany(ctx, []int64{3}, func(context.Context, []int64) (map[int64]user, error) { return nil, nil })
	if results[0].Err != cache.ErrNotFound {
		t.Error(results)
	}
	until(t, "the negative value", func() bool { _, err := c.Get(ctx, 3); return err == cache.ErrNotFound })
}

// TestPanickingLoader has a loader panic and end its goroutine: an error for all who wait, and nothing is left behind.
func TestPanickingLoader(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	c := newCache(t, store)
	for name, bad := range map[string]func(){"panic": func() { panic(errors.New("broken")) }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			var all sync.WaitGroup
			before := c.Stats()
			for range 10 {
				all.Add(1)
				go func() {
					defer all.Done()
					_, err := c.GetOrLoad(ctx, 1, func(context.Context, int64) (user, error) {
						<-release
						bad()
						return user{}, nil
					})
					var p *cache.PanicError
					if err == nil || name == "panic" && (!errors.As(err, &p) || p.Unwrap() == nil || len(p.Stack) == 0) {
						t.Error(err)
					}
				}()
			}
			until(t, "the first miss", func() bool { s := c.Stats(); return s.Of(cache.EventMiss) > before.Of(cache.EventMiss) })
			close(release)
			ended := make(chan struct{})
			go func() {
				all.Wait()
				close(ended)
			}()
			until(t, "everybody's error", func() bool {
				store.Advance(time.Minute) // who comes late finds the lease of a loader that has ended its goroutine
				select {
				case <-ended:
					return true
				default:
					return false
				}
			})
			if after := c.Stats(); name == "panic" && after.Of(cache.EventLoadPanic) == before.Of(cache.EventLoadPanic) {
				t.Error("not counted")
			}
			results := c.GetOrLoadMany(ctx, []int64{2, 3}, func(context.Context, []int64) (map[int64]user, error) {
				bad()
				return nil, nil
			})
			if results[0].Err == nil || results[1].Err == nil {
				t.Error(results)
			}
			store.Advance(time.Minute) // a loader that ends its goroutine leaves its lease to expire
			v, err := c.GetOrLoad(ctx, 1, func(context.Context, int64) (user, error) { return user{1, "Ann"}, nil })
			if err != nil || v.Name != "Ann" {
				t.Error(v, err)
			}
			if err := c.DeleteMany(ctx, []int64{1, 2, 3}); err != nil { // also while the value is being stored
				t.Error(err)
			}
		})
	}
}

// TestFirstCallerLeaves has the caller who began a load give up: the others get the value, and the loader's context goes on.
func TestFirstCallerLeaves(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	c := newCache(t, store)
	type name struct{}
	first, leave := context.WithCancel(context.WithValue(ctx, name{}, "first"))
	loading, release := make(chan struct{}), make(chan struct{})
	load := func(ctx context.Context, _ int64) (user, error) {
		close(loading)
		<-release
		if ctx.Err() != nil {
			return user{}, ctx.Err()
		}
		if end, ok := ctx.Deadline(); !ok || time.Until(end) > testWait {
			return user{}, errors.New("no deadline")
		}
		return user{1, ctx.Value(name{}).(string)}, nil
	}
	errs := make(chan error, 1)
	go func() {
		_, err := c.GetOrLoad(first, 1, load)
		errs <- err
	}()
	<-loading
	second := make(chan error, 1)
	go func() {
		v, err := c.GetOrLoad(ctx, 1, load)
		if err == nil && v.Name != "first" {
			err = fmt.Errorf("got %v", v)
		}
		second <- err
	}()
	leave()
	if err := <-errs; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(release)
	if err := <-second; err != nil {
		t.Error(err)
	}
}

// TestReaderLeaves has the caller who reads for all give up while the store does not answer: another reads.
func TestReaderLeaves(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	c := newCache(t, store)
	_ = c.Set(ctx, 1, user{1, "Ann"})
	var once sync.Once
	reading := make(chan struct{})
	store.Fault(func(ctx context.Context, op *cache.Op) error {
		block := false
		once.Do(func() { block = true })
		if block {
			close(reading)
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	})
	first, leave := context.WithCancel(ctx)
	errs := make(chan error, 2)
	fail := func(context.Context, int64) (user, error) { return user{}, errors.New("loaded") }
	go func() {
		_, err := c.GetOrLoad(first, 1, fail)
		errs <- err
	}()
	<-reading
	go func() {
		v, err := c.GetOrLoad(ctx, 1, fail)
		if err == nil && v.Name != "Ann" {
			err = errors.New("not the value")
		}
		errs <- err
	}()
	go func() {
		r := c.GetOrLoadMany(ctx, []int64{1}, func(context.Context, []int64) (map[int64]user, error) { return nil, errors.New("loaded") })
		errs <- r[0].Err
	}()
	leave()
	failed := 0
	for range 3 {
		if err := <-errs; errors.Is(err, context.Canceled) {
			failed++
		} else if err != nil {
			t.Error(err)
		}
	}
	if failed != 1 {
		t.Error(failed, "callers were cancelled")
	}
}

// TestLoaderThatHangs has a loader not heed its context: its callers go on at LoadTimeout.
func TestLoaderThatHangs(t *testing.T) {
	ctx := testContext(t)
	c := newCache(t, newStore(), func(o *options) { o.LoadTimeout = 20 * time.Millisecond })
	release := make(chan struct{})
	defer close(release)
	_, err := c.GetOrLoad(ctx, 1, func(context.Context, int64) (user, error) {
		<-release
		return user{}, nil
	})
	if !errors.Is(err, cache.ErrLoadTimeout) {
		t.Error(err)
	}
}

// TestStoreInTrouble has the store be gone, hang, or be full: who has a loader gets the value.
func TestStoreInTrouble(t *testing.T) {
	gone := errors.New("connection refused")
	for name, fault := range map[string]func(ctx context.Context, op *cache.Op) error{
		"gone": func(context.Context, *cache.Op) error { return gone },
		"hangs": func(ctx context.Context, _ *cache.Op) error {
			<-ctx.Done()
			return ctx.Err()
		},
		"full": func(_ context.Context, op *cache.Op) error {
			if op.Kind == cache.OpGet || op.Kind == cache.OpRelease {
				return nil
			}
			return errors.New("OOM command not allowed when used memory > 'maxmemory'.")
		},
		"breaks after the lease": func(_ context.Context, op *cache.Op) error {
			if op.Kind == cache.OpFill || op.Kind == cache.OpRelease {
				return gone
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := testContext(t)
			store := newStore()
			c := newCache(t, store, func(o *options) { o.StoreTimeout = 10 * time.Millisecond })
			store.Fault(fault)
			v, err := c.GetOrLoad(ctx, 1, func(context.Context, int64) (user, error) { return user{1, "Ann"}, nil })
			if err != nil || v.Name != "Ann" {
				t.Error(v, err)
			}
			r := c.GetOrLoadMany(ctx, []int64{2, 3}, func(context.Context, []int64) (map[int64]user, error) {
				return map[int64]user{2: {2, "Bob"}}, nil
			})
			if r[0].Err != nil || r[0].Value.Name != "Bob" || r[1].Err != cache.ErrNotFound {
				t.Error(r)
			}
			stats := c.Stats()
			if stats.Of(cache.EventStoreError) == 0 || stats.Of(cache.EventLoad) != 3 {
				t.Error(stats)
			}
			if stats.Of(cache.EventHit) != 0 || stats.Of(cache.EventMiss) != 3 {
				t.Errorf("%d hits, %d misses", stats.Of(cache.EventHit), stats.Of(cache.EventMiss))
			}
		})
	}
}
