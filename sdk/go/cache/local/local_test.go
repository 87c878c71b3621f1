package local_test

// This file owns the tests of the first level: its bound, its policy, and what a hit costs.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/local"
	"github.com/weft-db/weft/sdk/go/cache/transport/memory"
)

// testWait bounds everything that a test waits for; it is never a pause.
const testWait = 240 * time.Second

type user struct {
	ID   int64
	Name string
}

func newCache(t testing.TB, store *memory.Store, bytesMax int64) (*cache.Cache[int64, *user], *local.Store) {
	t.Helper()
	l, err := local.New(bytesMax)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	c, err := cache.New(store, cache.JSON[*user]{}, cache.Options[int64, *user]{Prefix: "user", TTL: 24 * time.Hour, Local: l})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, l
}

// hit gets a key until the first level has it.
func hit(t testing.TB, c *cache.Cache[int64, *user], key int64) {
	t.Helper()
	ctx := context.Background()
	for end := time.Now().Add(testWait); ; {
		before := c.Stats()
		if _, err := c.Get(ctx, key); err != nil {
			t.Fatal(err)
		}
		after := c.Stats()
		if after.Of(cache.EventLocalHit) > before.Of(cache.EventLocalHit) {
			return
		}
		if time.Now().After(end) {
			t.Fatal("no hit in the first level")
		}
	}
}

// TestBound fills the first level with more than it may hold.
func TestBound(t *testing.T) {
	const bytesMax = 64 << 10
	ctx := context.Background()
	store := &memory.Store{}
	c, l := newCache(t, store, bytesMax)
	for i := range int64(1000) {
		if err := c.Set(ctx, i, &user{i, strings.Repeat("x", 100)}); err != nil {
			t.Fatal(err)
		}
	}
	hit(t, c, 0)
	for i := range int64(1000) {
		if v, err := c.Get(ctx, i); err != nil || v.ID != i {
			t.Fatal(v, err)
		}
	}
	for end := time.Now().Add(testWait); l.Bytes() > bytesMax; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(l.Bytes(), "bytes")
		}
	}
	if n := l.Len(); n < 20 || n > 400 {
		t.Error(n, "entries")
	}
}

// TestScan has a few keys be asked for again and again, and between that more keys once each than there is room for: a policy of the least
// recently used would have none of the few left each time.
func TestScan(t *testing.T) {
	ctx := context.Background()
	c, _ := newCache(t, &memory.Store{}, 256<<10) // about 1,100 entries
	const often, rounds, once = 100, 30, 2000
	for i := range int64(often + rounds*once) {
		if err := c.Set(ctx, i, &user{i, "name"}); err != nil {
			t.Fatal(err)
		}
	}
	hits := int64(0)
	for round := range int64(rounds) {
		before := c.Stats()
		for i := range int64(often) {
			if _, err := c.Get(ctx, i); err != nil {
				t.Fatal(err)
			}
		}
		after := c.Stats()
		if round >= rounds/2 {
			hits += after.Of(cache.EventLocalHit) - before.Of(cache.EventLocalHit)
		}
		for i := range int64(once) {
			if _, err := c.Get(ctx, often+round*once+i); err != nil {
				t.Fatal(err)
			}
		}
	}
	if hits < often*rounds/2/2 {
		t.Errorf("%d of %d hits in spite of scans", hits, often*rounds/2)
	}
	t.Logf("%d of %d hits in spite of scans", hits, often*rounds/2)
}

func TestHitsDoNotAllocate(t *testing.T) {
	ctx := context.Background()
	c, _ := newCache(t, &memory.Store{}, 1<<20)
	if err := c.Set(ctx, 1, &user{1, "Ann"}); err != nil {
		t.Fatal(err)
	}
	hit(t, c, 1)
	if n := testing.AllocsPerRun(1000, func() {
		if v, err := c.Get(ctx, 1); err != nil || v.ID != 1 {
			t.Error(v, err)
		}
	}); n != 0 {
		t.Errorf("a hit allocates %v times", n)
	}
	load := func(context.Context, int64) (*user, error) { return nil, fmt.Errorf("loaded") }
	if n := testing.AllocsPerRun(1000, func() {
		if v, err := c.GetOrLoad(ctx, 1, load); err != nil || v.ID != 1 {
			t.Error(v, err)
		}
	}); n != 0 {
		t.Errorf("a hit with a loader allocates %v times", n)
	}
}

func BenchmarkHit(b *testing.B) {
	ctx := context.Background()
	c, _ := newCache(b, &memory.Store{}, 64<<20)
	const n = 1000
	for i := range int64(n) {
		if err := c.Set(ctx, i, &user{i, "Ann"}); err != nil {
			b.Fatal(err)
		}
		hit(b, c, i)
	}
	load := func(context.Context, int64) (*user, error) { return nil, errors.New("it was there") }
	for name, call := range map[string]func(i int64) (*user, error){
		"Get":       func(i int64) (*user, error) { return c.Get(ctx, i) },
		"GetOrLoad": func(i int64) (*user, error) { return c.GetOrLoad(ctx, i, load) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			i := int64(0)
			for b.Loop() {
				if i++; i == n {
					i = 0
				}
				if v, err := call(i); err != nil || v.ID != i {
					b.Fatal(v, err)
				}
			}
		})
	}
}
