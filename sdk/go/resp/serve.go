package resp

// This file owns one connection of a Server: bytes → commands → handler → replies → bytes.

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/weft-db/weft/sdk/go/internal/rawio"
)

type serverConn struct {
	server  *Server
	nc      net.Conn
	remote  net.Addr // the client, behind a proxy too
	plain   net.Conn // where a PROXY header comes, if one does
	raw     syscall.RawConn
	inquiry rawio.Inquiry
	onRead  func(fd uintptr) bool

	in     parser
	out    outbox
	sess   Session
	req    Request
	body   *Body // nil until one was streamed
	reason error // why the connection ends

	from  int  // where the running command's reply begins in sess.buf
	sends uint // sess.sends then

	mux  *muxConn // set once the connection speaks RESPB; changed under out.mu
	root *channel // channel 0 as long as it is sess; the same

	// Together, because every connection pays for the room between them.
	proxied  bool // a PROXY header comes first
	sniffing bool // no byte has come that tells the protocol
	stream   bool // req waits for a place where its body can be read
	waited   bool // the running command has let pushes pass

	watch    *watcher                // nil until a handler has asked for a context
	cancel   context.CancelCauseFunc // of the running command's context; guarded by out.mu
	deadline deadline
	commands int64
	bytesIn  int64
}

func (s *Server) newConn(nc net.Conn) *serverConn {
	plain := nc
	if s.TLSConfig != nil {
		nc = tls.Server(nc, s.TLSConfig)
	}
	c := &serverConn{server: s, nc: nc, raw: rawio.ConnOf(nc), remote: nc.RemoteAddr()}
	if s.trusts(c.remote) {
		c.proxied, c.plain = true, plain
	}
	if c.onRead = c.readReady; c.raw != nil {
		c.inquiry.Begin(nc, c.raw)
	}
	c.sniffing = s.RESPB == RESPBDetect
	c.in.init(&s.limits)
	c.in.wide = c.raw != nil
	c.out.init(nc, s.limits.OutputBytesMax, max(s.WriteTimeout, 0), c.stopped)
	c.out.watch = c.arm
	c.deadline.nc, c.deadline.draining = nc, s.draining

	sess := &c.sess
	sess.sink, sess.more, sess.max, sess.batch = &c.out, &never, s.limits.OutputBytesMax, true
	sess.settle()
	sess.id, sess.server, sess.link = s.ids.Add(1), s, c
	sess.SetRESP2Compat(!s.StartRESP3)
	if s.Auth == nil || s.HandshakeByHandler {
		sess.Authenticate("default")
	}
	c.in.setLimits(&s.limits, !sess.authed)
	if m, ok := s.Handler.(Streamer); ok {
		if from, names := m.Streams(); from > 0 {
			c.in.setStream(from, names)
		}
	}
	return c
}

func (c *serverConn) LocalAddr() net.Addr  { return c.nc.LocalAddr() }
func (c *serverConn) RemoteAddr() net.Addr { return c.remote }

// push is called from any goroutine; see link.
func (c *serverConn) push(speaks uint32, encoded []byte) error {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if c.mux == nil {
		return c.out.pushLocked(encoded)
	}
	if speaks != speaksRESPB {
		return errSpeaks
	}
	return c.root.pushLocked(encoded)
}

// drain is told that the server shuts down: who waits for the client ends, and a handler that waits is told.
func (c *serverConn) drain() {
	c.deadline.expire()
	c.cancelRunning(ErrShuttingDown)
}

// stopped is told that nothing is sent any more. out.mu is held.
func (c *serverConn) stopped() {
	c.deadline.expire()
	if c.cancel != nil {
		c.cancel(c.out.err)
	}
	if c.mux == nil {
		c.sess.cancelContext(c.out.err)
	}
}

// gone is told by the watcher that the client is not there any more.
func (c *serverConn) gone(err error) {
	if err == io.EOF {
		err = ErrClientGone
	}
	c.cancelRunning(err)
	c.sess.cancelContext(err)
}

// cancelRunning ends the context of the running command.
func (c *serverConn) cancelRunning(cause error) {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if c.cancel != nil {
		c.cancel(cause)
	}
}

// watched is told by the session that somebody has its context.
func (c *serverConn) watched() {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	c.out.watching()
}

// arm has the connection watched. out.mu is held.
func (c *serverConn) arm() {
	if c.watch == nil {
		c.watch = &watcher{conn: c}
	}
	c.watch.arm()
}

