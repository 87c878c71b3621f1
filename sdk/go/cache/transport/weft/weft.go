// Package weft is the transport of a cache over sdk/go/respb: RESPB where the server has it, RESP3 elsewhere.
//
//	store, err := weft.Dial(ctx, respb.Options{Addr: "127.0.0.1:6379"})
//	users, err := cache.New(store, cache.JSON[User]{}, cache.Options[int64, User]{Prefix: "user", TTL: time.Hour})
package weft

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/track"
	"github.com/weft-db/weft/sdk/go/cache/transport/internal/command"
	"github.com/weft-db/weft/sdk/go/resp"
	"github.com/weft-db/weft/sdk/go/respb"
)

// Transport runs a cache's operations on one connection, which all goroutines share.
type Transport struct {
	conn    *respb.Conn
	options respb.Options
	owned   bool
	scripts command.Scripts
	works   sync.Pool // *work

	transactions command.Transactions
	reads        command.Reads

	mu       sync.Mutex
	sessions []*respb.Channel // idle, for WATCH
}

// sessionsMax bounds the idle channels that are kept for WATCH.
const sessionsMax = 16

// work is what one call of Do works in.
type work struct {
	builder command.Builder
	pipe    *respb.Pipeline
	values  []respb.Value
	one     respb.Value
	guarded []*cache.Op
	hashes  []*cache.Op
}

// keepValueBytes is how large a reply's buffer may be to be kept for another.
const keepValueBytes = 16 << 10

// Dial connects, and returns a transport that closes its connection with Close.
func Dial(ctx context.Context, options respb.Options) (*Transport, error) {
	conn, err := respb.Dial(ctx, options)
	if err != nil {
		return nil, err
	}
	t := New(conn, options)
	t.owned = true
	return t, nil
}

// Open is Dial without connecting: the first operation does that. It is for programs that have to start without the store too.
func Open(options respb.Options) *Transport {
	t := New(respb.New(options), options)
	t.owned = true
	return t
}

// New makes a transport of a connection, which stays the caller's. The options are those that it was made with: tracking needs a
// connection of its own.
func New(conn *respb.Conn, options respb.Options) *Transport {
	return &Transport{conn: conn, options: options}
}

// Conn returns the connection.
func (t *Transport) Conn() *respb.Conn { return t.conn }

// Close closes the connection if Dial made it.
func (t *Transport) Close() error {
	t.mu.Lock()
	sessions := t.sessions
	t.sessions = nil
	t.mu.Unlock()
	for _, ch := range sessions {
		_ = ch.Close()
	}
	if t.owned {
		return t.conn.Close()
	}
	return nil
}

// Track is that of a cache.Tracker.
func (t *Transport) Track(ctx context.Context, prefix string, events cache.TrackEvents) error {
	return track.Start(ctx, prefix, events, track.Nodes(track.Node{Network: t.options.Network, Addr: t.options.Addr, Dialer: t.options.Dialer,
		TLSConfig: t.options.TLSConfig, Username: t.options.Username, Password: t.options.Password}))
}

// Time is that of a cache.Clock.
func (t *Transport) Time(ctx context.Context) (time.Time, error) {
	var v respb.Value
	if err := t.conn.DoBytes(ctx, &v, command.Time()...); err != nil {
		return time.Time{}, err
	}
	if err := v.Err(); err != nil {
		return time.Time{}, err
	}
	reply := make([]string, len(v.Elems))
	for i := range v.Elems {
		reply[i] = string(v.Elems[i].Data)
	}
	return command.TimeOf(reply)
}

// HeedsDeadlines is that of a cache.DeadlineHeeder.
func (t *Transport) HeedsDeadlines() {}

// Do is that of a cache.Transport.
func (t *Transport) Do(ctx context.Context, ops []cache.Op) {
	if len(ops) == 1 && !command.Scripted(ops[0].Kind) {
		w := t.borrowWork()
		t.one(ctx, w, &ops[0])
		t.giveBackWork(w)
		return
	}
	t.reads.Run(ctx, ops, t.mget, t.run)
}

