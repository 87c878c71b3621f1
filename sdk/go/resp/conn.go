package resp

// This file owns ClientConn: reading commands from one connection, deadlines, closing.

import (
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weft-db/weft/sdk/go/internal/rawio"
)

// ClientConn is the server's end of one connection: commands are read with Next, replies written with the methods of
// the embedded [Writer].
//
// One goroutine may call Next, Body and the deadline methods of reading while another writes; more than one of each kind needs the
// caller's own lock. Close and the deadline methods may be called from anywhere.
//
// A reply is sent at once unless Next already has another whole command from the same client: then it waits for that
// command's reply, so that a pipeline of a thousand commands costs one write. Who leaves a command without a reply calls
// Flush, or SetFlushOnNext once. [Server] does all of this by itself.
type ClientConn struct {
	Writer
	conn   net.Conn
	raw    syscall.RawConn // nil unless conn is a plain socket
	onRead func(fd uintptr) bool
	rawErr error
	rawN   int

	in     parser
	limits Limits
	whole  atomic.Bool // in has another whole command; what Writer.more points to
	ahead  bool        // the reader's copy of whole
	inErr  error       // a protocol or limit error, after which the stream cannot be followed
	body   Body

	flushOnNext bool
}

// NewClientConn returns a ClientConn with default [Limits] that replies in RESP3. It takes conn over: nobody else may read from or
// write to it.
func NewClientConn(conn net.Conn) *ClientConn {
	c := &ClientConn{conn: conn, raw: rawio.ConnOf(conn)}
	c.limits = Limits{}.withDefaults()
	c.in.init(&c.limits)
	c.sink, c.more = ioSink{conn}, &c.whole
	c.max = c.limits.OutputBytesMax
	c.settle()
	c.onRead = c.readReady
	return c
}

// NetConn returns the connection under c, for its addresses and options. Reading from it or writing to it breaks the stream.
func (c *ClientConn) NetConn() net.Conn { return c.conn }

// SetLimits replaces the limits. Commands already parsed ahead, at most 64, are not looked at again. Call it before the first Next or on the reader's
// goroutine, while nothing is being written.
func (c *ClientConn) SetLimits(l Limits) {
	c.limits = l.withDefaults()
	c.max = c.limits.OutputBytesMax
	c.in.setLimits(&c.limits, c.in.unauth)
}

// SetAuthenticated(false) makes the limits for strangers apply to what Next reads from then on, SetAuthenticated(true) ends that.
// It belongs to the reader's goroutine.
func (c *ClientConn) SetAuthenticated(yes bool) { c.in.setLimits(&c.limits, !yes) }

// SetFlushOnNext(true) makes Next send what was written before it waits for the client. It is for programs that read and write on the
// same goroutine; with a second goroutine writing it would be a data race.
func (c *ClientConn) SetFlushOnNext(on bool) { c.flushOnNext = on }

// SetStream makes Next hand out a command before its last argument has arrived when that argument has n bytes or more and commands,
// asked with the command's name, says yes (nil: always). The argument is then missing from the slice and comes from Body. n of zero
// turns streaming off. It belongs to the reader's goroutine.
func (c *ClientConn) SetStream(n int, commands func(name []byte) bool) { c.in.setStream(n, commands) }

// Next returns the next command: its name and arguments, at least one slice.
//
// The outer slice and the bytes belong to c and are valid until Next is called again; they may be changed until then. Copy what is to
// be kept. Each slice's capacity ends with it, so append copies and never writes into the next argument.
//
// At the end of the stream Next returns io.EOF, or io.ErrUnexpectedEOF inside a command. A timeout of a read deadline loses nothing:
// set a later deadline and call Next again. After a [*ProtocolError] or [*LimitError] the stream cannot be followed and every later
// call returns the same error.
func (c *ClientConn) Next() ([][]byte, error) {
	args, ok, err := c.in.next()
	if !ok {
		if args, err = c.receive(err); err != nil {
			return nil, err
		}
	}
	if ready := c.in.ready(); ready != c.ahead {
		c.ahead = ready
		c.whole.Store(ready)
	}
	return args, nil
}

// receive reads until a command is whole.
func (c *ClientConn) receive(err error) ([][]byte, error) {
	if c.inErr != nil {
		return nil, c.inErr
	}
	if c.in.stopped {
		if c.in.body >= 0 {
			c.body.open(&c.in, c.conn)
		}
		if err := c.body.discard(); err != nil {
			return nil, err
		}
		if args, ok, err := c.in.next(); ok || err != nil {
			return args, c.faulty(err)
		}
	}
	for {
		if err != nil {
			return nil, c.faulty(err)
		}
		if c.ahead {
			c.ahead = false
			c.whole.Store(false)
		}
		if c.flushOnNext {
			if err := c.Flush(); err != nil {
				return nil, err
			}
		}
		if err := c.fill(); err != nil {
			return nil, err
		}
		args, ok, more := c.in.next()
		if ok {
			return args, nil
		}
		err = more
	}
}