// wait is called by a handler that is going to wait: what was written before its reply is sent, and pushes no longer wait for it.
func (c *serverConn) wait() context.Context {
	sess := &c.sess
	if len(sess.buf) == c.from && c.from > 0 && sess.hold == 0 && sess.skip == 0 {
		_ = sess.sendAll()
		c.from, c.sends = len(sess.buf), sess.sends
	}
	if len(sess.buf) == 0 {
		c.out.pause()
		c.waited = true
	}
	ctx, cancel := context.WithCancelCause(sess.Context())
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	c.cancel = cancel
	switch {
	case c.out.err != nil:
		cancel(c.out.err)
	case c.deadline.over():
		cancel(ErrShuttingDown)
	}
	return ctx
}

// kill cuts the connection.
func (c *serverConn) kill(err error) {
	c.out.mu.Lock()
	c.out.stop(err)
	c.out.mu.Unlock()
}

// serve runs the connection to its end and returns the reason.
func (c *serverConn) serve() (reason error) {
	s := c.server
	defer s.serving.Done()
	defer func() {
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
		s.counts.closed.Add(1)
	}()
	if c.proxied {
		if err := c.readProxy(); err != nil {
			s.counts.protocol.Add(1)
			_ = c.nc.Close()
			return err
		}
	}
	c.run()
	reason = c.close()
	if c.mux != nil {
		c.mux.endAll(reason)
	} else {
		c.sess.end()
		if s.OnClose != nil {
			s.guard("OnClose", c.remote, func() { s.OnClose(&c.sess, reason) })
		}
	}
	return reason
}

// run reads and answers until something ends the connection.
func (c *serverConn) run() {
	defer func() {
		if p := recover(); p != nil {
			c.server.Logger.Error("resp: a handler panicked, its connection is closed",
				"panic", p, "remote", c.remote, "stack", string(debug.Stack()))
			c.reason = &Error{"ERR", "internal error"}
		}
	}()
	if c.server.OnOpen != nil {
		c.server.OnOpen(&c.sess)
	}
	if c.reason = c.handshake(); c.reason != nil {
		return
	}
	for c.reason == nil && !c.sess.closing {
		if c.mux != nil {
			if c.watch.holds() {
				c.mux.first.take(c.watch.ahead)
				c.watch.ahead = nil
			}
			c.mux.run()
			return
		}
		if c.stream {
			c.serveStream()
			continue
		}
		var err error
		if c.raw != nil {
			err = c.raw.Read(c.onRead)
		} else {
			err = c.read()
		}
		if err != nil && c.reason == nil {
			c.reason = c.interrupted(err)
		}
	}
}

// guard calls a function of the server's user, logs a panic of it, and reports whether there was none.
func (s *Server) guard(what string, remote net.Addr, fn func()) (well bool) {
	defer func() {
		if p := recover(); p != nil {
			s.Logger.Error("resp: "+what+" panicked", "panic", p, "remote", remote, "stack", string(debug.Stack()))
		}
	}()
	fn()
	return true
}

// handshake completes TLS in bounded time.
func (c *serverConn) handshake() error {
	t, ok := c.nc.(*tls.Conn)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), DefaultHandshakeTimeout)
	defer cancel()
	return t.HandshakeContext(ctx)
}

// readReady is called with a socket that may have bytes; it answers until there are none. Returning false waits for more, without
// a buffer unless a command is half received; true goes back to run.
func (c *serverConn) readReady(fd uintptr) bool {
	for {
		space := c.in.room()
		n, more, again, err := c.watch.take(space), true, false, error(nil)
		if n == 0 {
			n, more, again, err = c.inquiry.Read(fd, space)
		}
		if again {
			c.in.release()
			return c.park()
		}
		c.in.received(n, len(space))
		c.in.wide = true
		if err != nil {
			c.reason = c.ended(err)
			return true
		}
		c.bytesIn += int64(n)
		if c.sniffing && c.sniff() || !c.process() {
			return true
		}
		if !more && !c.watch.holds() { // what comes later wakes the poller
			c.in.release()
			return c.park()
		}
	}
}

// read is readReady for connections that are not plain sockets.
func (c *serverConn) read() error {
	space := c.in.room()
	n, err := c.watch.take(space), error(nil)
	if n == 0 {
		if c.park() {
			return nil
		}
		n, err = c.nc.Read(space)
	}
	c.in.received(n, len(space))
	c.bytesIn += int64(n)
	if n > 0 {
		if !c.sniffing || !c.sniff() {
			c.process()
		}
		return nil
	}
	if err != nil {
		return err
	}
	return io.ErrNoProgress
}

