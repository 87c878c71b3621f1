package respb

// This file owns Conn: connecting, and connecting again.

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/weft-db/weft/sdk/go/internal/deadline"
)

// Conn is a connection, and the logical client that is its channel 0, which any number of goroutines share. The helpers of [Commands], such as
// [Commands.Get] and [Commands.Set], are its methods. What would change or hold up what others share, SELECT, MULTI, WATCH or BLPOP, is for
// a [Channel] of one's own.
type Conn struct {
	Commands

	opts Options
	zero *Channel

	mu       sync.Mutex
	shared   *link // of all channels, over RESPB
	plain    bool  // the server has no RESPB: every channel has a link of its own
	protocol Protocol
	past     Stats         // of links that are gone
	dialing  chan struct{} // closed when the attempt that is being made has ended
	links    map[*link]struct{}
	pool     pool
	probe    *Channel // what asks a silent server; it is never opened as a channel
	closed   bool
	ctx      context.Context
	cancel   context.CancelFunc
	wg       sync.WaitGroup // goroutines that renew subscriptions
}

// Dial connects, authenticates and agrees on a protocol.
func Dial(ctx context.Context, opts Options) (*Conn, error) {
	c := New(opts)
	if _, err := c.zero.open(ctx, 1); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// New is Dial without connecting: the first command does that, as it does after a break. It is for programs that have to start without the
// server too. Reconnect must not be disabled.
func New(opts Options) *Conn {
	opts.setDefaults()
	c := &Conn{opts: opts, links: map[*link]struct{}{}, protocol: opts.Protocol}
	c.pool.places = make(chan struct{}, opts.ConnectionsMax)
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.zero = newChannel(c, ChannelOptions{
		DB: opts.DB, OnPush: opts.OnPush, Name: opts.Name, Username: opts.Username, Password: opts.Password,
	})
	c.zero.isRoot, c.zero.shared = true, true
	c.Commands.ch = c.zero
	c.probe = newChannel(c, ChannelOptions{})
	return c
}

// Protocol returns what the connection speaks, RESPB, RESP3 or RESP2. Before the first connection it is Options.Protocol, and Auto says that it is
// not known yet.
func (c *Conn) Protocol() Protocol {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.protocol
}

// Close closes the connection and all its channels. Commands without a reply fail with ErrClosed.
func (c *Conn) Close() error {
	c.mu.Lock()
	c.closed = true
	var links []*link
	for l := range c.links {
		links = append(links, l)
	}
	c.mu.Unlock()
	c.cancel()
	for _, l := range links {
		l.fail(ErrClosed)
	}
	c.wg.Wait()
	return nil
}

// Channel opens a logical client. It costs no round trip unless the options name a user, a database or a name; errors of those are
// returned.
func (c *Conn) Channel(ctx context.Context, opts ...ChannelOptions) (*Channel, error) {
	var o ChannelOptions
	switch len(opts) {
	case 0:
	case 1:
		o = opts[0]
	default:
		return nil, errors.New("respb: one ChannelOptions at most")
	}
	ch := newChannel(c, o)
	if _, err := ch.open(ctx, c.opts.Reconnect.Attempts); err != nil {
		_ = ch.Close() // it may still be opened
		return nil, err
	}
	return ch, nil
}

// Do sends a command and returns its reply, which is the caller's. An error reply is returned as an [*Error].
func (c *Conn) Do(ctx context.Context, args ...string) (Value, error) { return c.zero.Do(ctx, args...) }

// DoInto is Do into a Value that is used again: its memory is reused, and for replies that fit it nothing is allocated.
func (c *Conn) DoInto(ctx context.Context, v *Value, args ...string) error {
	return doInto(ctx, c.zero, v, args)
}

// DoBytes is DoInto for arguments that are bytes. They are not kept.
func (c *Conn) DoBytes(ctx context.Context, v *Value, args ...[]byte) error {
	return doInto(ctx, c.zero, v, args)
}

// Pipeline returns an empty pipeline.
func (c *Conn) Pipeline() *Pipeline { return c.zero.Pipeline() }

// Subscribe opens a Channel, subscribes it to channels and returns its Subscription, whose Close closes both.
func (c *Conn) Subscribe(ctx context.Context, channels ...string) (*Subscription, error) {
	return c.subscribe(ctx, 0, channels)
}

// Psubscribe is Subscribe for patterns.
func (c *Conn) Psubscribe(ctx context.Context, patterns ...string) (*Subscription, error) {
	return c.subscribe(ctx, 1, patterns)
}

// Ssubscribe is Subscribe for shard channels.
func (c *Conn) Ssubscribe(ctx context.Context, channels ...string) (*Subscription, error) {
	return c.subscribe(ctx, 2, channels)
}

func (c *Conn) subscribe(ctx context.Context, kind int, names []string) (*Subscription, error) {
	ch, err := c.Channel(ctx)
	if err != nil {
		return nil, err
	}
	s, err := ch.subscribe(ctx, kind, names)
	if err != nil {
		_ = ch.Close()
	}
	return s, err
}

// linkFor returns a link for ch, connecting if it has to. attempts bounds how often it tries.
func (c *Conn) linkFor(ctx context.Context, ch *Channel, attempts int) (*link, error) {
	var last error
	for failures := 0; ; failures++ {
		l, err := c.tryLink(ctx, ch)
		if err == nil {
			return l, nil
		}
		last = err
		var reply *Error
		switch {
		case errors.Is(err, ErrClosed), errors.Is(err, ErrChannels), errors.As(err, &reply) && !passes(err), ctx.Err() != nil:
			return nil, err
		case attempts > 0 && failures+1 >= attempts, c.opts.Reconnect.Disabled:
			return nil, last
		}
		if err := sleep(ctx, c.opts.Reconnect.pause(failures)); err != nil {
			return nil, err
		}
	}
}

// tryLink tries once. Over RESPB one attempt serves all who wait for it.
func (c *Conn) tryLink(ctx context.Context, ch *Channel) (*link, error) {
	for {
		c.mu.Lock()
		switch {
		case c.closed:
			c.mu.Unlock()
			return nil, ErrClosed
		case c.shared != nil && c.shared.alive():
			l := c.shared
			c.mu.Unlock()
			return l, nil
		case c.plain && !ch.isRoot:
			protocol := c.protocol
			c.mu.Unlock()
			if l := c.kept(ch); l != nil {
				return l, nil
			}
			return c.dial(ctx, protocol, ch)
		case c.dialing != nil:
			other := c.dialing
			c.mu.Unlock()
			select {
			case <-other:
			case <-ctx.Done():
				return nil, deadline.Cause(ctx)
			}
			continue
		}
		done := make(chan struct{})
		c.dialing = done
		c.mu.Unlock()
		return c.dialForAll(ctx, ch, done)
	}
}

// dialForAll makes the attempt that others wait for, until done is closed.
func (c *Conn) dialForAll(ctx context.Context, ch *Channel, done chan struct{}) (l *link, err error) {
	defer func() { // also when a hook panics
		c.mu.Lock()
		defer c.mu.Unlock()
		c.dialing = nil
		close(done)
		if err != nil || l == nil {
			return
		}
		c.plain, c.protocol = !l.binary, l.protocol()
		if l.binary {
			c.shared = l
		} else if !ch.isRoot {
			// The server has lost RESPB meanwhile: this link is ch's own.
			c.shared = nil
		}
	}()
	return c.dial(ctx, c.opts.Protocol, ch)
}

func (l *link) alive() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err == nil && l.away == nil
}

