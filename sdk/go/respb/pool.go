package respb

// This file owns the connections that there are without RESPB, where each carries one logical client: how many there may be, which are kept for
// another Channel, and which a Conn takes so that a large reply holds nobody up but who asked for it.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weft-db/weft/sdk/go/internal/commands"
	"github.com/weft-db/weft/sdk/go/internal/deadline"
)

// sidesMax is how many connections beside its own a Conn takes for what may hold others up.
const sidesMax = 4

// stillMax is for how long nothing may have come of what is awaited before others go another way: the round trip of HELLO and this.
const stillMax = 2 * time.Millisecond

// pool is of a Conn without RESPB; over RESPB it is empty.
type pool struct {
	places  chan struct{} // has one for each connection; full when there may be no more
	waiting atomic.Int64  // who waits for a place
	idle    []*link       // connections that Channels have left as they found them; Conn.mu guards it
	sides   []*Channel    // where a Conn's commands go that hold others up; Conn.mu guards it
}

// takePlace waits until there may be another connection. One that is kept for another Channel, and is not for this one, makes room.
func (c *Conn) takePlace(ctx context.Context) error {
	p := &c.pool
	select {
	case p.places <- struct{}{}:
		return nil
	default:
	}
	p.waiting.Add(1) // from here on none is kept
	defer p.waiting.Add(-1)
	c.mu.Lock()
	var oldest *link
	if len(p.idle) > 0 {
		oldest = p.idle[0]
		p.idle = slices.Delete(p.idle, 0, 1)
	}
	c.mu.Unlock()
	if oldest != nil {
		oldest.fail(ErrClosed)
	}
	select {
	case p.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: without RESPB each Channel has a connection, and Options.ConnectionsMax is %d; close what is not used (%w)",
			ErrChannels, cap(p.places), deadline.Cause(ctx))
	}
}

func (p *pool) givePlace() { <-p.places }

// keep keeps the connection of a Channel that is being closed for another, if the Channel has changed nothing about it and nothing is on its way.
func (c *Conn) keep(la *lane) bool {
	l, ch := la.link, la.ch
	if l.binary || ch.shared || ch.changed.Load() || !ch.plain() {
		return false
	}
	l.mu.Lock()
	clean := l.err == nil && la.err == nil && la.first == nil && l.pending == 0 && l.unblocking == 0 && !la.pinned && !la.hears &&
		len(l.out) == 0 && !l.writing
	if clean {
		la.err, l.zero = ErrClosed, nil
	}
	l.mu.Unlock()
	if !clean {
		return false
	}
	c.mu.Lock()
	kept := !c.closed && len(c.pool.idle) < c.opts.IdleMax && c.pool.waiting.Load() == 0
	if kept {
		c.pool.idle = append(c.pool.idle, l)
	}
	c.mu.Unlock()
	if !kept {
		l.fail(ErrClosed)
	}
	return true
}

// plain reports whether the channel is as every connection begins.
func (ch *Channel) plain() bool {
	ch.watched.Lock()
	defer ch.watched.Unlock()
	o := &ch.opts
	return o.Username == "" && o.Password == "" && o.DB == 0 && o.Name == "" && o.Tracking == nil && o.OnPush == nil && ch.settings == nil && ch.subs == nil
}

// kept returns a connection that was kept, the youngest first, if it is still there.
func (c *Conn) kept(ch *Channel) *link {
	if ch.opts.Username != "" || ch.opts.Password != "" {
		return nil // it has channel 0's user
	}
	for {
		c.mu.Lock()
		n := len(c.pool.idle)
		if n == 0 {
			c.mu.Unlock()
			return nil
		}
		l := c.pool.idle[n-1]
		c.pool.idle[n-1] = nil
		c.pool.idle = c.pool.idle[:n-1]
		c.mu.Unlock()
		l.mu.Lock()
		l.lookForEnd()
		alive := l.err == nil
		l.mu.Unlock()
		if alive {
			return l
		}
	}
}

