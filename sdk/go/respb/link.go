package respb

// This file owns one connection: gathering what callers write, and who writes it.

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/weft-db/weft/sdk/go/internal/deadline"
	"github.com/weft-db/weft/sdk/go/internal/frame"
)

// link is one connection to the server and what is on its way over it.
//
// There are two roles, writer and reader, each held by one goroutine at a time. A caller appends its command to out; if nobody is the
// writer it becomes that, and writes what others appended meanwhile as well. If nobody is the reader it becomes that too, until
// its own reply is there. What is still awaited then is left to the goroutine of read, which also holds the role for
// as long as pushes are expected.
type link struct {
	wire    wire
	binary  bool
	resp2   bool // neither RESPB nor RESP3
	conn    *Conn
	without error // why it is not RESPB though that was asked for
	limits  serverLimits

	// The reader's.
	in reader

	mu      sync.Mutex
	err     error // the link is broken, and why
	out     []byte
	spare   []byte
	writing bool
	reading bool
	held    bool  // the reader waits until messages are received
	writes  int64 // writes that were begun
	handled int64 // replies, pushes and slices that came
	replies int64
	watch   watch
	batch   int // commands in out
	crowd   int // commands of the last write: whether it is worth letting others append first
	pending int // replies awaited
	pins    int // lanes that expect pushes; one more behind GOAWAY
	room    chan struct{}
	// RESP3: CLIENT UNBLOCK ends whatever blocks on the connection, so only one thing may.
	blocking   int           // calls on their way that may block
	unblocking int           // CLIENT UNBLOCKs on their way
	roundTrip  time.Duration // how long HELLO took
	stillAt    struct {      // see still
		handled int64
		since   time.Time
	}
	wake    chan struct{} // gives the role of reader to read, which is started when it is first needed
	started bool
	dead    chan struct{} // closed with err
	away    *GoAwayError  // what GOAWAY said: nothing more is written
	zero    *lane
	lanes   map[uint16]*lane
	nextID  uint16
}

// serverLimits are those that HELLO announced; 0 means not known.
type serverLimits struct {
	channels, frame, arguments, argument int64
	smallest                             int64 // of frame and argument
	typed                                bool  // the server has our command table
	id                                   int64
}

// lane is a channel on a link. It ends with either.
type lane struct {
	link   *link
	id     uint16
	ch     *Channel
	seq    uint32 // number of the next request
	first  *call  // oldest without all its replies
	last   *call
	err    error // why no call may be added
	opened bool  // something was sent on it: until then the channel is idle to the server, which would not answer CLOSE
	closed bool  // CLOSE was sent; what comes is passed over until the server's
	pinned bool
	hears  bool  // RESP2: (un)subscribed at least once, so some arrays are pushes
	since  int64 // when its last reply came, in looks of link.watch

	// Credit (spec section 9.2), for a lane with subscriptions.
	window  int
	owed    int // bytes that may be given back as credit
	advance int // bytes that were given back for messages in slices before they were received

	// The reader's.
	slices []byte // of a reply in FRAGMENT frames
	sliced int    // bytes of those frames
}

// writerTurns bounds how often a caller writes for others before another goroutine has to.
const writerTurns = 4

// begin adds a call to the lane and says which roles the caller has. l.mu is held; out has the command.
func (l *link) begin(la *lane, c *call, n int) (write, read bool) {
	c.lane, c.first, c.alone, c.at = la, la.seq, l.pending == 0, l.watch.now
	la.seq += uint32(n)
	if la.last == nil {
		la.first = c
	} else {
		la.last.next = c
	}
	la.last = c
	la.opened = true
	l.pending += n
	l.batch += n
	if c.extra != 0 && !l.binary {
		l.blocking++
	}
	if c.confirms > 0 {
		la.hears = true
	}
	write, read = !l.writing, !l.reading
	l.writing, l.reading = true, true
	if !l.watch.armed && l.watch.tick > 0 {
		l.arm()
	}
	return write, read
}

// full reports whether c has to wait before it is added. l.mu is held.
func (l *link) full(c *call) bool {
	return l.pending >= l.conn.opts.InFlightMax || len(l.out) >= l.conn.opts.WriteBytesMax ||
		c.extra != 0 && !l.binary && l.blocking+l.unblocking > 0
}

// admit waits, with l.mu held before and after, until c may be added to la.
func (l *link) admit(ctx context.Context, la *lane, c *call) error {
	if !l.watch.armed && l.watch.tick > 0 {
		l.lookForEnd()
	}
	if l.full(c) {
		if err := l.waitRoom(ctx, c); err != nil {
			return err
		}
	}
	return la.err
}

