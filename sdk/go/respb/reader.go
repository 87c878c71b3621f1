package respb

// This file owns the reading of replies: frames or RESP → the call that waits first on their channel, or the channel's pushes.

import (
	"errors"
	"fmt"
	"io"

	"github.com/weft-db/weft/sdk/go/internal/frame"
	"github.com/weft-db/weft/sdk/go/resp"
)

// reader is what the role of reader works with.
type reader struct {
	dec    *frame.ReplyDecoder
	values []frame.Value
	buf    []byte // buf[start:end] has not been handled
	start  int
	end    int
	resp   *resp.Reader
	push   Value // what RESP3 replies and pushes are read into
	inner  *frame.ReplyDecoder
}

// Bounds of the read buffer: it begins small, and is only kept up to keepReadBytes.
const (
	firstReadBytes = 16 << 10
	keepReadBytes  = 256 << 10
)

// lead reads, as the reader, until c has its replies. If it must not sleep it gives the role to read when polling finds nothing, and
// returns false: the caller has to wait.
func (l *link) lead(c *call, sleeps bool) bool {
	for c.state.Load() == callWaiting {
		if !l.receive(sleeps) {
			// c has failed with all others, or is about to: unless its reply came in front of what has ended the link.
			if c.state.Load() != callDone || c.err != nil {
				<-c.done
			}
			return true
		}
		if !sleeps && !l.wire.polls && c.state.Load() == callWaiting {
			c.leads = false
			l.giveReading()
			return false
		}
	}
	if c.err != nil { // the channel was closed meanwhile
		<-c.done
	}
	l.mu.Lock()
	if l.pending == 0 && l.pins == 0 || l.err != nil {
		l.reading = false
		l.mu.Unlock()
		return true
	}
	l.mu.Unlock()
	l.giveReading()
	return true
}

// read is the goroutine that reads when no caller does.
func (l *link) read() {
	for {
		select {
		case <-l.wake:
		case <-l.dead:
			return
		}
		for idle := false; !idle; {
			if !l.receive(true) {
				return
			}
			l.mu.Lock()
			idle = l.pending == 0 && l.pins == 0
			if idle {
				l.reading = false
			}
			l.mu.Unlock()
		}
	}
}

// receive reads once and handles what came, which is nothing if it must not sleep and nothing is there. It reports whether the link goes
// on.
func (l *link) receive(sleeps bool) bool {
	if !l.binary {
		return l.receiveRESP()
	}
	in := &l.in
	if in.start == in.end {
		in.start, in.end = 0, 0
		if len(in.buf) > keepReadBytes {
			in.buf = nil
		}
	}
	if in.end == len(in.buf) {
		if in.start > len(in.buf)/2 {
			copy(in.buf, in.buf[in.start:in.end])
			in.start, in.end = 0, in.end-in.start
		} else {
			fresh := make([]byte, max(firstReadBytes, 2*len(in.buf)))
			in.end = copy(fresh, in.buf[in.start:in.end])
			in.start, in.buf = 0, fresh
		}
	}
	n, err := l.wire.read(in.buf[in.end:], sleeps)
	in.end += n
	if n == 0 {
		if err == nil && !sleeps || l.nudged(err) {
			return true
		}
		l.fail(l.ending(err))
		return false
	}
	if err := l.frames(); err != nil {
		l.fail(err)
		return false
	}
	return true
}

// ending says why the link ends when reading fails: at a clean end behind GOAWAY, by that (spec section 8.5). In the midst of a frame, or
// of slices, it is no clean end.
func (l *link) ending(err error) error {
	whole := l.away != nil && err == io.EOF && l.in.start == l.in.end
	if !whole {
		return err
	}
	l.mu.Lock()
	l.eachLane(func(la *lane) { whole = whole && la.slices == nil })
	l.mu.Unlock()
	if whole {
		return l.away
	}
	return err
}

