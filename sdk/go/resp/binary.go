package resp

// This file owns the encoding of replies as RESPB. A Writer that has a frame.ReplyWriter writes frames; everything else about it,
// the buffer, its limit, WriteBuffered, stays as it is. Such a Writer never sends by itself: its owner takes whole frames.

import (
	"bytes"
	"fmt"
	"io"
	"strconv"

	"github.com/weft-db/weft/sdk/go/internal/frame"
)

// What a session speaks. Pushes from other goroutines go by it.
const (
	speaksRESP3 uint32 = iota
	speaksRESP2
	speaksRESPB
)

// binaryRoom is enough for a frame's header, a tag and everything of fixed size.
const binaryRoom = 16

// binary makes room for n bytes and a header, and lends the buffer to the frame writer; done takes it back.
func (w *Writer) binary(n int) (*frame.ReplyWriter, error) {
	if err := w.grow(n + binaryRoom); err != nil {
		return nil, err
	}
	w.rb.Out = w.buf
	return w.rb, nil
}

func (w *Writer) done() error {
	w.buf, w.rb.Out = w.rb.Out, nil
	return w.err
}

func binaryStatus[T string | []byte](w *Writer, s T) error {
	rb, err := w.binary(len(s))
	if err != nil {
		return err
	}
	frame.WriteSimple(rb, s)
	// Line breaks become blanks, in the copy: a gateway must be able to write the status as a RESP line.
	for i := range len(s) {
		if s[i] == '\r' || s[i] == '\n' {
			rb.Out[len(rb.Out)-len(s)+i] = ' '
		}
	}
	return w.done()
}

func binaryError[T string | []byte](w *Writer, prefix string, message T) error {
	rb, err := w.binary(len(prefix) + len(message))
	if err != nil {
		return err
	}
	frame.WriteError(rb, prefix, message)
	return w.done()
}

func binaryBulk[T string | []byte](w *Writer, v T) error {
	rb, err := w.binary(len(v))
	if err != nil {
		return err
	}
	frame.WriteBulk(rb, v)
	return w.done()
}

func binaryVerbatim[T string | []byte](w *Writer, format string, text T) error {
	rb, err := w.binary(len(text))
	if err != nil {
		return err
	}
	rb.VerbatimHead([3]byte([]byte(format)), len(text))
	rb.Out = append(rb.Out, text...)
	return w.done()
}

func (w *Writer) binaryInt(n int64) error {
	rb, err := w.binary(0)
	if err != nil {
		return err
	}
	rb.Int(n)
	return w.done()
}

func (w *Writer) binaryFloat(f float64) error {
	rb, err := w.binary(0)
	if err != nil {
		return err
	}
	rb.Float(f)
	return w.done()
}

func (w *Writer) binaryBool(v bool) error {
	rb, err := w.binary(0)
	if err != nil {
		return err
	}
	rb.Bool(v)
	return w.done()
}

func (w *Writer) binaryNull() error {
	rb, err := w.binary(0)
	if err != nil {
		return err
	}
	rb.Null()
	return w.done()
}

func (w *Writer) binaryBig(digits []byte) error {
	rb, err := w.binary(len(digits))
	if err != nil {
		return err
	}
	rb.BigNumber(digits)
	return w.done()
}

// binaryTypes maps the type bytes of RESP3's aggregates.
var binaryTypes = [256]frame.Type{'*': frame.Array, '%': frame.Map, '~': frame.Set, '>': frame.Push, '|': frame.Attribute}

func (w *Writer) binaryHeader(kind byte, n int) error {
	rb, err := w.binary(0)
	if err != nil {
		return err
	}
	if uint64(n) > uint64(frame.DefaultLimits.ElementsMax) {
		return &LimitError{"elements", int64(frame.DefaultLimits.ElementsMax), int64(n), "too many elements in an aggregate"}
	}
	rb.Open(binaryTypes[kind], uint32(n))
	return w.done()
}

func binaryAll[T string | []byte](w *Writer, kind byte, n int, values []T) error {
	if err := w.binaryHeader(kind, n); err != nil {
		return err
	}
	for _, v := range values {
		if err := binaryBulk(w, v); err != nil {
			return err
		}
	}
	return nil
}

// binaryRaw writes what is one value of RESP3.
func (w *Writer) binaryRaw(encoded []byte) error {
	var v Value
	r := NewReader(bytes.NewReader(encoded))
	if err := r.Read(&v); err != nil {
		return fmt.Errorf("resp: WriteRaw was given what is no RESP value: %w", err)
	}
	return w.WriteValue(&v)
}

// binaryFrom writes a bulk of n bytes from r. A frame is held whole, so it is bounded by Limits.OutputBytesMax.
func (w *Writer) binaryFrom(r io.Reader, n int64) error {
	if n > int64(w.max) {
		return &LimitError{"OutputBytesMax", int64(w.max), n, "a value is too large to be held for RESPB"}
	}
	rb, err := w.binary(int(min(n, blockBytes)))
	if err != nil {
		return err
	}
	mark, from := rb.Mark(), len(rb.Out)
	rb.BulkHead(int(n))
	_ = w.done()
	for left := n; left > 0; {
		if err := w.grow(int(min(left, blockBytes/2))); err != nil {
			return err
		}
		space := w.buf[len(w.buf):cap(w.buf)]
		got, err := r.Read(space[:min(int64(len(space)), left)])
		w.buf = w.buf[:len(w.buf)+got]
		left -= int64(got)
		if err != nil && left > 0 {
			// Nothing has left yet: the value is taken back, and the connection goes on.
			w.buf = w.buf[:from]
			w.rb.Back(mark)
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("resp: a value of %d bytes ended %d bytes early: %w", n, left, err)
		}
	}
	return w.err
}

// float32Exact is the double that a float32's shortest digits stand for: 0.1 and not 0.10000000149011612.
func float32Exact(f float32) float64 {
	exact, err := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'g', -1, 32), 64)
	if err != nil {
		return float64(f) // infinities and NaN parse, so this is not reached
	}
	return exact
}
