package resp

// This file owns the reading of a RESPB connection: bytes → frames → channels → handler → replies.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/weft-db/weft/sdk/go/internal/frame"
	"github.com/weft-db/weft/sdk/go/internal/rawio"
)

// muxReader reads frames and runs their requests. A request that is going to wait keeps its reader, whose buffer its arguments are in, and
// a new one goes on with the bytes behind it.
type muxReader struct {
	m     *muxConn
	dec   frame.RequestDecoder
	buf   []byte // buf[start:end] has not been handled
	block *block
	start int
	end   int

	onRead func(fd uintptr) bool
	n      int
	err    error

	fargs   frame.Args
	req     Request
	args    [][]byte
	few     [3][]byte // args of a straight request, and its name
	name    [14]byte
	unknown uint16 // the opcode, when the frame is none that is known
	opening bool   // the next frame is the connection's very first
	away    bool   // the request waits: this is no longer the connection's reader
	seq     uint32 // number of the request that runs
	plain   int    // frame.StraightMax of limits, 0 before the first frame
	text    []byte // of names, keywords and numbers among args

	out      []byte // replies that were gathered
	outBlock *block

	ch   *channel // whose request runs
	from int      // where its reply begins in its session's buffer
}

func newMuxReader(m *muxConn) *muxReader {
	r := &muxReader{m: m}
	r.req.waiter = r
	r.dec = *frame.NewRequestDecoder(&m.c.server.frames[0])
	r.onRead = r.readReady
	return r
}

// take puts bytes that were read already before those to come.
func (r *muxReader) take(b []byte) {
	r.room(len(b))
	r.end += copy(r.buf[r.end:], b)
}

// room makes space for n bytes or more behind end.
func (r *muxReader) room(n int) {
	if r.start == r.end {
		r.start, r.end = 0, 0
		if len(r.buf) > blockBytes {
			r.buf = nil
		}
	}
	used := r.end - r.start
	switch {
	case r.buf == nil && used+n <= blockBytes:
		r.buf = takeBlock(&r.block)
	case len(r.buf)-r.end >= n && (r.start == 0 || len(r.buf)-r.end >= len(r.buf)/4):
	case len(r.buf)-used >= n && used <= len(r.buf)/2:
		copy(r.buf, r.buf[r.start:r.end])
		r.start, r.end = 0, used
	default:
		// About twice what has arrived, never what was announced.
		fresh := make([]byte, max(2*len(r.buf), used+n))
		copy(fresh, r.buf[r.start:r.end])
		r.start, r.end = 0, used
		r.buf = fresh
		releaseBlock(&r.block)
	}
}

// release gives the buffers back if nothing is in them.
func (r *muxReader) release() {
	if r.start == r.end {
		r.start, r.end, r.buf = 0, 0, nil
		releaseBlock(&r.block)
	}
	if cap(r.args) > keepArgs || cap(r.fargs.List) > keepArgs {
		r.args, r.fargs.List = nil, nil
	}
	if cap(r.text) > smallBytes {
		r.text = nil
	}
	clear(r.args)
}

// loop serves the connection until it ends, or until a request of it waits and another goroutine has taken over.
func (r *muxReader) loop() {
	c := r.m.c
	more := r.start < r.end
	for {
		if more && !r.process() {
			break
		}
		if !r.fill() {
			break
		}
		more = true
	}
	if r.away {
		return
	}
	r.buf, r.start, r.end = nil, 0, 0
	r.release()
	releaseBlock(&r.outBlock)
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if r.m.drained() {
		r.m.cancelAll(ErrShuttingDown)
	} else {
		r.m.cancelAll(net.ErrClosed)
	}
	r.m.over = true
	c.out.settled.Broadcast()
}

// fill reads once. It reports whether the connection goes on.
func (r *muxReader) fill() bool {
	c := r.m.c
	for c.reason == nil && !r.m.quit.Load() {
		r.n, r.err = 0, nil
		var err error
		if c.raw != nil {
			err = c.raw.Read(r.onRead)
		} else if r.park() {
			r.room(1)
			r.n, err = c.nc.Read(r.buf[r.end:])
		}
		if r.n > 0 {
			r.end += r.n
			c.bytesIn += int64(r.n)
			return true
		}
		if err == nil {
			err = r.err
		}
		if err != nil && c.reason == nil {
			c.reason = r.interrupted(err)
		}
	}
	return false
}

