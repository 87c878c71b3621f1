package resp

// This file owns the client's side of decoding: replies, with bounds, because a server may be broken or hostile too.

import (
	"bytes"
	"io"
)

// Defaults of [ReaderLimits].
const (
	// DefaultDepthMax bounds aggregates in aggregates. No command of Redis nests deeper than a handful.
	DefaultDepthMax = 128
	// DefaultReplyBytesMax bounds one string of a reply (Redis: proto-max-bulk-len).
	DefaultReplyBytesMax = 512 << 20
	// DefaultLineBytesMax bounds a status, error, number or length line.
	DefaultLineBytesMax = 64 << 10
	// DefaultValuesMax bounds the values in one reply at all depths.
	DefaultValuesMax = 4 << 20
)

// ReaderLimits bounds what one reply may make a client hold. A field of zero or less means its default.
type ReaderLimits struct {
	// DepthMax bounds the nesting of aggregates and attributes.
	DepthMax int
	// BytesMax bounds one string, streamed ones included.
	BytesMax int
	// LineBytesMax bounds what stands on a line of its own.
	LineBytesMax int
	// ValuesMax bounds the number of values in a reply, attributes included.
	ValuesMax int
}

// Reader decodes replies: every type of RESP2 and RESP3, attributes, streamed strings and streamed aggregates. It is not safe for use by
// several goroutines at once.
type Reader struct {
	r   io.Reader
	buf []byte
	pos int
	end int

	limits ReaderLimits
	values int   // left for the reply being read
	err    error // a protocol fault or a broken stream, after which there is no next reply
}

// NewReader returns a Reader with default [ReaderLimits].
func NewReader(r io.Reader) *Reader {
	rd := &Reader{r: r}
	rd.SetLimits(ReaderLimits{})
	return rd
}

// SetLimits replaces the limits from the next reply on.
func (r *Reader) SetLimits(l ReaderLimits) {
	set := func(field *int, value int) {
		if *field <= 0 {
			*field = value
		}
	}
	set(&l.DepthMax, DefaultDepthMax)
	set(&l.BytesMax, DefaultReplyBytesMax)
	set(&l.LineBytesMax, DefaultLineBytesMax)
	set(&l.ValuesMax, DefaultValuesMax)
	r.limits = l
}

// Buffered returns the number of bytes that were received and not yet decoded.
func (r *Reader) Buffered() int { return r.end - r.pos }

// Rest returns the bytes that were received and not yet decoded, for a connection whose protocol changes. They are the caller's; r cannot
// be used afterwards.
func (r *Reader) Rest() []byte {
	rest := append([]byte(nil), r.buf[r.pos:r.end]...)
	r.buf, r.pos, r.end, r.err = nil, 0, 0, io.EOF
	return rest
}

// Read reads one reply, or one push, into v. Everything in v is v's own: it stays until v is read into again, whatever else r reads. At the
// end of the stream Read returns io.EOF, or io.ErrUnexpectedEOF inside a reply. After any error r cannot go on; it returns the same
// error again. An error reply is no error here: see [Value.Err].
func (r *Reader) Read(v *Value) error {
	if r.err != nil {
		return r.err
	}
	if r.pos == r.end {
		if r.err = r.more(); r.err != nil {
			return r.err
		}
	}
	r.values = r.limits.ValuesMax
	_, err := r.value(v, r.limits.DepthMax, false)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	r.err = err
	return err
}

// kindBytes are the bytes that a value may start with, and the end of a streamed aggregate.
var kindBytes = []byte("+-!:$=,#(_*%~>|.")

// value reads one value and the attributes before it. ended is true for the end of a streamed aggregate, where stream allows it.
func (r *Reader) value(v *Value, depth int, stream bool) (ended bool, err error) {
	v.reset()
	attributes := false
	for {
		if r.pos == r.end {
			if err := r.more(); err != nil {
				return false, err
			}
		}
		if kind := r.buf[r.pos]; bytes.IndexByte(kindBytes, kind) < 0 {
			return false, &ProtocolError{"no reply starts with '" + printable(kind) + "'"}
		}
		if r.values--; r.values < 0 {
			return false, r.limit("ValuesMax", r.limits.ValuesMax, r.limits.ValuesMax+1, "too many values in a reply")
		}
		line, err := r.line()
		if err != nil {
			return false, err
		}
		kind, rest := line[0], line[1:]
		switch kind {
		case '.':
			if !stream || len(rest) > 0 || attributes {
				return false, &ProtocolError{"an end of a streamed aggregate where none is open"}
			}
			return true, nil
		case '|':
			if err := r.aggregate(&v.Attrs, rest, 2, depth, false); err != nil {
				return false, err
			}
			attributes = true
			continue // the value that is described comes next
		}
		if kind == '>' && depth < r.limits.DepthMax {
			return false, &ProtocolError{"a push inside another value"}
		}
		v.Kind = Kind(kind)
		return false, r.typed(v, rest, depth)
	}
}