// frames handles the frames that are whole. It holds the lock for all of them: each is a few stores.
func (l *link) frames() error {
	in := &l.in
	var doneFirst, doneLast *call
	var err error
	l.mu.Lock()
	for in.start < in.end && l.err == nil {
		var f frame.ReplyFrame
		f, in.values, err = in.dec.Decode(in.buf[in.start:in.end], in.values)
		if err == frame.ErrIncomplete {
			err = nil
			break
		}
		if err != nil {
			break
		}
		raw := in.buf[in.start : in.start+f.Len]
		in.start += f.Len
		if f.Opcode <= frame.ReplyLast && !f.Push {
			la := l.lane(f.Channel)
			if la == nil {
				err = errIdle
				break
			}
			if !la.closed {
				if la.slices != nil {
					err = errSlices
					break
				}
				c := la.first
				if c == nil {
					err = errors.New("a reply that answers nothing")
					break
				}
				fill(&c.values[c.got], in.values, raw)
				if l.answered(la, c) {
					c.next = nil
					if doneLast == nil {
						doneFirst = c
					} else {
						doneLast.next = c
					}
					doneLast = c
				}
				if la.window > 0 {
					la.consumed(f.Len)
				}
			}
			in.values = in.values[:0]
			continue
		}
		// Pushes and control frames are rarer, and call what must not be called with the lock.
		values := in.values
		in.values = in.values[:0]
		l.mu.Unlock()
		finishAll(doneFirst)
		doneFirst, doneLast = nil, nil
		err = l.other(f, values, raw)
		l.mu.Lock()
		if err != nil {
			break
		}
	}
	l.mu.Unlock()
	finishAll(doneFirst)
	return err
}

// errSlices is why a link ends whose server sends slices that are no whole reply of their channel (spec section 9.1).
var errSlices = errors.New("slices that are no whole reply: bad-control")

// errIdle is why a link ends whose server sends on a channel that is not open (spec section 8.1).
var errIdle = errors.New("a frame of a channel that is not open")

// finishAll finishes a chain of calls.
func finishAll(c *call) {
	for c != nil {
		next := c.next
		c.next = nil
		c.finish(nil)
		c = next
	}
}

// answered counts a reply of c, the first call of la, and reports whether it was the last. link.mu is held.
func (l *link) answered(la *lane, c *call) bool {
	c.got++
	l.pending--
	l.handled++
	l.replies++
	la.since = l.watch.now
	if l.room != nil && l.pending < l.conn.opts.InFlightMax {
		l.makeRoom()
	}
	if c.got < len(c.values) {
		return false
	}
	la.first = c.next
	if la.first == nil {
		la.last = nil
	}
	if c.extra != 0 && !l.binary {
		l.blocking--
		l.makeRoom()
	}
	return true
}

func (l *link) lane(id uint16) *lane {
	if id == 0 {
		return l.zero
	}
	return l.lanes[id]
}

// other handles a push or a control frame.
func (l *link) other(f frame.ReplyFrame, values []frame.Value, raw []byte) error {
	l.mu.Lock()
	la := l.lane(f.Channel)
	idle := f.Channel != 0 && (la == nil || !la.opened)
	l.handled++
	if la != nil {
		la.since = l.watch.now
	}
	l.mu.Unlock()
	switch {
	case idle && (f.Push || f.Opcode == frame.Fragment):
		return errIdle
	case f.Push:
		if la != nil && !la.closed {
			if la.slices != nil {
				return errSlices
			}
			fill(&l.in.push, values, raw)
			la.ch.pushed(la, &l.in.push, f.Len)
		}
	case f.Opcode == frame.Close && !idle:
		l.closedByServer(la, f)
	case f.Opcode == frame.GoAway:
		l.goAway(f.Control)
	case f.Opcode == frame.Fragment && la != nil && !la.closed:
		return l.slice(la, f)
	}
	return nil
}

// goAway handles GOAWAY (spec section 8.5): what was sent may still be answered, nothing more is written, and what comes from now on goes over
// another connection.
func (l *link) goAway(k frame.Control) {
	l.mu.Lock()
	if l.away == nil {
		l.pins++ // it is read until it ends
	}
	l.away = &GoAwayError{k.Code, string(k.Reason)}
	err := &ConnError{Err: l.away}
	l.eachLane(func(la *lane) {
		if la.err == nil {
			la.err = err
		}
	})
	l.out = nil
	l.makeRoom()
	l.mu.Unlock()
}

// slice puts a reply or push together that comes in slices (spec section 9.1).
func (l *link) slice(la *lane, f frame.ReplyFrame) error {
	if len(la.slices)+len(f.Control.Slice) > l.conn.opts.ReplyBytesMax {
		return fmt.Errorf("a reply of more than %d bytes", l.conn.opts.ReplyBytesMax)
	}
	la.slices = append(la.slices, f.Control.Slice...)
	la.sliced += f.Len
	if la.window > 0 { // at once: a message may be larger than the window
		l.mu.Lock()
		la.consumed(f.Len)
		l.mu.Unlock()
	}
	if !f.Control.Last {
		return nil
	}
	whole, cost := la.slices, la.sliced
	la.slices, la.sliced = nil, 0
	inner, values, err := l.in.inner.Decode(whole, nil)
	if err != nil || inner.Len != len(whole) || inner.Channel != la.id || inner.Opcode > frame.ReplyLast {
		return errSlices
	}
	if inner.Push {
		l.mu.Lock()
		if la.window > 0 {
			la.advance += cost
		}
		l.mu.Unlock()
		var v Value
		fill(&v, values, whole)
		la.ch.pushed(la, &v, cost)
		return nil
	}
	l.mu.Lock()
	c := la.first
	if c == nil {
		l.mu.Unlock()
		return errors.New("a reply that answers nothing")
	}
	fill(&c.values[c.got], values, whole)
	done := l.answered(la, c)
	l.mu.Unlock()
	if done {
		c.next = nil
		c.finish(nil)
	}
	return nil
}

