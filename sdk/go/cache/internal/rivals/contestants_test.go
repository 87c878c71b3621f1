package rivals

// This file owns the contestants: each cache behind the same few calls, set up as its own documentation does.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gorediscache "github.com/go-redis/cache/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidisaside"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/local"
	"github.com/weft-db/weft/sdk/go/cache/transport/goredis"
	"github.com/weft-db/weft/sdk/go/cache/transport/rueidisgo"
	"github.com/weft-db/weft/sdk/go/cache/transport/weft"
	"github.com/weft-db/weft/sdk/go/respb"
)

// errMiss says that a key is not cached.
var errMiss = errors.New("miss")

// ttl is that of all values, and death how long it takes to notice that a process has died, where that can be set.
const (
	ttl   = time.Hour
	death = time.Second
)

// process is a cache as one process has it: its own connections, nothing shared with others. Values are strings, so that no codec counts.
type process interface {
	get(ctx context.Context, key string) (string, error)
	load(ctx context.Context, key string, load loader) (string, error)
	many(ctx context.Context, keys []string) (found int, err error)
	set(ctx context.Context, key, value string) error
	delete(ctx context.Context, key string) error
	// settle waits until what was loaded is stored, or is not going to be.
	settle(t testing.TB)
	close()
}

type loader func(ctx context.Context) (string, error)

// contestant is one way to cache.
type contestant struct {
	name string
	near bool // it has a first level in the process
	open func(addr string) (process, error)
}

var contestants = []contestant{
	{"go-redis/cache", false, func(addr string) (process, error) { return newGoRedisCache(addr, nil), nil }},
	{"kit, go-redis", false, func(addr string) (process, error) {
		client := newGoRedis(addr)
		return newKit(goredis.New(client), func() { _ = client.Close() }, nil)
	}},
	{"kit, rueidis", false, func(addr string) (process, error) { return newKitRueidis(addr, nil) }},
	{"kit, respb", false, func(addr string) (process, error) {
		store := weft.Open(respb.Options{Addr: addr})
		return newKit(store, func() { _ = store.Close() }, nil)
	}},
	{"go-redis/cache, TinyLFU", true, func(addr string) (process, error) {
		return newGoRedisCache(addr, gorediscache.NewTinyLFU(10000, time.Minute)), nil
	}},
	{"rueidisaside", true, newAside},
	{"kit, rueidis, local", true, func(addr string) (process, error) {
		near, err := local.New(16 << 20)
		if err != nil {
			return nil, err
		}
		return newKitRueidis(addr, near)
	}},
}

// those are the contestants of a run: all for a report, otherwise one of each family.
func those() (some []*contestant) {
	for i := range contestants {
		if c := &contestants[i]; out("") != "" || c.name == "go-redis/cache" || c.name == "rueidisaside" || c.name == "kit, respb" {
			some = append(some, c)
		}
	}
	return some
}

// goRedisCache is github.com/go-redis/cache.
type goRedisCache struct {
	cache  *gorediscache.Cache
	client *redis.Client
}

func newGoRedis(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
}

func newGoRedisCache(addr string, near gorediscache.LocalCache) process {
	client := newGoRedis(addr)
	return &goRedisCache{gorediscache.New(&gorediscache.Options{Redis: client, LocalCache: near}), client}
}

func (c *goRedisCache) get(ctx context.Context, key string) (value string, err error) {
	if err = c.cache.Get(ctx, key, &value); errors.Is(err, gorediscache.ErrCacheMiss) {
		err = errMiss
	}
	return value, err
}

func (c *goRedisCache) load(ctx context.Context, key string, load loader) (value string, err error) {
	err = c.cache.Once(&gorediscache.Item{Ctx: ctx, Key: key, Value: &value, TTL: ttl,
		Do: func(*gorediscache.Item) (any, error) { return load(ctx) }})
	return value, err
}

func (c *goRedisCache) many(ctx context.Context, keys []string) (int, error) {
	return atOnce(keys, func(key string) error { _, err := c.get(ctx, key); return err })
}

func (c *goRedisCache) set(ctx context.Context, key, value string) error {
	return c.cache.Set(&gorediscache.Item{Ctx: ctx, Key: key, Value: value, TTL: ttl})
}
func (c *goRedisCache) delete(ctx context.Context, key string) error { return c.cache.Delete(ctx, key) }
func (c *goRedisCache) settle(testing.TB)                            {}
func (c *goRedisCache) close()                                       { _ = c.client.Close() }

// atOnce is how a batch is read where there is no call for it: a goroutine for each key, as these clients have pools or pipeline by themselves.
func atOnce(keys []string, get func(key string) error) (int, error) {
	var all sync.WaitGroup
	var found atomic.Int64
	var failed atomic.Pointer[error]
	for _, key := range keys {
		all.Add(1)
		go func() {
			defer all.Done()
			switch err := get(key); {
			case err == nil:
				found.Add(1)
			case err != errMiss:
				failed.Store(&err)
			}
		}()
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return int(found.Load()), *err
	}
	return int(found.Load()), nil
}

