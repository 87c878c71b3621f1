package resp

// This file owns the running of a RESPB request on the connection's reader: from its frame to exactly one reply among those gathered.

import (
	"errors"
	"fmt"
	"net"
	"runtime/debug"

	"github.com/weft-db/weft/sdk/go/internal/frame"
)

// request runs a request, or queues it behind one that runs.
func (r *muxReader) request(channel uint16, raw []byte) {
	m := r.m
	ch := m.find(channel)
	if ch == nil {
		if ch = m.open(channel); ch == nil {
			r.tooMany(channel)
			return
		}
	}
	if ch.special.Load() {
		seq := ch.next
		ch.next++
		if !r.mayRun(ch, seq, raw) {
			return
		}
		r.run(ch, seq)
		return
	}
	ch.next++
	r.run(ch, ch.next-1)
}

// tooMany refuses a channel: one CLOSE, and nothing more of it is read before the client's (spec section 8.1).
func (r *muxReader) tooMany(id uint16) {
	m := r.m
	why := frame.Control{Code: closeChannels, Reason: []byte("too many channels")}
	r.out = frame.AppendControl(r.out, id, frame.Close, why)
	ch := &channel{m: m, id: id, state: channelClosing, ended: true, refused: true, sess: new(Session)}
	ch.special.Store(true)
	m.put(ch)
	if m.refused++; m.refused > refusedMax {
		r.goAway(why, &LimitError{"ChannelsMax", int64(m.c.server.limits.ChannelsMax), int64(m.count), "the client does not answer CLOSE"})
	}
}

// goAway ends the connection for a reason of the server's, behind everything that was answered in this batch.
func (r *muxReader) goAway(why frame.Control, reason error) {
	o := &r.m.c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, ch := range r.m.ending {
		if ch.state == channelEnding && !ch.busy && len(ch.backlog) == 0 {
			r.out = ch.appendClose(r.out) // behind its last reply, which is there; endBatch ends its session
		}
	}
	r.m.away = true
	r.out = frame.AppendControl(r.out, 0, frame.GoAway, why)
	if r.m.c.reason == nil {
		r.m.c.reason = reason
	}
}

// mayRun decides about a request of a channel that is not simply open.
func (r *muxReader) mayRun(ch *channel, seq uint32, raw []byte) bool {
	o := &r.m.c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case ch.state != channelOpen:
		return false
	case !ch.busy:
		return true
	case ch.queued+len(raw) > r.m.c.server.limits.QueueBytesMax:
		ch.closeLocked(closeQueue, "the queue is full", &LimitError{"QueueBytesMax", int64(r.m.c.server.limits.QueueBytesMax),
			int64(ch.queued + len(raw)), "too much waits behind a blocked command"})
		return false
	}
	ch.noteLogin(seq, ch.sess.lastName(r))
	ch.queued += len(raw)
	ch.queue = append(ch.queue, queued{sequence: seq, frame: append([]byte(nil), raw...)})
	return false
}

// run has one request answered. When it returns and away is set, the request has waited, and so has everything behind it.
func (r *muxReader) run(ch *channel, seq uint32) {
	c := r.m.c
	c.commands++
	sess := ch.sess
	r.ch, r.seq = ch, seq
	sess.buf, sess.block = r.out, r.outBlock
	r.out, r.outBlock = nil, nil
	r.from = len(sess.buf)
	r.answer()
	if r.away {
		r.finishAway()
		return
	}
	if sess.err != nil {
		r.overflow()
	}
	switch {
	case !sess.closing:
	case ch.id == 0:
		r.m.quit.Store(true)
		c.out.mu.Lock()
		r.m.away = true
		c.out.mu.Unlock()
	default:
		r.leave()
	}
	r.out, r.outBlock = sess.buf, sess.block
	sess.buf, sess.block = nil, nil
	if sess.closing && ch.id == 0 {
		defer func() { r.out = frame.AppendControl(r.out, 0, frame.GoAway, frame.Control{}) }()
	}
	if ch.special.Load() || r.m.slow.Load() || len(r.out)-r.from > frame.FragmentBytesMax {
		r.emit(r.out[r.from:])
		r.out = r.out[:r.from]
	} else if len(r.out) >= blockBytes-blockBytes/4 {
		r.send(r.out)
		r.out = r.out[:0]
	}
}

// overflow answers a command whose reply does not fit the output limit with an error; its channel ends behind it.
func (r *muxReader) overflow() {
	sess, o := r.ch.sess, &r.m.c.out
	o.mu.Lock()
	r.ch.closeLocked(closeOutput, "the output limit was exceeded", sess.err)
	o.mu.Unlock()
	sess.err = nil
	sess.buf = sess.buf[:r.from]
	r.ch.rb.Reset()
	sess.settle()
	_ = sess.WriteError(&Error{"ERR", "the reply is larger than what a channel may be owed: ask for less at once (OutputBytesMax)"})
}

// leave ends the channel behind the reply of the command that runs, such as QUIT.
func (r *muxReader) leave() {
	o := &r.m.c.out
	o.mu.Lock()
	r.ch.closeLocked(closeDone, "", nil)
	o.mu.Unlock()
}

