// Package messagepack owns the check that bytes are one whole value of MessagePack, before a library sees them: a header of five bytes
// may say that four billion elements follow, and libraries make room for them.
package messagepack

import "errors"

// DepthMax is how deep arrays and maps may lie in each other.
const DepthMax = 1000

var (
	errShort    = errors.New("messagepack: the data ends too early")
	errTrailing = errors.New("messagepack: there is something behind the value")
	errDeep     = errors.New("messagepack: nested too deeply")
	errByte     = errors.New("messagepack: 0xc1 begins no value")
)

// shape says how a value continues behind its first byte.
type shape struct {
	length  uint8 // bytes of a big-endian length or count
	fixed   uint8 // bytes of content besides
	perUnit uint8 // what the length counts: 0 nothing, else one of the units
}

const (
	unitBytes  = 1
	unitArrays = 2
	unitMaps   = 3
)

// shapes are those of the first bytes from 0xc0 to 0xdf.
var shapes = [32]shape{
	0x04: {1, 0, unitBytes}, 0x05: {2, 0, unitBytes}, 0x06: {4, 0, unitBytes}, // bin
	0x07: {1, 1, unitBytes}, 0x08: {2, 1, unitBytes}, 0x09: {4, 1, unitBytes}, // ext, with its type
	0x0a: {0, 4, 0}, 0x0b: {0, 8, 0}, // float
	0x0c: {0, 1, 0}, 0x0d: {0, 2, 0}, 0x0e: {0, 4, 0}, 0x0f: {0, 8, 0}, // uint
	0x10: {0, 1, 0}, 0x11: {0, 2, 0}, 0x12: {0, 4, 0}, 0x13: {0, 8, 0}, // int
	0x14: {0, 2, 0}, 0x15: {0, 3, 0}, 0x16: {0, 5, 0}, 0x17: {0, 9, 0}, 0x18: {0, 17, 0}, // fixext
	0x19: {1, 0, unitBytes}, 0x1a: {2, 0, unitBytes}, 0x1b: {4, 0, unitBytes}, // str
	0x1c: {2, 0, unitArrays}, 0x1d: {4, 0, unitArrays}, 0x1e: {2, 0, unitMaps}, 0x1f: {4, 0, unitMaps},
}

// Check returns nil if data is exactly one value, and nothing in it is longer than the data.
func Check(data []byte) error {
	var small [16]uint64
	open := small[:0] // what is still missing of the arrays and maps around
	left := uint64(1)
	for {
		for left == 0 {
			if len(open) == 0 {
				if len(data) > 0 {
					return errTrailing
				}
				return nil
			}
			left, open = open[len(open)-1], open[:len(open)-1]
		}
		left--
		if len(data) == 0 {
			return errShort
		}
		size, elements, err := head(data)
		if err != nil {
			return err
		}
		if size > uint64(len(data)) {
			return errShort
		}
		data = data[size:]
		if elements == 0 {
			continue
		}
		if elements > uint64(len(data)) { // each takes a byte at least
			return errShort
		}
		if len(open) == DepthMax {
			return errDeep
		}
		open = append(open, left)
		left = elements
	}
}

// head returns the bytes of the value that data begins with, without its elements, and their number.
func head(data []byte) (size, elements uint64, err error) {
	first := data[0]
	switch {
	case first < 0x80 || first >= 0xe0: // a small integer
		return 1, 0, nil
	case first < 0x90:
		return 1, 2 * uint64(first&0x0f), nil
	case first < 0xa0:
		return 1, uint64(first & 0x0f), nil
	case first < 0xc0:
		return 1 + uint64(first&0x1f), 0, nil
	case first == 0xc1:
		return 0, 0, errByte
	}
	s := shapes[first-0xc0]
	size = 1 + uint64(s.length) + uint64(s.fixed)
	if s.perUnit == 0 {
		return size, 0, nil
	}
	if len(data) < 1+int(s.length) {
		return 0, 0, errShort
	}
	var n uint64
	for _, b := range data[1 : 1+s.length] {
		n = n<<8 | uint64(b)
	}
	if s.perUnit == unitBytes {
		return size + n, 0, nil
	}
	return size, n * uint64(s.perUnit-unitBytes), nil
}