// interrupted tells whether an error of reading ends the connection, and what then the reason is. As for RESP, a deadline may have been
// set by others to wake the reader.
func (r *muxReader) interrupted(err error) error {
	c := r.m.c
	failed := c.out.failed()
	switch {
	case failed != nil:
		return failed
	case err == io.EOF:
		r.m.quit.Store(true)
		if r.end > r.start {
			return io.ErrUnexpectedEOF
		}
		return nil
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case c.deadline.over():
		r.m.quit.Store(true)
		return nil
	case r.m.quit.Load() || !c.deadline.passed():
		return nil
	}
	return err
}

// readReady reads without waiting; false waits for more, without a buffer unless a frame is half received.
func (r *muxReader) readReady(fd uintptr) bool {
	r.room(1)
	n, again, err := rawio.Read(fd, r.buf[r.end:])
	if again {
		r.release()
		return !r.park()
	}
	r.n, r.err = n, err
	return true
}

// park prepares to wait for the client and reports whether that may be.
func (r *muxReader) park() bool {
	c := r.m.c
	timeout, partial := c.server.IdleTimeout, r.end > r.start
	if partial {
		timeout = c.server.ReadTimeout
	}
	if c.deadline.within(timeout, partial) {
		return true
	}
	r.m.quit.Store(true)
	return false
}

// process handles the frames that are whole and reports whether reading may go on here.
func (r *muxReader) process() bool {
	c := r.m.c
	c.out.begin()
	for c.reason == nil && !r.m.quit.Load() {
		if channel, raw := r.straight(); raw != nil {
			r.request(channel, raw)
			if r.away {
				return false
			}
			r.holdBack()
			continue
		}
		f, raw, err := r.decode()
		if err == frame.ErrIncomplete {
			break
		}
		if err == nil && r.opening {
			err = firstFrame(raw)
		}
		if r.opening {
			r.opening = false // from here on straight
		}
		if err != nil {
			r.refuse(err, raw)
			break
		}
		if f.Opcode >= frame.IgnorableFirst && f.Opcode != frame.Passthrough {
			r.control(&f)
		} else {
			r.arguments(&f, raw)
			r.request(f.Channel, raw)
		}
		if r.away {
			return false
		}
		r.holdBack()
	}
	r.flush()
	if c.deadline.over() {
		r.m.quit.Store(true)
	}
	return c.reason == nil && !r.m.quit.Load()
}

// holdBack waits in the middle of a batch for a client that has too much to read; one batch can ask for far more than that.
func (r *muxReader) holdBack() {
	if r.m.slow.Load() {
		r.m.c.out.holdBack()
	}
}

// straight takes the next frame if it is whole and simple, and makes its arguments the request's.
func (r *muxReader) straight() (channel uint16, raw []byte) {
	if r.plain == 0 || r.dec.Need() != 0 {
		return 0, nil
	}
	in := r.buf[r.start:r.end]
	size, n, aEnd, b, bEnd, name := frame.Straight(in, r.plain)
	if size == 0 {
		return 0, nil
	}
	r.name = name.Text // a copy, because a handler may change what it gets
	args := r.few[:n+1]
	args[0] = r.name[:name.Len:name.Len]
	if n > 0 {
		args[1] = in[6:aEnd:aEnd]
	}
	if n > 1 {
		args[2] = in[b:bEnd:bEnd]
	}
	r.args, r.req.args, r.req.typed, r.req.ctx = args, args, nil, nil
	r.req.opcode, r.unknown = int(in[0])<<8+int(in[1])+1, 0
	r.start += size
	return uint16(in[2])<<8 | uint16(in[3]), in[:size:size]
}

// decode decodes the next frame and returns its bytes; after an error all that follow.
func (r *muxReader) decode() (f frame.RequestFrame, raw []byte, err error) {
	in := r.buf[r.start:r.end]
	if r.dec.Need() == 0 {
		if len(in) == 0 {
			return f, nil, frame.ErrIncomplete
		}
		r.fargs.Reset()
		limits := &r.m.c.server.frames[0]
		if !r.m.authed.Load() {
			limits = &r.m.c.server.frames[1]
		}
		if limits != r.dec.Limits() {
			r.dec.SetLimits(limits)
			r.plain = 0
		}
		if r.plain == 0 && !r.opening {
			r.plain = frame.StraightMax(limits)
		}
	}
	f, err = r.dec.Decode(in, &r.fargs)
	if err != nil {
		return f, in, err
	}
	r.start += f.Len
	return f, in[:f.Len:f.Len], nil
}

