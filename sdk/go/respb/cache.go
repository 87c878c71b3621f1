package respb

// This file owns client-side caching: replies that are kept until the server says that their key has changed.

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/weft-db/weft/sdk/go/internal/commands"
	"github.com/weft-db/weft/sdk/go/resp"
)

// DefaultCacheBytesMax is what a [Cache] keeps.
const DefaultCacheBytesMax = 64 << 20

// Cache keeps replies of commands that read one key, on a Channel of its own with CLIENT TRACKING. The server tells when a key has
// changed, and the reply is dropped: a hit costs no round trip and is at most as old as that message is slow. When the connection
// breaks, everything is dropped.
type Cache struct {
	ch       *Channel
	bytesMax int

	mu    sync.Mutex
	keys  map[string]*cachedKey
	order []cachedAt // keys from oldest to newest, some of them gone
	bytes int
	epoch uint64 // counts flushes
	stats CacheStats
}

// cachedAt is the place of a key among the others. A key that is gone and comes back is another one.
type cachedAt struct {
	key string
	k   *cachedKey
}

// cachedKey is what is known under one key.
type cachedKey struct {
	replies map[string]Value
	bytes   int
	asked   int  // commands on their way that read the key
	stale   bool // the key has changed since the oldest of them was sent
}

// CacheStats counts what a Cache has done.
type CacheStats struct {
	Hits, Misses, Invalidations, Evictions int64
	Bytes, Keys                            int
}

// Cache opens a Channel with tracking and returns its cache. bytesMax of 0 means DefaultCacheBytesMax; what is over it is dropped, oldest
// first.
func (c *Conn) Cache(ctx context.Context, bytesMax int) (*Cache, error) {
	if bytesMax <= 0 {
		bytesMax = DefaultCacheBytesMax
	}
	ch := newChannel(c, ChannelOptions{Tracking: []string{}})
	cache := &Cache{ch: ch, bytesMax: bytesMax, keys: map[string]*cachedKey{}}
	ch.cache = cache
	if _, err := ch.open(ctx, c.opts.Reconnect.Attempts); err != nil {
		_ = ch.Close() // it may still be opened
		return nil, err
	}
	return cache, nil
}

// Close closes the cache's Channel.
func (c *Cache) Close() error {
	err := c.ch.Close()
	c.flush()
	return err
}

// Channel returns the cache's Channel, for commands that are not to be cached.
func (c *Cache) Channel() *Channel { return c.ch }

// Stats returns what the cache has done and holds.
func (c *Cache) Stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Bytes, s.Keys = c.bytes, len(c.keys)
	return s
}

// errNotCacheable refuses commands that write, or that do not read exactly one key.
var errNotCacheable = errors.New("respb: only commands that read one key can be cached")

// Get is GET through the cache.
func (c *Cache) Get(ctx context.Context, key string) (string, error) {
	v, err := c.Do(ctx, "GET", key)
	if err != nil {
		return "", err
	}
	return asString(&v)
}

// Do gives the reply of a command that reads one key, from the cache or else from the server. The Value is shared and must not be
// changed.
func (c *Cache) Do(ctx context.Context, args ...string) (Value, error) {
	key, err := cacheKey(args)
	if err != nil {
		return Value{}, err
	}
	if c.ch.closed.Load() {
		return Value{}, ErrClosed // nobody tells it of changes any more
	}
	name := strings.Join(args, "\x00")
	c.mu.Lock()
	k := c.keys[key]
	if k != nil {
		if v, ok := k.replies[name]; ok {
			c.stats.Hits++
			c.mu.Unlock()
			return v, nil
		}
	} else {
		k = &cachedKey{replies: map[string]Value{}}
		c.keys[key] = k
		c.order = append(c.order, cachedAt{key, k})
		c.tidyOrder()
	}
	// A change that is told while the command is on its way may be older or newer than its reply: then the reply is not kept.
	if k.asked == 0 {
		k.stale = false
	}
	k.asked++
	epoch := c.epoch
	c.stats.Misses++
	c.mu.Unlock()

	v, err := c.ch.Do(ctx, args...)

	c.mu.Lock()
	defer c.mu.Unlock()
	k.asked--
	if err != nil || k.stale || epoch != c.epoch || c.keys[key] != k {
		if k.asked == 0 && len(k.replies) == 0 && c.keys[key] == k {
			delete(c.keys, key)
		}
		return v, err
	}
	size := len(name) + sizeOf(&v)
	if old, ok := k.replies[name]; ok { // others have missed it at the same time
		size -= len(name) + sizeOf(&old)
	}
	k.replies[name] = v
	k.bytes += size
	c.bytes += size
	c.evict()
	return v, nil
}

// cacheKey returns the one key of a command.
func cacheKey(args []string) (string, error) {
	if len(args) == 0 {
		return "", ErrCommand
	}
	sub := ""
	if len(args) > 1 {
		sub = args[1]
	}
	known := commands.Lookup(args[0], sub)
	if known == nil || known.Flags&commands.FlagReadonly == 0 || known.Flags&commands.FlagBlocking != 0 || known.First <= 0 ||
		known.Last != known.First || int(known.First) >= len(args) {
		return "", errNotCacheable
	}
	return args[known.First], nil
}

// evict drops the oldest keys until the rest fits. c.mu is held.
func (c *Cache) evict() {
	for c.bytes > c.bytesMax && len(c.order) > 0 {
		oldest := c.order[0]
		c.order = c.order[1:]
		if c.keys[oldest.key] == oldest.k {
			c.stats.Evictions++
			c.drop(oldest.key, oldest.k)
		}
	}
}

// tidyOrder takes keys that are gone out of order: they pile up when they are not kept, or invalidated and not evicted. c.mu is held.
func (c *Cache) tidyOrder() {
	if len(c.order) > 2*len(c.keys)+64 {
		kept := make([]cachedAt, 0, len(c.keys))
		for _, at := range c.order {
			if c.keys[at.key] == at.k {
				kept = append(kept, at)
			}
		}
		c.order = kept
	}
}

func (c *Cache) drop(key string, k *cachedKey) {
	c.bytes -= k.bytes
	k.replies, k.bytes, k.stale = map[string]Value{}, 0, true
	if k.asked == 0 {
		delete(c.keys, key)
	}
}

// invalidate drops the keys of a push, and everything for null.
func (c *Cache) invalidate(keys *Value) {
	if keys.Kind == resp.Null {
		c.flush()
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range keys.Elems {
		if k := c.keys[string(keys.Elems[i].Data)]; k != nil {
			c.stats.Invalidations++
			c.drop(string(keys.Elems[i].Data), k)
		}
	}
}

// flush drops everything.
func (c *Cache) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys, c.order, c.bytes = map[string]*cachedKey{}, nil, 0
	c.epoch++
}

// sizeOf is about what a Value takes.
func sizeOf(v *Value) int {
	n := 160 + cap(v.Data)
	for i := range v.Elems {
		n += sizeOf(&v.Elems[i])
	}
	for i := range v.Attrs {
		n += sizeOf(&v.Attrs[i])
	}
	return n
}
