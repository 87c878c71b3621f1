package respb

// This file owns Channel: sending commands, opening again after a break, closing.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weft-db/weft/sdk/go/internal/commands"
	"github.com/weft-db/weft/sdk/go/internal/deadline"
	"github.com/weft-db/weft/sdk/go/internal/frame"
)

// Channel is a logical client: it has its own user, database, name, transaction, watched keys, subscriptions and blocking commands. Any
// number of goroutines may use it; their commands run in the order in which they were sent. A command that blocks holds back only what
// comes behind it on the same Channel.
//
// Its helpers are the methods of [Commands], such as [Commands.Get] and [Commands.Set], and those of [ChannelCommands], which a Conn has not.
type Channel struct {
	Commands
	ChannelCommands

	conn   *Conn
	opts   ChannelOptions
	isRoot bool
	shared bool // by callers who do not know of each other: what would change or hold it up is refused

	lane atomic.Pointer[lane] // nil: to be opened
	tx   atomic.Pointer[lane] // where WATCH or MULTI is in effect

	broke   atomic.Pointer[error] // why the last lane ended by itself
	changed atomic.Bool           // a command has changed what the connection is, so that it is not kept for another Channel

	opening opener
	closed  atomic.Bool
	watched sync.Mutex // guards what follows, and DB, user, name and tracking among opts

	settings [][]string // commands that are done again after a break
	subs     *Subscription
	cache    *Cache
}

func newChannel(c *Conn, opts ChannelOptions) *Channel {
	ch := &Channel{conn: c, opts: opts}
	ch.Commands.ch, ch.ChannelCommands.ch = ch, ch
	return ch
}

// ID returns the channel's number on its connection, and 0 over RESP3.
func (ch *Channel) ID() uint16 {
	if la := ch.lane.Load(); la != nil {
		return la.id
	}
	return 0
}

// ready returns the channel's lane, opening it if it has to.
func (ch *Channel) ready(ctx context.Context) (*lane, error) {
	if la := ch.lane.Load(); la != nil {
		return la, nil
	}
	if ch.conn.opts.Reconnect.Disabled {
		if ch.closed.Load() {
			return nil, ErrClosed
		}
		why := ErrStateLost
		if broke := ch.broke.Load(); broke != nil {
			why = *broke
		}
		return nil, &ConnError{Err: fmt.Errorf("%w, and Options.Reconnect is disabled", why), Dialing: true}
	}
	return ch.open(ctx, ch.conn.opts.Reconnect.Attempts)
}

// setUp sends what makes a new lane the channel.
func (ch *Channel) setUp(ctx context.Context, la *lane) error {
	p := &Pipeline{ch: ch, own: true}
	ch.watched.Lock()
	opts, settings := ch.opts, slices.Clone(ch.settings)
	ch.watched.Unlock()
	own := la.link.binary && !ch.isRoot // HELLO has said the rest
	if own && (opts.Username != "" || opts.Password != "") {
		user := opts.Username
		if user == "" {
			user = "default"
		}
		p.Do("AUTH", user, opts.Password)
	}
	if opts.DB != 0 {
		p.Do("SELECT", string(frame.AppendInt(nil, int64(opts.DB))))
	}
	if opts.Name != "" {
		p.Do("CLIENT", "SETNAME", opts.Name)
	}
	if opts.Tracking != nil && la.link.resp2 {
		return errNoTracking
	}
	if opts.Tracking != nil {
		p.Do(append([]string{"CLIENT", "TRACKING", "ON"}, opts.Tracking...)...)
	}
	for _, words := range settings {
		p.Do(words...)
	}
	if opts.OnPush != nil || opts.Tracking != nil {
		la.pin()
	}
	if p.Len() > 0 {
		values, err := p.run(ctx, la)
		if err != nil {
			return err
		}
		for i := range values {
			if err := values[i].Err(); err != nil {
				return err
			}
		}
	}
	return ch.resubscribe(ctx, la)
}