// waitRoom waits, with l.mu held before and after, until c may be added.
func (l *link) waitRoom(ctx context.Context, c *call) error {
	for l.err == nil && l.full(c) {
		if l.room == nil {
			l.room = make(chan struct{})
		}
		room := l.room
		l.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			l.mu.Lock()
			return deadline.Cause(ctx)
		}
		l.mu.Lock()
	}
	return nil
}

// makeRoom lets those go on that wait for it. l.mu is held.
func (l *link) makeRoom() {
	if l.room != nil {
		close(l.room)
		l.room = nil
	}
}

// flush writes what was appended, as the writer. A caller must not wait for the server to take it, because its context may end and because
// it may be the reader: what the socket does not take at once is left to a goroutine, which may wait.
func (l *link) flush(waits bool) {
	for turn := 0; ; turn++ {
		l.mu.Lock()
		if l.crowd > 1 || l.pending > 1 && turn == 0 {
			// Others are about to append: their commands leave with this write.
			l.mu.Unlock()
			runtime.Gosched()
			l.mu.Lock()
		}
		if l.away != nil {
			l.out = nil // the server would throw it away: whoever waits is told at the end of the stream
		}
		if len(l.out) == 0 || l.err != nil {
			l.writing = false
			l.mu.Unlock()
			return
		}
		if turn == writerTurns && !waits {
			l.mu.Unlock()
			go l.flush(true) // ends when there is nothing to write; a caller has its own reply to see to
			return
		}
		out := l.out
		l.out, l.spare = l.spare[:0], nil
		l.crowd, l.batch = l.batch, 0
		l.writes++
		if l.room != nil && l.pending < l.conn.opts.InFlightMax {
			l.makeRoom()
		}
		l.mu.Unlock()
		n, err := l.wire.tryWrite(out)
		if n < len(out) && err == nil {
			if !waits {
				go l.finishWrite(out, n) // ends with the link, or when there is nothing to write
				return
			}
			err = l.wire.write(out[n:])
		}
		if !l.written(out, err) {
			return
		}
	}
}

// finishWrite is flush from the middle of a write.
func (l *link) finishWrite(out []byte, n int) {
	if l.written(out, l.wire.write(out[n:])) {
		l.flush(true)
	}
}

// written notes that out has been written, or why not, and reports whether there is more to write, which the caller then has to do.
func (l *link) written(out []byte, err error) (more bool) {
	l.mu.Lock()
	if cap(out) <= keepWriteBytes {
		l.spare = out[:0]
	}
	more = len(l.out) > 0 && err == nil
	if !more {
		l.writing = false
	}
	l.mu.Unlock()
	if err != nil {
		l.fail(err)
	}
	return more
}

// keepWriteBytes is how large a write buffer may be to be kept.
const keepWriteBytes = 256 << 10

// complete runs the roles that begin gave to the caller and waits for the replies.
func (l *link) complete(ctx context.Context, c *call, write, read bool) (abandoned bool) {
	sleeps := false
	if _, ends := ctx.Deadline(); !ends {
		sleeps = ctx.Done() == nil
	}
	if read {
		polls := c.alone && l.wire.mayPoll()
		if sleeps || polls && l.binary {
			c.leads = true // before the reply can come: nobody reads yet
			l.wire.polls = polls
		} else {
			l.giveReading()
			read = false
		}
	}
	if write {
		l.flush(false)
	}
	if read && l.lead(c, sleeps) {
		return false
	}
	return c.wait(ctx)
}

// giveReading gives the role of reader, which the caller has, to read.
func (l *link) giveReading() {
	l.wire.polls = false
	l.mu.Lock()
	start := !l.started
	l.started = true
	l.mu.Unlock()
	if start {
		go l.read() // ends with the link
	}
	l.wake <- struct{}{} // has room: there is one role
}

// control sends a control frame, whatever else is waiting.
func (l *link) control(id, opcode uint16, k frame.Control) {
	l.mu.Lock()
	if l.err != nil || l.away != nil {
		l.mu.Unlock()
		return
	}
	if la := l.lane(id); la != nil {
		la.opened = true
	}
	l.out = frame.AppendControl(l.out, id, opcode, k)
	write := !l.writing
	l.writing = true
	l.mu.Unlock()
	if write {
		l.flush(false)
	}
}

