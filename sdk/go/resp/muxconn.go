package resp

// This file owns what the channels of a RESPB connection share: which there are, the line in which their frames wait for the
// client, HELLO's part about RESPB, and the end of the connection.

import (
	"sync/atomic"

	"github.com/weft-db/weft/sdk/go/internal/frame"
	"github.com/weft-db/weft/sdk/go/internal/rawio"
)

// capFragment is the capability of a client that puts FRAGMENT frames together (spec section 7.4).
const capFragment = 1

// capsFixed marks what is kept of the capabilities: the connection's first HELLO has fixed them.
const capsFixed = 1 << 62

// profiles are what the server speaks (spec section 1.4).
var profiles = []string{"channels", "typed", "flow", "cancel", "passthrough"}

// queueBytes is how much is on its way to a client before the rest waits in its channel: as much as a socket takes at once, so that
// a large reply leaves room for others' soon.
const queueBytes = 2 * blockBytes

// muxConn is a connection that speaks RESPB.
type muxConn struct {
	c      *serverConn
	caps   atomic.Int64
	authed atomic.Bool // somebody on the connection is authenticated
	slow   atomic.Bool // frames wait for the client: replies are handed over one by one
	quit   atomic.Bool // the connection ends when what was decoded has been answered

	// The reader's; it is one goroutine at a time.
	zero  *channel
	pages *[256]*[256]*channel // channels by number, without 0
	count int

	first *muxReader

	// Guarded by c.out.mu.
	waits    map[*channel]struct{} // have a cancel
	stopping error                 // what those that begin to wait are cancelled with at once
	over     bool                  // the last reader has ended; out.settled tells
	apart    int                   // goroutines beside the reader; out.settled tells when it is 0
	ring     []*channel            // have frames to send, and credit
	lined    int                   // bytes that wait in the ring's channels
	late     []*channel            // have pushes that wait for the end of the batch
	ending   []*channel            // were closed during the batch
	refused  int                   // channels that were refused and whose CLOSE is not answered
	away     bool                  // GOAWAY has been sent: no CLOSE any more
}

// refusedMax is how many channels may stand refused, each with the client's CLOSE to come; one more ends the connection.
const refusedMax = 1024

// sniff looks at the first byte that is not blank and reports whether the connection speaks RESPB from here on.
func (c *serverConn) sniff() bool {
	p := &c.in
	for p.pos < p.end {
		switch b := p.buf[p.pos]; {
		case b == ' ' || b == '\r' || b == '\n' || b == '\t':
			p.pos++
			p.start = p.pos
			continue
		case b > 0x07 && b < 0xF0:
			c.sniffing = false
			return false
		}
		c.sniffing = false
		c.sess.SetRESP2Compat(false)
		c.out.mu.Lock()
		c.startRESPB()
		c.out.mu.Unlock()
		c.mux.first.opening = true
		c.enterRESPB()
		return true
	}
	return false
}

// switchToRESPB answers a HELLO that asks for RESPB. Pushes that wait are RESP and go before the reply; those that come later are RESPB.
func (c *serverConn) switchToRESPB(s *Session, caps int64) error {
	if c.in.head != len(c.in.ends) {
		return &Error{"ERR", "commands follow HELLO PROTO in one pipeline; wait for its reply"}
	}
	c.out.mu.Lock()
	pushes := c.out.pushes
	c.out.pushes = nil
	c.startRESPB()
	c.out.mu.Unlock()
	c.mux.setCaps(caps)
	if err := s.grow(len(pushes)); err != nil {
		return err
	}
	s.buf = append(s.buf, pushes...)
	err := c.writeHello(s, 3) // the last of RESP
	c.sniffing = false
	c.enterRESPB()
	return err
}

// startRESPB makes c a RESPB connection for whoever pushes. out.mu is held.
func (c *serverConn) startRESPB() {
	m := &muxConn{c: c}
	m.authed.Store(c.sess.authed)
	m.first = newMuxReader(m)
	m.zero = &channel{m: m, sess: &c.sess}
	m.count = 1
	c.mux, c.root = m, m.zero
	c.out.mux = m
	// While a handler waits another goroutine reads. Channel 0 has the connection's session, which would have it watched.
	c.out.watch = nil
	c.out.max = 2*c.out.max + queueBytes // each channel is bounded by itself; this is for one reply above the rest
	c.sess.speaks.Store(speaksRESPB)
	c.server.counts.binary.Add(1)
	c.server.counts.channels.Add(1)
}

// enterRESPB gives the bytes behind the last RESP command to the reader of frames. The session's Writer changes when the last RESP reply
// has been sent; see run.
func (c *serverConn) enterRESPB() {
	p := &c.in
	if p.end > p.start {
		p.restart()
		c.mux.first.take(p.buf[p.start:p.end])
	}
	p.start, p.pos, p.end = 0, 0, 0
	c.inquiry = rawio.Inquiry{} // frames are read without
	p.spans, p.ends, p.head, p.taken, p.cut = p.spans[:0], p.ends[:0], 0, 0, false
}

