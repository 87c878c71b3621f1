package cache_test

// This file owns the tests of loads whose keys cannot be cached.

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/cache"
)

// TestKeyTooLongIsLoaded: a key that cannot be cached fails nobody who has a loader. It is loaded each time, with the same promises as to
// panics, time and Close, and the keys beside it are cached.
func TestKeyTooLongIsLoaded(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	long := strings.Repeat("x", cache.KeyBytesMax)
	c, err := cache.New(store, cache.RawString{}, cache.Options[string, string]{Prefix: "p", TTL: time.Minute, LoadTimeout: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	one := func(ctx context.Context, key string) (string, error) { return "of " + key[:1], nil }
	for range 2 {
		if v, err := c.GetOrLoad(ctx, long, one); err != nil || v != "of x" {
			t.Error(v, err)
		}
	}
	var asked [][]string
	results := c.GetOrLoadMany(ctx, []string{"a", long, "b", long + "2"}, func(_ context.Context, missing []string) (map[string]string, error) {
		asked = append(asked, missing)
		values := map[string]string{"a": "of a", long: "of x"}
		return values, nil
	})
	for i, want := range []cache.Result[string]{{Value: "of a"}, {Value: "of x"}, {Err: cache.ErrNotFound}, {Err: cache.ErrNotFound}} {
		if results[i] != want {
			t.Errorf("%d: %v, want %v", i, results[i], want)
		}
	}
	if len(asked) != 2 || !slices.Equal(asked[0], []string{"a", "b"}) || !slices.Equal(asked[1], []string{long, long + "2"}) {
		t.Errorf("%d calls of the loader", len(asked))
	}
	var late context.Context
	if _, err := c.GetOrLoad(ctx, long, func(ctx context.Context, _ string) (string, error) {
		late = ctx
		<-ctx.Done()
		return "", context.Cause(ctx)
	}); err != cache.ErrLoadTimeout || late.Err() == nil {
		t.Error(err)
	}
	var panicked *cache.PanicError
	if _, err := c.GetOrLoad(ctx, long, func(context.Context, string) (string, error) { panic("broken") }); !errors.As(err, &panicked) {
		t.Error(err)
	}
	until(t, "the fill", func() bool { return slices.Equal(store.Keys("p:"), []string{"p:v0:a"}) })
	expect(t, c, map[cache.Event]int64{cache.EventLoad: 8, cache.EventLoadError: 2, cache.EventLoadPanic: 1})
	if _, err := c.Get(ctx, long); err != cache.ErrKeyTooLong {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.GetOrLoad(ctx, long, one); err != cache.ErrClosed {
		t.Error(err)
	}
}