// takeBack tells the server that nobody waits for n requests from first on any more.
func (l *link) takeBack(la *lane, first uint32, n int, blocks bool) {
	if !l.binary {
		if blocks {
			l.mu.Lock()
			l.unblocking++
			l.mu.Unlock()
			go l.unblock() // ends within the dial timeout
		}
		return
	}
	l.mu.Lock()
	if l.err != nil || l.away != nil || la.err != nil || la.closed {
		l.mu.Unlock()
		return
	}
	for i := range n {
		l.out = frame.AppendControl(l.out, la.id, frame.Cancel, frame.Control{Sequence: first + uint32(i)})
	}
	write := !l.writing
	l.writing = true
	l.mu.Unlock()
	if write {
		l.flush(false)
	}
}

// fail breaks the link: every call on it fails.
func (l *link) fail(err error) {
	l.mu.Lock()
	if l.err != nil {
		l.mu.Unlock()
		return
	}
	if err != ErrClosed {
		err = &ConnError{Err: err}
	}
	l.err = err
	var lost []*call
	var lanes []*lane // a copy: the reader goes on taking lanes out of the map until it sees the end
	l.eachLane(func(la *lane) {
		lost = append(lost, la.end(err)...)
		lanes = append(lanes, la)
	})
	l.pending = 0
	l.out = nil
	l.makeRoom()
	close(l.dead)
	if l.watch.timer != nil {
		l.watch.timer.Stop()
	}
	l.mu.Unlock()
	_ = l.wire.nc.Close()
	l.conn.forget(l)
	if err != ErrClosed {
		l.conn.broke(err)
	}
	for _, c := range lost {
		c.finish(err)
	}
	for _, la := range lanes {
		la.ch.broken(la, err)
	}
}

func (l *link) eachLane(fn func(la *lane)) {
	if l.zero != nil {
		fn(l.zero)
	}
	for _, la := range l.lanes {
		fn(la)
	}
}

// end takes all calls from the lane, which gets no more. link.mu is held; the caller finishes them after letting go of it.
func (la *lane) end(err error) (lost []*call) {
	la.err = err
	for c := la.first; c != nil; c = c.next {
		lost = append(lost, c)
		la.link.pending -= len(c.values) - c.got
	}
	la.first, la.last = nil, nil
	return lost
}

// appendRESP appends a command as RESP.
func appendRESP[T string | []byte](dst []byte, argv []T) []byte {
	dst = appendHead(dst, '*', len(argv))
	for _, arg := range argv {
		dst = append(appendHead(dst, '$', len(arg)), arg...)
		dst = append(dst, '\r', '\n')
	}
	return dst
}

// appendHead appends a type byte, a number and a line end.
func appendHead(dst []byte, kind byte, n int) []byte {
	if n < 10 {
		return append(dst, kind, byte('0'+n), '\r', '\n')
	}
	return append(frame.AppendInt(append(dst, kind), int64(n)), '\r', '\n')
}

// appendCommand appends a command in the link's protocol, unless it passes a limit of the server.
func appendCommand[T string | []byte](l *link, dst []byte, id uint16, argv []T) ([]byte, error) {
	if len(argv) == 0 || len(argv[0]) == 0 {
		return dst, ErrCommand
	}
	if !l.binary {
		return appendRESP(dst, argv), nil
	}
	if int64(len(argv)) > l.limits.arguments {
		return dst, &LimitError{"arguments", l.limits.arguments, int64(len(argv))}
	}
	from := len(dst)
	if l.limits.typed {
		dst, _ = frame.AppendRequest(dst, id, argv, frame.Fold)
	} else {
		dst = frame.AppendArgv(dst, id, argv)
	}
	if n := int64(len(dst) - from); n > l.limits.smallest {
		if n > l.limits.frame {
			return dst[:from], &LimitError{"frame_bytes", l.limits.frame, n}
		}
		for _, arg := range argv {
			if n := int64(len(arg)); n > l.limits.argument {
				return dst[:from], &LimitError{"argument_bytes", l.limits.argument, n}
			}
		}
	}
	return dst, nil
}

// appendPassthrough appends a command that is RESP already, unless it is none or passes the server's limit.
func appendPassthrough(l *link, dst []byte, id uint16, command []byte) ([]byte, error) {
	if len(command) == 0 || command[0] != '*' {
		return dst, ErrCommand
	}
	if !l.binary {
		return append(dst, command...), nil
	}
	if n := int64(len(command)) + passthroughHead; n > l.limits.frame {
		return dst, &LimitError{"frame_bytes", l.limits.frame, n}
	}
	return frame.AppendPassthrough(dst, id, command), nil
}

// passthroughHead is what a passthrough frame has before the command.
const passthroughHead = 8
