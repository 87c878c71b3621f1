package resp

// This file owns values too large to be held in memory on their way out.

import (
	"errors"
	"fmt"
	"io"
)

// WriteBulkFrom writes a bulk string of exactly n bytes read from r, a block of 64 KiB at a time. It holds no more than that, and
// waits for a client that reads slowly; over RESPB all n bytes are held, up to Limits.OutputBytesMax. If r ends early or fails, the length already sent cannot be kept, so the connection is
// given up and the error returned. Inside WriteBuffered all n bytes are held.
func (w *Writer) WriteBulkFrom(r io.Reader, n int64) error {
	if n < 0 {
		return errNegativeCount
	}
	if w.rb != nil {
		return w.binaryFrom(r, n)
	}
	if err := w.grow(headerRoom); err != nil {
		return err
	}
	w.buf = appendHeader64(w.buf, '$', n)
	for left := n; left > 0; {
		got, err := w.copyOnce(r, left)
		left -= int64(got)
		if err != nil && left > 0 {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return w.fail(fmt.Errorf("resp: a value of %d bytes ended %d bytes early: %w", n, left, err))
		}
	}
	if err := w.grow(2); err != nil {
		return err
	}
	w.buf = append(w.buf, '\r', '\n')
	return w.wrote()
}

// WriteStream writes all that r holds as one string without knowing its length: a streamed string of RESP3, or for RESP2,
// which has none, and over RESPB a bulk string that is held until r ends, up to Limits.OutputBytesMax. If r fails, the connection is given up
// and the error returned.
func (w *Writer) WriteStream(r io.Reader) error {
	if w.resp2 || w.rb != nil {
		return w.writeHeld(r)
	}
	if err := w.grow(headerRoom); err != nil {
		return err
	}
	w.buf = append(w.buf, "$?\r\n"...)
	var chunk [8 << 10]byte
	for {
		n, err := r.Read(chunk[:])
		if n > 0 {
			if err := w.appendChunk(chunk[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return w.fail(fmt.Errorf("resp: a streamed value broke off: %w", err))
		}
	}
	if err := w.grow(4); err != nil {
		return err
	}
	w.buf = append(w.buf, ";0\r\n"...)
	return w.wrote()
}

// appendChunk appends one part of a streamed string.
func (w *Writer) appendChunk(chunk []byte) error {
	if err := w.makeRoom(len(chunk) + headerRoom); err != nil {
		return err
	}
	w.buf = append(appendHeader(w.buf, ';', len(chunk)), chunk...)
	w.buf = append(w.buf, '\r', '\n')
	return nil
}

// writeHeld reads all of r, then writes it.
func (w *Writer) writeHeld(r io.Reader) error {
	held, err := io.ReadAll(io.LimitReader(r, int64(w.max)+1))
	if err != nil {
		return fmt.Errorf("resp: a streamed value broke off: %w", err)
	}
	if len(held) > w.max {
		return &LimitError{"OutputBytesMax", int64(w.max), int64(len(held)), "a streamed value is too large to be held for RESP2"}
	}
	return w.WriteBulkBytes(held)
}

// copyOnce reads once from r into the buffer, at most left bytes.
func (w *Writer) copyOnce(r io.Reader, left int64) (int, error) {
	if err := w.makeRoom(int(min(left, blockBytes/2))); err != nil {
		return 0, err
	}
	space := w.buf[len(w.buf):cap(w.buf)]
	if int64(len(space)) > left {
		space = space[:left]
	}
	n, err := r.Read(space)
	w.buf = w.buf[:len(w.buf)+n]
	return n, err
}

// makeRoom is grow for one piece of many: it waits until the pieces before it are on their way.
func (w *Writer) makeRoom(n int) error {
	if cap(w.buf)-len(w.buf) >= n || w.hold > 0 || w.skip > 0 || w.err != nil {
		return w.grow(n)
	}
	if err := w.sendAll(); err != nil && w.err != nil {
		return err
	}
	if err := w.sink.wait(); err != nil {
		return w.fail(err)
	}
	return w.grow(n)
}
