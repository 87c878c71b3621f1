// Package goredis is the transport of a cache over go-redis: one server, Sentinel, a cluster, or a ring.
//
// Batches over a *redis.Client use their commands again, which makes them faster than pipelines by hand. A hook of the client sees them as any
// others, and must not keep them: see [KeepCommands].
//
// Set ContextTimeoutEnabled in the client's options: otherwise go-redis waits for its own ReadTimeout and retries whatever the context says,
// and so does a cache's StoreTimeout.
package goredis

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/track"
	"github.com/weft-db/weft/sdk/go/cache/transport/goredis/internal/command"
)

// Transport runs a cache's operations on a client, which stays the caller's.
type Transport struct {
	client  redis.UniversalClient
	scripts command.Scripts
	lends   bool
	idle    sync.Pool // *lent

	single       bool // a pipeline goes to one server
	transactions command.Transactions
	reads        command.Reads
}

// Option changes a Transport.
type Option func(*Transport)

// KeepCommands is for a client with a hook that keeps commands after it has returned, such as one that logs them on another goroutine.
// Otherwise batches over a *redis.Client use their commands again.
func KeepCommands() Option { return func(t *Transport) { t.lends = false } }

// New makes a transport of a *redis.Client, *redis.ClusterClient, or what else is a UniversalClient.
func New(client redis.UniversalClient, options ...Option) *Transport {
	t := &Transport{client: client}
	_, t.single = client.(*redis.Client)
	t.lends = t.single // others remember the slot of a command, or send on goroutines of their own
	for _, o := range options {
		o(t)
	}
	return t
}

// errNoWatch says that a store without scripts is no single server.
var errNoWatch = errors.New("goredis: the store has no EVAL, and WATCH needs a *redis.Client")

// Do is that of a cache.Transport.
func (t *Transport) Do(ctx context.Context, ops []cache.Op) {
	if len(ops) == 1 && !command.Scripted(ops[0].Kind) {
		op := &ops[0]
		if op.Err = command.Check(op); op.Err == nil {
			m := maker{ctx: ctx, keys: command.TextOf(ops, false)}
			c := m.command(op)
			_ = t.client.Process(ctx, c) // the command has the error
			take(op, c)
		}
		return
	}
	if t.single {
		t.reads.Run(ctx, ops, t.mget, t.run)
		return
	}
	t.run(ctx, ops)
}

// mget reads keys of one server.
func (t *Transport) mget(ctx context.Context, ops []cache.Op) {
	m := t.newMaker(ctx, ops)
	var some [4]*redis.StringSliceCmd // mostly enough
	commands := some[:0]
	pipe := t.client.Pipeline()
	for part := range slices.Chunk(ops, command.ReadsMax) {
		c := redis.NewStringSliceCmd(ctx, m.mget(part)...)
		commands = append(commands, c)
		_ = pipe.Process(ctx, c)
	}
	exec(ctx, pipe, commands)
	for _, c := range commands {
		part := ops[:min(len(ops), command.ReadsMax)]
		ops = ops[len(part):]
		values, err := c.Result()
		if err == nil && len(values) != len(part) {
			err = command.ErrReply
		}
		if err != nil {
			if redisErr := redis.Error(nil); errors.As(err, &redisErr) {
				t.reads.Refused()
				continue
			}
			for i := range part {
				part[i].Err = err
			}
			continue
		}
		for i, text := range values {
			if text != "" { // which is nil here as well
				command.Give(&part[i], text)
			}
		}
	}
	if m.lent != nil {
		t.giveBack(m.lent)
	}
}

// exec sends a pipeline. Each command has its own error then: older versions of go-redis tell them nothing of a connection that could not be had.
func exec[C redis.Cmder](ctx context.Context, pipe redis.Pipeliner, commands []C) {
	_, err := pipe.Exec(ctx)
	if err == nil {
		return
	}
	for _, c := range commands {
		if c.Err() != nil {
			return
		}
	}
	for _, c := range commands {
		c.SetErr(err)
	}
}

