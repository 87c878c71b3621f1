package resp

// This file owns a channel of a RESPB connection: its life, its queue, and the way of its frames to the client (spec sections 8 and 9).

import (
	"context"
	"net"
	"sync/atomic"

	"github.com/weft-db/weft/sdk/go/internal/frame"
)

// Codes of CLOSE and GOAWAY (spec section 8.4) that a server sends.
const (
	closeDone     = 0
	closeQueue    = 1
	closeOutput   = 2
	closeKilled   = 4
	closeChannels = 5
	closeShutdown = 6
	closeBytes    = 8 // of GOAWAY: what could not be read
	// closeInternal is of the range for applications: a handler panicked or did not answer as it must.
	closeInternal = 256
)

// States of a channel. Idle channels do not exist.
const (
	channelOpen    = iota
	channelEnding  // the server ends it: nothing more of it runs, and CLOSE comes behind what has run (spec section 8.4)
	channelClosing // CLOSE was sent; the client's is awaited and all else discarded
	channelDead    // CLOSE went both ways, or the connection has ended
)

// channel is one logical client.
type channel struct {
	m    *muxConn
	id   uint16
	sess *Session
	rb   frame.ReplyWriter

	next    uint32      // number of the next request; the reader's
	special atomic.Bool // not simply open: see settle

	// The rest is guarded by m.c.out.mu.
	state     int
	busy      bool // a request runs apart from the reader; later ones queue
	ended     bool // the session's hooks have run or are being run
	parting   bool // of one that ends: nothing of it runs any more, and CLOSE is its last frame
	farewell  frame.Control
	refused   bool // it was never open: CLOSE was sent, and the number is taken until the client's comes
	reason    error
	running   uint32                  // number of the request that runs, while busy
	cancel    context.CancelCauseFunc // set while it waits
	cancelled bool                    // the client has cancelled it
	queue     []queued
	queued    int // bytes in queue
	heir      heir

	hold      bool // pushes wait for the end of the running command
	releasing bool // those that waited are being sent
	windowed  bool
	credit    int64
	late      [][]byte // pushes that wait for the end of a command
	backlog   [][]byte // whole frames that wait for credit or for room; the first may be partly sent
	sent      int      // bytes of the first frame that went as slices
	waiting   int      // bytes in late and backlog
	inRing    bool
}

// queued is a request behind one that runs.
type queued struct {
	sequence  uint32
	frame     []byte
	cancelled bool
}

// watched is nothing to do: while a handler waits, another goroutine reads.
func (ch *channel) watched() {}

func (ch *channel) LocalAddr() net.Addr  { return ch.m.c.LocalAddr() }
func (ch *channel) RemoteAddr() net.Addr { return ch.m.c.RemoteAddr() }

// push is called from any goroutine; see link.
func (ch *channel) push(speaks uint32, encoded []byte) error {
	if speaks != speaksRESPB {
		return errSpeaks
	}
	o := &ch.m.c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	return ch.pushLocked(encoded)
}

// pushLocked sends a push that was encoded for channel 0, behind the replies that are being written.
func (ch *channel) pushLocked(encoded []byte) error {
	o := &ch.m.c.out
	if o.err != nil {
		return o.err
	}
	if ch.state != channelOpen {
		return net.ErrClosed
	}
	own := append(make([]byte, 0, len(encoded)), encoded...)
	own[2], own[3] = byte(ch.id>>8), byte(ch.id)
	if o.batch || ch.hold || ch.releasing {
		ch.late = append(ch.late, own)
		ch.waits(len(own))
		if o.batch && len(ch.late) == 1 {
			ch.m.late = append(ch.m.late, ch)
		}
		return ch.check()
	}
	return ch.emitOwned(own)
}

// releaseLate sends what waited for the end of a command. out.mu is held.
func (ch *channel) releaseLate() {
	if ch.releasing {
		return
	}
	ch.releasing = true // sending lets go of the lock: what is pushed then comes behind
	for len(ch.late) > 0 {
		f := ch.late[0]
		ch.late = ch.late[1:]
		ch.waits(-len(f))
		if ch.state == channelOpen {
			_ = ch.emitOwned(f) // a failure is the connection's and seen by its reader
		}
	}
	ch.late, ch.releasing = nil, false
}

// kill closes the channel, and of channel 0 the connection.
func (ch *channel) kill(err error) {
	if ch.id == 0 {
		ch.m.c.kill(err)
		return
	}
	o := &ch.m.c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	ch.closeLocked(closeKilled, "killed", err)
}

// emitOwned sends one whole frame, now or when the client can take it. f is kept if it has to wait. out.mu is held.
func (ch *channel) emitOwned(f []byte) error {
	m := ch.m
	o := &m.c.out
	switch {
	case o.err != nil:
		return o.err
	case ch.state > channelEnding:
		return net.ErrClosed
	case len(ch.backlog) == 0 && !m.full() && (!ch.windowed || ch.credit > 0) && !m.sliced(len(f)):
		if ch.windowed {
			ch.credit -= int64(len(f))
		}
		return o.sendLocked(f)
	}
	ch.backlog = append(ch.backlog, f)
	ch.waits(len(f))
	ch.special.Store(true)
	if err := ch.check(); err != nil {
		return err
	}
	ch.enter()
	return m.pump()
}

// waits counts n bytes more, or fewer, that wait for the client. out.mu is held.
func (ch *channel) waits(n int) {
	ch.waiting += n
	if ch.inRing {
		ch.m.lined += n
	}
}

