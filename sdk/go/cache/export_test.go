package cache

// This file owns what the tests outside of the package need of its inside.

import "time"

// SetWall replaces this machine's clock.
func (c *Cache[K, V]) SetWall(now func() time.Time) { c.clock.wall = now }

// Refreshing reports whether refreshes are under way.
func (c *Cache[K, V]) Refreshing() bool { return c.refreshes.Load() > 0 }

// SetToldPause replaces the pause between two looks where the store tells of changes.
func (c *Cache[K, V]) SetToldPause(d time.Duration) { c.toldPause = d }

// Waiting returns how many keys are waited for.
func (c *Cache[K, V]) Waiting() int64 { return c.wakers.waiting.Load() }

// Told reports whether the store tells of changes.
func (c *Cache[K, V]) Told() bool { return c.told() }