// errZeroStream refuses what a stream of zero bytes would be taken for (spec section 7.1).
var errZeroStream = &ProtocolError{"a connection may not begin with a command on an empty key"}

// firstFrame refuses six zero bytes: GET of an empty key on channel 0.
func firstFrame(raw []byte) error {
	if len(raw) >= 6 && [6]byte(raw[:6]) == [6]byte{} {
		return errZeroStream
	}
	return nil
}

// refuse answers bytes that are no frame, and ends the connection.
func (r *muxReader) refuse(err error, in []byte) {
	c := r.m.c
	text := err.Error()
	var wire *frame.WireError
	var opcode uint16
	if len(in) >= 4 {
		opcode = uint16(in[0])<<8 | uint16(in[1])
	}
	if errors.As(err, &wire) {
		text = wire.Text()
		if wire.Name == frame.UnknownOpcode || wire.Name == frame.WrongDirection {
			text = fmt.Sprintf("%s 0x%04X", text, opcode)
			if opcode == frame.ModuleCommand && len(in) >= 8 {
				text = fmt.Sprintf("%s module 0x%04X command 0x%04X", text, in[4:6], in[6:8])
			}
		}
		c.reason = &ProtocolError{text[len("Protocol error: "):]}
	} else {
		c.reason = err
	}
	// GOAWAY is the last frame, wherever the stream was cut: what was closed in this batch goes before it.
	r.goAway(frame.Control{Code: closeBytes, Reason: []byte("ERR " + text)}, c.reason)
}

// flush ends a batch: what was written is sent, then what was pushed meanwhile.
func (r *muxReader) flush() {
	c := r.m.c
	if len(r.out) > 0 {
		r.send(r.out)
		r.out = r.out[:0]
	}
	if r.outBlock != nil || cap(r.out) > smallBytes {
		r.out = nil
		releaseBlock(&r.outBlock)
	}
	sent := r.m.endBatch()
	if c.commands > 0 {
		c.deadline.active()
	}
	c.count(sent)
}

// control handles a control frame.
func (r *muxReader) control(f *frame.RequestFrame) {
	m := r.m
	switch f.Opcode {
	case frame.Close:
		r.closed(f.Channel)
	case frame.Cancel:
		m.cancel(m.find(f.Channel), f.Control.Sequence)
	case frame.Window:
		ch := m.find(f.Channel)
		if ch == nil {
			if ch = m.open(f.Channel); ch == nil {
				r.tooMany(f.Channel)
				return
			}
		}
		m.c.out.mu.Lock()
		defer m.c.out.mu.Unlock()
		if ch.state != channelOpen {
			return // what has run is on its way without credit
		}
		ch.windowed = true
		ch.credit += int64(f.Control.More)
		ch.settle()
		ch.enter()
		_ = m.pump() // a failure is the connection's and seen by its reader
	}
}

// closed handles the client's CLOSE, which is an answer or asks for one. On an idle channel it is ignored, so that no answer can meet
// a number that is in use again.
func (r *muxReader) closed(id uint16) {
	m := r.m
	ch := m.find(id)
	if ch != nil {
		m.c.out.mu.Lock()
		answered := ch.state > channelEnding
		ch.state = channelDead
		if !answered {
			ch.drop(ch.reason)
		}
		if m.c.root == ch {
			m.c.root.special.Store(true)
		}
		m.c.out.mu.Unlock()
		m.forget(id)
		if !answered {
			r.out = frame.AppendControl(r.out, id, frame.Close, frame.Control{})
		}
	}
}

// cancel ends a request that waits in the queue or in its handler.
func (m *muxConn) cancel(ch *channel, seq uint32) {
	if ch == nil {
		return
	}
	m.c.out.mu.Lock()
	defer m.c.out.mu.Unlock()
	// The queue first: of a channel that has only just stopped to wait for a login nothing runs, though it is busy.
	for i := range ch.queue {
		if ch.queue[i].sequence == seq {
			ch.queue[i].cancelled = true
			return
		}
	}
	if ch.busy && ch.running == seq {
		ch.cancelled = true // for one that was queued and has not come to wait yet
		if ch.cancel != nil {
			ch.cancel(ErrCancelled)
		}
	}
}

