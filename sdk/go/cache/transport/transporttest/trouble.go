package transporttest

// This file owns the tests with a server in trouble: gone, frozen, full. Who has a loader never notices.

import (
	"context"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/internal/servers"
)

// RunServers runs the suite against each server that there is, and with a redis-server in trouble.
func RunServers(t *testing.T, open func(t *testing.T, addrs []string, cluster bool) cache.Transport) {
	for _, s := range servers.All(t) {
		t.Run(s.Name, func(t *testing.T) { Run(t, open(t, s.Addrs, s.Cluster)) })
	}
	if s := servers.Redis(t); s != nil {
		t.Run("Trouble", func(t *testing.T) { Trouble(t, s, open(t, s.Addrs, false)) })
	}
}

// Trouble has the server be frozen, full and gone, and come back.
func Trouble(t *testing.T, server *servers.Server, tr cache.Transport) {
	ctx := testContext(t)
	s := &suite{tr, "trouble:"}
	c := s.newCache(t, func(o *cache.Options[int, record]) { o.StoreTimeout = 200 * time.Millisecond; o.Local = &local{} })
	next := 0
	// Who has a loader waits for StoreTimeout a few times and not for the server: that would be the end of ctx, and the test.
	load := func(what string) {
		t.Helper()
		next++
		v, err := c.GetOrLoad(ctx, next, func(_ context.Context, key int) (record, error) { return record{key, what}, nil })
		if err != nil || v != (record{next, what}) {
			t.Errorf("%s: %v, %v", what, v, err)
		}
		results := c.GetOrLoadMany(ctx, []int{next, next + 1000}, func(_ context.Context, keys []int) (map[int]record, error) {
			values := map[int]record{}
			for _, k := range keys {
				values[k] = record{k, what}
			}
			return values, nil
		})
		for i, key := range []int{next, next + 1000} {
			if r := results[i]; r.Err != nil || r.Value != (record{key, what}) {
				t.Errorf("%s: %v", what, r)
			}
		}
	}
	well := func() {
		t.Helper()
		until(t, "the store", func() bool {
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return c.Set(short, 0, record{0, "well"}) == nil
		})
		until(t, "the first level", func() bool {
			before := c.Stats()
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			v, err := c.Get(short, 0)
			after := c.Stats()
			return err == nil && v.Name == "well" && after.Of(cache.EventLocalHit) > before.Of(cache.EventLocalHit)
		})
		load("well")
	}
	well()

	server.Freeze()
	load("frozen")
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	if err := c.Set(short, 5000, record{}); err == nil {
		t.Error("a frozen server has stored")
	}
	cancel()
	server.Thaw()
	well()

	servers.Command(t, server.Addrs[0], "CONFIG", "SET", "maxmemory", "1")
	load("full")
	if err := c.Set(ctx, 5000, record{}); err == nil {
		t.Error("a full server has stored")
	}
	servers.Command(t, server.Addrs[0], "CONFIG", "SET", "maxmemory", "0")
	well()

	server.Kill()
	load("gone")
	until(t, "the first level to be left alone", func() bool {
		before := c.Stats()
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond) // some clients try until the context ends
		defer cancel()
		_, _ = c.Get(short, 0)
		after := c.Stats()
		return after.Of(cache.EventLocalHit) == before.Of(cache.EventLocalHit)
	})
	server.Restart(t)
	well()
	stats := c.Stats()
	if stats.Of(cache.EventStoreError) == 0 {
		t.Error("no error of the store was counted")
	}
}
