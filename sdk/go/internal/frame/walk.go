package frame

// This file owns the walk over a payload, field by field from the table, going on at the field where it stopped (spec
// section 4).

import "math"

// walk is where in a payload the decoder stands. A position is left only when all of it has been handed out.
type walk struct {
	// at is the offset of what is read next; 0 at the start of a payload.
	at int
	// arguments counts those handed out, the name included.
	arguments uint32
	// field is the field; sub the field of an item or of a bit; bit the bit.
	field, sub, bit int
	// inside says that the field has been entered: a list's count or the option bits are known.
	inside bool
	bits   uint16
	// left counts the items to come; end is the end of an args payload.
	left, end int
	// items is where the items of a transposed list begin.
	items int
}

// scalar is a field's value, before it is handed out.
type scalar struct {
	kind    ArgKind
	off, n  int
	num     uint64
	words   []string
	keyword bool
}

func (w *walk) fields(d *RequestDecoder, fields []Field, in []byte, start int, args *Args) error {
	if w.at == 0 {
		w.at, w.arguments = start, 1
	}
	for ; w.field < len(fields); w.field++ {
		f := &fields[w.field]
		var err error
		switch f.Kind {
		case List16:
			err = w.list(d, f, in, args)
		case Opts8:
			err = w.options(d, f, in, args)
		default:
			err = w.single(d, f, f.Token, in, args)
		}
		if err != nil {
			return err
		}
		w.inside, w.sub = false, 0
	}
	return nil
}

// single reads a scalar field and hands it out behind its keywords.
func (w *walk) single(d *RequestDecoder, f *Field, token []string, in []byte, args *Args) error {
	value, next, err := d.scalar(f, in, w.at)
	if err != nil {
		return err
	}
	if err := w.count(d, len(token)); err != nil {
		return err
	}
	args.words(token)
	if err := w.handOut(d, value, args); err != nil {
		return err
	}
	w.at = next
	return nil
}

// count checks that n more arguments may be handed out.
func (w *walk) count(d *RequestDecoder, n int) error {
	if uint64(w.arguments)+uint64(n) > uint64(d.limits.ArgumentsMax) {
		if d.limits.Unauthenticated {
			return wrong(UnauthenticatedArguments, w.at)
		}
		return wrong(TooManyArguments, w.at)
	}
	w.arguments += uint32(n)
	return nil
}

func (w *walk) handOut(d *RequestDecoder, value scalar, args *Args) error {
	n := 1
	if value.keyword {
		n = len(value.words)
	}
	if err := w.count(d, n); err != nil {
		return err
	}
	emit(value, args)
	return nil
}

func emit(value scalar, args *Args) {
	if value.keyword {
		args.words(value.words)
		return
	}
	args.List = append(args.List, Arg{Kind: value.kind, Off: uint32(value.off), Len: uint32(value.n), num: value.num})
}

func (w *walk) list(d *RequestDecoder, f *Field, in []byte, args *Args) error {
	if !w.inside {
		if err := d.fixed(in, w.at, 2); err != nil {
			return err
		}
		count := int(be16(in[w.at:]))
		// The keyword and the count are this field's arguments: one too many is reported here.
		if err := w.count(d, len(f.Token)); err != nil {
			return err
		}
		args.words(f.Token)
		if f.Counted {
			if err := w.count(d, 1); err != nil {
				return err
			}
			args.int(int64(count))
		}
		w.at += 2
		w.inside, w.left, w.items = true, count, w.at
	}
	for ; w.left > 0; w.left-- {
		for ; w.sub < len(f.Items); w.sub++ {
			value, next, err := d.scalar(&f.Items[w.sub], in, w.at)
			if err != nil {
				return err
			}
			if f.Transposed {
				err = w.count(d, 1)
			} else {
				err = w.handOut(d, value, args)
			}
			if err != nil {
				return err
			}
			w.at = next
		}
		w.sub = 0
	}
	if f.Transposed {
		for column := range f.Items {
			if err := w.column(d, f, column, in, args); err != nil {
				return err
			}
		}
	}
	return nil
}

// column hands out one field of every item of a list that is there as a whole.
func (w *walk) column(d *RequestDecoder, f *Field, column int, in []byte, args *Args) error {
	for at := w.items; at < w.at; {
		for i := range f.Items {
			value, next, err := d.scalar(&f.Items[i], in, at)
			if err != nil {
				return err
			}
			if i == column {
				emit(value, args)
			}
			at = next
		}
	}
	return nil
}

