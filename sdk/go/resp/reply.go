package resp

// This file owns Value, a reply as a tree.

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"strconv"
)

// Kind is the type of a [Value]: the byte it starts with on the wire.
type Kind byte

// The types of RESP3, and Invalid for a Value that nothing was read into.
const (
	Invalid   Kind = 0
	Status    Kind = '+'
	ErrorLine Kind = '-'
	BlobError Kind = '!'
	Integer   Kind = ':'
	Bulk      Kind = '$'
	Verbatim  Kind = '='
	Double    Kind = ','
	Boolean   Kind = '#'
	BigNumber Kind = '('
	Null      Kind = '_'
	Array     Kind = '*'
	Map       Kind = '%'
	Set       Kind = '~'
	Push      Kind = '>'
)

// Value is one reply. [Reader.Read] fills it and reuses what it holds, so a Value read into again and again soon costs no
// allocation; what it held before is then gone.
type Value struct {
	// Kind says which of the fields below counts. RESP2's null bulk string and null array are Null.
	Kind Kind
	// Data is the text of a status, error, string, verbatim string (without its format), big number or double.
	Data []byte
	// Format is the three bytes before a verbatim string.
	Format [3]byte
	// Int is an integer, or 1 or 0 for a boolean.
	Int int64
	// Float is a double.
	Float float64
	// Elems are the elements of an array, set or push, and the keys and values in turn of a map.
	Elems []Value
	// Attrs are the keys and values in turn of an attribute that stood before this value.
	Attrs []Value
}

// reset empties v and keeps its memory.
func (v *Value) reset() {
	v.Kind, v.Int, v.Float, v.Format = Invalid, 0, 0, [3]byte{}
	v.Data, v.Elems, v.Attrs = v.Data[:0], v.Elems[:0], v.Attrs[:0]
}

// Err returns the error that v is, and nil if it is none.
func (v *Value) Err() error {
	if v.Kind != ErrorLine && v.Kind != BlobError {
		return nil
	}
	prefix, message, _ := bytes.Cut(v.Data, []byte{' '})
	return &Error{Prefix: string(prefix), Message: string(message)}
}

// IsNull reports whether v is null in one of its three forms.
func (v *Value) IsNull() bool { return v.Kind == Null }

// BigInt returns a big number, or an integer as one.
func (v *Value) BigInt() (*big.Int, error) {
	switch v.Kind {
	case Integer:
		return big.NewInt(v.Int), nil
	case BigNumber:
		if n, ok := new(big.Int).SetString(string(v.Data), 10); ok {
			return n, nil
		}
	}
	return nil, fmt.Errorf("resp: %q is not a big number", v.Data)
}

// String shows v for people, in the manner of redis-cli without its line breaks.
func (v *Value) String() string { return string(v.appendText(nil)) }

func (v *Value) appendText(b []byte) []byte {
	switch v.Kind {
	case Invalid:
		return append(b, "(nothing)"...)
	case Null:
		return append(b, "(nil)"...)
	case Integer:
		return strconv.AppendInt(b, v.Int, 10)
	case Boolean:
		return strconv.AppendBool(b, v.Int != 0)
	case Status, Double, BigNumber:
		return append(b, v.Data...)
	case ErrorLine, BlobError:
		return append(append(b, "(error) "...), v.Data...)
	case Bulk, Verbatim:
		return strconv.AppendQuote(b, string(v.Data))
	}
	b = append(b, byte(v.Kind), '[')
	for i := range v.Elems {
		if i > 0 {
			b = append(b, ' ')
		}
		b = v.Elems[i].appendText(b)
	}
	return append(b, ']')
}

// WriteValue writes v with everything in it, for instance to forward a reply. In RESP2 it is converted like everything else.
func (w *Writer) WriteValue(v *Value) error {
	return w.WriteBuffered(func() error { return w.writeValue(v, DefaultDepthMax+1) })
}

func (w *Writer) writeValue(v *Value, depth int) error {
	if depth == 0 {
		return fmt.Errorf("resp: a value nested deeper than %d was given to WriteValue", DefaultDepthMax)
	}
	if len(v.Attrs) > 0 {
		if err := w.WriteAttributeHeader(len(v.Attrs) / 2); err != nil {
			return err
		}
		if err := w.writeValues(v.Attrs, depth); err != nil {
			return err
		}
	}
	switch v.Kind {
	case Status:
		return w.WriteStatusBytes(v.Data)
	case ErrorLine:
		return writeErrorLine(w, "", v.Data)
	case BlobError:
		if w.resp2 || w.rb != nil {
			return writeErrorLine(w, "", v.Data)
		}
		return writeLong(w, '!', "", v.Data)
	case Integer:
		return w.WriteInt64(v.Int)
	case Bulk:
		return w.WriteBulkBytes(v.Data)
	case Verbatim:
		return w.WriteVerbatimBytes(string(v.Format[:]), v.Data)
	case Double:
		return w.WriteFloat(v.Float)
	case Boolean:
		return w.WriteBool(v.Int != 0)
	case BigNumber:
		return w.writeDigits('(', v.Data)
	case Null:
		return w.WriteNull()
	}
	return w.writeElems(v, depth)
}

// writeElems writes an aggregate.
func (w *Writer) writeElems(v *Value, depth int) error {
	var err error
	switch v.Kind {
	case Array:
		err = w.WriteArrayHeader(len(v.Elems))
	case Set:
		err = w.WriteSetHeader(len(v.Elems))
	case Push:
		err = w.WritePushHeader(len(v.Elems))
	case Map:
		if len(v.Elems)%2 != 0 {
			return errOddPairs
		}
		err = w.WriteMapHeader(len(v.Elems) / 2)
	default:
		err = fmt.Errorf("resp: a Value of kind %q cannot be written; use one of the constants", byte(v.Kind))
	}
	if err != nil {
		return err
	}
	return w.writeValues(v.Elems, depth)
}

func (w *Writer) writeValues(values []Value, depth int) error {
	for i := range values {
		if err := w.writeValue(&values[i], depth-1); err != nil {
			return err
		}
	}
	return nil
}

// parseFloat accepts what RESP3 allows for a double.
func parseFloat(text []byte) (float64, bool) {
	switch string(text) {
	case "inf", "+inf":
		return math.Inf(1), true
	case "-inf":
		return math.Inf(-1), true
	case "nan", "-nan":
		return math.NaN(), true
	}
	for _, c := range text {
		if !(c >= '0' && c <= '9' || c == '.' || c == '+' || c == '-' || c|0x20 == 'e') {
			return 0, false // ParseFloat would take hexadecimal, underscores and "Infinity"
		}
	}
	f, err := strconv.ParseFloat(string(text), 64)
	return f, err == nil
}