// faulty remembers that the stream cannot be followed any further.
func (c *ClientConn) faulty(err error) error {
	if err != nil {
		c.inErr = err
	}
	return err
}

// fill reads once. A plain socket that has to be waited for while nothing is half received gives its block back first, so
// that an idle connection costs little whatever it did before.
func (c *ClientConn) fill() error {
	if c.raw == nil || !c.in.empty() || c.in.block == nil {
		return c.in.fill(c.conn)
	}
	c.rawErr = nil
	if err := c.raw.Read(c.onRead); err != nil {
		return err
	}
	return c.in.readResult(c.rawN, c.rawErr)
}

// readReady reads without waiting and reports false when there was nothing to read.
func (c *ClientConn) readReady(fd uintptr) bool {
	space := c.in.room()
	n, again, err := rawio.Read(fd, space)
	if again {
		c.in.release()
		return false
	}
	c.in.received(n, len(space))
	c.rawN, c.rawErr = n, err
	return true
}

// Body returns the last argument of the command that Next returned if it is streamed, and nil otherwise; see SetStream. It is
// valid until Next is called again, which skips what was not read.
func (c *ClientConn) Body() *Body {
	if !c.in.stopped || c.in.head != len(c.in.ends) {
		return nil
	}
	if c.in.body >= 0 {
		c.body.open(&c.in, c.conn)
	}
	return &c.body
}

// SetDeadline sets the read and the write deadline; see net.Conn. After a timeout of either, nothing is lost: set a later deadline and
// call the method again that timed out.
func (c *ClientConn) SetDeadline(t time.Time) error { return c.conn.SetDeadline(t) }

// SetReadDeadline is SetDeadline for Next and Body.
func (c *ClientConn) SetReadDeadline(t time.Time) error { return c.conn.SetReadDeadline(t) }

// SetWriteDeadline is SetDeadline for the write methods and Flush.
func (c *ClientConn) SetWriteDeadline(t time.Time) error { return c.conn.SetWriteDeadline(t) }

// Close closes the connection without sending what is buffered; call Flush before it to say goodbye. Writes and reads in progress
// and later ones return an error that is net.ErrClosed.
func (c *ClientConn) Close() error { return c.conn.Close() }

// Body is an argument that is read from the connection as it arrives.
type Body struct {
	parser *parser
	src    io.Reader
	size   int
	left   int
	crlf   int // bytes of the line end already seen
	err    error
}

// open starts the body that p announced.
func (b *Body) open(p *parser, src io.Reader) {
	*b = Body{parser: p, src: src, size: p.body, left: p.body}
	p.body = -1
}

// Len returns the length of the whole argument.
func (b *Body) Len() int { return b.size }

// Read reads the next bytes of the argument and returns io.EOF after the last. The arguments that Next returned stay valid.
func (b *Body) Read(dst []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.left == 0 {
		return 0, b.finish()
	}
	if len(dst) == 0 {
		return 0, nil
	}
	if len(dst) > b.left {
		dst = dst[:b.left]
	}
	n, err := b.take(dst)
	b.left -= n
	if n > 0 {
		return n, nil
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return 0, err // not kept: after a timeout reading may go on
}

// take moves bytes from the buffer, or else from the connection past the buffer.
func (b *Body) take(dst []byte) (int, error) {
	p := b.parser
	if p.pos < p.end {
		n := copy(dst, p.buf[p.pos:p.end])
		p.pos += n
		p.start = p.pos
		return n, nil
	}
	return b.src.Read(dst)
}

// finish takes the line end behind the argument and lets the parser go on.
func (b *Body) finish() error {
	for b.crlf < 2 {
		var c [1]byte
		n, err := b.take(c[:])
		if n == 0 {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		if c[0] != "\r\n"[b.crlf] {
			b.err = &ProtocolError{"an argument does not end with CRLF where its length says"}
			return b.err
		}
		b.crlf++
	}
	b.parser.stopped = false
	b.err = io.EOF
	return io.EOF
}

// discard skips what was not read.
func (b *Body) discard() error {
	var scratch [4 << 10]byte
	for {
		if _, err := b.Read(scratch[:]); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}
