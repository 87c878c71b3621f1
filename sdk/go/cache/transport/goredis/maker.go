package goredis

// This file owns the commands that operations become. Those of a batch share memory: by hand, each has a few pieces of its own.

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/transport/goredis/internal/command"
)

// maker makes commands. But for lent, nothing of it is used again once they have run: the client's hooks may keep a command.
type maker struct {
	ctx     context.Context
	lent    *lent        // or nil, and then
	keys    command.Text // has those of all operations
	args    []any        // of all commands; it does not move
	gets    []redis.StringCmd
	sets    []redis.StatusCmd
	builder command.Builder

	millis time.Duration // that px is
	px     any
}

// Arguments of the commands that a cache is full of.
const (
	getArgs = 2
	setArgs = 5
)

// newMaker makes room for the commands of a batch.
func (t *Transport) newMaker(ctx context.Context, ops []cache.Op) *maker {
	gets, sets := 0, 0
	for i := range ops {
		switch {
		case ops[i].Kind == cache.OpGet:
			gets++
		case ops[i].Kind == cache.OpSet && (!t.lends || ops[i].TTL > 0):
			sets++
		}
	}
	m := &maker{ctx: ctx}
	if t.lends {
		m.lent = t.borrow(gets, sets)
		return m
	}
	m.keys = command.TextOf(ops, false)
	m.args = make([]any, 0, gets*getArgs+sets*setArgs)
	m.gets, m.sets = make([]redis.StringCmd, 0, gets), make([]redis.StatusCmd, 0, sets)
	return m
}

// room returns where the commands of a batch go.
func (m *maker) room(n int) []redis.Cmder {
	if m.lent != nil {
		return slices.Grow(m.lent.all, n)
	}
	return make([]redis.Cmder, 0, n)
}

func (m *maker) key(op *cache.Op) string {
	if m.lent != nil {
		return string(op.Key)
	}
	return m.keys.Cut(len(op.Key))
}

// skip passes over an operation that becomes no command.
func (m *maker) skip(op *cache.Op) {
	if m.lent == nil {
		m.keys.Cut(len(op.Key))
	}
}

// cut returns what was appended to args since from.
func (m *maker) cut(from int) []any { return m.args[from:len(m.args):len(m.args)] }

// ttl returns a time to live in milliseconds. Most operations of a batch have the same.
func (m *maker) ttl(d time.Duration) any {
	if m.px == nil || m.millis != d {
		m.millis, m.px = d, d.Milliseconds()
	}
	return m.px
}

// command returns the command that an operation is.
func (m *maker) command(op *cache.Op) redis.Cmder {
	switch {
	case m.lent == nil:
	case op.Kind == cache.OpGet:
		return m.lent.get(op)
	case op.Kind == cache.OpSet && op.TTL > 0:
		return m.lent.set(op)
	}
	key := m.key(op)
	switch op.Kind {
	case cache.OpGet:
		return m.get(key)
	case cache.OpSet:
		return m.set(op, key)
	case cache.OpDelete:
		if op.Lease != nil {
			return redis.NewIntCmd(m.ctx, "del", key, string(op.Lease))
		}
		return redis.NewIntCmd(m.ctx, "del", key)
	case cache.OpAcquire:
		return redis.NewBoolCmd(m.ctx, "set", string(op.Lease), op.Token, "px", m.ttl(op.TTL), "nx")
	case cache.OpHashGet:
		if len(op.Fields) == 0 {
			return redis.NewMapStringStringCmd(m.ctx, "hgetall", key)
		}
		args := make([]any, 2, 2+len(op.Fields))
		args[0], args[1] = "hmget", key
		for _, name := range op.Fields {
			args = append(args, string(name))
		}
		return redis.NewSliceCmd(m.ctx, args...)
	}
	return redis.NewCmd(m.ctx, boxed(m.builder.Args(op))...)
}

// mget returns the arguments that read the keys of some operations.
func (m *maker) mget(ops []cache.Op) []any {
	if m.lent != nil {
		return m.lent.mget(ops)
	}
	from := len(m.args)
	m.args = append(slices.Grow(m.args, 1+len(ops)), "mget")
	for i := range ops {
		m.args = append(m.args, m.keys.Cut(len(ops[i].Key)))
	}
	return m.cut(from)
}

func (m *maker) get(key string) redis.Cmder {
	if cap(m.gets) == 0 {
		return redis.NewStringCmd(m.ctx, "get", key)
	}
	from := len(m.args)
	m.args = append(m.args, "get", key)
	m.gets = append(m.gets, *redis.NewStringCmd(m.ctx, m.cut(from)...))
	return &m.gets[len(m.gets)-1]
}

func (m *maker) set(op *cache.Op, key string) redis.Cmder {
	switch {
	case cap(m.sets) > 0:
	case op.TTL > 0:
		return redis.NewStatusCmd(m.ctx, "set", key, op.Value, "px", m.ttl(op.TTL))
	default:
		return redis.NewStatusCmd(m.ctx, "set", key, op.Value)
	}
	from := len(m.args)
	m.args = append(m.args, "set", key, op.Value)
	if op.TTL > 0 {
		m.args = append(m.args, "px", m.ttl(op.TTL))
	}
	m.sets = append(m.sets, *redis.NewStatusCmd(m.ctx, m.cut(from)...))
	return &m.sets[len(m.sets)-1]
}
