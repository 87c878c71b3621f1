package frame

// This file owns the decoding of what a server sends: replies, pushes and control frames (spec section 5).

import "math"

// Type is the type of a value in a reply.
type Type uint8

// The types of spec section 5.1, by the low byte of their opcode.
const (
	OK Type = iota
	Error
	Integer
	Bulk
	Array
	Null
	Bool
	Float
	Map
	Set
	Push
	Simple
	BigNumber
	Verbatim
	Attribute
	longError
	integer32
)

const (
	smallInt    = 0x81
	shortBulk   = 0x82
	shortSimple = 0x83

	tagIntFirst  = 0x40
	tagBulkFirst = 0x80
)

// Value is one value of a reply; aggregates stand before their elements. Longer and shorter forms of a type are the same here.
type Value struct {
	Type Type
	// Format is that of a Verbatim.
	Format [3]byte
	// Off and Len are the span of a text: Error, Bulk, Simple, BigNumber, Verbatim.
	Off, Len uint32
	// Count is an aggregate's: elements, or pairs of a Map and an Attribute.
	Count uint32
	num   uint64
}

// Bytes returns a text's span in its frame; its capacity ends with it.
func (v Value) Bytes(frame []byte) []byte {
	end := v.Off + v.Len
	return frame[v.Off:end:end]
}

// Int returns the value of an Integer.
func (v Value) Int() int64 { return int64(v.num) }

// Float returns the value of a Float.
func (v Value) Float() float64 { return math.Float64frombits(v.num) }

// Bool returns the value of a Bool.
func (v Value) Bool() bool { return v.num != 0 }

// ReplyFrame is a whole frame from a server. The values of replies and pushes were appended to the caller's slice.
type ReplyFrame struct {
	Len     int
	Channel uint16
	Opcode  uint16
	// Push says that the frame answers no request.
	Push bool
	// Control is the payload of a control frame.
	Control Control
}

// ReplyDecoder decodes what a server sends, one frame after the other, going on where a frame that was not whole stopped.
type ReplyDecoder struct {
	limits Limits
	need   int
	// at is the offset of the element that is read next; 0 at the start of a frame.
	at   int
	push bool
	// left holds, for each open aggregate, the elements to come; attribute says that its end completes no value.
	left      [NestingMax]uint64
	attribute [NestingMax]bool
	depth     int
}

// The opcode of OK as it stands in a header.
const (
	okFirst  = byte((ReplyFirst | uint16(OK)) >> 8)
	okSecond = byte((ReplyFirst | uint16(OK)) & 0xff)
)

// NewReplyDecoder returns a decoder at the start of a frame.
func NewReplyDecoder(limits Limits) *ReplyDecoder {
	limits.NestingMax = min(limits.NestingMax, NestingMax)
	return &ReplyDecoder{limits: limits}
}

// Need is as RequestDecoder.Need.
func (d *ReplyDecoder) Need() int { return d.need }

// Decode decodes the frame at the start of in and appends its values. It resumes as RequestDecoder.Decode does.
func (d *ReplyDecoder) Decode(in []byte, values []Value) (ReplyFrame, []Value, error) {
	if len(in) < d.need {
		return ReplyFrame{}, values, ErrIncomplete
	}
	if d.need == 0 && len(in) >= headerLen && in[0] == okFirst && in[1] == okSecond && d.limits.FrameBytesMax >= headerLen {
		// What most writes are answered with, in a third of the time.
		return ReplyFrame{Len: headerLen, Opcode: ReplyFirst | uint16(OK), Channel: be16(in[2:])}, append(values, Value{Type: OK}), nil
	}
	frame, values, err := d.frame(in, values)
	if err != ErrIncomplete {
		d.need, d.at, d.push, d.depth = 0, 0, false, 0
	}
	return frame, values, err
}

func (d *ReplyDecoder) frame(in []byte, values []Value) (ReplyFrame, []Value, error) {
	if len(in) < headerLen {
		return ReplyFrame{}, values, d.lacks(headerLen)
	}
	f := ReplyFrame{Opcode: be16(in), Channel: be16(in[2:])}
	switch {
	case f.Opcode >= ReplyFirst && f.Opcode <= ReplyLast:
	case f.Opcode <= CoreLast, f.Opcode == ModuleCommand, f.Opcode == Argv, f.Opcode == Passthrough,
		f.Opcode == Cancel, f.Opcode == Window:
		return f, values, wrong(WrongDirection, 0)
	case f.Opcode >= ExtendedFirst:
		end, err := longEnd(in, &d.limits)
		if err != nil {
			return f, values, err
		}
		if len(in) < end || end == longHeaderLen && len(in) < longHeaderLen {
			d.need = end
			return f, values, ErrIncomplete
		}
		f.Len = end
		if f.Opcode >= IgnorableFirst {
			f.Control, err = parseControl(f.Opcode, in[longHeaderLen:end:end])
		}
		return f, values, err
	default:
		return f, values, wrong(UnknownOpcode, 0)
	}
	complete := false
	var err error
	if d.at == 0 {
		complete, values, err = d.top(in, values)
	}
	for err == nil && !complete {
		complete, values, err = d.element(in, values)
	}
	f.Len, f.Push = d.at, d.push
	return f, values, err
}

// lacks says that so many bytes are needed, if a frame may have them.
func (d *ReplyDecoder) lacks(need int) error {
	d.need = need
	return ErrIncomplete
}

// bounded checks that a frame may end at end; what is too long is reported at field.
func (d *ReplyDecoder) bounded(end uint64, field int) error {
	if end > uint64(d.limits.FrameBytesMax) {
		return wrong(FrameTooLong, field)
	}
	return nil
}

