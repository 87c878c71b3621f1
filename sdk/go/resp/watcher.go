package resp

// This file owns looking for the end of a RESP connection while its goroutine runs a handler. Over RESPB another goroutine reads on then,
// and nothing of this is needed.

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// watchAfter is how long a handler runs before its connection is watched: one that answers at once pays for a timer that does not fire.
const watchAfter = time.Millisecond

// ErrClientGone is the cause of the end of a context whose client has closed its connection.
var ErrClientGone = errors.New("resp: the client is gone")

// watcher reads a connection while its handlers run, so that the end of it is seen, and keeps what it reads for afterwards, up to
// Limits.QueueBytesMax; behind that nothing is seen any more until the handler returns.
//
// The connection's goroutine is inside a callback of its descriptor then and holds the right to read from it. Of a plain socket the watcher
// therefore reads a duplicate, which is the same stream.
type watcher struct {
	conn *serverConn

	mu    sync.Mutex
	state int
	timer *time.Timer
	from  watched
	done  chan struct{} // closed when the goroutine has ended

	ahead []byte // read, and not yet taken; the goroutine's while there is one, else the connection's
}

// States of a watcher.
const (
	watchIdle = iota
	watchArmed
	watchRuns
	watchStops
)

// watched is what is read: a duplicate of a socket, or the connection itself.
type watched interface {
	io.Reader
	SetReadDeadline(at time.Time) error
}

// arm has the connection watched unless stop comes soon.
func (w *watcher) arm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state != watchIdle {
		return
	}
	w.state = watchArmed
	if w.timer == nil {
		w.timer = time.AfterFunc(watchAfter, w.run) // ends with stop, which the connection's goroutine calls
		return
	}
	w.timer.Reset(watchAfter)
}

// run watches.
func (w *watcher) run() {
	w.mu.Lock()
	if w.state != watchArmed {
		w.mu.Unlock()
		return
	}
	from, closeIt, err := w.open()
	if err != nil {
		w.mu.Unlock()
		return // out of descriptors: the connection is not watched this time
	}
	w.state, w.from, w.done = watchRuns, from, make(chan struct{})
	done := w.done
	w.mu.Unlock()
	err = w.read(from)
	closeIt()
	close(done)
	if err != nil {
		w.conn.gone(err)
	}
}

// open returns what is to be read, and what closes it.
func (w *watcher) open() (from watched, closeIt func(), err error) {
	socket, ok := w.conn.nc.(interface{ File() (*os.File, error) })
	if w.conn.raw == nil || !ok {
		_ = w.conn.nc.SetReadDeadline(time.Time{}) // those of the connection are for when it is read
		return w.conn.nc, func() {}, nil
	}
	f, err := socket.File()
	if err != nil {
		return nil, nil, err
	}
	return f, func() { _ = f.Close() }, nil
}

// read reads until stop, or until no more may be kept, and returns why the connection has ended if it has.
func (w *watcher) read(from watched) error {
	most := w.conn.server.limits.QueueBytesMax
	for len(w.ahead) < most {
		if len(w.ahead) == cap(w.ahead) {
			w.ahead = append(make([]byte, 0, min(max(2*cap(w.ahead), smallBytes), most)), w.ahead...)
		}
		n, err := from.Read(w.ahead[len(w.ahead):cap(w.ahead)])
		w.ahead = w.ahead[:len(w.ahead)+n]
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
	return nil
}

// stop ends the watching: afterwards the connection is its goroutine's again.
func (w *watcher) stop() {
	w.mu.Lock()
	done := w.done
	switch w.state {
	case watchArmed:
		w.timer.Stop()
	case watchRuns:
		w.state = watchStops
		_ = w.from.SetReadDeadline(time.Unix(1, 0))
		w.mu.Unlock()
		<-done
		w.mu.Lock()
		if _, own := w.from.(*os.File); !own {
			w.conn.deadline.forget()
		}
	}
	w.state, w.from, w.done = watchIdle, nil, nil
	w.mu.Unlock()
}

// holds reports whether something was read ahead and not taken yet.
func (w *watcher) holds() bool { return w != nil && w.ahead != nil }

// take moves what was read ahead to dst.
func (w *watcher) take(dst []byte) int {
	if !w.holds() {
		return 0
	}
	n := copy(dst, w.ahead)
	if w.ahead = w.ahead[n:]; len(w.ahead) == 0 {
		w.ahead = nil
	}
	return n
}
