// Package frame reads and writes RESPB frames, as spec/RESPB.md lays them down. It does no I/O and keeps no buffers of its
// own: bytes come in, arguments and values come out as spans of them, and encoders append.
//
// This file owns the description of layouts; layouts_gen.go, generated from spec/commands, holds them. request.go and
// walk.go decode requests, reply.go decodes replies, encode.go and encode_reply.go write them.
package frame

// Kind is the encoding of a field.
type Kind uint8

// The kinds of spec section 4.1. Enum is a u8 whose values are keywords.
const (
	Str16 Kind = iota
	Blob32
	I64
	F64
	U16
	U8
	Enum
	List16
	Opts8
)

// Layout is the payload of a command's frame.
type Layout struct {
	// Name is the command's, in upper case; empty where the opcode is unassigned.
	Name string
	// Args marks the layout "args": a total length, then arguments of u32 length each.
	Args bool
	// Fields follow each other; none means that the header is the whole frame.
	Fields []Field
}

// Field is one field of a layout.
type Field struct {
	Name string
	Kind Kind
	// Key says that the field is a key.
	Key bool
	// Token holds the keywords that stand before the field in the argument form.
	Token []string
	// Values holds the keywords of each value of an Enum.
	Values [][]string
	// Items are the fields of one item of a List16; they are no lists and no options.
	Items []Field
	// Counted says that the argument form has the number of items before them.
	Counted bool
	// Transposed says that the argument form has all first fields, then all second ones.
	Transposed bool
	// Min is the least number of items that the command takes.
	Min int
	// Bits are the options of Opts8, from bit 0.
	Bits []Bit
	// Exclusive holds sets of bits of which at most one may be set.
	Exclusive []uint16
}

// Bit is one option.
type Bit struct {
	Name string
	// Token holds its keywords; an option without any is told by its place.
	Token []string
	// Fields follow the options when the bit is set; they are no lists and no options.
	Fields []Field
	// Requires is the bit that must be set as well, as a mask.
	Requires uint16
}

// Core returns the layout of a core opcode, nil where there is none.
func Core(opcode uint16) *Layout {
	if int(opcode) >= len(core) || core[opcode].Name == "" {
		return nil
	}
	return &core[opcode]
}

// Module returns the layout of a module's command, nil where there is none.
func Module(module, command uint16) *Layout {
	if int(module) >= len(modules) || int(command) >= len(modules[module]) || modules[module][command].Name == "" {
		return nil
	}
	return &modules[module][command]
}

// checkBits returns the error of option bits that may not stand together, "" when they may.
func (f *Field) checkBits(bits uint16) string {
	if bits>>len(f.Bits) != 0 {
		return UnknownBit
	}
	for _, set := range f.Exclusive {
		if common := set & bits; common&(common-1) != 0 {
			return ExclusiveBits
		}
	}
	for i := range f.Bits {
		if bits>>i&1 == 1 && bits&f.Bits[i].Requires != f.Bits[i].Requires {
			return MissingBit
		}
	}
	return ""
}