// park prepares to wait for the client and reports whether there is a reason not to.
func (c *serverConn) park() bool {
	s := c.server
	timeout, partial := s.IdleTimeout, !c.in.empty()
	if partial {
		timeout = s.ReadTimeout
	}
	if c.deadline.within(timeout, partial) {
		return false
	}
	c.sess.closing = true
	return true
}

// ended turns the error of a read into the reason of the end: none if the stream ended between commands.
func (c *serverConn) ended(err error) error {
	if err == io.EOF {
		c.sess.closing = true
		if c.in.empty() {
			return nil
		}
		return io.ErrUnexpectedEOF
	}
	return err
}

// interrupted is ended for errors of waiting: a deadline may have been set by Shutdown, by an earlier command, or by push when the
// output limit was passed.
func (c *serverConn) interrupted(err error) error {
	if c.out.failed() != nil {
		return c.out.failed()
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return c.ended(err)
	}
	if c.deadline.over() {
		c.sess.closing = true
		return nil
	}
	if c.deadline.passed() {
		return err
	}
	return nil
}

// process answers the commands that are whole and reports whether reading may go on.
func (c *serverConn) process() bool {
	c.out.begin()
	for !c.sess.closing {
		args, ok, err := c.in.next()
		if err != nil {
			c.refuse(err)
			break
		}
		if !ok {
			break
		}
		c.req.args = args
		if c.in.stopped && c.in.head == len(c.in.ends) {
			c.stream = true
			break
		}
		c.dispatch()
		if c.mux != nil {
			break
		}
		if c.sess.sends != c.sends { // replies that may have to wait
			c.out.holdBack()
		}
	}
	c.flush()
	if c.deadline.over() {
		c.sess.closing = true
	}
	return c.reason == nil && !c.sess.closing && !c.stream && c.mux == nil
}

// flush ends a batch: what was written is sent, then what was pushed meanwhile.
func (c *serverConn) flush() {
	if c.sess.skip > 0 {
		c.sess.skip = 0 // an attribute that the handler did not finish
		c.sess.settle()
	}
	if err := c.sess.sendAll(); err != nil && c.reason == nil {
		c.reason = err
	}
	sent, watched := c.out.end()
	if watched {
		c.watch.stop()
	}
	if c.commands > 0 {
		c.deadline.active() // bytes alone are none: a command that drips in must end in time
	}
	c.count(sent)
}

// count hands this connection's numbers to the server's.
func (c *serverConn) count(sent int64) {
	n := &c.server.counts
	n.bytesOut.Add(sent)
	n.commands.Add(c.commands)
	n.bytesIn.Add(c.bytesIn)
	c.commands, c.bytesIn = 0, 0
}

// serveStream answers a command whose last argument is read by its handler.
func (c *serverConn) serveStream() {
	c.stream = false
	c.out.resume() // not begin: the handler reads
	if c.body == nil {
		c.body = new(Body)
	}
	c.body.open(&c.in, bodySource{c})
	c.req.body = c.body
	c.dispatch()
	c.req.body = nil
	if c.reason == nil && c.in.stopped {
		c.reason = c.body.discard()
	}
	c.flush()
	if c.reason == nil && !c.sess.closing {
		c.process()
	}
}

// bodySource reads from the connection with the deadline of commands.
type bodySource struct{ c *serverConn }

func (b bodySource) Read(dst []byte) (int, error) {
	c := b.c
	c.deadline.progress(c.server.ReadTimeout)
	n, err := c.nc.Read(dst)
	c.bytesIn += int64(n)
	return n, err
}

// dispatch has one command answered and turns a returned error into the reply.
func (c *serverConn) dispatch() {
	c.commands++
	sess := &c.sess
	c.from, c.sends = len(sess.buf), sess.sends
	c.req.waiter, c.req.ctx = c, nil
	err := c.answer(sess, &c.req)
	if c.req.ctx != nil {
		err = c.waitedFor(err)
	}
	if c.waited {
		c.waited = false
		c.out.resume()
	}
	if sess.err != nil {
		c.reason = sess.err
		sess.closing = true
		return
	}
	if err == nil {
		return
	}
	sess.hold, sess.skip = 0, 0
	sess.settle()
	if sess.sends != c.sends {
		c.reason = err
		sess.closing = true
		return
	}
	sess.buf = sess.buf[:c.from]
	_ = sess.WriteError(err)
}

// waitedFor ends the context of a command that has returned.
func (c *serverConn) waitedFor(err error) error {
	err = c.req.because(err)
	c.out.mu.Lock()
	cancel := c.cancel
	c.cancel = nil
	c.out.mu.Unlock()
	cancel(context.Canceled)
	return err
}

