package frame

// This file owns the numbers of the frame layer, the limits and the errors (spec sections 3, 10 and 11).

import (
	"errors"
	"fmt"
	"math"
)

// Opcodes of spec section 3.2.
const (
	CoreLast       = 0x07FF
	ReplyFirst     = 0x8000
	ReplyLast      = 0x8FFF
	ModuleCommand  = 0xF000
	Argv           = 0xF001
	ExtendedFirst  = 0xF002
	IgnorableFirst = 0xFF00
	Close          = 0xFF01
	Cancel         = 0xFF02
	Window         = 0xFF03
	GoAway         = 0xFF04
	Fragment       = 0xFF10
	Passthrough    = 0xFFFF
)

const (
	headerLen     = 4
	longHeaderLen = 8
	// FragmentBytesMax is the most bytes of a slice.
	FragmentBytesMax = 65_536
	// NestingMax is the deepest nesting that any setting allows.
	NestingMax = 128
)

// SharesTable reports whether a server with this table knows every opcode of ours (spec section 13.2): a later version of the
// same table does, since opcodes and layouts never change.
func SharesTable(name string, version int64, hash string) bool {
	return name == TableName && (version > TableVersion || version == TableVersion && hash == TableHash)
}

// Limits bound what a decoder accepts; a limit is the largest value that is still accepted.
type Limits struct {
	// ArgumentsMax bounds the arguments of a request, its name and keywords included.
	ArgumentsMax uint32
	// ArgumentBytesMax bounds one argument, or one text of a reply.
	ArgumentBytesMax uint32
	// FrameBytesMax bounds a frame, header included.
	FrameBytesMax uint32
	// NestingMax bounds aggregates inside each other in a reply; at most the constant NestingMax.
	NestingMax uint8
	// ElementsMax bounds the count of one aggregate of a reply.
	ElementsMax uint32
	// Unauthenticated gives errors about size the names that they have before authentication.
	Unauthenticated bool
}

// DefaultLimits are those of spec section 10.
var DefaultLimits = Limits{
	ArgumentsMax:     math.MaxInt32,
	ArgumentBytesMax: 512 << 20,
	FrameBytesMax:    1 << 30,
	NestingMax:       NestingMax,
	ElementsMax:      math.MaxUint32,
}

// Names of wire errors, as in spec/errors.json.
const (
	TooManyArguments         = "too-many-arguments"
	UnauthenticatedArguments = "unauthenticated-arguments"
	ArgumentTooLong          = "argument-too-long"
	UnauthenticatedArgument  = "unauthenticated-argument"
	FrameTooLong             = "frame-too-long"
	UnknownOpcode            = "unknown-opcode"
	WrongDirection           = "wrong-direction"
	UnknownBit               = "unknown-bit"
	ExclusiveBits            = "exclusive-bits"
	MissingBit               = "missing-bit"
	BadEnum                  = "bad-enum"
	BadNumber                = "bad-number"
	LengthMismatch           = "length-mismatch"
	EmptyCommand             = "empty-command"
	NotOneCommand            = "not-one-command"
	BadControl               = "bad-control"
	UnknownTag               = "unknown-tag"
	BadBool                  = "bad-bool"
	TooDeep                  = "too-deep"
	TooManyElements          = "too-many-elements"
	Misplaced                = "misplaced"
	MultibulkLength          = "multibulk-length"
	MultibulkLine            = "multibulk-line"
	ExpectedBulk             = "expected-bulk"
	BulkLength               = "bulk-length"
	BulkLine                 = "bulk-line"
	BulkEnd                  = "bulk-end"
)

// ErrIncomplete says that a frame is well-formed so far and not yet whole. Decode is then called again with the same bytes
// and more behind them.
var ErrIncomplete = errors.New("frame: incomplete")

// WireError says that bytes can never become a frame: the stream is lost.
type WireError struct {
	// Name is the error's name in spec/errors.json.
	Name string
	// Offset of the field at fault, from the start of the frame.
	Offset int
}

func (e *WireError) Error() string {
	return fmt.Sprintf("frame: %s at offset %d", e.Name, e.Offset)
}

func wrong(name string, offset int) error {
	return &WireError{Name: name, Offset: offset}
}

// Control is the payload of a control frame; which members count follows from the opcode.
type Control struct {
	// Code and Reason belong to CLOSE and GOAWAY. Reason is a span of the input.
	Code   uint16
	Reason []byte
	// Sequence belongs to CANCEL.
	Sequence uint32
	// More belongs to WINDOW.
	More uint32
	// Last and Slice belong to FRAGMENT. Slice is a span of the input.
	Last  bool
	Slice []byte
}

// parseControl reads a control frame's payload; unknown ones have none that matters.
func parseControl(opcode uint16, payload []byte) (Control, error) {
	var c Control
	n := len(payload)
	switch {
	case opcode == Close && n == 0:
	case (opcode == Close || opcode == GoAway) && n >= 2:
		c.Code, c.Reason = be16(payload), payload[2:]
	case opcode == Cancel && n == 4:
		c.Sequence = be32(payload)
	case opcode == Window && n == 4:
		c.More = be32(payload)
	case opcode == Fragment && n >= 1 && payload[0] <= 1 && n-1 <= FragmentBytesMax:
		c.Last, c.Slice = payload[0] == 1, payload[1:]
	case opcode == Close || opcode == Cancel || opcode == Window || opcode == GoAway || opcode == Fragment:
		return c, wrong(BadControl, longHeaderLen)
	}
	return c, nil
}

func be16(b []byte) uint16 { return uint16(b[0])<<8 | uint16(b[1]) }

func be32(b []byte) uint32 {
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

func be64(b []byte) uint64 { return uint64(be32(b))<<32 | uint64(be32(b[4:])) }
