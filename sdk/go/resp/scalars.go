package resp

// This file owns the encoding of values that hold no other values, errors apart.

import (
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"strconv"
)

// headerRoom is enough for a type byte, the longest number and two line ends.
const headerRoom = 1 + 20 + 2 + 2

var errVerbatimFormat = errors.New("resp: the format of a verbatim string must be three bytes, such as txt or mkd")

// okWord is "+OK\r\n" as it stands in memory.
const okWord = '+' | 'O'<<8 | 'K'<<16 | crlfWord<<24

// WriteOK writes the status OK, the most frequent of them.
func (w *Writer) WriteOK() error {
	if w.rb != nil {
		return binaryStatus(w, "OK")
	}
	n := len(w.buf)
	if cap(w.buf)-n < 8 {
		if err := w.grow(8); err != nil {
			return err
		}
		n = len(w.buf)
	}
	binary.LittleEndian.PutUint64(w.buf[n:n+8], okWord)
	w.buf = w.buf[:n+5]
	return w.wrote()
}

// WriteStatusString writes a simple string. Line breaks in s, which would end it early, are written as blanks.
func (w *Writer) WriteStatusString(s string) error {
	if w.rb != nil {
		return binaryStatus(w, s)
	}
	n := len(w.buf)
	b := w.buf[n:cap(w.buf)]
	if s == "OK" && len(b) >= 8 {
		// The most frequent reply by far, stored at once as in WriteOK; the loop below costs a nanosecond a byte.
		binary.LittleEndian.PutUint64(b, okWord)
		w.buf = w.buf[:n+5]
		return w.wrote()
	}
	if len(b) < len(s)+3 {
		if err := w.grow(len(s) + 3); err != nil {
			return err
		}
		n = len(w.buf)
		b = w.buf[n:cap(w.buf)]
	}
	b = b[:len(s)+3]
	b[0] = '+'
	for i := range len(s) {
		c := s[i]
		if c == '\r' || c == '\n' {
			c = ' '
		}
		b[i+1] = c
	}
	binary.LittleEndian.PutUint16(b[len(s)+1:], crlfWord)
	w.buf = w.buf[:n+len(b)]
	return w.wrote()
}

// WriteStatusBytes is WriteStatusString for bytes. s is not kept and not changed.
func (w *Writer) WriteStatusBytes(s []byte) error {
	if w.rb != nil {
		return binaryStatus(w, s)
	}
	if err := w.grow(len(s) + 3); err != nil {
		return err
	}
	w.buf = append(appendLine(append(w.buf, '+'), s), '\r', '\n')
	return w.wrote()
}

// appendLine appends s with line breaks as blanks. It cleans the copy, never what it was given.
func appendLine[T string | []byte](b []byte, s T) []byte {
	n := len(b)
	b = append(b, s...)
	for i := n; i < len(b); i++ {
		if b[i] == '\r' || b[i] == '\n' {
			b[i] = ' '
		}
	}
	return b
}

// appendHeader appends a type byte, n and CRLF to b, which must have headerRoom left.
func appendHeader(b []byte, kind byte, n int) []byte {
	return b[:len(b)+putHeader(b[len(b):cap(b)], kind, n)]
}

func appendHeader64(b []byte, kind byte, n int64) []byte {
	b = strconv.AppendInt(append(b, kind), n, 10)
	return append(b, '\r', '\n')
}

// putHeader writes a type byte, n and CRLF to the front of b, which must have headerRoom, and returns their length. Four digits
// and less are put together in a register and stored at once.
func putHeader(b []byte, kind byte, n int) int {
	head := uint64(kind)
	u := uint64(n)
	switch {
	case u < 10:
		head |= (u+'0')<<8 | crlfWord<<16
		binary.LittleEndian.PutUint64(b, head)
		return 4
	case u < 100:
		head |= (u/10+'0')<<8 | (u%10+'0')<<16 | crlfWord<<24
		binary.LittleEndian.PutUint64(b, head)
		return 5
	case u < 1000:
		head |= (u/100+'0')<<8 | (u/10%10+'0')<<16 | (u%10+'0')<<24 | crlfWord<<32
		binary.LittleEndian.PutUint64(b, head)
		return 6
	case u < 10000:
		head |= (u/1000+'0')<<8 | (u/100%10+'0')<<16 | (u/10%10+'0')<<24 | (u%10+'0')<<32 | crlfWord<<40
		binary.LittleEndian.PutUint64(b, head)
		return 7
	}
	return len(appendHeader64(b[:0], kind, int64(n)))
}

