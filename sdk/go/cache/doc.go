// Package cache is a typed cache in Redis, Valkey or Weft: batches, no stampedes, and a choice of codecs.
//
//	store, err := weft.Dial(ctx, respb.Options{Addr: "127.0.0.1:6379"})
//	users, err := cache.New(store, cache.JSON[User]{}, cache.Options[int64, User]{
//		Prefix: "user", Version: 3,
//		TTL: time.Hour, SoftTTL: 50 * time.Minute, NegativeTTL: time.Minute, Jitter: 0.1,
//	})
//	user, err := users.GetOrLoad(ctx, 42, func(ctx context.Context, id int64) (User, error) {
//		return db.User(ctx, id) // or cache.ErrNotFound
//	})
//
// # One and many
//
// [Cache.Get], [Cache.Set], [Cache.Delete] and [Cache.GetOrLoad] are for one key; [Cache.GetMany], [Cache.SetMany], [Cache.DeleteMany] and
// [Cache.GetOrLoadMany] send one pipelined batch, each item with a TTL of its own, and give a result or an error for each key. A codec hardly
// matters one round trip at a time; batches make the difference.
//
// # Stampedes
//
// Of all who miss a key at the same time, in this process and in others, one loads: single flight in the process, and a lease in the
// store between processes. The others wait for the value, or are served the stale one while it is refreshed (Options.SoftTTL).
// Nobody fails because somebody else is loading: an owner who dies loses the lease, and who has waited too long loads for himself. Delete
// ends the lease with the value, so that what was read from the source before a change is not stored after it.
//
// # Trouble
//
// A failure of the store never fails a caller who has a loader. What cannot be read back, because it was truncated, has a flipped bit,
// or was written by another version, is a miss and is counted. A loader that panics is an error for all who wait.
//
// # First level
//
// With Options.Local values are also kept in this process, bounded in bytes, and dropped when the store tells that they have changed. The
// module cache/local has a store for that.
//
// # Modules
//
// This package needs the standard library only. Transports over go-redis, rueidis and valkey-go, codecs on libraries, compression, the
// first level and the adapters for OpenTelemetry and Prometheus are modules of their own below this folder. For unit tests there is
// transport/memory.
//
// What is stored, and why, is in docs/adr/0016-cache-kit.md; a guide is docs/cache.md.
package cache
