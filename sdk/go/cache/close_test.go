package cache_test

// This file owns the tests of Close: what it ends, what it waits for, and what is stored all the same.

import (
	"context"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/cache"
)

func TestClose(t *testing.T) {
	ctx := testContext(t)
	c := newCache(t, newStore())
	loading := make(chan struct{})
	errs := make(chan error, 1)
	go func() {
		_, err := c.GetOrLoad(ctx, 1, func(ctx context.Context, _ int64) (user, error) {
			close(loading)
			<-ctx.Done()
			return user{}, ctx.Err()
		})
		errs <- err
	}()
	<-loading
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-errs; err != cache.ErrClosed {
		t.Error(err)
	}
	load := func(context.Context, int64) (user, error) { return user{}, nil }
	if _, err := c.GetOrLoad(ctx, 2, load); err != cache.ErrClosed {
		t.Error(err)
	}
	r := c.GetOrLoadMany(ctx, []int64{2}, func(context.Context, []int64) (map[int64]user, error) { return nil, nil })
	if r[0].Err != cache.ErrClosed {
		t.Error(r)
	}
}

// lateCodec is JSON that encodes user 1 only when the cache is closed.
type lateCodec struct {
	cache.JSON[user]
	closed <-chan struct{}
}

func (l lateCodec) AppendEncode(dst []byte, v user) ([]byte, error) {
	if v.ID == 1 {
		<-l.closed
	}
	return l.JSON.AppendEncode(dst, v)
}

// TestCloseStoresWhatWasLoaded closes a cache whose callers have their values while these are still being stored, and that the source has
// none of one: nobody has to load them again.
func TestCloseStoresWhatWasLoaded(t *testing.T) {
	ctx := testContext(t)
	store, closed := newStore(), make(chan struct{})
	o := options{Prefix: "user", TTL: time.Minute, NegativeTTL: time.Minute, StoreTimeout: testWait, LoadTimeout: testWait, CloseTimeout: testWait}
	c, err := cache.New(store, lateCodec{closed: closed}, o)
	if err != nil {
		t.Fatal(err)
	}
	ids := []int64{1, 2, 3}
	for _, r := range c.GetOrLoadMany(ctx, ids, func(ctx context.Context, ids []int64) (map[int64]user, error) {
		context.AfterFunc(ctx, func() { close(closed) })
		return map[int64]user{1: {1, "early"}, 2: {2, "early"}}, nil
	}) {
		if r.Err != nil && r.Err != cache.ErrNotFound {
			t.Fatal(r.Err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	expect(t, c, map[cache.Event]int64{cache.EventLoad: 3})
	for _, id := range ids {
		if key, _ := c.Key(id); len(store.Keys(key)) != 1 {
			t.Error("not stored, or with a lease that is left:", store.Keys(""))
		}
	}
}

// TestCloseWithLoaderThatHangs has loaders not heed their context when the cache is closed: their callers and Close go on, and what comes later
// is not stored.
func TestCloseWithLoaderThatHangs(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	c := newCache(t, store, func(o *options) { o.CloseTimeout = 20 * time.Millisecond })
	loading, release := make(chan struct{}), make(chan struct{})
	errs := make(chan error, 1)
	go func() {
		_, err := c.GetOrLoad(ctx, 1, func(context.Context, int64) (user, error) {
			close(loading)
			<-release
			return user{1, "late"}, nil
		})
		errs <- err
	}()
	<-loading
	closed := make(chan error, 1)
	go func() { closed <- c.Close() }()
	for what, got := range map[string]chan error{"Close": closed, "the caller": errs} {
		select {
		case err := <-got:
			if want := map[string]error{"Close": cache.ErrStillLoading, "the caller": cache.ErrClosed}[what]; err != want {
				t.Errorf("%s: %v, want %v", what, err, want)
			}
		case <-ctx.Done():
			t.Fatal(what, "hangs")
		}
	}
	close(release)
	until(t, "the loader's end", func() bool { return c.Close() == nil })
	if keys := store.Keys(""); len(keys) != 0 {
		t.Error("stored after Close, or a lease that is left:", keys)
	}
}