// typed reads the rest of a value whose kind is known.
func (r *Reader) typed(v *Value, rest []byte, depth int) error {
	switch v.Kind {
	case Status, ErrorLine:
		v.Data = append(v.Data, rest...)
		return nil
	case Bulk, BlobError, Verbatim:
		return r.blob(v, rest)
	case Array, Set, Push:
		if v.Kind == Array && string(rest) == "-1" {
			v.Kind = Null
			return nil
		}
		return r.aggregate(&v.Elems, rest, 1, depth, v.Kind != Push)
	case Map:
		return r.aggregate(&v.Elems, rest, 2, depth, true)
	}
	return r.scalar(v, rest)
}

// scalar reads what is complete with its line.
func (r *Reader) scalar(v *Value, rest []byte) error {
	ok := false
	switch v.Kind {
	case Null:
		ok = len(rest) == 0
	case Boolean:
		ok = string(rest) == "t" || string(rest) == "f"
		if ok && rest[0] == 't' {
			v.Int = 1
		}
	case Integer:
		v.Int, ok = integer(rest)
	case Double:
		v.Float, ok = parseFloat(rest)
		v.Data = append(v.Data, rest...)
	case BigNumber:
		ok = isInteger(rest)
		v.Data = append(v.Data, rest...)
	default:
		return &ProtocolError{"no reply starts with '" + printable(byte(v.Kind)) + "'"}
	}
	if !ok {
		return &ProtocolError{"invalid value after '" + printable(byte(v.Kind)) + "'"}
	}
	return nil
}

// blob reads a string of announced length, or a streamed one.
func (r *Reader) blob(v *Value, rest []byte) error {
	if v.Kind == Bulk && string(rest) == "-1" {
		v.Kind = Null
		return nil
	}
	if v.Kind == Bulk && string(rest) == "?" {
		return r.chunks(v)
	}
	n, ok := integer(rest)
	if !ok || n < 0 {
		return &ProtocolError{"invalid length of a string"}
	}
	if v.Kind == Verbatim {
		return r.verbatim(v, n)
	}
	return r.bytes(&v.Data, n)
}

// verbatim reads "txt:" and the text behind it.
func (r *Reader) verbatim(v *Value, n int64) error {
	if n < 4 {
		return &ProtocolError{"a verbatim string without a format"}
	}
	if err := r.bytes(&v.Data, n); err != nil {
		return err
	}
	if v.Data[3] != ':' {
		return &ProtocolError{"a verbatim string without a format"}
	}
	copy(v.Format[:], v.Data)
	v.Data = v.Data[:copy(v.Data, v.Data[4:])]
	return nil
}

// chunks reads the parts of a streamed string.
func (r *Reader) chunks(v *Value) error {
	for {
		if r.values--; r.values < 0 {
			return r.limit("ValuesMax", r.limits.ValuesMax, r.limits.ValuesMax+1, "too many parts in a streamed string")
		}
		line, err := r.line()
		if err != nil {
			return err
		}
		n, ok := integer(line[1:])
		if line[0] != ';' || !ok || n < 0 {
			return &ProtocolError{"invalid part of a streamed string"}
		}
		if n == 0 {
			return nil
		}
		if err := r.bytes(&v.Data, n); err != nil {
			return err
		}
	}
}

// bytes appends n bytes and takes the CRLF behind them. Memory grows as bytes arrive, not as they are announced.
func (r *Reader) bytes(dst *[]byte, n int64) error {
	if total := n + int64(len(*dst)); n > int64(r.limits.BytesMax) || total > int64(r.limits.BytesMax) {
		return r.limit("BytesMax", r.limits.BytesMax, int(min(n, int64(r.limits.BytesMax)+1)), "a string is too long")
	}
	for left := int(n); left > 0; {
		if r.pos == r.end {
			if err := r.more(); err != nil {
				return err
			}
		}
		part := r.buf[r.pos:min(r.end, r.pos+left)]
		*dst = append(*dst, part...)
		r.pos += len(part)
		left -= len(part)
	}
	for _, want := range []byte("\r\n") {
		if r.pos == r.end {
			if err := r.more(); err != nil {
				return err
			}
		}
		if r.buf[r.pos] != want {
			return &ProtocolError{"a string does not end with CRLF where its length says"}
		}
		r.pos++
	}
	return nil
}

