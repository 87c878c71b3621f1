package resp

// This file owns the way of a session's bytes to its client. Replies come from the session's goroutine, pushes from
// anywhere; neither may be held up by a client that does not read, and a push must not overtake a reply.
//
// Bytes are sent by whoever has them, without waiting. Only when the socket takes no more does a goroutine take over, drain,
// until the queue is empty: a connection that keeps up never has a second goroutine, and a client that sends a long pipeline before
// it reads any reply does not block the reading of it. When half of the limit waits, no more commands are read until the client has taken
// some; only pushes, which nobody can hold back, pass it, and then the connection is cut.

import (
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/weft-db/weft/sdk/go/internal/rawio"
)

type outbox struct {
	nc      net.Conn
	raw     syscall.RawConn // nil unless nc is a plain socket
	onWrite func(fd uintptr) bool
	onStop  func()        // wakes the session's goroutine
	max     int           // Limits.OutputBytesMax
	timeout time.Duration // for each part that drain writes, 0: none

	// What onWrite works on; it belongs to the holder of sending.
	part    []byte
	partN   int
	partErr error

	mu      sync.Mutex
	settled sync.Cond // sending became false, or err was set
	sending bool      // someone is sending; everyone else queues
	batch   bool      // the session's goroutine is answering commands: pushes wait for its end
	queue   []byte    // follows what is being sent
	pushes  []byte    // follow the replies of the batch
	flying  int       // bytes that drain is sending
	err     error     // why nothing is sent any more
	total   int64     // bytes handed over, for Stats
	busy    bool      // the session's goroutine runs handlers, and the connection may be watched meanwhile
	asked   bool      // somebody has a context that should end with the connection
	watched bool      // it was watched in this batch
	watch   func()    // set: begins to watch; mu is held
	mux     *muxConn  // set: has more for the queue when that is empty
}

func (o *outbox) init(nc net.Conn, max int, timeout time.Duration, onStop func()) {
	o.onStop = onStop
	o.nc, o.raw, o.max, o.timeout = nc, rawio.ConnOf(nc), max, timeout
	o.settled.L = &o.mu
	o.onWrite = o.writeReady
}

// begin starts a batch: from here on pushes wait until end. First it waits for a client that has to read before it may ask for more.
func (o *outbox) begin() {
	o.mu.Lock()
	o.hold()
	o.batch, o.busy = true, true
	if o.asked && !o.watched {
		o.watching()
	}
	o.mu.Unlock()
}

// resume has pushes wait again, after pause, or where a handler reads from the connection itself, which is then not watched.
func (o *outbox) resume() {
	o.mu.Lock()
	o.batch = true
	o.mu.Unlock()
}

// hold waits while half of what may wait for the client does: who is not read from does not have to be cut, as long as it takes anything at
// all. mu is held.
func (o *outbox) hold() {
	for o.err == nil && (len(o.queue)+o.flying > o.max/2 || o.mux != nil && o.mux.crowded()) {
		o.settled.Wait()
	}
}

// holdBack is hold in the middle of a batch.
func (o *outbox) holdBack() {
	o.mu.Lock()
	o.hold()
	o.mu.Unlock()
}

// watching notes that somebody has a context, and has the connection watched if it is busy. mu is held.
func (o *outbox) watching() {
	o.asked = true
	if o.busy && o.watch != nil {
		o.watched = true
		o.watch()
	}
}

// pause lets pushes pass in the middle of a batch.
func (o *outbox) pause() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.batch = false
	if len(o.pushes) > 0 {
		_ = o.pass() // the next send reports it
	}
}

// end sends the pushes that came during the batch, and returns the bytes handed over since it last did, and whether the connection was
// watched.
func (o *outbox) end() (bytes int64, watched bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.batch, o.busy = false, false
	if len(o.pushes) > 0 {
		_ = o.pass() // the next send reports it
	}
	bytes, o.total = o.total, 0
	watched, o.watched = o.watched, false
	return bytes, watched
}