// wait is called by a handler that is going to wait. The first call hands the connection to another goroutine.
func (r *muxReader) wait() context.Context {
	m, ch := r.m, r.ch
	o := &m.c.out
	ctx, cancel := context.WithCancelCause(ch.sess.Context())
	if !r.away {
		next := r.handOver()
		defer func() { go next.loop() }() // ends with the connection or hands over in turn; over tells
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	ch.running, ch.cancel = r.seq, cancel
	if m.waits == nil {
		m.waits = map[*channel]struct{}{}
	}
	m.waits[ch] = struct{}{}
	ch.hold = false
	ch.releaseLate()
	switch {
	case ch.state != channelOpen:
		cancel(net.ErrClosed)
	case m.stopping != nil:
		cancel(m.stopping)
	case ch.cancelled:
		cancel(ErrCancelled)
	}
	return ctx
}

// handOver sends what was answered so far and returns a reader for what comes, to be started when a CANCEL finds the request.
func (r *muxReader) handOver() *muxReader {
	m, ch := r.m, r.ch
	c := m.c
	sess := ch.sess
	if r.from > 0 {
		r.send(sess.buf[:r.from])
		sess.buf = sess.buf[:copy(sess.buf, sess.buf[r.from:])]
		r.from = 0
	}
	next := newMuxReader(m)
	if r.end > r.start {
		next.take(r.buf[r.start:r.end])
		r.end = r.start
	}
	c.out.mu.Lock()
	ch.busy, ch.running = true, r.seq
	ch.noteLogin(r.seq, ch.sess.lastName(r))
	ch.settle()
	m.apart++ // this goroutine
	c.out.mu.Unlock()
	c.count(m.endBatch())
	c.deadline.active()
	r.away = true
	return next
}

// finishAway sends the reply of a request that has waited and runs what queued behind it.
func (r *muxReader) finishAway() {
	m, ch := r.m, r.ch
	defer m.leaves()
	for r.reply() {
		ch.sess.buf, r.from = ch.sess.buf[:0], 0
		q, ok := r.pop()
		if !ok {
			break
		}
		r.next(q)
	}
	r.buf, r.start, r.end = nil, 0, 0
	r.release()
	ch.endIfOver()
}

// reply sends what was written and reports whether the channel goes on.
func (r *muxReader) reply() bool {
	m, ch := r.m, r.ch
	sess, o := ch.sess, &m.c.out
	if sess.err != nil {
		r.overflow()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if ch.cancel != nil {
		ch.cancel(context.Canceled)
		ch.cancel = nil
		delete(m.waits, ch)
	}
	if len(sess.buf) > 0 && ch.state <= channelEnding {
		_ = ch.emitOwned(append([]byte(nil), sess.buf...)) // a failure is the connection's and seen by its reader
	}
	ch.hold = false
	ch.releaseLate()
	switch {
	case sess.closing && ch.id == 0:
		m.quit.Store(true)
		m.c.deadline.expire()
	case sess.closing:
		ch.closeLocked(closeDone, "", nil)
	}
	if ch.state != channelOpen || o.err != nil || sess.closing {
		ch.idle()
		ch.part()
		return false
	}
	return true
}

// idle ends the running of requests apart from the reader, whose session it is again from then on. out.mu is held.
func (ch *channel) idle() {
	ch.sess.buf = nil
	releaseBlock(&ch.sess.block)
	ch.busy, ch.queue, ch.queued = false, nil, 0
	ch.admit(true)
	ch.settle()
}

// pop takes the next request out of the queue; when there is none the channel is the reader's again.
func (r *muxReader) pop() (queued, bool) {
	ch := r.ch
	o := &r.m.c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	ch.cancelled = false
	if len(ch.queue) == 0 || ch.state != channelOpen {
		ch.idle()
		return queued{}, false
	}
	ch.admit(false)
	q := ch.queue[0]
	ch.queue[0] = queued{}
	ch.queue = ch.queue[1:]
	ch.queued -= len(q.frame)
	ch.running, ch.cancelled, ch.hold = q.sequence, q.cancelled, true
	return q, true
}

// next runs a request that was queued.
func (r *muxReader) next(q queued) {
	r.seq = q.sequence
	r.fargs.Reset()
	f, err := r.dec.Decode(q.frame, &r.fargs)
	if err != nil || q.cancelled {
		r.ch.rb.Reset()
		_ = r.ch.sess.WriteError(ErrCancelled) // it was decoded once, so err is nil
		return
	}
	r.m.c.server.counts.commands.Add(1)
	r.arguments(&f, q.frame)
	r.answer()
}
