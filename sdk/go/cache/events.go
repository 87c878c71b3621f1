package cache

// This file owns what a cache counts, and who is told.

import (
	"context"
	"sync/atomic"
	"time"
)

// Event is something that a cache counts.
type Event uint8

// The events. Each key counts by itself; a call for a hundred keys may count a hundred hits.
const (
	EventHit            Event = iota // a value came from the store
	EventLocalHit                    // a value came from the first level
	EventMiss                        // there was none, or none that could be read
	EventStale                       // a value behind its soft end was served; it also counts as a hit
	EventNegative                    // it was known that the source has none
	EventCoalesced                   // a caller got what another of this process was fetching
	EventWaited                      // another process was loading, and its value came
	EventWaitedTooLong               // another process was loading for too long: loaded here as well
	EventLoad                        // a key was loaded
	EventLoadError                   // loading a key failed
	EventLoadPanic                   // a loader panicked; it also counts as an error for each key
	EventRefresh                     // a value was refreshed in the background
	EventRefreshSkipped              // a refresh was not begun, since RefreshMax were running
	EventStored                      // a value was stored
	EventFillDropped                 // a loaded value was not stored: its key was deleted meanwhile, or the lease was lost
	EventStoreError                  // an operation of the store failed, or took longer than StoreTimeout
	EventCancelled                   // an operation of the store was given up because the caller's context was cancelled
	EventOutOfTime                   // an operation of the store was given up because the caller's own deadline was over
	EventCorrupt                     // a stored value was truncated or its checksum was wrong; it also counts as a miss
	EventForeignVersion              // a stored value had a format that is not known; also a miss
	EventForeignCodec                // a stored value had another codec or an unknown compression; also a miss
	EventDecodeError                 // a stored value was intact, and the codec refused it; also a miss
	EventEncodeError                 // the codec refused a loaded value, which was not stored
	EventTooLarge                    // a value was over ValueBytesMax; also a miss when it was read
	EventInvalidated                 // the store said that a key has changed
	EventFlushed                     // the first level was emptied
	EventBytesRead                   // bytes of values from the store
	EventBytesWritten                // bytes of values to the store

	eventCount
)

var eventNames = [eventCount]string{
	"hit", "local_hit", "miss", "stale", "negative", "coalesced", "waited", "waited_too_long", "load", "load_error", "load_panic", "refresh",
	"refresh_skipped", "stored", "fill_dropped", "store_error", "cancelled", "out_of_time", "corrupt", "foreign_version", "foreign_codec", "decode_error", "encode_error", "too_large",
	"invalidated", "flushed", "bytes_read", "bytes_written",
}

// String is the event's name in metrics, such as local_hit.
func (e Event) String() string {
	if e < eventCount {
		return eventNames[e]
	}
	return "unknown"
}

// Events returns all events, for adapters that make a counter of each.
func Events() []Event {
	all := make([]Event, eventCount)
	for i := range all {
		all[i] = Event(i)
	}
	return all
}

// Observer is told what happens, on the goroutine where it happens: it should be quick, and must not call the cache.
type Observer interface {
	// Count says that an event happened n times.
	Count(e Event, n int)
	// Load says how long one call of a loader took, for how many keys, and how it ended.
	Load(d time.Duration, keys int, err error)
}

// Stats are counts since the cache was made, by Event.
type Stats [eventCount]int64

// Of returns the count of an event.
func (s *Stats) Of(e Event) int64 { return s[e] }

// counters count. Each has its own cache line: callers on all processors count hits.
type counters struct {
	observer Observer
	counts   [eventCount]struct {
		atomic.Int64
		_ [56]byte
	}
}

func (c *counters) add(e Event, n int) {
	c.counts[e].Add(int64(n))
	if c.observer != nil {
		c.observer.Count(e, n)
	}
}

// failed counts an operation that failed. ctx is whose operation it is: the caller's context, without the cache's own StoreTimeout. What
// ends it is no fault of the store, though a deadline may be over because the store is slow.
func (c *counters) failed(ctx context.Context) {
	err := ctx.Err()
	if err == nil {
		// A client may have looked at the deadline itself, a moment before the context's timer has fired.
		if at, ok := ctx.Deadline(); ok && !time.Now().Before(at) {
			err = context.DeadlineExceeded
		}
	}
	switch err {
	case nil:
		c.add(EventStoreError, 1)
	case context.DeadlineExceeded:
		c.add(EventOutOfTime, 1)
	default:
		c.add(EventCancelled, 1)
	}
}

// tally is what a batch counts for nearly every key. It is told once, since an atomic addition for each key is felt.
type tally struct{ hits, read, stored, written int }

func (c *counters) tell(t *tally) {
	for _, each := range [...]struct {
		event Event
		n     int
	}{{EventHit, t.hits}, {EventBytesRead, t.read}, {EventStored, t.stored}, {EventBytesWritten, t.written}} {
		if each.n > 0 {
			c.add(each.event, each.n)
		}
	}
}

func (c *counters) stats() (s Stats) {
	for i := range s {
		s[i] = c.counts[i].Load()
	}
	return s
}