// emit hands the reply of the running request over on its own, behind those gathered before it.
func (r *muxReader) emit(reply []byte) {
	if len(reply) == 0 {
		return
	}
	c := r.m.c
	own := append([]byte(nil), reply...)
	if before := r.before(); len(before) > 0 {
		r.send(before)
		r.dropBefore()
	}
	c.out.mu.Lock()
	err := r.ch.emitOwned(own)
	failed := c.out.err
	c.out.mu.Unlock()
	if err != nil && failed != nil && c.reason == nil {
		c.reason = failed
	}
}

// send hands over what was gathered. Once enough is on its way, the replies that follow wait in their channels.
func (r *muxReader) send(gathered []byte) {
	c := r.m.c
	if _, err := c.out.send(gathered); err != nil && c.reason == nil {
		c.reason = err
	}
	c.out.mu.Lock()
	if r.m.full() {
		r.m.slow.Store(true)
	}
	c.out.mu.Unlock()
}

// before is what was gathered before the reply of the running request, wherever the buffer is just now.
func (r *muxReader) before() []byte {
	if r.out != nil {
		return r.out[:r.from]
	}
	return r.ch.sess.buf[:r.from]
}

func (r *muxReader) dropBefore() {
	b := &r.out
	if r.out == nil {
		b = &r.ch.sess.buf
	}
	*b = (*b)[:copy(*b, (*b)[r.from:])]
	r.from = 0
}

// answer calls the handler and sees to it that exactly one reply was written.
func (r *muxReader) answer() {
	ch, sess := r.ch, r.ch.sess
	ch.rb.Reset()
	err := r.serve()
	sess.hold = 1
	if sess.err != nil {
		return
	}
	if err == nil && ch.rb.Replies == 1 && ch.rb.Whole() {
		return
	}
	if gaveUp := r.away && errors.Is(err, net.ErrClosed); gaveUp || err == nil && ch.rb.Replies == 0 && ch.ends() {
		// It has given up since its channel ends, and has not run, which having no answer says (spec section 8.4); or it has ended the
		// channel instead of answering.
		sess.buf = sess.buf[:r.from]
		ch.rb.Reset()
		return
	}
	if err == nil {
		err = &Error{"ERR", fmt.Sprintf("internal error: the handler wrote %d replies", ch.rb.Replies)}
		if !ch.rb.Whole() {
			err = &Error{"ERR", "internal error: the handler wrote less than it announced"}
		}
		r.m.c.server.Logger.Error("resp: a handler must write one whole reply", "command", string(sess.lastName(r)), "replies", ch.rb.Replies)
	} else {
		err = r.req.because(err)
	}
	sess.buf = sess.buf[:r.from]
	ch.rb.Reset()
	_ = sess.WriteError(err)
}

// lastName is the name of the command that r has just read or run, if it has one.
func (s *Session) lastName(r *muxReader) []byte {
	if len(r.args) == 0 {
		return nil
	}
	return r.args[0]
}

// serve decodes the arguments and calls the handler; a panic closes the channel, and of channel 0 the connection.
func (r *muxReader) serve() (err error) {
	c := r.m.c
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		c.server.Logger.Error("resp: a handler panicked, its channel is closed",
			"panic", p, "remote", c.nc.RemoteAddr(), "channel", r.ch.id, "stack", string(debug.Stack()))
		err = &Error{"ERR", "internal error"}
		if r.ch.id == 0 {
			c.reason = err
			return
		}
		c.out.mu.Lock()
		r.ch.closeLocked(closeInternal, "internal error", err)
		c.out.mu.Unlock()
	}()
	if r.unknown != 0 {
		return Errorf("ERR", "unknown frame 0x%04X", r.unknown)
	}
	sess, req := r.ch.sess, &r.req
	if !c.server.HandshakeByHandler {
		if done, err := c.builtin(sess, req); done || err != nil {
			return err
		}
	}
	return c.server.served(sess, req)
}

// arguments makes a frame's arguments the request's: bytes are those of the frame, everything else is written out as text.
func (r *muxReader) arguments(f *frame.RequestFrame, raw []byte) {
	args, text := r.args[:0], r.text[:0]
	r.req.typed, r.req.opcode, r.req.ctx, r.unknown = nil, 0, nil, 0
	if f.Layout == nil && f.Opcode != frame.Argv && f.Opcode != frame.Passthrough {
		r.unknown = f.Opcode
	}
	if f.Layout != nil {
		text = append(text, f.Layout.Name...)
		args = append(args, text[:len(text):len(text)])
		r.req.typed = r.fargs.List
		if f.Opcode <= frame.CoreLast {
			r.req.opcode = int(f.Opcode) + 1
		}
	}
	for i := range r.fargs.List {
		a := &r.fargs.List[i]
		if a.Kind == frame.Bytes {
			args = append(args, a.Bytes(raw))
			continue
		}
		from := len(text)
		text = a.AppendText(text, raw)
		args = append(args, text[from:len(text):len(text)])
	}
	r.args, r.text, r.req.args = args, text, args
}