// queue adds commands to a pipeline, in one piece where the client can do that.
func queue(ctx context.Context, pipe redis.Pipeliner, commands []redis.Cmder) {
	if batch, ok := pipe.(interface {
		BatchProcess(ctx context.Context, cmd ...redis.Cmder) error
	}); ok {
		_ = batch.BatchProcess(ctx, commands...)
		return
	}
	for _, c := range commands {
		_ = pipe.Process(ctx, c)
	}
}

// run runs operations as one batch of commands.
func (t *Transport) run(ctx context.Context, ops []cache.Op) {
	missing := t.scripts.Missing()
	m := t.newMaker(ctx, ops)
	commands := m.room(len(ops))
	together := t.single && !t.transactions.Missing()
	var guarded, hashes []*cache.Op
	for i := range ops {
		op := &ops[i]
		switch op.Err = command.Check(op); {
		case op.Err != nil:
			m.skip(op)
		case together && op.Kind == cache.OpHashSet:
			m.skip(op)
			hashes = append(hashes, op)
		case missing && command.Scripted(op.Kind):
			m.skip(op)
			guarded = append(guarded, op)
		default:
			commands = append(commands, m.command(op))
		}
	}
	if len(commands) > 0 {
		pipe := t.client.Pipeline()
		queue(ctx, pipe, commands)
		exec(ctx, pipe, commands)
	}
	next := 0
	for i := range ops {
		op := &ops[i]
		if op.Err != nil || together && op.Kind == cache.OpHashSet || missing && command.Scripted(op.Kind) {
			continue
		}
		c := commands[next]
		next++
		if !t.single {
			revive(c)
		}
		if command.Scripted(op.Kind) && t.scripts.Learn(c.Err()) {
			guarded = append(guarded, op)
			continue
		}
		take(op, c)
	}
	if m.lent != nil {
		m.lent.all = commands
		t.giveBack(m.lent)
	}
	if len(guarded) > 0 {
		t.guarded(ctx, guarded)
	}
	if len(hashes) > 0 {
		command.Again(ctx, t.run, command.Replace(ctx, session{t.client}, &t.transactions, hashes))
	}
}

// boxed makes arguments of bytes what go-redis takes. The first is the name, which it looks at.
func boxed(args [][]byte) []any {
	all := make([]any, len(args))
	for i, arg := range args {
		all[i] = arg
	}
	all[0] = string(args[0])
	return all
}

// revive takes the error off a command that has its reply. When a node of a cluster cannot be reached until the context ends, go-redis gives
// that error to all commands of the batch that have none, and so to those that the other nodes have answered.
func revive(c redis.Cmder) {
	if err := c.Err(); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return
	}
	answered := false
	switch c := c.(type) {
	case *redis.StringCmd:
		answered = c.Val() != ""
	case *redis.StatusCmd:
		answered = c.Val() != ""
	case *redis.BoolCmd:
		answered = c.Val()
	case *redis.IntCmd:
		answered = c.Val() != 0
	case *redis.SliceCmd:
		answered = c.Val() != nil
	case *redis.MapStringStringCmd:
		answered = c.Val() != nil
	case *redis.Cmd:
		answered = c.Val() != nil
	}
	if answered {
		c.SetErr(nil)
	}
}

// take makes the result of an operation of its command.
func take(op *cache.Op, c redis.Cmder) {
	op.Found = false
	if op.Err = c.Err(); op.Err != nil {
		if op.Err == redis.Nil {
			op.Err = nil
		}
		return
	}
	switch c := c.(type) {
	case *redis.StringCmd:
		command.Give(op, c.Val())
	case *redis.StatusCmd:
		op.Found = true
	case *redis.BoolCmd:
		op.Found = c.Val()
	case *redis.IntCmd:
		op.Found = c.Val() > 0
	case *redis.SliceCmd:
		op.Values = op.Values[:0]
		for _, each := range c.Val() {
			text, ok := each.(string)
			if !ok {
				op.Values = append(op.Values, nil)
				continue
			}
			op.Found = true
			op.Values = append(op.Values, append([]byte{}, text...))
		}
	case *redis.MapStringStringCmd:
		op.Values = op.Values[:0]
		for name, value := range c.Val() {
			op.Values = append(op.Values, []byte(name), []byte(value))
		}
		op.Found = len(c.Val()) > 0
	case *redis.Cmd:
		n, err := c.Int64()
		op.Found, op.Err = n > 0, err
	}
}