// send takes b, which is not kept. It waits only when more would wait for the client than may, or for writers around a socket, such as TLS,
// which have no other way.
func (o *outbox) send(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil && o.sending && len(o.queue)+o.flying > 0 && len(o.queue)+len(o.pushes)+o.flying+len(b) > o.max {
		o.settled.Wait()
	}
	if err := o.sendLocked(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// sendLocked is send with mu held; it lets go of it while the kernel works.
func (o *outbox) sendLocked(b []byte) error {
	if o.err != nil {
		return o.err
	}
	o.total += int64(len(b))
	if o.sending {
		o.queue = append(o.queue, b...)
		return o.check()
	}
	return o.sendNow(b)
}

// sendNow sends b and leaves what is not taken to drain. mu is held before and after, but not while the kernel works.
func (o *outbox) sendNow(b []byte) error {
	o.sending = true
	o.mu.Unlock()
	n, err := o.try(b)
	o.mu.Lock()
	if err != nil {
		o.sending = false
		o.stop(err)
		return o.err
	}
	if n < len(b) {
		// What came meanwhile comes after.
		o.queue = append(append(make([]byte, 0, len(b)-n+len(o.queue)), b[n:]...), o.queue...)
	}
	if len(o.queue) == 0 && o.mux != nil {
		o.mux.refill()
	}
	if len(o.queue) == 0 {
		o.sending = false
		o.settled.Broadcast()
		return nil
	}
	go o.drain() // ends when the queue is empty or err is set; finish waits for it
	return o.check()
}

// try writes what the connection takes without waiting.
func (o *outbox) try(b []byte) (int, error) {
	if o.raw == nil {
		if len(b) > direct {
			return 0, nil // long enough to fill a socket's buffer: not on this goroutine
		}
		o.limitWrite()
		return o.nc.Write(b)
	}
	o.part, o.partN, o.partErr = b, 0, nil
	err := o.raw.Write(o.onWrite)
	o.part = nil
	if err != nil {
		return 0, err
	}
	return o.partN, o.partErr
}

func (o *outbox) writeReady(fd uintptr) bool {
	o.partN, o.partErr = rawio.Write(fd, o.part)
	return true
}

// limitWrite sets the deadline of the next write that waits.
func (o *outbox) limitWrite() {
	if o.timeout <= 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil { // else stop has set one that must stay
		_ = o.nc.SetWriteDeadline(time.Now().Add(o.timeout))
	}
}

// drain writes the queue until it is empty. It runs at most once at a time, while sending is true.
func (o *outbox) drain() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil {
		if len(o.queue) == 0 && o.mux != nil {
			o.mux.refill()
		}
		if len(o.queue) == 0 {
			break
		}
		b := o.queue
		o.queue, o.flying = nil, len(b)
		o.mu.Unlock()
		err := o.writeParts(b)
		o.mu.Lock()
		o.flying = 0
		o.settled.Broadcast()
		if err != nil {
			o.stop(err)
		}
	}
	if o.raw != nil && o.timeout > 0 && o.err == nil {
		_ = o.nc.SetWriteDeadline(time.Time{}) // an old deadline would fail the next try
	}
	o.sending = false
	o.settled.Broadcast()
}

// writeParts writes b a block at a time, so that the deadline is one of progress and not of size.
func (o *outbox) writeParts(b []byte) error {
	for len(b) > 0 {
		o.limitWrite()
		n, err := o.nc.Write(b[:min(len(b), blockBytes)])
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// pushLocked sends encoded, or has it sent, without waiting. mu is held; encoded is not kept.
func (o *outbox) pushLocked(encoded []byte) error {
	if o.err != nil {
		return o.err
	}
	o.total += int64(len(encoded))
	o.pushes = append(o.pushes, encoded...)
	if o.batch {
		return o.check()
	}
	return o.pass()
}

// pass moves the pushes on: to the queue while someone is sending, else to the client. mu is held.
func (o *outbox) pass() error {
	b := o.pushes
	o.pushes = b[:0]
	if o.sending || o.raw == nil {
		o.queue = append(o.queue, b...)
		if !o.sending {
			o.sending = true
			go o.drain() // as in sendNow
		}
		return o.check()
	}
	o.pushes = nil // b is being sent; whoever pushes meanwhile needs another
	err := o.sendNow(b)
	if o.pushes == nil && cap(b) <= smallBytes {
		o.pushes = b[:0]
	}
	return err
}

// check cuts the connection if more waits than may. mu is held.
func (o *outbox) check() error {
	waiting := len(o.queue) + len(o.pushes) + o.flying
	if waiting <= o.max {
		return o.err
	}
	o.stop(&LimitError{"OutputBytesMax", int64(o.max), int64(waiting), "the client does not read its replies"})
	return o.err
}

// stop ends all sending and wakes whoever waits for the connection; its goroutine then closes it. mu is held.
func (o *outbox) stop(err error) {
	if o.err != nil {
		return
	}
	o.err = err
	o.queue, o.pushes = nil, nil
	o.settled.Broadcast()
	// Not Close: it waits for reads and writes in progress, and this may be called inside one.
	_ = o.nc.SetWriteDeadline(time.Unix(1, 0))
	o.onStop()
	if o.mux != nil {
		o.mux.cancelAll(net.ErrClosed)
	}
	if half, ok := o.nc.(interface {
		CloseRead() error
		CloseWrite() error
	}); ok {
		_ = half.CloseRead()
		_ = half.CloseWrite()
	}
}

// wait returns when nothing is being sent; it is what holds streams back behind a slow client.
func (o *outbox) wait() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.sending && o.err == nil {
		o.settled.Wait()
	}
	return o.err
}

// finish ends the outbox: what is queued is sent if gentle, in the time that the write deadline leaves, else dropped. No goroutine
// of it is left afterwards.
func (o *outbox) finish(gentle bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !gentle {
		o.stop(net.ErrClosed)
	}
	for o.sending {
		o.settled.Wait()
	}
	if o.err == nil {
		o.err = net.ErrClosed
	}
}

// failed returns why nothing is sent any more, or nil.
func (o *outbox) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