// dial makes a link, and tells who wants to know.
func (c *Conn) dial(ctx context.Context, protocol Protocol, ch *Channel) (*link, error) {
	began := time.Now()
	l, err := c.dialLink(ctx, protocol, ch)
	var connected Connected
	if err == nil {
		connected = Connected{Addr: l.wire.nc.RemoteAddr(), Protocol: l.protocol(), FellBack: l.without}
		if c.opts.OnConnect != nil {
			go c.opts.OnConnect(connected) // it may call the client
		}
	}
	told := false
	defer func() {
		if !told && l != nil { // a hook has panicked
			l.fail(ErrClosed)
		}
	}()
	hooks(c.opts.Hooks).dialed(ctx, &c.opts, began, connected, err)
	told = true
	return l, err
}

func (c *Conn) dialLink(ctx context.Context, protocol Protocol, ch *Channel) (l *link, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.DialTimeout)
	defer cancel()
	if err := c.takePlace(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if l == nil { // also when the Dialer panics
			c.pool.givePlace()
		}
	}()
	return c.makeLink(ctx, protocol, ch)
}

func (c *Conn) makeLink(ctx context.Context, protocol Protocol, ch *Channel) (*link, error) {
	nc, err := c.connect(ctx)
	if err != nil {
		return nil, &ConnError{err, true}
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	l := &link{conn: c, wake: make(chan struct{}, 1), dead: make(chan struct{}), nextID: 1}
	l.wire.init(nc, c.opts.PollMax)
	began := time.Now()
	err = l.hello(protocol, ch)
	l.roundTrip = time.Since(began)
	if !stop() {
		err = errors.Join(err, deadline.Cause(ctx))
	}
	if err != nil {
		_ = nc.Close()
		return nil, err
	}
	_ = nc.SetDeadline(time.Time{})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = nc.Close()
		return nil, ErrClosed
	}
	c.links[l] = struct{}{}
	c.past.Connects++
	l.startWatch()
	return l, nil
}