// session is a connection as command.Watched needs it, or a client of one server as command.Replace does.
type session struct {
	to interface{ Pipeline() redis.Pipeliner }
}

func (s session) Pipeline(ctx context.Context, commands [][][]byte) ([]command.Reply, error) {
	n := 0
	for _, args := range commands {
		n += len(args)
	}
	words, args := make([]word, 0, n), make([]any, 0, n) // which do not move
	made, all := make([]redis.Cmd, len(commands)), make([]redis.Cmder, len(commands))
	for i, command := range commands {
		from := len(args)
		args = append(args, string(command[0]))
		for _, arg := range command[1:] {
			words = append(words, arg)
			args = append(args, &words[len(words)-1])
		}
		made[i] = *redis.NewCmd(ctx, args[from:len(args):len(args)]...)
		all[i] = &made[i]
	}
	pipe := s.to.Pipeline()
	queue(ctx, pipe, all)
	exec(ctx, pipe, all)
	replies := make([]command.Reply, len(made))
	for i := range made {
		r := &replies[i]
		switch r.Err = made[i].Err(); {
		case r.Err == redis.Nil:
			r.Nil, r.Err = true, nil
		case r.Err != nil:
			var reply redis.Error
			if !errors.As(r.Err, &reply) {
				return nil, r.Err
			}
		default:
			switch v := made[i].Val().(type) {
			case string:
				r.Data = []byte(v)
			case int64:
				r.Int = v
			case []any:
				for j := range v {
					if err, ok := v[j].(error); ok {
						r.SetErr(j, len(v), err)
					}
				}
			}
		}
	}
	return replies, nil
}

// guarded runs operations with WATCH on a connection that nobody else uses meanwhile.
func (t *Transport) guarded(ctx context.Context, ops []*cache.Op) {
	client, ok := t.client.(*redis.Client)
	if !ok {
		for _, op := range ops {
			op.Err = errNoWatch
		}
		return
	}
	conn := client.Conn()
	command.Watched(ctx, session{conn}, ops)
	if ctx.Err() != nil { // it must not go back to the pool with a watch
		background := context.WithoutCancel(ctx)
		_ = conn.Process(background, redis.NewCmd(background, "UNWATCH"))
	}
	_ = conn.Close()
}

// Time is that of a cache.Clock.
func (t *Transport) Time(ctx context.Context) (time.Time, error) { return t.client.Time(ctx).Result() }

// Track is that of a cache.Tracker.
func (t *Transport) Track(ctx context.Context, prefix string, events cache.TrackEvents) error {
	switch c := t.client.(type) {
	case *redis.Client:
		return track.Start(ctx, prefix, events, track.Nodes(node(c)))
	case *redis.ClusterClient:
		return track.Start(ctx, prefix, events, func(ctx context.Context) ([]track.Node, error) {
			var mu sync.Mutex
			var nodes []track.Node
			err := c.ForEachMaster(ctx, func(_ context.Context, master *redis.Client) error {
				mu.Lock()
				defer mu.Unlock()
				nodes = append(nodes, node(master))
				return nil
			})
			return nodes, err
		})
	}
	return cache.ErrNoTracking
}

// node says how a client reaches its server; its dialer sees to TLS.
func node(c *redis.Client) track.Node {
	o := c.Options()
	return track.Node{Network: o.Network, Addr: o.Addr, Username: o.Username, Password: o.Password,
		Dialer: func(ctx context.Context) (net.Conn, error) { return o.Dialer(ctx, o.Network, o.Addr) }}
}