// run runs operations as one pipeline.
func (t *Transport) run(ctx context.Context, ops []cache.Op) {
	w := t.borrowWork()
	t.many(ctx, w, ops)
	t.giveBackWork(w)
}

func (t *Transport) borrowWork() *work {
	w, _ := t.works.Get().(*work)
	if w == nil {
		w = &work{pipe: t.conn.Pipeline()}
	}
	w.builder.Reset()
	w.guarded, w.hashes = w.guarded[:0], w.hashes[:0]
	return w
}

func (t *Transport) giveBackWork(w *work) {
	w.trim()
	t.works.Put(w)
}

// mget reads keys.
func (t *Transport) mget(ctx context.Context, ops []cache.Op) {
	w := t.borrowWork()
	defer t.giveBackWork(w)
	w.pipe.Reset()
	for part := range slices.Chunk(ops, command.ReadsMax) {
		w.pipe.LendMany(w.builder.MGet(part))
	}
	values, err := w.pipe.ExecInto(ctx, w.values)
	w.pipe.Reset()
	if err != nil {
		for i := range ops {
			ops[i].Err = err
		}
		w.values = nil // replies may still come
		return
	}
	w.values = values
	for i := range values {
		v, part := &values[i], ops[:min(len(ops), command.ReadsMax)]
		ops = ops[len(part):]
		switch {
		case v.Err() != nil:
			t.reads.Refused()
		case len(v.Elems) != len(part):
			for j := range part {
				part[j].Err = command.ErrReply
			}
		default:
			for j := range v.Elems {
				if e := &v.Elems[j]; e.Kind != resp.Null {
					take(&part[j], e)
				}
			}
		}
	}
}

// trim drops buffers that have become large.
func (w *work) trim() {
	if cap(w.one.Data) > 4*keepValueBytes {
		w.one = respb.Value{}
	}
	for i := range w.values {
		if cap(w.values[i].Data) > keepValueBytes || cap(w.values[i].Elems) > command.ReadsMax {
			w.values[i] = respb.Value{}
			continue
		}
		for j := range w.values[i].Elems {
			if e := &w.values[i].Elems[j]; cap(e.Data) > keepValueBytes {
				*e = respb.Value{}
			}
		}
	}
}

// one runs one operation without a pipeline.
func (t *Transport) one(ctx context.Context, w *work, op *cache.Op) {
	if op.Err = command.Check(op); op.Err != nil {
		return
	}
	if op.Err = t.conn.DoBytes(ctx, &w.one, w.builder.Args(op)...); op.Err != nil {
		op.Found = false
		return
	}
	take(op, &w.one)
}

// many runs operations as one pipeline. Where there are no scripts, those that need one are run behind it.
func (t *Transport) many(ctx context.Context, w *work, ops []cache.Op) {
	w.pipe.Reset()
	missing, together := t.scripts.Missing(), !t.transactions.Missing()
	for i := range ops {
		op := &ops[i]
		switch op.Err = command.Check(op); {
		case op.Err != nil:
		case together && op.Kind == cache.OpHashSet:
			w.hashes = append(w.hashes, op)
		case missing && command.Scripted(op.Kind):
			w.guarded = append(w.guarded, op)
		default:
			w.pipe.LendMany(w.builder.Args(op))
		}
	}
	if w.pipe.Len() > 0 {
		values, err := w.pipe.ExecInto(ctx, w.values)
		w.pipe.Reset()
		if err != nil {
			for i := range ops {
				if ops[i].Err == nil {
					ops[i].Found, ops[i].Err = false, err
				}
			}
			w.values = nil // replies may still come
			return
		}
		w.values = values
		next := 0
		for i := range ops {
			op := &ops[i]
			if op.Err != nil || together && op.Kind == cache.OpHashSet || missing && command.Scripted(op.Kind) {
				continue
			}
			v := &values[next]
			next++
			op.Err = v.Err()
			if command.Scripted(op.Kind) && t.scripts.Learn(op.Err) {
				op.Err = nil
				w.guarded = append(w.guarded, op)
				continue
			}
			take(op, v)
		}
	}
	if len(w.guarded) > 0 {
		t.guarded(ctx, w.guarded)
	}
	if len(w.hashes) > 0 {
		command.Again(ctx, t.run, command.Replace(ctx, session{w.pipe, &w.values}, &t.transactions, w.hashes))
	}
}

