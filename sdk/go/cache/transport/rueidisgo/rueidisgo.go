// Package rueidisgo is the transport of a cache over rueidis: one server, Sentinel, or a cluster.
package rueidisgo

import (
	"context"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/track"
	"github.com/weft-db/weft/sdk/go/cache/transport/rueidisgo/internal/command"
)

// Transport runs a cache's operations on a client, which stays the caller's.
type Transport struct {
	client  rueidis.Client
	option  rueidis.ClientOption
	scripts command.Scripts
	keeps   bool      // commands are not used again
	rooms   sync.Pool // *room

	single       bool // not a cluster
	transactions command.Transactions
	reads        command.Reads
}

// Option changes a Transport.
type Option func(*Transport)

// KeepCommands is for a client with a hook that keeps the words of commands after it has returned, such as one that logs them on another
// goroutine. Otherwise batches use the memory of their words again when all replies are there.
func KeepCommands() Option { return func(t *Transport) { t.keeps = true } }

// New makes a transport of a client. The option is the one that the client was made with: tracking needs connections of its own.
func New(client rueidis.Client, option rueidis.ClientOption, options ...Option) *Transport {
	t := &Transport{client: client, option: option, single: client.Mode() != rueidis.ClientModeCluster}
	for _, o := range options {
		o(t)
	}
	return t
}

// room is where the commands of a batch are made.
type room struct {
	text     []byte
	keys     []string // of an MGET
	commands rueidis.Commands
}

// Bounds of a room that is kept for another batch.
const (
	keepTextBytes = 256 << 10
	keepCommands  = 4 << 10
)

func (t *Transport) borrow() *room {
	if r, _ := t.rooms.Get().(*room); r != nil {
		return r
	}
	return &room{}
}

// giveBack keeps a room for another batch, unless somebody may still look at what is in it: a command that has failed may not have been sent
// yet.
func (t *Transport) giveBack(r *room, results []rueidis.RedisResult) {
	if t.keeps || cap(r.text) > keepTextBytes || cap(r.commands) > keepCommands {
		return
	}
	for i := range results {
		if results[i].NonRedisError() != nil {
			return
		}
	}
	r.commands = r.commands[:0] // they are the client's again
	t.rooms.Put(r)
}