func (c *Conn) connect(ctx context.Context) (nc net.Conn, err error) {
	if c.opts.Dialer != nil {
		nc, err = c.opts.Dialer(ctx)
	} else {
		nc, err = (&net.Dialer{}).DialContext(ctx, c.opts.Network, c.opts.Addr)
	}
	if err != nil || c.opts.TLSConfig == nil {
		return nc, err
	}
	cfg := c.opts.TLSConfig
	if cfg.ServerName == "" && !cfg.InsecureSkipVerify {
		cfg = cfg.Clone()
		if cfg.ServerName, _, err = net.SplitHostPort(c.opts.Addr); err != nil {
			cfg.ServerName = c.opts.Addr
		}
	}
	t := tls.Client(nc, cfg)
	if err := t.HandshakeContext(ctx); err != nil {
		_ = nc.Close()
		return nil, err
	}
	return t, nil
}

// add makes a lane for ch.
func (l *link) add(ch *Channel) (*lane, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.addLocked(ch)
}

// addLocked is add with l.mu held.
func (l *link) addLocked(ch *Channel) (*lane, error) {
	if l.err != nil {
		return nil, l.err
	}
	if l.away != nil {
		return nil, &ConnError{Err: l.away}
	}
	la := &lane{link: l, ch: ch}
	if ch.isRoot || !l.binary {
		if l.zero != nil && l.zero.ch != ch {
			return nil, ErrChannels
		}
		l.zero = la
		return la, nil
	}
	most := min(int64(l.conn.opts.ChannelsMax), l.limits.channels, 1<<16)
	if int64(len(l.lanes))+1 >= most {
		return nil, ErrChannels
	}
	for l.nextID == 0 || l.lanes[l.nextID] != nil {
		l.nextID++
	}
	la.id = l.nextID
	l.nextID++
	l.lanes[la.id] = la
	return la, nil
}

// forget is called when a link is broken, or of no use for new channels.
func (c *Conn) forget(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.links[l]; ok {
		l.addTo(&c.past)
		c.pool.givePlace()
	}
	delete(c.links, l)
	if c.shared == l {
		c.shared = nil
	}
}