// closedByServer handles CLOSE, which is an answer to ours or ends the channel.
func (l *link) closedByServer(la *lane, f frame.ReplyFrame) {
	if la == nil {
		return // channel 0 has ended
	}
	err := &CloseError{f.Control.Code, string(f.Control.Reason)}
	l.mu.Lock()
	asked := la.closed
	la.closed = true
	lost := la.end(err)
	if la.id == 0 {
		l.zero = nil
	} else {
		delete(l.lanes, la.id)
	}
	if la.pinned {
		la.pinned = false
		l.pins--
	}
	l.mu.Unlock()
	if !asked {
		l.control(f.Channel, frame.Close, frame.Control{})
		la.ch.broken(la, err)
	}
	for _, c := range lost {
		c.finish(err)
	}
}

// consumed counts n bytes of credit that may be given back, and gives them back when it is worth a frame. link.mu is held, and the
// frame leaves with the next write; if nobody writes, a goroutine does. What was given in advance for a message is kept back from what
// follows, until somebody has received it.
func (la *lane) consumed(n int) {
	kept := min(n, la.advance)
	la.advance -= kept
	la.owed += n - kept
	if la.owed < la.window/2 {
		return
	}
	l := la.link
	if l.err != nil || l.away != nil || la.err != nil || la.closed {
		return
	}
	l.out = frame.AppendControl(l.out, la.id, frame.Window, frame.Control{More: uint32(la.owed)})
	la.owed = 0
	if !l.writing {
		l.writing = true
		go l.flush(true) // ends when there is nothing to write
	}
}

// receiveRESP reads one RESP reply or push.
func (l *link) receiveRESP() bool {
	v := &l.in.push
	if err := l.in.resp.Read(v); err != nil {
		l.fail(err)
		return false
	}
	l.mu.Lock()
	la := l.zero
	l.handled++
	l.mu.Unlock()
	if la == nil {
		return true
	}
	if la.hears && l.resp2 && isPush(v) {
		v.Kind = resp.Push
	}
	if v.Kind == resp.Push {
		if l.confirmed(la, v) {
			return true
		}
		la.ch.pushed(la, v, 0)
		return true
	}
	l.mu.Lock()
	c := la.first
	if c == nil {
		l.mu.Unlock()
		l.fail(errors.New("a reply that answers nothing"))
		return false
	}
	c.values[c.got], *v = *v, c.values[c.got]
	done := l.answered(la, c)
	l.mu.Unlock()
	if done {
		c.next = nil
		c.finish(nil)
	}
	return true
}

// isPush tells messages and confirmations from replies over RESP2, on a connection that has subscribed: there the server answers nothing else with
// such an array.
func isPush(v *Value) bool {
	if v.Kind != resp.Array || len(v.Elems) < 3 {
		return false
	}
	switch string(v.Elems[0].Data) {
	case "message", "pmessage", "smessage", "subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe":
		return true
	}
	return false
}

// confirmed takes a push that is part of the reply to a (un)subscription over RESP3.
func (l *link) confirmed(la *lane, v *Value) bool {
	if len(v.Elems) != 3 || v.Elems[2].Kind != resp.Integer {
		return false
	}
	switch string(v.Elems[0].Data) {
	case "subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe":
	default:
		return false
	}
	l.mu.Lock()
	c := la.first
	if c == nil || c.confirms == 0 {
		l.mu.Unlock()
		return true // of a subscription that nobody waits for
	}
	into := &c.values[0]
	if into.Kind != resp.Array {
		*into = Value{Kind: resp.Array}
	}
	into.Elems = append(into.Elems, Value{Kind: resp.Array, Elems: v.Elems})
	v.Elems = nil
	c.confirms--
	done := c.confirms == 0 && l.answered(la, c)
	l.mu.Unlock()
	if done {
		c.next = nil
		c.finish(nil)
	}
	return true
}