// aside is rueidis's own rueidisaside.
type aside struct{ client rueidisaside.CacheAsideClient }

func newAside(addr string) (process, error) {
	client, err := rueidisaside.NewClient(rueidisaside.ClientOption{ClientOption: rueidis.ClientOption{InitAddress: []string{addr}},
		ClientTTL: death, UseLuaLock: true})
	return &aside{client}, err
}

func (c *aside) get(ctx context.Context, key string) (string, error) {
	value, err := c.client.Get(ctx, ttl, key, nil)
	if rueidis.IsRedisNil(err) {
		err = errMiss
	}
	return value, err
}

func (c *aside) load(ctx context.Context, key string, load loader) (string, error) {
	return c.client.Get(ctx, ttl, key, func(ctx context.Context, _ string) (string, error) { return load(ctx) })
}

func (c *aside) many(ctx context.Context, keys []string) (int, error) {
	return atOnce(keys, func(key string) error { _, err := c.get(ctx, key); return err })
}

func (c *aside) set(ctx context.Context, key, value string) error {
	client := c.client.Client()
	return client.Do(ctx, client.B().Set().Key(key).Value(value).Px(ttl).Build()).Error()
}
func (c *aside) delete(ctx context.Context, key string) error { return c.client.Del(ctx, key) }
func (c *aside) settle(testing.TB)                            {}
func (c *aside) close()                                       { c.client.Close() }

// kit is sdk/go/cache.
type kit struct {
	cache *cache.Cache[string, string]
	end   func()
}

func newKit(store cache.Transport, end func(), near cache.Local) (process, error) {
	c, err := cache.New(store, cache.RawString{}, cache.Options[string, string]{Prefix: "kit", TTL: ttl, SoftTTL: ttl / 2, LeaseTTL: death, Local: near})
	return &kit{c, end}, err
}

func newKitRueidis(addr string, near cache.Local) (process, error) {
	option := rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true, ForceSingleClient: true}
	client, err := rueidis.NewClient(option)
	if err != nil {
		return nil, err
	}
	return newKit(rueidisgo.New(client, option), client.Close, near)
}

func (c *kit) get(ctx context.Context, key string) (string, error) {
	value, err := c.cache.Get(ctx, key)
	if err == cache.ErrMiss {
		err = errMiss
	}
	return value, err
}

func (c *kit) load(ctx context.Context, key string, load loader) (string, error) {
	return c.cache.GetOrLoad(ctx, key, func(ctx context.Context, _ string) (string, error) { return load(ctx) })
}

func (c *kit) many(ctx context.Context, keys []string) (found int, err error) {
	results := c.cache.GetMany(ctx, keys)
	for i := range results {
		if results[i].Err == nil {
			found++
		}
	}
	return found, results.Err()
}

func (c *kit) set(ctx context.Context, key, value string) error { return c.cache.Set(ctx, key, value) }
func (c *kit) delete(ctx context.Context, key string) error     { return c.cache.Delete(ctx, key) }

func (c *kit) settle(t testing.TB) {
	until(t, "the fill", func() bool {
		s := c.cache.Stats()
		return s.Of(cache.EventStored)+s.Of(cache.EventFillDropped)+s.Of(cache.EventStoreError)+s.Of(cache.EventLoadError) >= s.Of(cache.EventLoad)
	})
}

func (c *kit) close() {
	_ = c.cache.Close()
	c.end()
}

// wait bounds everything that a test waits for; it is never a pause.
const wait = 4 * time.Minute

// until waits for something that somebody else brings about. Without a test it is the process of its own that waits.
func until(t testing.TB, what string, ok func() bool) {
	if t != nil {
		t.Helper()
	}
	for end := time.Now().Add(wait); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			if t == nil {
				panic(what + " did not happen")
			}
			t.Fatal(what, "did not happen")
		}
	}
}

// open opens a contestant's process, for the time of a test.
func (c *contestant) process(t testing.TB, addr string) process {
	t.Helper()
	p, err := c.open(addr)
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", c.name, err))
	}
	t.Cleanup(p.close)
	return p
}

// stale stores a value whose soft end is over.
func (c *kit) stale(ctx context.Context, t *testing.T, key string) {
	t.Helper()
	if err := c.cache.Set(ctx, key, value, cache.TTL(ttl), cache.SoftTTL(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	until(t, "the soft end", func() bool {
		before := c.cache.Stats()
		_, _ = c.cache.Get(ctx, key)
		after := c.cache.Stats()
		return after.Of(cache.EventStale) > before.Of(cache.EventStale)
	})
}
