package cache_test

// This file owns the tests of soft ends where clocks differ.

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

// shifted is the clock of a machine that is wrong.
func shifted(d time.Duration) func() time.Time { return func() time.Time { return time.Now().Add(d) } }

// TestWrongClocks has the clock of who stores a value, or of who reads it, be hours wrong: it is stale at its soft end, and not before.
func TestWrongClocks(t *testing.T) {
	for _, c := range []struct{ writer, reader time.Duration }{{-3 * time.Hour, 0}, {3 * time.Hour, 0}, {0, -3 * time.Hour}, {0, 3 * time.Hour}} {
		t.Run(fmt.Sprintf("writer %v, reader %v", c.writer, c.reader), func(t *testing.T) {
			t.Parallel()
			ctx := testContext(t)
			store := &memory.Store{}
			forEver := func(o *options) { o.TTL, o.SoftTTL = cache.Off, time.Hour }
			writer, reader := newCache(t, store, forEver), newCache(t, store, forEver)
			writer.SetWall(shifted(c.writer))
			reader.SetWall(shifted(c.reader))
			var loads atomic.Int64
			// Stored by Set, by SetMany, and by a load.
			if err := writer.Set(ctx, 1, user{1, "old"}); err != nil {
				t.Fatal(err)
			}
			if err := writer.SetMany(ctx, []cache.Item[int64, user]{{Key: 2, Value: user{2, "old"}}}); err != nil {
				t.Fatal(err)
			}
			if _, err := writer.GetOrLoad(ctx, 3, named("old", &loads)); err != nil {
				t.Fatal(err)
			}
			until(t, "the fill", func() bool { _, err := writer.Get(ctx, 3); return err == nil })
			for key := int64(1); key <= 3; key++ {
				for range 3 {
					if v, err := reader.GetOrLoad(ctx, key, named("again", &loads)); err != nil || v.Name != "old" {
						t.Error(key, v, err)
					}
				}
			}
			until(t, "the end of refreshes", func() bool { return !reader.Refreshing() })
			if loads.Load() != 1 {
				t.Errorf("%d loads: what is fresh was refreshed", loads.Load()-1)
			}

			reader = newCache(t, store, forEver)
			reader.SetWall(shifted(c.reader))
			if err := writer.Set(ctx, 1, user{1, "old"}, cache.TTL(cache.Off), cache.SoftTTL(time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			until(t, "the refresh", func() bool {
				v, err := reader.GetOrLoad(ctx, 1, named("new", &loads))
				return err == nil && v.Name == "new"
			})
		})
	}
}

// telling is a store whose time is told by a function.
type telling struct {
	*memory.Store
	time func(ctx context.Context) (time.Time, error)
}

func (s telling) Time(ctx context.Context) (time.Time, error) { return s.time(ctx) }

// TestTimeIsAskedForOnce has many store values with a soft end at once, and read them: the store is asked for its time once.
func TestTimeIsAskedForOnce(t *testing.T) {
	ctx := testContext(t)
	var asked atomic.Int64
	c := newCache(t, telling{newStore(), func(context.Context) (time.Time, error) {
		asked.Add(1)
		return time.Now(), nil
	}})
	if err := c.Set(ctx, 0, user{}); err != nil || asked.Load() != 0 {
		t.Error(err, asked.Load(), "asked for a value without a soft end")
	}
	var all sync.WaitGroup
	for key := range int64(100) {
		all.Add(1)
		go func() {
			defer all.Done()
			if err := c.Set(ctx, key, user{key, "soft"}, cache.SoftTTL(time.Second)); err != nil {
				t.Error(err)
			}
			if _, err := c.Get(ctx, key); err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
	if asked.Load() != 1 {
		t.Errorf("asked %d times", asked.Load())
	}
}

// TestTimeCannotBeHad has the store not tell its time, and then tell it: until then this machine's is taken, and nobody fails.
func TestTimeCannotBeHad(t *testing.T) {
	ctx := testContext(t)
	var asked atomic.Int64
	var tells atomic.Bool
	c := newCache(t, telling{newStore(), func(context.Context) (time.Time, error) {
		asked.Add(1)
		if !tells.Load() {
			return time.Time{}, errors.New("NOPERM this user has no permissions to run the 'time' command")
		}
		return time.Now(), nil
	}})
	c.SetWall(shifted(-3 * time.Hour))
	for range 10 {
		if err := c.Set(ctx, 1, user{1, "soft"}, cache.SoftTTL(time.Minute/2)); err != nil {
			t.Fatal(err)
		}
		if v, err := c.Get(ctx, 1); err != nil || v.Name != "soft" {
			t.Error(v, err)
		}
	}
	expect(t, c, map[cache.Event]int64{cache.EventStale: 0})
	if n := asked.Load(); n == 0 || n > 10 {
		t.Errorf("asked %d times", n)
	}
	tells.Store(true)
	until(t, "the right time", func() bool { // by which the value has been stale for hours
		before := c.Stats()
		if _, err := c.Get(ctx, 1); err != nil {
			t.Fatal(err)
		}
		after := c.Stats()
		return after.Of(cache.EventStale) > before.Of(cache.EventStale)
	})
}
