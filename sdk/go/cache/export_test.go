package cache

// This file owns what the tests outside of the package need of its inside.

import "time"

// SetWall replaces this machine's clock.
func (c *Cache[K, V]) SetWall(now func() time.Time) { c.clock.wall = now }

// Refreshing reports whether refreshes are under way.
func (c *Cache[K, V]) Refreshing() bool { return c.refreshes.Load() > 0 }