// check closes the channel when more waits for its client than may.
func (ch *channel) check() error {
	if most := ch.m.c.server.limits.OutputBytesMax; ch.waiting > most {
		err := &LimitError{"OutputBytesMax", int64(most), int64(ch.waiting), "the client does not read its replies"}
		ch.closeLocked(closeOutput, "the output limit was exceeded", err)
		return err
	}
	return nil
}

// enter puts the channel in line for sending if it may send.
func (ch *channel) enter() {
	if ch.inRing || len(ch.backlog) == 0 || ch.state > channelEnding || ch.windowed && ch.credit <= 0 {
		return
	}
	ch.inRing = true
	ch.m.ring = append(ch.m.ring, ch)
	ch.m.lined += ch.waiting
	ch.m.slow.Store(true)
}

// slice appends the channel's next frame, or the next slice of it, to dst.
func (ch *channel) slice(dst []byte) []byte {
	f := ch.backlog[0]
	from := len(dst)
	if ch.m.sliced(len(f)) {
		end := min(ch.sent+frame.FragmentBytesMax, len(f))
		dst = frame.AppendControl(dst, ch.id, frame.Fragment, frame.Control{Last: end == len(f), Slice: f[ch.sent:end]})
		ch.sent = end
	} else {
		dst = append(dst, f...)
		ch.sent = len(f)
	}
	if ch.windowed {
		ch.credit -= int64(len(dst) - from)
	}
	if ch.sent == len(f) {
		ch.waits(-len(f))
		ch.sent = 0
		ch.backlog[0] = nil
		ch.backlog = ch.backlog[1:]
		if len(ch.backlog) == 0 {
			ch.backlog = nil
			ch.settle()
			if ch.parting {
				dst = ch.appendClose(dst)
			}
		}
	}
	return dst
}

// closeLocked ends the channel: nothing more of it runs, and what runs is told to end. CLOSE comes behind the replies of what has run,
// whatever credit is left; the number stays taken until the client's. out.mu is held.
func (ch *channel) closeLocked(code uint16, reason string, err error) {
	if ch.state != channelOpen {
		return
	}
	ch.state, ch.reason = channelEnding, err
	ch.farewell = frame.Control{Code: code, Reason: []byte(reason)}
	ch.windowed = false
	ch.forget()
	switch m := ch.m; {
	case ch.busy && !ch.heir.waits: // whoever runs the command parts after its reply
	case m.c.out.batch:
		m.ending = append(m.ending, ch) // the command that runs may be this channel's
	default:
		ch.part()
	}
}

// ends reports whether the channel has been closed.
func (ch *channel) ends() bool {
	ch.m.c.out.mu.Lock()
	defer ch.m.c.out.mu.Unlock()
	return ch.state != channelOpen
}

// forget gives up what has not run, and tells what runs. out.mu is held.
func (ch *channel) forget() {
	ch.queue, ch.queued = nil, 0
	for _, f := range ch.late {
		ch.waits(-len(f))
	}
	ch.late = nil
	if ch.cancel != nil {
		ch.cancel(net.ErrClosed)
	}
	ch.sess.cancelContext(net.ErrClosed)
	ch.special.Store(true)
}

// part sends CLOSE behind what waits, of a channel that ends and of which nothing runs. out.mu is held.
func (ch *channel) part() {
	if ch.state != channelEnding || ch.parting {
		return
	}
	ch.parting = true
	ch.endSession()
	if len(ch.backlog) == 0 {
		_ = ch.m.c.out.sendLocked(ch.appendClose(nil)) // a failure is the connection's and seen by its reader
		return
	}
	ch.enter()
	_ = ch.m.pump()
}

// appendClose appends CLOSE, but behind GOAWAY (spec section 8.5). out.mu is held.
func (ch *channel) appendClose(dst []byte) []byte {
	ch.state = channelClosing
	if ch.m.away {
		return dst
	}
	return frame.AppendControl(dst, ch.id, frame.Close, ch.farewell)
}

// drop gives up what waits, cancels what runs and ends the session: the client has closed the channel. out.mu is held.
func (ch *channel) drop(reason error) {
	ch.reason = reason
	ch.forget()
	ch.waits(-ch.waiting)
	ch.backlog, ch.sent = nil, 0
	ch.endSession()
}

// endSession ends the session of a channel of which nothing runs, or has whoever runs something end it. out.mu is held.
func (ch *channel) endSession() {
	switch m := ch.m; {
	case ch.busy || ch.ended: // whoever runs the command ends the session after it
	case m.c.out.batch:
		m.ending = append(m.ending, ch) // the command that runs may be this channel's
	default:
		// Not here: hooks may take locks that whoever closes the channel holds.
		ch.ended = true
		m.apart++
		go func() { // ends with the hooks; apart counts it
			ch.end()
			m.leaves()
		}()
	}
}

// settle says whether the reader has to look closely before it runs a request at once. out.mu is held.
func (ch *channel) settle() {
	ch.special.Store(ch.state != channelOpen || ch.busy || ch.windowed || len(ch.backlog) > 0)
}

// end runs the hooks of the session, once; ended was set by the caller under out.mu.
func (ch *channel) end() {
	s := ch.m.c.server
	ch.sess.end()
	s.counts.channels.Add(-1)
	if s.OnClose != nil {
		s.guard("OnClose", ch.m.c.remote, func() { s.OnClose(ch.sess, ch.reason) })
	}
}

// endIfOver runs the hooks if the channel was closed while its command ran.
func (ch *channel) endIfOver() {
	o := &ch.m.c.out
	o.mu.Lock()
	over := ch.state != channelOpen && !ch.busy && !ch.ended
	ch.ended = ch.ended || over
	o.mu.Unlock()
	if over {
		ch.end()
	}
}