// shortHeads are the headers of bulk strings below a hundred bytes, as putHeader makes them: four bytes up to nine, five above. Most
// strings are that short, and a load costs less than the call.
var shortHeads = func() (heads [100]uint64) {
	for n := range heads {
		var b [headerRoom]byte
		putHeader(b[:], '$', n)
		heads[n] = binary.LittleEndian.Uint64(b[:])
	}
	return heads
}()

// WriteBulkBytes writes a bulk string. nil is the empty string; for "no value" use WriteNull. v may be changed after the call:
// it was copied or sent.
func (w *Writer) WriteBulkBytes(v []byte) error {
	if w.rb != nil {
		return binaryBulk(w, v)
	}
	n := len(w.buf)
	b := w.buf[n:cap(w.buf)]
	if len(v) >= direct || len(b) < len(v)+headerRoom {
		return writeLong(w, '$', "", v)
	}
	at := 5
	if len(v) < len(shortHeads) {
		binary.LittleEndian.PutUint64(b, shortHeads[len(v)])
		if len(v) < 10 {
			at = 4
		}
	} else {
		at = putHeader(b, '$', len(v))
	}
	copy(b[at:], v)
	binary.LittleEndian.PutUint16(b[at+len(v):], crlfWord)
	w.buf = w.buf[:n+at+len(v)+2]
	return w.wrote()
}

// WriteBulkString is WriteBulkBytes for a string.
func (w *Writer) WriteBulkString(v string) error {
	if w.rb != nil {
		return binaryBulk(w, v)
	}
	n := len(w.buf)
	b := w.buf[n:cap(w.buf)]
	if len(v) >= direct || len(b) < len(v)+headerRoom {
		return writeLong(w, '$', "", v)
	}
	at := 5
	if len(v) < len(shortHeads) {
		binary.LittleEndian.PutUint64(b, shortHeads[len(v)])
		if len(v) < 10 {
			at = 4
		}
	} else {
		at = putHeader(b, '$', len(v))
	}
	copy(b[at:], v)
	binary.LittleEndian.PutUint16(b[at+len(v):], crlfWord)
	w.buf = w.buf[:n+at+len(v)+2]
	return w.wrote()
}

// writeLong writes a value with a length header when there is no room for it or when it is better sent uncopied.
func writeLong[T string | []byte](w *Writer, kind byte, prefix string, v T) error {
	if err := w.appendLong(kind, prefix, len(v)); err != nil {
		return err
	}
	if b, isBytes := any(v).([]byte); isBytes {
		if err := w.appendLarge(b); err != nil {
			return err
		}
	} else if err := w.grow(len(v) + 2); err != nil {
		return err
	} else {
		w.buf = append(w.buf, v...)
	}
	if err := w.growQuietly(2); err != nil {
		return err
	}
	w.buf = append(w.buf, '\r', '\n')
	return w.wrote()
}

// appendLong appends the header of a value of n bytes, and its prefix, which counts towards the length.
func (w *Writer) appendLong(kind byte, prefix string, n int) error {
	if err := w.grow(headerRoom + len(prefix)); err != nil {
		return err
	}
	w.buf = append(appendHeader(w.buf, kind, n+len(prefix)), prefix...)
	return nil
}

// WriteInt writes an integer.
func (w *Writer) WriteInt(n int) error { return w.WriteInt64(int64(n)) }

// WriteInt32 writes an integer.
func (w *Writer) WriteInt32(n int32) error { return w.WriteInt64(int64(n)) }

// WriteInt64 writes an integer.
func (w *Writer) WriteInt64(n int64) error {
	if w.rb != nil {
		return w.binaryInt(n)
	}
	b := w.buf
	if cap(b)-len(b) < headerRoom {
		if err := w.grow(headerRoom); err != nil {
			return err
		}
		b = w.buf
	}
	if uint64(n) < 10000 {
		w.buf = appendHeader(b, ':', int(n))
		return w.wrote()
	}
	b = strconv.AppendInt(append(b, ':'), n, 10)
	w.buf = append(b, '\r', '\n')
	return w.wrote()
}

// WriteUint64 writes an integer, or what WriteBigInt writes if n does not fit the 64 signed bits of RESP's integers.
func (w *Writer) WriteUint64(n uint64) error {
	if n <= math.MaxInt64 {
		return w.WriteInt64(int64(n))
	}
	var digits [20]byte
	return w.writeDigits('(', strconv.AppendUint(digits[:0], n, 10))
}

// WriteBigInt writes a big number, or its digits as a bulk string for RESP2. A nil n is null.
func (w *Writer) WriteBigInt(n *big.Int) error {
	if n == nil {
		return w.WriteNull()
	}
	return w.writeDigits('(', n.Append(nil, 10))
}