// take makes the result of an operation of its reply.
func take(op *cache.Op, v *respb.Value) {
	op.Found = false
	if op.Err != nil {
		return
	}
	if op.Err = v.Err(); op.Err != nil {
		return
	}
	switch op.Kind {
	case cache.OpGet:
		if op.Found = v.Kind != resp.Null; op.Found {
			op.Value = append(op.Value, v.Data...)
		}
	case cache.OpSet, cache.OpAcquire:
		op.Found = v.Kind != resp.Null
	case cache.OpHashGet:
		op.Values = op.Values[:0]
		for i := range v.Elems {
			e := &v.Elems[i]
			if e.Kind == resp.Null {
				op.Values = append(op.Values, nil)
				continue
			}
			op.Found = true
			op.Values = append(op.Values, append(make([]byte, 0, len(e.Data)), e.Data...))
		}
	default:
		op.Found = v.Int > 0
	}
}

// session is a pipeline as command.Watched and command.Replace need it. The pipelines of the connection leave in one
// piece: a transaction that needs no look before needs no channel of its own.
type session struct {
	pipe   *respb.Pipeline
	values *[]respb.Value // used again
}

func (s session) Pipeline(ctx context.Context, commands [][][]byte) ([]command.Reply, error) {
	s.pipe.Reset()
	s.pipe.LendMany(commands...)
	values, err := s.pipe.ExecInto(ctx, *s.values)
	s.pipe.Reset()
	if err != nil {
		*s.values = nil // replies may still come
		return nil, err
	}
	*s.values = values
	replies := make([]command.Reply, len(values))
	for i := range values {
		v, r := &values[i], &replies[i]
		*r = command.Reply{Nil: v.Kind == resp.Null, Data: v.Data, Int: v.Int, Err: v.Err()}
		for j := range v.Elems {
			if err := v.Elems[j].Err(); err != nil {
				r.SetErr(j, len(v.Elems), err)
			}
		}
	}
	return replies, nil
}

// guarded runs operations with WATCH on a channel that nobody else uses meanwhile.
func (t *Transport) guarded(ctx context.Context, ops []*cache.Op) {
	var err error
	ch := t.borrow()
	if ch == nil {
		ch, err = t.conn.Channel(ctx, respb.ChannelOptions{DB: t.options.DB})
	}
	if err != nil {
		for _, op := range ops {
			op.Err = err
		}
		return
	}
	var values []respb.Value
	command.Watched(ctx, session{ch.Pipeline(), &values}, ops)
	// A channel whose commands have failed may be anywhere in a transaction.
	if slices.ContainsFunc(ops, func(op *cache.Op) bool { return op.Err != nil }) {
		_ = ch.Close()
		return
	}
	t.giveBack(ch)
}

// borrow returns an idle channel, or nil.
func (t *Transport) borrow() *respb.Channel {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.sessions) == 0 {
		return nil
	}
	ch := t.sessions[len(t.sessions)-1]
	t.sessions = t.sessions[:len(t.sessions)-1]
	return ch
}

func (t *Transport) giveBack(ch *respb.Channel) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.sessions) < sessionsMax {
		t.sessions = append(t.sessions, ch)
		return
	}
	_ = ch.Close()
}