// Do is that of a cache.Transport.
func (t *Transport) Do(ctx context.Context, ops []cache.Op) {
	if len(ops) == 1 && !command.Scripted(ops[0].Kind) {
		op := &ops[0]
		if op.Err = command.Check(op); op.Err == nil {
			m := maker{b: t.client.B(), text: command.TextOf(ops, true)}
			r := t.client.Do(ctx, m.command(op))
			take(op, &r)
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
	m := t.borrow()
	var text command.Text
	text, m.text = command.TextIn(m.text, ops, false)
	m.keys = slices.Grow(m.keys[:0], len(ops))
	for i := range ops {
		m.keys = append(m.keys, text.Cut(len(ops[i].Key)))
	}
	for part := range slices.Chunk(m.keys, command.ReadsMax) {
		m.commands = append(m.commands, t.client.B().Mget().Key(part...).Build())
	}
	results := t.client.DoMulti(ctx, m.commands...)
	defer t.giveBack(m, results)
	for i := range results {
		r := &results[i]
		part := ops[:min(len(ops), command.ReadsMax)]
		ops = ops[len(part):]
		values, err := r.ToArray()
		if err == nil && len(values) != len(part) {
			err = command.ErrReply
		}
		if err != nil {
			if _, refused := rueidis.IsRedisErr(err); refused {
				t.reads.Refused()
				continue
			}
			for i := range part {
				part[i].Err = err
			}
			continue
		}
		for i := range values {
			if !values[i].IsNil() {
				var text string
				if text, part[i].Err = values[i].ToString(); part[i].Err == nil {
					command.Give(&part[i], text)
				}
			}
		}
	}
}

// run runs operations as one batch of commands.
func (t *Transport) run(ctx context.Context, ops []cache.Op) {
	missing := t.scripts.Missing()
	in := t.borrow()
	m := maker{b: t.client.B(), single: t.single}
	m.text, in.text = command.TextIn(in.text, ops, true)
	commands := slices.Grow(in.commands, len(ops))
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
		results := t.client.DoMulti(ctx, commands...)
		next := 0
		for i := range ops {
			op := &ops[i]
			if op.Err != nil || together && op.Kind == cache.OpHashSet || missing && command.Scripted(op.Kind) {
				continue
			}
			r := &results[next]
			next++
			if command.Scripted(op.Kind) && t.scripts.Learn(r.Error()) {
				guarded = append(guarded, op)
				continue
			}
			take(op, r)
		}
		in.commands = commands
		t.giveBack(in, results)
	}
	if len(guarded) > 0 {
		t.guarded(ctx, guarded)
	}
	if len(hashes) > 0 {
		command.Again(ctx, t.run, command.Replace(ctx, session{t.client}, &t.transactions, hashes))
	}
}

// maker makes commands. Everything in them is copied: a command may outlive its context.
type maker struct {
	b       rueidis.Builder
	text    command.Text
	builder command.Builder

	single bool // one server: a batch goes where its first command goes
	led    bool // by a command with a slot, which the others need not have

	ttl    time.Duration // that millis is
	millis string
}

// skip passes over an operation that becomes no command.
func (m *maker) skip(op *cache.Op) {
	m.text.Cut(len(op.Key))
	if op.Kind == cache.OpSet {
		m.text.Cut(len(op.Value))
	}
}

// px returns a time to live in milliseconds. Most operations of a batch have the same.
func (m *maker) px(ttl time.Duration) string {
	if m.millis == "" || m.ttl != ttl {
		m.ttl, m.millis = ttl, strconv.FormatInt(ttl.Milliseconds(), 10)
	}
	return m.millis
}

// command returns the command that an operation is.
func (m *maker) command(op *cache.Op) rueidis.Completed {
	key := m.text.Cut(len(op.Key))
	switch op.Kind {
	case cache.OpGet:
		if m.led {
			return m.b.Arbitrary("GET", key).ReadOnly()
		}
		m.led = m.single
		return m.b.Get().Key(key).Build()
	case cache.OpSet:
		value := m.text.Cut(len(op.Value))
		if op.TTL > 0 {
			if m.led {
				return m.b.Arbitrary("SET", key, value, "PX", m.px(op.TTL)).Build()
			}
			m.led = m.single
			return m.b.Arbitrary("SET").Keys(key).Args(value, "PX", m.px(op.TTL)).Build()
		}
		return m.b.Set().Key(key).Value(value).Build()
	case cache.OpDelete:
		del := m.b.Del().Key(key)
		if op.Lease != nil {
			return del.Key(string(op.Lease)).Build()
		}
		return del.Build()
	case cache.OpAcquire:
		return m.b.Set().Key(string(op.Lease)).Value(string(op.Token)).Nx().PxMilliseconds(op.TTL.Milliseconds()).Build()
	case cache.OpHashGet:
		if len(op.Fields) == 0 {
			return m.b.Hgetall().Key(key).Build()
		}
		return m.b.Hmget().Key(key).Field(texts(op.Fields)...).Build()
	}
	words := texts(m.builder.Args(op)) // EVAL, script, number of keys, keys, arguments
	to := 3 + int(words[2][0]-'0')
	return m.b.Eval().Script(words[1]).Numkeys(int64(to - 3)).Key(words[3:to]...).Arg(words[to:]...).Build()
}

func texts(args [][]byte) []string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = string(arg)
	}
	return words
}