// aggregate reads n times per values into elems, or up to the end of a streamed aggregate.
func (r *Reader) aggregate(elems *[]Value, rest []byte, per int, depth int, streamable bool) error {
	if depth == 0 {
		return r.limit("DepthMax", r.limits.DepthMax, r.limits.DepthMax+1, "a reply is nested too deeply")
	}
	if streamable && string(rest) == "?" {
		return r.streamed(elems, per, depth)
	}
	n, ok := integer(rest)
	if !ok || n < 0 {
		return &ProtocolError{"invalid count of elements"}
	}
	if n > int64(r.values/per) {
		return r.limit("ValuesMax", r.limits.ValuesMax, r.limits.ValuesMax+1, "too many values in a reply")
	}
	for range int(n) * per {
		if _, err := r.value(extend(elems), depth-1, false); err != nil {
			return err
		}
	}
	return nil
}

// streamed reads values until the end mark.
func (r *Reader) streamed(elems *[]Value, per int, depth int) error {
	for {
		ended, err := r.value(extend(elems), depth-1, true)
		if err != nil {
			return err
		}
		if ended {
			*elems = (*elems)[:len(*elems)-1]
			break
		}
	}
	if len(*elems)%per != 0 {
		return &ProtocolError{"a streamed map ends after a key"}
	}
	return nil
}

// extend makes elems one longer and returns the new last element, with the memory it had in an earlier reply.
func extend(elems *[]Value) *Value {
	e := *elems
	if len(e) < cap(e) {
		e = e[:len(e)+1]
	} else {
		e = append(e, Value{})
	}
	*elems = e
	return &e[len(e)-1]
}

// line returns the next line without its CRLF; it has at least one byte and is valid until the next read.
func (r *Reader) line() ([]byte, error) {
	scanned := 0
	for {
		unread := r.buf[r.pos+scanned : r.end]
		i := bytes.IndexByte(unread, '\r')
		if lf := bytes.IndexByte(unread[:max(i, 0)], '\n'); lf >= 0 || i < 0 && bytes.IndexByte(unread, '\n') >= 0 {
			return nil, &ProtocolError{"a line without CRLF"}
		}
		length := scanned + len(unread)
		if i >= 0 {
			length = scanned + i
		}
		if length-1 > r.limits.LineBytesMax {
			return nil, r.limit("LineBytesMax", r.limits.LineBytesMax, length-1, "a line is too long")
		}
		if i >= 0 && i+1 < len(unread) {
			if unread[i+1] != '\n' {
				return nil, &ProtocolError{"a bare CR in a line"}
			}
			line := r.buf[r.pos : r.pos+length]
			r.pos += length + 2
			if len(line) == 0 {
				return nil, &ProtocolError{"a line without a type"}
			}
			return line, nil
		}
		scanned = length
		if err := r.more(); err != nil {
			return nil, err
		}
	}
}

// more reads once, behind the bytes that are not decoded yet.
func (r *Reader) more() error {
	if r.pos > 0 {
		r.end = copy(r.buf, r.buf[r.pos:r.end])
		r.pos = 0
	}
	if r.end == len(r.buf) {
		fresh := make([]byte, max(readerBytes, 2*len(r.buf)))
		copy(fresh, r.buf)
		r.buf = fresh
	}
	n, err := r.r.Read(r.buf[r.end:])
	r.end += n
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// readerBytes is the buffer a Reader starts with. It only grows for a line that is longer, up to LineBytesMax.
const readerBytes = 16 << 10

func (r *Reader) limit(name string, limit, got int, reason string) error {
	return &LimitError{name, int64(limit), int64(got), reason}
}

// integer parses a line that is nothing but a number. Unlike a request's, it may have a plus sign in front.
func integer(text []byte) (int64, bool) {
	if len(text) == 0 || len(text) > headerBytesMax {
		return 0, false
	}
	negative := text[0] == '-'
	if negative || text[0] == '+' {
		text = text[1:]
	}
	if len(text) == 0 || text[0] == '0' && len(text) > 1 {
		return 0, false
	}
	var n int64
	for _, c := range text {
		digit := int64(c) - '0'
		// Counted downwards, because the negative range is larger by one.
		if digit < 0 || digit > 9 || n < (minInt64+digit)/10 {
			return 0, false
		}
		n = n*10 - digit
	}
	if !negative {
		if n == minInt64 {
			return 0, false
		}
		n = -n
	}
	return n, true
}

const minInt64 = -1 << 63

// isInteger reports whether text is a number of any length.
func isInteger(text []byte) bool {
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		text = text[1:]
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(text) > 0
}