// top reads the value that the header names; it returns whether that is the whole reply.
func (d *ReplyDecoder) top(in []byte, values []Value) (bool, []Value, error) {
	low := in[1]
	var t Type
	switch in[0] {
	case 0x80:
		return d.value(Type(low), headerLen, 0, in, values)
	case smallInt:
		if err := d.bounded(headerLen, 0); err != nil {
			return false, values, err
		}
		d.at = headerLen
		return true, append(values, Value{Type: Integer, num: uint64(low)}), nil
	case shortBulk:
		t = Bulk
	case shortSimple:
		t = Simple
	default:
		return false, values, wrong(UnknownOpcode, 0)
	}
	values, err := d.text(Value{Type: t}, uint64(low), headerLen, 0, in, values)
	return err == nil, values, err
}

func (d *ReplyDecoder) element(in []byte, values []Value) (bool, []Value, error) {
	at := d.at
	if err := d.bounded(uint64(at)+1, at); err != nil {
		return false, values, err
	}
	if len(in) <= at {
		return false, values, d.lacks(at + 1)
	}
	var err error
	switch tag := in[at]; {
	case tag < 0x20:
		return d.value(Type(tag), at+1, at, in, values)
	case tag >= tagBulkFirst:
		values, err = d.text(Value{Type: Bulk}, uint64(tag&0x7F), at+1, at, in, values)
	case tag >= tagIntFirst:
		values = append(values, Value{Type: Integer, num: uint64(int64(tag) - tagIntFirst - 1)})
		d.at = at + 1
	default:
		err = wrong(UnknownTag, at)
	}
	return err == nil && d.completeOne(), values, err
}

// fixedSize is the number of bytes of a type's fixed part.
var fixedSize = [...]int{OK: 0, Error: 2, Integer: 8, Bulk: 4, Array: 4, Null: 0, Bool: 1, Float: 8, Map: 4, Set: 4, Push: 4,
	Simple: 2, BigNumber: 4, Verbatim: 7, Attribute: 4, longError: 4, integer32: 4}

// value reads a value of type t whose payload begins at at; its tag or opcode stands at tag.
func (d *ReplyDecoder) value(t Type, at, tag int, in []byte, values []Value) (bool, []Value, error) {
	if int(t) >= len(fixedSize) {
		if tag == 0 {
			return false, values, wrong(UnknownOpcode, 0)
		}
		return false, values, wrong(UnknownTag, tag)
	}
	next := at + fixedSize[t]
	if err := d.bounded(uint64(next), at); err != nil {
		return false, values, err
	}
	if len(in) < next {
		return false, values, d.lacks(next)
	}
	b := in[at:next]
	v := Value{Type: t}
	var err error
	switch t {
	case OK:
		d.at, values = next, append(values, Value{Type: OK})
	case Null:
		d.at, values = next, append(values, v)
	case Integer, Float:
		v.num = be64(b)
		d.at, values = next, append(values, v)
	case integer32:
		d.at, values = next, append(values, Value{Type: Integer, num: uint64(int64(int32(be32(b))))})
	case Bool:
		if b[0] > 1 {
			return false, values, wrong(BadBool, at)
		}
		v.num = uint64(b[0])
		d.at, values = next, append(values, v)
	case Error, Simple:
		values, err = d.text(v, uint64(be16(b)), next, at, in, values)
	case longError:
		values, err = d.text(Value{Type: Error}, uint64(be32(b)), next, at, in, values)
	case Bulk, BigNumber:
		values, err = d.text(v, uint64(be32(b)), next, at, in, values)
	case Verbatim:
		copy(v.Format[:], b)
		values, err = d.text(v, uint64(be32(b[3:])), next, at+3, in, values)
	default:
		return d.aggregate(v, be32(b), tag, next, values)
	}
	return err == nil && d.completeOne(), values, err
}

// text reads n bytes at at; what is too long is reported at field.
func (d *ReplyDecoder) text(v Value, n uint64, at, field int, in []byte, values []Value) ([]Value, error) {
	if n > uint64(d.limits.ArgumentBytesMax) {
		return values, wrong(ArgumentTooLong, field)
	}
	end := uint64(at) + n
	if err := d.bounded(end, field); err != nil {
		return values, err
	}
	if uint64(len(in)) < end {
		return values, d.lacks(int(end))
	}
	if v.Type == BigNumber && !isBigNumber(in[at:end]) {
		return values, wrong(BadNumber, at)
	}
	v.Off, v.Len = uint32(at), uint32(n)
	d.at = int(end)
	return append(values, v), nil
}

func isBigNumber(text []byte) bool {
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

func (d *ReplyDecoder) aggregate(v Value, count uint32, tag, next int, values []Value) (bool, []Value, error) {
	switch {
	case v.Type == Push && tag != 0:
		return false, values, wrong(Misplaced, tag)
	case count > d.limits.ElementsMax:
		return false, values, wrong(TooManyElements, tag)
	case d.depth >= int(d.limits.NestingMax):
		return false, values, wrong(TooDeep, tag)
	}
	d.push = d.push || v.Type == Push
	v.Count = count
	d.at = next
	values = append(values, v)
	left := uint64(count)
	if v.Type == Map || v.Type == Attribute {
		left *= 2
	}
	if left == 0 {
		return v.Type != Attribute && d.completeOne(), values, nil
	}
	d.left[d.depth], d.attribute[d.depth] = left, v.Type == Attribute
	d.depth++
	return false, values, nil
}

// completeOne counts a value that is complete; it returns whether the reply is.
func (d *ReplyDecoder) completeOne() bool {
	for d.depth > 0 {
		top := d.depth - 1
		if d.left[top]--; d.left[top] > 0 {
			return false
		}
		d.depth--
		if d.attribute[top] {
			return false
		}
	}
	return true
}
