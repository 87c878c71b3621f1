package resp

// This file owns the output buffer: where replies gather, when they are sent, and what happens past the limit. The
// encodings are in scalars.go, errorreply.go and aggregates.go.

import (
	"errors"
	"io"
	"os"
	"sync/atomic"

	"github.com/weft-db/weft/sdk/go/internal/frame"
)

// Writer encodes replies. [ClientConn] and [Session] embed one; [NewWriter] makes one for any io.Writer, for instance to write
// requests as arrays of bulk strings.
//
// By default replies are RESP3; after SetRESP2Compat(true) everything that RESP2 lacks is written as
// what a RESP2 client understands in its place:
//
//	RESP3                     RESP2
//	map of n pairs            array of 2n
//	set, push                 array
//	attribute                 nothing: the attribute and its pairs are left out
//	double, big number        bulk string of the same digits (inf, -inf, nan)
//	boolean                   integer 1 or 0
//	verbatim string           bulk string without the format
//	blob error                simple error, line breaks turned into blanks
//	null                      null bulk string
//	streamed string           bulk string, held until its end is known
//
// Over RESPB the same methods write frames; nothing is lost, and only a streamed string becomes a bulk string.
//
// Write methods do not keep the slices they are given. They return an error only when the connection is lost, a limit
// is passed, or the call itself makes no sense (a negative count); a broken connection's error is returned by every later call,
// so a handler may ignore all but the last. A Writer is not safe for use by several goroutines at once.
type Writer struct {
	buf   []byte
	block *block // what buf is made of when it is pooled

	sink  sink
	quiet *atomic.Bool // true: nothing is to be done after a write; see settle
	more  *atomic.Bool // set by the reading side while another whole command waits
	max   int          // Limits.OutputBytesMax
	hold  int          // depth of WriteBuffered: while positive nothing is sent
	batch bool         // the owner flushes; a write sends only what no longer fits
	resp2 bool
	rb    *frame.ReplyWriter // set: replies are RESPB; see binary.go
	sends uint               // how often bytes left buf; tells whether what was written can still be taken back

	skip int // values of a RESP2-incompatible attribute still to be swallowed
	mark int // where they start in buf

	errors uint // error replies that were written

	err error // what broke the connection; buf has no capacity then, so that fast paths cannot succeed
}

// sink is where a Writer's bytes go.
type sink interface {
	// send takes all of b or says why not. n is how many bytes it took; after a timeout the rest may be sent again. It does not
	// keep b.
	send(b []byte) (n int, err error)
	// wait returns when another large piece may be sent without piling up behind a slow client.
	wait() error
}

// ioSink sends to an io.Writer.
type ioSink struct{ w io.Writer }

func (s ioSink) send(b []byte) (int, error) { return s.w.Write(b) }
func (s ioSink) wait() error                { return nil }

// never and always stand in for a reading side; see settle.
var never, always atomic.Bool

func init() { always.Store(true) }

// NewWriter returns a Writer that gathers what is written and sends it to w on Flush or when a block of 64 KiB is full.
func NewWriter(w io.Writer) *Writer {
	wr := &Writer{sink: ioSink{w}, more: &never, max: DefaultOutputBytesMax, batch: true}
	wr.settle()
	return wr
}

// SetRESP2Compat chooses the encoding of everything written from now on: RESP2 if on, else RESP3.
func (w *Writer) SetRESP2Compat(on bool) { w.resp2 = on && w.rb == nil }

// RESP2Compat reports whether replies are written for RESP2 clients.
func (w *Writer) RESP2Compat() bool { return w.resp2 }

// Buffered returns the number of bytes that were written and not yet sent.
func (w *Writer) Buffered() int { return len(w.buf) }

// WriteBuffered calls fn and sends nothing before it returns, so that a reply made of many writes leaves in one piece. If fn
// returns an error, what it wrote is dropped and the error is returned: half an array would make the client
// misread everything after it. Calls may be nested. What fn writes is held in memory, up to Limits.OutputBytesMax; large replies are
// better streamed without it.
func (w *Writer) WriteBuffered(fn func() error) error {
	if w.err != nil {
		return w.err
	}
	from, skip, mark := len(w.buf), w.skip, w.mark
	var place frame.Mark
	if w.rb != nil {
		place = w.rb.Mark()
	}
	w.hold++
	w.settle()
	defer func() {
		w.hold--
		w.settle()
	}()
	if err := fn(); err != nil {
		if w.err == nil {
			w.buf, w.skip, w.mark = w.buf[:from], skip, mark
			if w.rb != nil {
				w.rb.Back(place)
			}
		}
		if w.err == nil && from > 0 && w.hold == 1 && !w.batch && w.skip == 0 {
			return errors.Join(err, w.sendUnlessMore())
		}
		return err
	}
	if w.err != nil {
		return w.err
	}
	if w.hold > 1 || w.batch || w.skip > 0 {
		return nil
	}
	return w.sendUnlessMore()
}

// Flush sends all that was written. After a timeout what was not sent is kept: set a later write deadline and call Flush again.
// Inside WriteBuffered it does nothing.
func (w *Writer) Flush() error {
	if w.err != nil {
		return w.err
	}
	if w.hold > 0 || w.skip > 0 {
		return nil
	}
	return w.sendAll()
}

