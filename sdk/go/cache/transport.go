package cache

// This file owns what a cache needs of a store: the operations, and the interface that runs them.

import (
	"context"
	"time"
)

// Transport runs operations on a store. It is used by many goroutines at once.
//
// Everything in an [Op] is lent for the call: a transport that goes on with a command after Do has returned, because the context has
// ended, must have copied key and value before.
type Transport interface {
	// Do runs the operations and sets the results of each: Err when that one failed. It returns when all are decided or the context
	// has ended.
	//
	// They leave together: one pipelined batch, or one for each node of a cluster. Operations on keys of one slot run in their order, but
	// OpFill, OpRelease, OpRenew, OpHashSet and OpHashUpdate may run behind the others.
	Do(ctx context.Context, ops []Op)
}

// OpKind says what an [Op] does.
type OpKind uint8

const (
	// OpGet appends the value at Key to Value, and sets Found. Where Value is empty it may set it to memory of its own instead, which does
	// not change any more, and sets Lent. (GET, MGET)
	OpGet OpKind = iota + 1
	// OpSet stores Value at Key for TTL, without end if that is 0. (SET, SET PX)
	OpSet
	// OpDelete deletes Key, and Lease if there is one, and sets Found if Key was there. (DEL)
	OpDelete
	// OpAcquire stores Token at Lease for TTL if nothing is there, and sets Found if it did. (SET NX PX)
	OpAcquire
	// OpFill, if Token is at Lease, stores Value at Key for TTL and deletes Lease, and sets Found. Atomic.
	OpFill
	// OpRelease, if Token is at Lease, deletes it and sets Found. Atomic.
	OpRelease
	// OpRenew, if Token is at Lease, lets it live for TTL from now and sets Found. Atomic.
	OpRenew
	// OpHashGet reads Fields, the names, of the hash at Key into Values, nil where there is none, and sets Found if any is there; without
	// Fields it reads all, as name and value in turns. (HMGET, HGETALL)
	OpHashGet
	// OpHashSet replaces the hash at Key by Fields, name and value in turns, for TTL. Atomic. (MULTI, DEL, HSET, PEXPIRE, EXEC)
	OpHashSet
	// OpHashUpdate sets Fields, name and value in turns, of the hash at Key if that is there, keeps its time to live, and sets Found.
	// Atomic.
	OpHashUpdate
)

// Op is one operation, and its result. Lease is always a key of the same slot as Key.
type Op struct {
	Kind   OpKind
	Found  bool
	Lent   bool // Value is not the caller's
	Key    []byte
	Lease  []byte
	Token  []byte
	Value  []byte
	Fields [][]byte
	Values [][]byte
	TTL    time.Duration // whole milliseconds, at least 1 when it is not 0
	Err    error
}

// Tracker is a Transport that can tell of changes. A cache with a first level asks for it.
type Tracker interface {
	// Track calls Invalidate for each key with the prefix that is written by anybody, and Flush when it cannot say any more what has been
	// written. It returns when messages flow, and goes on until the context ends; a connection that breaks is opened again.
	Track(ctx context.Context, prefix string, events TrackEvents) error
}

// Clock is a Transport that can tell the store's time. The soft ends of values are by that, so that it does not matter when the clocks of the
// processes differ. The nodes of a cluster are taken to agree.
type Clock interface {
	// Time returns the store's time. (TIME)
	Time(ctx context.Context) (time.Time, error)
}

// DeadlineHeeder is a Transport that heeds the deadline of a context without asking for its Done, if it can. The cache then bounds its round
// trips with contexts that make a timer and a channel only when they are asked.
type DeadlineHeeder interface {
	// HeedsDeadlines does nothing.
	HeedsDeadlines()
}

// TrackEvents are what a [Tracker] calls, one at a time for each node. They do not block.
type TrackEvents struct {
	// Invalidate says that a key was written, deleted or evicted or has expired. The key is lent.
	Invalidate func(key []byte)
	// Flush says that any key may have changed: the store was emptied.
	Flush func()
	// Live says whether changes are being told: false when a connection has broken, true when all are there again. Between the two nothing
	// may be believed.
	Live func(live bool)
}
