package frame

// This file owns the arguments that a decoded request consists of.

import "math"

// ArgKind says what an argument is.
type ArgKind uint8

// Kinds of arguments.
const (
	Bytes   ArgKind = iota // a span of the frame
	Int                    // an integer that the wire carried in binary
	Double                 // a double that the wire carried in binary
	Keyword                // a word that the layout implies
)

// Arg is one argument of a request, in the order of the argument form.
type Arg struct {
	Kind ArgKind
	// Off and Len are the span of Bytes, from the start of the frame. A frame's length fits in 32 bits.
	Off, Len uint32
	num      uint64
	// Word is the Keyword; it lives as long as the program.
	Word string
}

// Bytes returns the span of a Bytes argument in its frame. It is valid as long as the frame's bytes are; its capacity ends
// with it, so that appending copies.
func (a Arg) Bytes(frame []byte) []byte {
	end := a.Off + a.Len
	return frame[a.Off:end:end]
}

// Int returns the value of an Int.
func (a Arg) Int() int64 { return int64(a.num) }

// Double returns the value of a Double.
func (a Arg) Double() float64 { return math.Float64frombits(a.num) }

// AppendText appends the argument as RESP would carry it.
func (a Arg) AppendText(dst, frame []byte) []byte {
	switch a.Kind {
	case Int:
		return AppendInt(dst, a.Int())
	case Double:
		return AppendDouble(dst, a.Double())
	case Keyword:
		return append(dst, a.Word...)
	default:
		return append(dst, a.Bytes(frame)...)
	}
}

// Args collects the arguments of one request. Reset and used again, it stops allocating.
type Args struct {
	List []Arg
	// Options are the option bits of a typed layout.
	Options uint16
}

// Reset forgets the arguments and keeps the memory.
func (a *Args) Reset() { a.List, a.Options = a.List[:0], 0 }

func (a *Args) bytes(off, n int) {
	a.List = append(a.List, Arg{Kind: Bytes, Off: uint32(off), Len: uint32(n)})
}

func (a *Args) int(v int64) { a.List = append(a.List, Arg{Kind: Int, num: uint64(v)}) }

func (a *Args) words(words []string) {
	for _, word := range words {
		a.List = append(a.List, Arg{Kind: Keyword, Word: word})
	}
}
