package respb

// This file owns the bytes of a link on their way through its socket: reading and writing without net.Conn's detours, and the polling of
// a caller who is alone.

import (
	"net"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weft-db/weft/sdk/go/internal/rawio"
)

// wire is a connection of which one goroutine reads and one writes at a time: the holders of link's roles.
//
// To put a goroutine to sleep and to wake it again for a reply costs more than the reply: the scheduler, the poller, and a processor
// that has gone idle meanwhile. A caller who is alone on the link therefore looks for its reply again and again for as long as replies have
// lately taken, before it sleeps, and lets other goroutines run in between. Where that finds nothing it is tried more and more
// seldom.
type wire struct {
	nc  net.Conn
	raw syscall.RawConn // nil unless nc is a plain socket

	// The reader's.
	into   []byte
	got    atomic.Int64 // bytes that came; anybody's
	n      int
	err    error
	sleeps bool // wait for bytes, when polling has found none
	polls  bool // look for a while before
	polled time.Duration
	miss   uint // how many polls in a row found nothing, at most missMax
	skip   uint // calls until the next poll
	onRead func(fd uintptr) bool

	// The writer's.
	from    []byte
	sent    atomic.Int64 // bytes that left; anybody's
	waits   bool         // until all is written
	failed  error
	onWrite func(fd uintptr) bool
}

// missMax bounds how seldom a poll is tried: once in 2^missMax calls.
const missMax = 10

func (w *wire) init(nc net.Conn, poll time.Duration) {
	w.nc, w.raw = nc, rawio.ConnOf(nc)
	w.onRead, w.onWrite = w.readReady, w.writeReady
	if poll > 0 && runtime.NumCPU() > 1 {
		w.polled = poll
	}
}

// mayPoll says whether a caller who is alone should poll. It is asked once for each call.
func (w *wire) mayPoll() bool {
	if w.raw == nil || w.polled == 0 {
		return false
	}
	if w.skip > 0 {
		w.skip--
		return false
	}
	return true
}

// Read makes the wire an io.Reader that sleeps.
func (w *wire) Read(b []byte) (int, error) { return w.read(b, true) }

// read reads once. Without bytes it returns 0 and no error, which only happens when it does not sleep.
func (w *wire) read(b []byte, sleeps bool) (int, error) {
	if w.raw == nil {
		if !sleeps {
			return 0, nil
		}
		n, err := w.nc.Read(b)
		w.got.Add(int64(n))
		return n, err
	}
	w.into, w.sleeps = b, sleeps
	w.n, w.err = 0, nil
	err := w.raw.Read(w.onRead)
	w.into = nil
	if err != nil {
		return 0, err
	}
	w.got.Add(int64(w.n))
	return w.n, w.err
}

// readReady is called with a socket that may have bytes. To return false is to sleep until it has.
func (w *wire) readReady(fd uintptr) bool {
	n, again, err := rawio.Read(fd, w.into)
	if again && w.polls {
		n, again, err = w.poll(fd)
	}
	if again {
		return !w.sleeps
	}
	w.n, w.err = n, err
	return true
}

// poll looks for bytes again and again.
func (w *wire) poll(fd uintptr) (n int, again bool, err error) {
	w.polls = false
	for start := time.Now(); ; {
		runtime.Gosched()
		n, again, err = rawio.Read(fd, w.into)
		if !again {
			w.miss = 0
			return n, false, err
		}
		if time.Since(start) > w.polled {
			w.miss = min(w.miss+1, missMax)
			w.skip = 1<<w.miss - 1
			return 0, true, nil
		}
	}
}

// writePart is how much is written at once where there is no socket, so that it can be seen to get on.
const writePart = 64 << 10

// write writes all of b.
func (w *wire) write(b []byte) error {
	if w.raw == nil {
		for len(b) > 0 {
			n, err := w.nc.Write(b[:min(len(b), writePart)])
			w.sent.Add(int64(n))
			if err != nil {
				return err
			}
			b = b[n:]
		}
		return nil
	}
	_, err := w.writeRaw(b, true)
	return err
}

// tryWrite writes what is taken without waiting, which is nothing unless there is a socket.
func (w *wire) tryWrite(b []byte) (int, error) {
	if w.raw == nil {
		return 0, nil
	}
	return w.writeRaw(b, false)
}

func (w *wire) writeRaw(b []byte, waits bool) (int, error) {
	w.from, w.failed, w.waits = b, nil, waits
	err := w.raw.Write(w.onWrite)
	n := len(b) - len(w.from)
	w.from = nil
	if err == nil {
		err = w.failed
	}
	return n, err
}

// writeReady is called with a socket that may take bytes. To return false is to sleep until it does.
func (w *wire) writeReady(fd uintptr) bool {
	for len(w.from) > 0 {
		n, err := rawio.Write(fd, w.from)
		if err != nil {
			w.failed = err
			return true
		}
		if n == 0 {
			return !w.waits
		}
		w.from = w.from[n:]
		w.sent.Add(int64(n))
	}
	return true
}