func (w *walk) options(d *RequestDecoder, f *Field, in []byte, args *Args) error {
	if !w.inside {
		if err := d.fixed(in, w.at, 1); err != nil {
			return err
		}
		bits := uint16(in[w.at])
		if name := f.checkBits(bits); name != "" {
			return wrong(name, w.at)
		}
		w.bits, w.inside, w.bit, args.Options = bits, true, 0, bits
		w.at++
	}
	for ; w.bit < len(f.Bits); w.bit++ {
		if w.bits>>w.bit&1 == 0 {
			continue
		}
		bit := &f.Bits[w.bit]
		if len(bit.Fields) == 0 {
			if err := w.count(d, len(bit.Token)); err != nil {
				return err
			}
			args.words(bit.Token)
		}
		for ; w.sub < len(bit.Fields); w.sub++ {
			var token []string
			if w.sub == 0 {
				token = bit.Token
			}
			if err := w.single(d, &bit.Fields[w.sub], token, in, args); err != nil {
				return err
			}
		}
		w.sub = 0
	}
	return nil
}

// args walks [total u32] and arguments of u32 length that fill it; named says that the first is the command's name.
func (w *walk) args(d *RequestDecoder, in []byte, start int, named bool, args *Args) error {
	if w.at == 0 {
		if err := d.fixed(in, start, 4); err != nil {
			return err
		}
		total := be32(in[start:])
		end := uint64(start) + 4 + uint64(total)
		if end > uint64(d.limits.FrameBytesMax) {
			return wrong(FrameTooLong, start)
		}
		if named && total == 0 {
			return wrong(EmptyCommand, start)
		}
		w.at, w.end = start+4, int(end)
		if !named {
			w.arguments = 1
		}
	}
	for w.at < w.end {
		if w.end-w.at < 4 {
			return wrong(LengthMismatch, w.at)
		}
		if err := d.fixed(in, w.at, 4); err != nil {
			return err
		}
		n := uint64(be32(in[w.at:]))
		if n > uint64(w.end-w.at-4) {
			return wrong(LengthMismatch, w.at)
		}
		value, next, err := d.span(in, w.at, w.at+4, n)
		if err != nil {
			return err
		}
		if err := w.handOut(d, value, args); err != nil {
			return err
		}
		w.at = next
	}
	return nil
}

// fixed checks that the size bytes of a field at at are within the limit, and there.
func (d *RequestDecoder) fixed(in []byte, at, size int) error {
	if uint64(at)+uint64(size) > uint64(d.limits.FrameBytesMax) {
		return wrong(FrameTooLong, at)
	}
	if len(in) < at+size {
		d.need = at + size
		return ErrIncomplete
	}
	return nil
}

// span returns n bytes at at; errors about them are reported at field.
func (d *RequestDecoder) span(in []byte, field, at int, n uint64) (scalar, int, error) {
	if n > uint64(d.limits.ArgumentBytesMax) {
		if d.limits.Unauthenticated {
			return scalar{}, 0, wrong(UnauthenticatedArgument, field)
		}
		return scalar{}, 0, wrong(ArgumentTooLong, field)
	}
	end := uint64(at) + n
	if end > uint64(d.limits.FrameBytesMax) {
		return scalar{}, 0, wrong(FrameTooLong, field)
	}
	if uint64(len(in)) < end {
		d.need = int(end)
		return scalar{}, 0, ErrIncomplete
	}
	return scalar{kind: Bytes, off: at, n: int(n)}, int(end), nil
}

// scalarSize is the number of bytes of a field's fixed part.
var scalarSize = [...]int{Str16: 2, Blob32: 4, I64: 8, F64: 8, U16: 2, U8: 1, Enum: 1}

// scalar reads a field that is neither a list nor options.
func (d *RequestDecoder) scalar(f *Field, in []byte, at int) (scalar, int, error) {
	next := at + scalarSize[f.Kind]
	if err := d.fixed(in, at, scalarSize[f.Kind]); err != nil {
		return scalar{}, 0, err
	}
	b := in[at:]
	switch f.Kind {
	case Str16:
		return d.span(in, at, next, uint64(be16(b)))
	case Blob32:
		return d.span(in, at, next, uint64(be32(b)))
	case I64:
		return scalar{kind: Int, num: be64(b)}, next, nil
	case F64:
		v := be64(b)
		if math.IsNaN(math.Float64frombits(v)) {
			return scalar{}, 0, wrong(BadNumber, at)
		}
		return scalar{kind: Double, num: v}, next, nil
	case U16:
		return scalar{kind: Int, num: uint64(be16(b))}, next, nil
	case U8:
		return scalar{kind: Int, num: uint64(b[0])}, next, nil
	default:
		if int(b[0]) >= len(f.Values) {
			return scalar{}, 0, wrong(BadEnum, at)
		}
		return scalar{keyword: true, words: f.Values[b[0]]}, next, nil
	}
}