// aside returns where a command of a Conn's own goes without RESPB: on another connection than la's if it may hold others up there, or would be
// held up itself.
func (c *Conn) aside(ctx context.Context, la *lane, slow bool) *lane {
	if !slow && !la.link.still() || c.opts.Reconnect.Disabled {
		return la
	}
	c.mu.Lock()
	var best *Channel
	least := 1 // whoever has nothing to do; else another is opened
	for _, ch := range c.pool.sides {
		if n := ch.pending(); n < least || best == nil {
			best, least = ch, n
		}
	}
	if least > 0 && len(c.pool.sides) < sidesMax && len(c.pool.places) < cap(c.pool.places) {
		best = newChannel(c, ChannelOptions{DB: c.opts.DB, Name: c.opts.Name})
		best.shared = true
		c.pool.sides = append(c.pool.sides, best)
	}
	c.mu.Unlock()
	if best == nil {
		return la
	}
	if side, err := best.ready(ctx); err == nil {
		return side
	}
	return la
}

// pending is how much is on its way.
func (ch *Channel) pending() int {
	la := ch.lane.Load()
	if la == nil {
		return 0
	}
	la.link.mu.Lock()
	defer la.link.mu.Unlock()
	return la.link.pending
}

// still reports whether nothing has come for a while though something is awaited: one large reply, or one slow command. It is asked with each
// command, and looks at the clock only where no reply has come between two.
func (l *link) still() bool {
	if !l.mu.TryLock() {
		return false // somebody sends or reads just now
	}
	defer l.mu.Unlock()
	switch {
	case l.pending == 0 || l.handled != l.stillAt.handled:
		l.stillAt.handled, l.stillAt.since = l.handled, time.Time{}
	case l.stillAt.since.IsZero():
		l.stillAt.since = time.Now()
	default:
		return time.Since(l.stillAt.since) > stillMax+l.roundTrip
	}
	return false
}

// slowLengths has, for each first letter, the lengths of the names of commands that may hold others up.
var slowLengths, slowNames = func() (lengths [32]uint32, names map[string]bool) {
	names = map[string]bool{}
	commands.All(func(c *commands.Command) bool {
		script := c.Categories&commands.CategoryScripting != 0 && c.Flags&commands.FlagFast == 0
		reads := c.Flags&commands.FlagReadonly != 0 && c.Flags&(commands.FlagFast|commands.FlagBlocking) == 0
		if c.Container == "" && (script || reads) || c.Name == "SORT" {
			names[c.Name] = true
			lengths[c.Name[0]&31] |= 1 << len(c.Name)
		}
		return true
	})
	return lengths, names
}()

// isSlow reports whether a command takes time, or has a reply, in proportion to what is stored: what reads and the table does not call fast, and
// scripts.
func isSlow[T string | []byte](args []T) bool {
	if len(args) == 0 {
		return false
	}
	name := args[0]
	if len(name) == 0 || len(name) > 31 || slowLengths[name[0]&31]&(1<<len(name)) == 0 {
		return false
	}
	var room [32]byte
	return slowNames[string(appendUpper(room[:0], name))]
}

// isSlow reports whether any of the commands is.
func (p *Pipeline) isSlow() (slow bool) {
	p.each(func(args [][]byte) bool {
		slow = isSlow(args)
		return !slow
	})
	return slow
}

// lookForEnd finds out whether a connection that has been idle is still there, before anything is sent that cannot be sent twice: servers and
// proxies close idle connections, and nobody reads them meanwhile. l.mu is held before and after, and nothing is awaited.
func (l *link) lookForEnd() {
	if l.err != nil || l.reading || l.pending > 0 || l.wire.raw == nil {
		return
	}
	if !l.binary {
		// With the lock: the first byte of somebody's reply must not be taken for this.
		n, err := l.wire.read(make([]byte, 1), false)
		if n > 0 {
			err = errors.New("bytes that answer nothing")
		}
		if err != nil {
			l.mu.Unlock()
			l.fail(err)
			l.mu.Lock()
		}
		return
	}
	l.reading = true
	l.mu.Unlock()
	l.receive(false)
	l.mu.Lock()
	if l.err != nil || l.pending == 0 && l.pins == 0 {
		l.reading = false
		return
	}
	l.mu.Unlock() // others have begun meanwhile, and count on a reader
	l.giveReading()
	l.mu.Lock()
}