// answer runs the handshake commands itself and leaves the others to the handler.
func (c *serverConn) answer(sess *Session, r *Request) error {
	s := c.server
	if !s.HandshakeByHandler {
		done, err := c.builtin(sess, r)
		if done || err != nil {
			return err
		}
	}
	return s.served(sess, r)
}

// refuse answers bytes that are no command and ends the connection.
func (c *serverConn) refuse(err error) {
	c.reason = err
	c.sess.closing = true
	_ = c.sess.WriteErrorPrefix("ERR", err.Error())
}

// lingerTime and lingerBytes bound the farewell to a client that was refused: closing with unread bytes would reset the
// connection and could destroy the error on its way.
const (
	lingerTime  = 250 * time.Millisecond
	lingerBytes = 256 << 10
)

// close ends the connection, gently if its client did nothing wrong, and returns the reason.
func (c *serverConn) close() error {
	failed := c.out.failed()
	var timeout net.Error
	c.out.finish(failed == nil && !(errors.As(c.reason, &timeout) && timeout.Timeout()))
	if failed != nil {
		c.reason = failed
	}
	var protocol *ProtocolError
	var limit *LimitError
	n := &c.server.counts
	switch {
	case errors.As(c.reason, &protocol):
		n.protocol.Add(1)
		c.linger()
	case errors.As(c.reason, &limit):
		n.limit.Add(1)
		if failed == nil {
			c.linger()
		}
	case c.mux != nil && failed == nil && c.reason == nil:
		c.linger() // the client knows by a clean end what has not run
	}
	sent, watched := c.out.end()
	if watched {
		c.watch.stop() // a handler has panicked
	}
	c.count(sent)
	_ = c.sess.fail(net.ErrClosed)
	_ = c.nc.Close()
	c.in.start, c.in.pos, c.in.end = 0, 0, 0
	c.in.ends, c.in.head = nil, 0
	c.in.release()
	return c.reason
}

// linger gives the client the time to read its error.
func (c *serverConn) linger() {
	half, ok := c.nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	_ = c.nc.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, c.nc, lingerBytes)
}

// deadline is the read deadline of a connection. Moving a timer for every command would cost more than parsing it, so the deadline is
// left where it is while there is activity, and moved when it fires too early.
type deadline struct {
	nc       net.Conn
	draining <-chan struct{}

	last    time.Time     // of the last activity; only kept when there is a timeout
	timeout time.Duration // which one runs, 0: none
	partial bool

	mu      sync.Mutex // orders set against expire
	expired bool
}

// within makes waiting end after d, counted from the first call for the same half-received command, or from the last activity. It
// reports false if the server is draining and nothing is half received.
func (d *deadline) within(timeout time.Duration, partial bool) bool {
	if d.over() {
		return false
	}
	if timeout <= 0 && d.timeout == 0 {
		return true
	}
	if timeout == d.timeout && partial == d.partial {
		return true
	}
	d.timeout, d.partial = timeout, partial
	d.last = time.Time{}
	if timeout > 0 {
		d.last = time.Now()
	}
	return d.set()
}

// over reports whether the server is draining.
func (d *deadline) over() bool {
	select {
	case <-d.draining:
		return true
	default:
		return false
	}
}

// progress makes the next read end after timeout.
func (d *deadline) progress(timeout time.Duration) {
	if timeout > 0 {
		d.timeout, d.partial, d.last = timeout, true, time.Now()
		d.set()
	}
}

// set moves the timer to where the timeout ends.
func (d *deadline) set() bool {
	var at time.Time
	if d.timeout > 0 {
		at = d.last.Add(d.timeout)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.expired {
		return false
	}
	_ = d.nc.SetReadDeadline(at)
	return true
}

// active notes that commands were answered.
func (d *deadline) active() {
	if d.timeout == 0 {
		return
	}
	d.last = time.Now()
	if d.partial {
		d.timeout, d.partial = -1, false // the next wait starts anew
	}
}

// forget takes back that somebody else has moved the deadline: there is none until the next wait sets it again, which what was read ahead may not
// come to.
func (d *deadline) forget() {
	d.timeout, d.partial = -1, false
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.expired {
		_ = d.nc.SetReadDeadline(time.Time{})
	}
}

// passed reports whether the deadline that fired was meant; if not it is moved.
func (d *deadline) passed() bool {
	if d.timeout <= 0 || time.Since(d.last) >= d.timeout {
		return true
	}
	return !d.set()
}

// expire wakes the connection's goroutine for good.
func (d *deadline) expire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expired = true
	_ = d.nc.SetReadDeadline(time.Unix(1, 0))
}