// take makes the result of an operation of its reply.
func take(op *cache.Op, r *rueidis.RedisResult) {
	op.Found = false
	if op.Err = r.Error(); op.Err != nil {
		if rueidis.IsRedisNil(op.Err) {
			op.Err = nil
		}
		return
	}
	switch op.Kind {
	case cache.OpGet:
		text, err := r.ToString()
		if op.Err = err; err == nil {
			command.Give(op, text)
		}
	case cache.OpSet, cache.OpAcquire:
		op.Found = true
	case cache.OpHashGet:
		takeHash(op, r)
	default:
		n, err := r.AsInt64()
		op.Found, op.Err = n > 0, err
	}
}

func takeHash(op *cache.Op, r *rueidis.RedisResult) {
	op.Values = op.Values[:0]
	if len(op.Fields) == 0 {
		pairs, err := r.AsStrMap()
		for name, value := range pairs {
			op.Values = append(op.Values, []byte(name), []byte(value))
		}
		op.Found, op.Err = len(pairs) > 0, err
		return
	}
	values, err := r.ToArray()
	op.Err = err
	for i := range values {
		if values[i].IsNil() {
			op.Values = append(op.Values, nil)
			continue
		}
		text, err := values[i].ToString()
		if err != nil {
			op.Err = err
			return
		}
		op.Found = true
		op.Values = append(op.Values, append([]byte{}, text...))
	}
}

// session is a connection as command.Watched needs it.
type session struct {
	client interface {
		B() rueidis.Builder
		DoMulti(ctx context.Context, multi ...rueidis.Completed) []rueidis.RedisResult
	}
}

func (s session) Pipeline(ctx context.Context, commands [][][]byte) ([]command.Reply, error) {
	all := make(rueidis.Commands, len(commands))
	for i, args := range commands {
		words := texts(args)
		all[i] = s.client.B().Arbitrary(words[0]).Args(words[1:]...).Build()
	}
	results := s.client.DoMulti(ctx, all...)
	replies := make([]command.Reply, len(results))
	for i := range results {
		r := &replies[i]
		m, err := results[i].ToMessage()
		switch {
		case rueidis.IsRedisNil(err):
			r.Nil = true
		case err != nil:
			if _, ok := rueidis.IsRedisErr(err); !ok {
				return nil, err
			}
			r.Err = err
		case m.IsInt64():
			r.Int, r.Err = m.ToInt64()
		case m.IsString():
			text, err := m.ToString()
			r.Data, r.Err = []byte(text), err
		case m.IsArray():
			elems, err := m.ToArray()
			r.Err = err
			for j := range elems {
				if err := elems[j].Error(); err != nil && !rueidis.IsRedisNil(err) {
					r.SetErr(j, len(elems), err)
				}
			}
		}
	}
	return replies, nil
}

// guarded runs operations with WATCH on a connection that nobody else uses meanwhile.
func (t *Transport) guarded(ctx context.Context, ops []*cache.Op) {
	client, release := t.client.Dedicate()
	defer release()
	command.Watched(ctx, session{client}, ops)
	if ctx.Err() != nil { // it must not go back to the pool with a watch
		client.Close()
	}
}

// Time is that of a cache.Clock.
func (t *Transport) Time(ctx context.Context) (time.Time, error) {
	reply, err := t.client.Do(ctx, t.client.B().Time().Build()).AsStrSlice()
	if err != nil {
		return time.Time{}, err
	}
	return command.TimeOf(reply)
}

// Track is that of a cache.Tracker.
func (t *Transport) Track(ctx context.Context, prefix string, events cache.TrackEvents) error {
	return track.Start(ctx, prefix, events, func(context.Context) ([]track.Node, error) {
		var nodes []track.Node
		for addr := range t.client.Nodes() {
			n := track.Node{Addr: addr, TLSConfig: t.option.TLSConfig, Username: t.option.Username, Password: t.option.Password}
			if dial := t.option.DialCtxFn; dial != nil {
				n.TLSConfig = nil // it sees to that
				n.Dialer = func(ctx context.Context) (net.Conn, error) {
					return dial(ctx, addr, &t.option.Dialer, t.option.TLSConfig)
				}
			}
			nodes = append(nodes, n)
		}
		return nodes, nil
	})
}