// run serves the connection to its end.
func (m *muxConn) run() {
	c := m.c
	c.in.release()
	m.zero.adopt(0)
	c.count(m.endBatch())
	m.first.loop()
	c.out.mu.Lock()
	for !m.over || m.apart > 0 { // another goroutine may be the reader by now
		c.out.settled.Wait()
	}
	if m.drained() {
		m.goodbye()
	}
	c.out.mu.Unlock()
	c.server.counts.binary.Add(-1)
}

// leaves is called by a goroutine beside the reader at its end.
func (m *muxConn) leaves() {
	m.c.out.mu.Lock()
	m.apart--
	m.c.out.settled.Broadcast()
	m.c.out.mu.Unlock()
}

// drained reports whether the connection ends because the server does, and not for a reason of its own.
func (m *muxConn) drained() bool { return m.c.reason == nil && m.c.deadline.over() }

// goodbye sends GOAWAY. What waits for credit is sent all the same (spec section 8.5). out.mu is held.
func (m *muxConn) goodbye() {
	m.away = true
	m.each(func(ch *channel) {
		ch.windowed = false
		ch.enter()
	})
	why := frame.Control{Code: closeShutdown, Reason: []byte("the server shuts down")}
	_ = m.c.out.sendLocked(frame.AppendControl(nil, 0, frame.GoAway, why)) // the connection ends either way
	_ = m.pump()
}

// adopt makes the session of ch write frames.
func (ch *channel) adopt(id uint16) {
	ch.id, ch.rb.Channel = id, id
	s := ch.sess
	s.rb, s.resp2, s.hold = &ch.rb, false, 1
	s.max = ch.m.c.server.limits.OutputBytesMax
	s.settle()
}

// find returns a channel that is not idle, or nil.
func (m *muxConn) find(id uint16) *channel {
	if id == 0 {
		return m.zero
	}
	if m.pages == nil || m.pages[id>>8] == nil {
		return nil
	}
	return m.pages[id>>8][id&0xFF]
}

// open makes an idle channel one that is open; it returns nil if there are too many.
func (m *muxConn) open(id uint16) *channel {
	s := m.c.server
	most := s.limits.ChannelsMax
	if !m.authed.Load() {
		most = min(most, s.limits.UnauthChannelsMax)
	}
	if m.count >= most && id != 0 {
		return nil
	}
	sess := new(Session)
	ch := &channel{m: m, id: id, sess: sess}
	sess.sink, sess.more, sess.batch = &m.c.out, &never, true
	sess.id, sess.server, sess.link = s.ids.Add(1), s, ch
	sess.speaks.Store(speaksRESPB)
	if s.Auth == nil || s.HandshakeByHandler {
		sess.Authenticate("default")
	}
	if id == 0 {
		m.zero = ch
	} else {
		m.put(ch)
	}
	m.count++
	ch.adopt(id)
	s.counts.channels.Add(1)
	m.begin(ch)
	return ch
}

// put gives a channel other than 0 its number.
func (m *muxConn) put(ch *channel) {
	if m.pages == nil {
		m.pages = new([256]*[256]*channel)
	}
	if m.pages[ch.id>>8] == nil {
		m.pages[ch.id>>8] = new([256]*channel)
	}
	m.pages[ch.id>>8][ch.id&0xFF] = ch
}

// forget makes a channel's number idle.
func (m *muxConn) forget(id uint16) {
	if ch := m.find(id); ch.refused {
		m.refused--
	} else {
		m.count--
	}
	if id == 0 {
		m.zero = nil
		return
	}
	m.pages[id>>8][id&0xFF] = nil
}

// each calls fn for every channel that is not idle.
func (m *muxConn) each(fn func(ch *channel)) {
	if m.zero != nil {
		fn(m.zero)
	}
	if m.pages == nil {
		return
	}
	for _, page := range m.pages {
		if page == nil {
			continue
		}
		for _, ch := range page {
			if ch != nil {
				fn(ch)
			}
		}
	}
}

// full reports whether enough is on its way to the client. out.mu is held.
func (m *muxConn) full() bool {
	o := &m.c.out
	return o.sending && len(o.queue)+o.flying >= queueBytes
}

// sliced reports whether a frame of n bytes goes as slices.
func (m *muxConn) sliced(n int) bool {
	return n > frame.FragmentBytesMax && m.caps.Load()&capFragment != 0
}

