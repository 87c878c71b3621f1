package transporttest

// This file owns the tests with a server in trouble: gone, frozen, full. Who has a loader never notices.

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/internal/servers"
)

// RunServers runs the suite against each server that there is, and has them be in trouble: a redis-server, weft serve, and a node of a
// cluster.
func RunServers(t *testing.T, open func(t *testing.T, addrs []string, cluster bool) cache.Transport) {
	for _, s := range servers.All(t) {
		t.Run(s.Name, func(t *testing.T) { Run(t, open(t, s.Addrs, s.Cluster)) })
		if s.Cluster {
			t.Run("NodeGone", func(t *testing.T) { NodeGone(t, s, open(t, s.Addrs, true)) })
		} else {
			t.Run("Trouble/"+s.Name, func(t *testing.T) { Trouble(t, s, open(t, s.Addrs, false)) })
		}
	}
}

// NodeGone ends one of a cluster's nodes: the keys of the others are served, those of that one fail, each with its error, and who has a
// loader gets all of them.
func NodeGone(t *testing.T, server *servers.Server, tr cache.Transport) {
	ctx := testContext(t)
	s := &suite{tr, "node:"}
	c := s.newCache(t, func(o *cache.Options[int, record]) { o.StoreTimeout = time.Second })
	const n = 300
	keys, items := make([]int, n), make([]cache.Item[int, record], n)
	for i := range keys {
		keys[i], items[i] = i, cache.Item[int, record]{Key: i, Value: record{i, "stored"}}
	}
	if err := c.SetMany(ctx, items); err != nil {
		t.Fatal(err)
	}
	server.KillNode(len(server.Addrs) - 1)

	short, cancel := context.WithTimeout(ctx, 2*time.Second) // some clients try until the context ends
	defer cancel()
	found, failed := 0, 0
	for i, r := range c.GetMany(short, keys) {
		var store *cache.StoreError
		switch {
		case r.Err == nil && r.Value == record{i, "stored"}:
			found++
		case errors.As(r.Err, &store):
			failed++
		default:
			t.Errorf("key %d: %v, %v", i, r.Value, r.Err)
		}
	}
	if found < n/2 || failed < n/6 {
		t.Errorf("%d were found and %d failed", found, failed)
	}
	results := c.GetOrLoadMany(ctx, keys, func(_ context.Context, missing []int) (map[int]record, error) {
		values := map[int]record{}
		for _, k := range missing {
			values[k] = record{k, "loaded"}
		}
		return values, nil
	})
	for i, r := range results {
		if r.Err != nil || r.Value.ID != i {
			t.Errorf("key %d: %v, %v", i, r.Value, r.Err)
		}
	}
	short, cancel = context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var many *cache.ManyError
	if err := c.SetMany(short, items); !errors.As(err, &many) {
		t.Fatal("SetMany: ", err)
	}
	stored := 0
	for _, err := range many.Errs {
		if err == nil {
			stored++
		}
	}
	if stored < n/2 || stored > n-n/6 {
		t.Errorf("%d of %d were stored", stored, n)
	}
}

// Trouble has the server be frozen, full and gone, and come back.
func Trouble(t *testing.T, server *servers.Server, tr cache.Transport) {
	ctx := testContext(t)
	s := &suite{tr, "trouble:"}
	c := s.newCache(t, func(o *cache.Options[int, record]) {
		o.StoreTimeout = 200 * time.Millisecond
		// A lease that was granted when nobody waited for it any more holds the next load up for so long.
		o.LeaseTTL = time.Second
		o.Local = &local{}
	})
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

// damaged has stored values be cut short, changed by a bit, and of another version: a miss, counted by its reason, that a load mends.
func (s *suite) damaged(t *testing.T) {
	ctx := testContext(t)
	for _, d := range []struct {
		name   string
		damage func(stored []byte) []byte
		event  cache.Event
	}{
		{"empty", func(b []byte) []byte { return b[:0] }, cache.EventCorrupt},
		{"one byte", func(b []byte) []byte { return b[:1] }, cache.EventCorrupt},
		{"cut", func(b []byte) []byte { return b[:len(b)-1] }, cache.EventCorrupt},
		{"bit", func(b []byte) []byte { b[len(b)/2] ^= 0x10; return b }, cache.EventCorrupt},
		{"version", func(b []byte) []byte { b[1] ^= 0xe0; return b }, cache.EventForeignVersion},
	} {
		c := s.newCache(t, func(o *cache.Options[int, record]) { o.Prefix += d.name })
		for key := range 2 {
			if err := c.Set(ctx, key, record{key, "whole"}); err != nil {
				t.Fatal(err)
			}
		}
		name, _ := c.Key(1)
		op := s.do(t, cache.Op{Kind: cache.OpGet, Key: []byte(name)})
		s.do(t, cache.Op{Kind: cache.OpSet, Key: []byte(name), Value: d.damage(append([]byte(nil), op.Value...)), TTL: time.Hour})
		if _, err := c.Get(ctx, 1); err != cache.ErrMiss {
			t.Errorf("%s: %v", d.name, err)
		}
		if r := c.GetMany(ctx, []int{0, 1}); r[0].Err != nil || r[1].Err != cache.ErrMiss {
			t.Errorf("%s: %v", d.name, r)
		}
		if stats := c.Stats(); stats.Of(d.event) != 2 || stats.Of(cache.EventStoreError) != 0 {
			t.Errorf("%s: counted %d times", d.name, stats.Of(d.event))
		}
		v, err := c.GetOrLoad(ctx, 1, func(_ context.Context, key int) (record, error) { return record{key, "mended"}, nil })
		if err != nil || v.Name != "mended" {
			t.Errorf("%s: %v, %v", d.name, v, err)
		}
		until(t, "the fill", func() bool { v, err := c.Get(ctx, 1); return err == nil && v.Name == "mended" })
	}
}