// WriteFloat writes a double in its shortest exact form, or that form as a bulk string for RESP2. Infinities and
// NaN are inf, -inf and nan.
func (w *Writer) WriteFloat(f float64) error {
	if w.rb != nil {
		return w.binaryFloat(f)
	}
	var digits [32]byte
	return w.writeDigits(',', appendFloat(digits[:0], f, 64))
}

// WriteFloat64 is WriteFloat.
func (w *Writer) WriteFloat64(f float64) error { return w.WriteFloat(f) }

// WriteFloat32 writes the shortest form that gives f back as a float32: 0.1 and not 0.10000000149011612.
func (w *Writer) WriteFloat32(f float32) error {
	if w.rb != nil {
		return w.binaryFloat(float32Exact(f))
	}
	var digits [32]byte
	return w.writeDigits(',', appendFloat(digits[:0], float64(f), 32))
}

func appendFloat(b []byte, f float64, bits int) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(b, "inf"...)
	case math.IsInf(f, -1):
		return append(b, "-inf"...)
	case f != f:
		return append(b, "nan"...)
	case f == math.Trunc(f) && math.Abs(f) < 1<<53 && !(f == 0 && math.Signbit(f)):
		return strconv.AppendInt(b, int64(f), 10)
	}
	return strconv.AppendFloat(b, f, 'g', -1, bits)
}

// writeDigits writes the text of a number whose type RESP2 lacks.
func (w *Writer) writeDigits(kind byte, digits []byte) error {
	if w.rb != nil { // doubles have gone another way
		return w.binaryBig(digits)
	}
	if err := w.grow(len(digits) + headerRoom); err != nil {
		return err
	}
	b := w.buf
	if w.resp2 {
		b = appendHeader(b, '$', len(digits))
	} else {
		b = append(b, kind)
	}
	w.buf = append(append(b, digits...), '\r', '\n')
	return w.wrote()
}

// WriteBool writes a boolean, or the integer 1 or 0 for RESP2.
func (w *Writer) WriteBool(v bool) error {
	switch {
	case w.rb != nil:
		return w.binaryBool(v)
	case w.resp2 && v:
		return w.writeConst(":1\r\n")
	case w.resp2:
		return w.writeConst(":0\r\n")
	case v:
		return w.writeConst("#t\r\n")
	default:
		return w.writeConst("#f\r\n")
	}
}

// WriteNull writes null, or RESP2's null bulk string: there is no such value.
func (w *Writer) WriteNull() error {
	if w.rb != nil {
		return w.binaryNull()
	}
	if w.resp2 {
		return w.writeConst("$-1\r\n")
	}
	return w.writeConst("_\r\n")
}

// WriteNullArray writes null, or RESP2's null array: an EXEC that was given up, a pop that timed out.
func (w *Writer) WriteNullArray() error {
	if w.rb != nil {
		return w.binaryNull()
	}
	if w.resp2 {
		return w.writeConst("*-1\r\n")
	}
	return w.writeConst("_\r\n")
}

// writeConst writes one whole encoded value.
func (w *Writer) writeConst(encoded string) error {
	if err := w.grow(len(encoded)); err != nil {
		return err
	}
	w.buf = append(w.buf, encoded...)
	return w.wrote()
}

// WriteVerbatimString writes text with a format of three bytes, such as txt or mkd, or a plain bulk string for RESP2.
func (w *Writer) WriteVerbatimString(format, text string) error {
	return writeVerbatim(w, format, text)
}

// WriteVerbatimBytes is WriteVerbatimString for bytes, which are not kept.
func (w *Writer) WriteVerbatimBytes(format string, text []byte) error {
	return writeVerbatim(w, format, text)
}

func writeVerbatim[T string | []byte](w *Writer, format string, text T) error {
	if len(format) != 3 {
		return errVerbatimFormat
	}
	if w.rb != nil {
		return binaryVerbatim(w, format, text)
	}
	if w.resp2 {
		return writeLong(w, '$', "", text)
	}
	return writeLong(w, '=', format+":", text)
}

// WriteRaw writes bytes that already are exactly one encoded value, for instance one that was cached or forwarded. They are not
// checked; a caller that gives half a value makes the client misread everything after it.
func (w *Writer) WriteRaw(encoded []byte) error {
	if w.rb != nil {
		return w.binaryRaw(encoded)
	}
	if err := w.appendLarge(encoded); err != nil {
		return err
	}
	return w.wrote()
}
