package frame

// This file owns the encoding of replies, each value in its shortest form (spec section 5.4).

import "math"

// ReplyWriter appends replies for one channel. Aggregates are opened with their count, and their elements written after
// them; the writer keeps count, to know whether a value is a frame or an element.
type ReplyWriter struct {
	// Out is what has been written so far.
	Out     []byte
	Channel uint16
	// Replies and Pushes count the frames begun since Reset.
	Replies, Pushes int
	open            []uint64
}

// Mark is what a ReplyWriter has counted at some place, to go back to; Out is the caller's.
type Mark struct {
	replies, pushes int
	open            []uint64
}

// Mark returns the place that has been reached.
func (w *ReplyWriter) Mark() Mark {
	return Mark{w.Replies, w.Pushes, append([]uint64(nil), w.open...)}
}

// Back returns to a place.
func (w *ReplyWriter) Back(m Mark) {
	w.Replies, w.Pushes, w.open = m.replies, m.pushes, append(w.open[:0], m.open...)
}

// Reset forgets what is open and what was counted.
func (w *ReplyWriter) Reset() { w.open, w.Replies, w.Pushes = w.open[:0], 0, 0 }

// Whole reports whether no aggregate is open.
func (w *ReplyWriter) Whole() bool { return len(w.open) == 0 }

// head starts a frame.
func (w *ReplyWriter) head(opcode uint16) {
	if opcode == ReplyFirst|uint16(Push) {
		w.Pushes++
	} else {
		w.Replies++
	}
	w.Out = appendHead(w.Out, opcode, w.Channel)
}

// begin starts a value: a header at the top, a tag inside an aggregate.
func (w *ReplyWriter) begin(t Type) {
	if len(w.open) == 0 {
		w.head(ReplyFirst | uint16(t))
	} else {
		w.Out = append(w.Out, byte(t))
	}
}

// end counts a value that is complete.
func (w *ReplyWriter) end() {
	for n := len(w.open); n > 0; n = len(w.open) {
		if w.open[n-1]--; w.open[n-1] > 0 {
			return
		}
		w.open = w.open[:n-1]
	}
}

func (w *ReplyWriter) top() bool { return len(w.open) == 0 }

// Simple writes a status.
func (w *ReplyWriter) Simple(text []byte) { WriteSimple(w, text) }

// WriteSimple is Simple for strings and bytes.
func WriteSimple[T string | []byte](w *ReplyWriter, text T) {
	switch n := len(text); {
	case string(text) == "OK":
		w.begin(OK)
	case w.top() && n <= math.MaxUint8:
		w.head(shortSimple<<8 | uint16(n))
		w.Out = append(w.Out, text...)
	case n <= math.MaxUint16:
		w.begin(Simple)
		w.Out = append(append16(w.Out, uint16(n)), text...)
	default:
		WriteBulk(w, text)
		return
	}
	w.end()
}

// Error writes an error, its code first.
func (w *ReplyWriter) Error(text []byte) { WriteError(w, "", text) }

// WriteError is Error for strings and bytes, with something before the text.
func WriteError[T string | []byte](w *ReplyWriter, prefix string, text T) {
	n := len(prefix) + len(text)
	if n <= math.MaxUint16 {
		w.begin(Error)
		w.Out = append16(w.Out, uint16(n))
	} else {
		w.begin(longError)
		w.Out = append32(w.Out, uint32(n))
	}
	w.Out = append(append(w.Out, prefix...), text...)
	w.end()
}

// Bulk writes a byte string.
func (w *ReplyWriter) Bulk(b []byte) { WriteBulk(w, b) }

// WriteBulk is Bulk for strings and bytes.
func WriteBulk[T string | []byte](w *ReplyWriter, b T) {
	w.BulkHead(len(b))
	w.Out = append(w.Out, b...)
}

// BulkHead begins a byte string of n bytes, which the caller appends to Out next.
func (w *ReplyWriter) BulkHead(n int) {
	switch {
	case w.top() && n <= math.MaxUint8:
		w.head(shortBulk<<8 | uint16(n))
	case !w.top() && n < 0x100-tagBulkFirst:
		w.Out = append(w.Out, tagBulkFirst|byte(n))
	default:
		w.begin(Bulk)
		w.Out = append32(w.Out, uint32(n))
	}
	w.end()
}

// Int writes an integer.
func (w *ReplyWriter) Int(v int64) {
	switch {
	case w.top() && v >= 0 && v <= math.MaxUint8:
		w.head(smallInt<<8 | uint16(v))
	case !w.top() && v >= -1 && v <= 62:
		w.Out = append(w.Out, byte(tagIntFirst+1+v))
	case v == int64(int32(v)):
		w.begin(integer32)
		w.Out = append32(w.Out, uint32(int32(v)))
	default:
		w.begin(Integer)
		w.Out = append64(w.Out, uint64(v))
	}
	w.end()
}

// Float writes a double.
func (w *ReplyWriter) Float(v float64) {
	w.begin(Float)
	bits := math.Float64bits(v)
	if math.IsNaN(v) {
		bits = 0x7FF8_0000_0000_0000
	}
	w.Out = append64(w.Out, bits)
	w.end()
}

// Bool writes a boolean.
func (w *ReplyWriter) Bool(v bool) {
	w.begin(Bool)
	b := byte(0)
	if v {
		b = 1
	}
	w.Out = append(w.Out, b)
	w.end()
}

// Null writes null.
func (w *ReplyWriter) Null() {
	w.begin(Null)
	w.end()
}

// BigNumber writes a whole number of any size, given by its digits.
func (w *ReplyWriter) BigNumber(digits []byte) {
	w.begin(BigNumber)
	w.Out = append(append32(w.Out, uint32(len(digits))), digits...)
	w.end()
}

// Verbatim writes text with its format.
func (w *ReplyWriter) Verbatim(format [3]byte, text []byte) {
	w.VerbatimHead(format, len(text))
	w.Out = append(w.Out, text...)
}

// VerbatimHead begins a text of n bytes with its format; the caller appends it to Out next.
func (w *ReplyWriter) VerbatimHead(format [3]byte, n int) {
	w.begin(Verbatim)
	w.Out = append32(append(w.Out, format[:]...), uint32(n))
	w.end()
}

// Open begins an Array, Map, Set, Push or Attribute of n elements or pairs. An attribute is followed by its pairs and then by
// the value that it belongs to.
func (w *ReplyWriter) Open(t Type, n uint32) {
	w.begin(t)
	w.Out = append32(w.Out, n)
	elements := uint64(n)
	if t == Map || t == Attribute {
		elements *= 2
	}
	if t == Attribute {
		elements++
	}
	if elements == 0 {
		w.end()
		return
	}
	w.open = append(w.open, elements)
}