// pin has the connection read all the time, because pushes are expected.
func (la *lane) pin() {
	l := la.link
	l.mu.Lock()
	if la.pinned || l.err != nil {
		l.mu.Unlock()
		return
	}
	la.pinned = true
	l.pins++
	give := !l.reading
	l.reading = true
	l.mu.Unlock()
	if give {
		l.giveReading()
	}
}

// drop closes a lane.
func (ch *Channel) drop(la *lane, err error) {
	l := la.link
	if !l.binary {
		l.fail(ErrClosed)
		return
	}
	l.mu.Lock()
	if l.err != nil || la.closed {
		l.mu.Unlock()
		return
	}
	la.closed = true
	lost := la.end(err)
	if la.pinned {
		la.pinned = false
		l.pins--
	}
	if !la.opened {
		delete(l.lanes, la.id)
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	l.control(la.id, frame.Close, frame.Control{}) // the server's, which whoever reads next sees, frees the number
	for _, c := range lost {
		c.finish(err)
	}
}

// broken is called when a lane has ended by itself.
func (ch *Channel) broken(la *lane, err error) {
	ch.broke.Store(&err)
	ch.lane.CompareAndSwap(la, nil)
	if la.id == 0 { // the server has closed channel 0: nothing new goes over this link
		ch.conn.forget(la.link)
	}
	ch.watched.Lock()
	subs, cache := ch.subs, ch.cache
	ch.watched.Unlock()
	if cache != nil {
		cache.flush()
	}
	if subs != nil {
		subs.broken(err)
	}
}

// Close closes the channel; over RESPB the connection goes on. Commands without a reply fail with ErrClosed. To close a Conn's
// channel 0 is to close the Conn.
func (ch *Channel) Close() error {
	if ch.isRoot {
		return ch.conn.Close()
	}
	ch.closed.Store(true)
	if la := ch.lane.Swap(nil); la != nil && !ch.conn.keep(la) {
		ch.drop(la, ErrClosed)
	}
	ch.watched.Lock()
	subs := ch.subs
	ch.watched.Unlock()
	if subs != nil {
		subs.end(ErrClosed)
	}
	return nil
}

// Do sends a command and returns its reply, which is the caller's. An error reply is returned as an [*Error].
func (ch *Channel) Do(ctx context.Context, args ...string) (Value, error) {
	var v Value
	err := ch.DoInto(ctx, &v, args...)
	return v, err
}

// DoInto is Do into a Value that is used again: its memory is reused, and for replies that fit it nothing is allocated.
func (ch *Channel) DoInto(ctx context.Context, v *Value, args ...string) error {
	return doInto(ctx, ch, v, args)
}

// DoBytes is DoInto for arguments that are bytes. They are not kept.
func (ch *Channel) DoBytes(ctx context.Context, v *Value, args ...[]byte) error {
	return doInto(ctx, ch, v, args)
}

func doInto[T string | []byte](ctx context.Context, ch *Channel, v *Value, args []T) error {
	c, err := exchange(ctx, ch, args)
	if err != nil {
		return err
	}
	*v, c.one[0] = c.one[0], *v
	c.free()
	return v.Err()
}

// exchange sends a command and returns its call with the reply, to be freed.
func exchange[T string | []byte](ctx context.Context, ch *Channel, args []T) (*call, error) {
	if len(ch.conn.opts.Hooks) > 0 {
		return exchangeHooked(ctx, ch, args)
	}
	return exchangeBare(ctx, ch, args)
}

// exchangeBare is exchange without hooks.
func exchangeBare[T string | []byte](ctx context.Context, ch *Channel, args []T) (*call, error) {
	for attempt := 0; ; attempt++ {
		la, err := ch.ready(ctx)
		if err != nil {
			return nil, err
		}
		effect := effectNone
		if len(args) > 0 {
			effect = effectOf(args)
		}
		if effect != effectNone {
			if err := allow(ch, la, effect, args); err != nil {
				return nil, err
			}
			if effect != effectHolds || blocksFor(args) == 0 {
				ch.changed.Store(true)
			}
		}
		if ch.isRoot && ch.shared && !la.link.binary {
			la = ch.conn.aside(ctx, la, isSlow(args))
		}
		if !ch.keepsTx(la) {
			return nil, ErrStateLost
		}
		c := newCall()
		err, sent := exchangeOn(ctx, la, c, args)
		if err == nil {
			if effect != effectNone {
				note(ch, la, effect, args, &c.one[0])
			}
			if la.link.resp2 {
				lift(args, &c.one[0])
			}
			return c, nil
		}
		if sent && effect != effectNone && effect != effectHolds {
			ch.renewIfUnknown(ctx, la)
		}
		if ch.losesTx(la, err) || !ch.again(err, sent, attempt) || sent && !readsOnly(args) {
			return nil, err
		}
		ch.lane.CompareAndSwap(la, nil)
	}
}

// renewIfUnknown has the channel opened anew before its next command, when a context has ended while a command was on its way that changes
// what later ones mean: MULTI, WATCH, SELECT. Whether it ran is not known.
func (ch *Channel) renewIfUnknown(ctx context.Context, la *lane) {
	if ctx.Err() == nil || ch.isRoot || ch.shared {
		return
	}
	ch.tx.CompareAndSwap(la, nil)
	if ch.lane.CompareAndSwap(la, nil) {
		ch.drop(la, ErrStateLost)
	}
}

// again reports whether a command that failed may be tried again, if it only reads or was not sent.
func (ch *Channel) again(err error, sent bool, attempt int) bool {
	var lost *ConnError
	var closed *CloseError
	if !errors.As(err, &lost) && (sent || !errors.As(err, &closed)) {
		return false
	}
	r := &ch.conn.opts.Reconnect
	return !r.Disabled && !ch.closed.Load() && attempt < r.Attempts && !(sent && ch.conn.opts.NoRetry)
}

// readsOnly reports whether a command can be sent twice.
func readsOnly[T string | []byte](args []T) bool {
	sub := ""
	if len(args) > 1 && len(args[1]) < 32 {
		sub = string(args[1])
	}
	if len(args[0]) > 32 {
		return false
	}
	c := commands.Lookup(string(args[0]), sub)
	return c != nil && c.Flags&commands.FlagReadonly != 0 && c.Flags&commands.FlagBlocking == 0
}

// exchangeOn sends one command on a lane and waits. sent says whether it may have left. After an error c is gone.
func exchangeOn[T string | []byte](ctx context.Context, la *lane, c *call, args []T) (err error, sent bool) {
	if err := ctx.Err(); err != nil {
		c.free()
		return deadline.Cause(ctx), false
	}
	l := la.link
	c.extra = blocksFor(args)
	l.mu.Lock()
	if err = l.admit(ctx, la, c); err == nil {
		l.out, err = appendCommand(l, l.out, la.id, args)
	}
	if err == nil && !l.binary {
		err = plainKind(c, args)
	}
	if err != nil {
		l.mu.Unlock()
		c.free()
		return err, false
	}
	write, read := l.begin(la, c, 1)
	l.mu.Unlock()
	if l.complete(ctx, c, write, read) {
		return deadline.Cause(ctx), true
	}
	if err := c.err; err != nil {
		c.free()
		return err, true
	}
	return nil, true
}

// plainKind notes what RESP3 does not tell: how many confirmations stand for the reply.
func plainKind[T string | []byte](c *call, args []T) error {
	if len(args[0]) > 32 {
		return nil
	}
	sub := ""
	if len(args) > 1 && len(args[1]) < 32 {
		sub = string(args[1])
	}
	known := commands.Lookup(string(args[0]), sub)
	if known == nil {
		return nil
	}
	switch known.Name {
	case "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE":
		if c.confirms = len(args) - 1; c.confirms == 0 {
			return errNames
		}
	}
	return nil
}

// errNames refuses what RESP3 answers in an unknown number of pushes.
var errNames = errors.New("respb: over RESP3, (un)subscribe by name and not in a pipeline")