// settle chooses what wrote looks at after hold, batch or skip changed. One indirect load then decides for all cases, which keeps wrote
// small enough to be inlined.
func (w *Writer) settle() {
	switch {
	case w.skip > 0 || w.err != nil:
		w.quiet = &never
	case w.batch || w.hold > 0:
		w.quiet = &always
	default:
		w.quiet = w.more
	}
}

// wrote ends the write of one value that is not a header.
func (w *Writer) wrote() error {
	if w.quiet.Load() {
		return nil
	}
	return w.wroteValue(0)
}

// wroteHeader ends the write of a header that values more values belong to.
func (w *Writer) wroteHeader(values int) error {
	if w.quiet.Load() {
		return nil
	}
	return w.wroteValue(values)
}

// wroteValue swallows the value if it belongs to an attribute that RESP2 cannot have, and else sends it if nothing more is to come.
func (w *Writer) wroteValue(values int) error {
	if w.err != nil {
		return w.err
	}
	if w.skip > 0 {
		w.skip += values - 1
		w.buf = w.buf[:w.mark]
		if w.skip > 0 {
			return nil
		}
		w.settle()
	}
	if w.batch || w.hold > 0 || values > 0 {
		return nil
	}
	return w.sendUnlessMore()
}

// sendUnlessMore sends the buffer unless the reading side has another whole command, whose reply will take this one along.
func (w *Writer) sendUnlessMore() error {
	if w.more.Load() {
		return nil
	}
	return w.sendAll()
}

// sendAll sends the buffer and gives it back if it was a block.
func (w *Writer) sendAll() error {
	if err := w.send(); err != nil {
		return err
	}
	w.shrink()
	return nil
}

// send sends the buffer and keeps it for what comes next.
func (w *Writer) send() error {
	if len(w.buf) > 0 {
		w.sends++
		n, err := w.sink.send(w.buf)
		if err != nil {
			return w.failed(n, err)
		}
		w.buf = w.buf[:0]
	}
	return nil
}

// shrink empties the buffer, whose bytes were sent or queued, and keeps only a small one.
func (w *Writer) shrink() {
	if w.block != nil {
		w.buf = nil
		releaseBlock(&w.block)
	} else if cap(w.buf) > smallBytes {
		w.buf = nil
	}
	w.buf = w.buf[:0]
}

// failed keeps what was not sent after a timeout, and gives up after any other error.
func (w *Writer) failed(n int, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		w.buf = w.buf[:copy(w.buf, w.buf[n:])]
		return err
	}
	return w.fail(err)
}

// fail makes every later write return err.
func (w *Writer) fail(err error) error {
	if w.err == nil {
		w.err = err
		w.buf, w.skip = nil, 0
		w.settle()
		releaseBlock(&w.block)
	}
	return w.err
}

// grow makes room for n more bytes. It sends what is there if it may and if that helps. A timeout is not its affair: the bytes are
// kept, and the Flush at the end of the value reports it, so that no value is left half written.
func (w *Writer) grow(n int) error {
	if w.err != nil {
		return w.err
	}
	if cap(w.buf)-len(w.buf) >= n {
		return nil
	}
	if w.hold == 0 && w.skip == 0 && len(w.buf) > 0 && len(w.buf)+n > blockBytes {
		if err := w.send(); err != nil && w.err != nil {
			return err
		}
		if cap(w.buf)-len(w.buf) >= n {
			return nil
		}
	}
	need := len(w.buf) + n
	switch {
	case need > w.max && w.rb != nil:
		w.err = &LimitError{"OutputBytesMax", int64(w.max), int64(need), "output buffer limit reached"}
		return w.err // the buffer stays: it holds other channels' replies
	case need > w.max:
		return w.fail(&LimitError{"OutputBytesMax", int64(w.max), int64(need), "output buffer limit reached"})
	case need <= smallBytes && cap(w.buf) == 0 && !w.quiet.Load():
		w.buf = make([]byte, 0, smallBytes)
	case need <= blockBytes && w.block == nil:
		old := w.buf
		w.buf = append(takeBlock(&w.block)[:0:min(blockBytes, w.max)], old...)
	default:
		fresh := make([]byte, len(w.buf), min(max(need, 2*cap(w.buf)), max(need, w.max)))
		copy(fresh, w.buf)
		w.buf = fresh
		releaseBlock(&w.block)
	}
	return nil
}

// direct is the length from which bytes are sent from the caller's slice instead of being copied first.
const direct = blockBytes / 4

// appendLarge appends b, or sends the buffer and then b itself where that may be done. After a timeout it keeps the rest.
func (w *Writer) appendLarge(b []byte) error {
	if len(b) < direct || w.hold > 0 || w.skip > 0 || w.err != nil {
		if err := w.grow(len(b) + 2); err != nil {
			return err
		}
		w.buf = append(w.buf, b...)
		return nil
	}
	n, err := 0, w.sendAll()
	if err == nil {
		w.sends++
		n, err = w.sink.send(b)
	}
	if err == nil || w.err != nil {
		return w.err
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return w.fail(err)
	}
	if err := w.growQuietly(len(b) - n + 2); err != nil {
		return err
	}
	w.buf = append(w.buf, b[n:]...)
	return nil
}

// growQuietly is grow without sending: for the end of a value whose beginning could not be sent in time.
func (w *Writer) growQuietly(n int) error {
	w.hold++
	err := w.grow(n)
	w.hold--
	return err
}