// refill moves what channels have waiting to the queue, one frame or slice of each in turn. out.mu is held.
func (m *muxConn) refill() {
	o := &m.c.out
	for len(m.ring) > 0 && len(o.queue) < queueBytes {
		ch := m.ring[0]
		m.ring = m.ring[1:]
		ch.inRing = false
		m.lined -= ch.waiting
		if len(ch.backlog) == 0 {
			continue
		}
		before := len(o.queue)
		o.queue = ch.slice(o.queue)
		o.total += int64(len(o.queue) - before)
		ch.enter()
	}
	if len(m.ring) == 0 {
		m.ring = nil
		m.slow.Store(false)
	}
}

// crowded reports whether more waits for the socket, on all channels together, than two of them may have. What waits for credit does not
// count: the frame that brings it has to be read. out.mu is held.
func (m *muxConn) crowded() bool { return m.lined > 2*m.c.server.limits.OutputBytesMax }

// pump starts sending what waits, if nobody is sending. out.mu is held.
func (m *muxConn) pump() error {
	o := &m.c.out
	if o.sending || o.err != nil || len(m.ring) == 0 {
		return o.err
	}
	m.refill()
	if b := o.queue; len(b) > 0 {
		o.queue = nil
		return o.sendNow(b)
	}
	return nil
}

// endBatch sends what waited for the replies of a batch and ends the sessions that were closed in it.
func (m *muxConn) endBatch() (sent int64) {
	o := &m.c.out
	o.mu.Lock()
	o.batch = false
	late, ending := m.late, m.ending
	m.late, m.ending = nil, nil
	for _, ch := range ending {
		if !ch.busy || ch.heir.waits {
			ch.part()
		}
	}
	for _, ch := range late {
		if !ch.hold {
			ch.releaseLate()
		}
	}
	sent, o.total = o.total, 0
	o.mu.Unlock()
	for _, ch := range ending {
		ch.endIfOver()
	}
	return sent
}

// setCaps notes what the client can, once for a connection; a negative mask means that it did not say.
func (m *muxConn) setCaps(mask int64) {
	m.caps.CompareAndSwap(0, max(mask, 0)&capFragment|capsFixed)
}

// writeHello writes what HELLO tells about RESPB (spec section 7.4).
func (m *muxConn) writeHello(w *Writer) error {
	l, f := &m.c.server.limits, &m.c.server.frames[0]
	_ = w.WriteMapHeader(5)
	_ = w.WriteBulkString("version")
	_ = w.WriteInt(1)
	_ = w.WriteBulkString("profiles")
	_ = w.WriteArrayHeader(len(profiles))
	for _, profile := range profiles {
		_ = w.WriteBulkString(profile)
	}
	_ = w.WriteBulkString("table")
	_ = w.WriteMapHeader(3)
	_ = w.WriteBulkString("name")
	_ = w.WriteBulkString(frame.TableName)
	_ = w.WriteBulkString("version")
	_ = w.WriteInt(frame.TableVersion)
	_ = w.WriteBulkString("hash")
	_ = w.WriteBulkString(frame.TableHash)
	_ = w.WriteBulkString("capabilities")
	_ = w.WriteInt64(m.caps.Load() & capFragment)
	_ = w.WriteBulkString("limits")
	limits := []struct {
		name  string
		value int64
	}{
		{"channels", int64(l.ChannelsMax)}, {"unauthenticated_channels", int64(l.UnauthChannelsMax)},
		{"queue_bytes", int64(l.QueueBytesMax)}, {"output_bytes", int64(l.OutputBytesMax)},
		{"frame_bytes", int64(f.FrameBytesMax)}, {"arguments", int64(f.ArgumentsMax)},
		{"argument_bytes", int64(f.ArgumentBytesMax)}, {"nesting", frame.NestingMax},
		{"elements", int64(f.ElementsMax)}, {"fragment_bytes", frame.FragmentBytesMax},
	}
	err := w.WriteMapHeader(len(limits))
	for _, limit := range limits {
		_ = w.WriteBulkString(limit.name)
		err = w.WriteInt64(limit.value)
	}
	return err
}

// cancelAll cancels everything that waits and, unless the server only lets commands finish, drops what queues behind it. out.mu is
// held.
func (m *muxConn) cancelAll(cause error) {
	m.stopping = cause
	for ch := range m.waits {
		ch.cancel(cause)
		if cause != ErrShuttingDown {
			ch.sess.cancelContext(cause)
			ch.queue, ch.queued = nil, 0
		}
	}
}

// endAll ends the sessions of the channels that there are. No goroutine is left beside the caller.
func (m *muxConn) endAll(reason error) {
	o := &m.c.out
	var over []*channel
	o.mu.Lock()
	m.each(func(ch *channel) {
		if ch.reason == nil {
			ch.reason = reason
		}
		ch.state = channelDead
		if !ch.ended {
			ch.ended = true
			over = append(over, ch)
		}
	})
	o.mu.Unlock()
	for _, ch := range over {
		ch.end()
	}
}
