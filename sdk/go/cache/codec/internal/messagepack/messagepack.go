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

// head is what a first byte says: the bytes of the value without its elements, and the number of those; or, for a value with a length
// behind the first byte, how many bytes that has and what it counts.
type head struct {
	size     uint8 // including the first byte; 0 where there is no such value
	elements uint8
	length   uint8 // bytes of a big-endian length, included in size
	counts   uint8
}

const (
	countsBytes  = 0
	countsArrays = 1 // so many elements
	countsMaps   = 2 // twice so many
)

// heads are those of all first bytes.
var heads = func() (h [256]head) {
	for b := range h {
		switch {
		case b < 0x80 || b >= 0xe0: // a small integer
			h[b] = head{size: 1}
		case b < 0x90:
			h[b] = head{size: 1, elements: uint8(2 * (b & 0x0f))}
		case b < 0xa0:
			h[b] = head{size: 1, elements: uint8(b & 0x0f)}
		case b < 0xc0:
			h[b] = head{size: uint8(1 + b&0x1f)}
		}
	}
	h[0xc0], h[0xc2], h[0xc3] = head{size: 1}, head{size: 1}, head{size: 1} // nil, false, true
	for i, n := range []uint8{1, 2, 4} {
		h[0xc4+i] = head{size: 1 + n, length: n}     // bin
		h[0xc7+i] = head{size: 1 + n + 1, length: n} // ext, with its type
		h[0xd9+i] = head{size: 1 + n, length: n}     // str
	}
	for i, n := range []uint8{2, 4} {
		h[0xdc+i] = head{size: 1 + n, length: n, counts: countsArrays}
		h[0xde+i] = head{size: 1 + n, length: n, counts: countsMaps}
	}
	for i := range 4 {
		h[0xcc+i], h[0xd0+i] = head{size: 1 + 1<<i}, head{size: 1 + 1<<i} // uint, int
	}
	h[0xca], h[0xcb] = head{size: 5}, head{size: 9} // float
	for i := range 5 {
		h[0xd4+i] = head{size: 2 + 1<<i} // fixext
	}
	return h
}()

// plain are the sizes of values that a first byte says all about, and 0 for the other first bytes. Nearly all values are such.
var plain = func() (sizes [256]uint8) {
	for b, h := range heads {
		if h.length == 0 && h.elements == 0 {
			sizes[b] = h.size
		}
	}
	return sizes
}()

// Check returns nil if data is exactly one value, and nothing in it is longer than the data.
func Check(data []byte) error {
	var small [16]uint64
	open := small[:0] // what is still missing of the arrays and maps around
	left := uint64(1)
	at := 0
	for {
		for left == 0 {
			if len(open) == 0 {
				switch {
				case at < len(data):
					return errTrailing
				case at > len(data):
					return errShort
				}
				return nil
			}
			left, open = open[len(open)-1], open[:len(open)-1]
		}
		for left > 0 && at < len(data) {
			b := data[at]
			if b&0xe0 == 0xa0 { // a short string, as names are: sooner known than looked up
				at += 1 + int(b&0x1f)
			} else if n := plain[b]; n != 0 {
				at += int(n)
			} else {
				break
			}
			left--
		}
		if left == 0 {
			continue
		}
		left--
		if at >= len(data) {
			return errShort
		}
		h := &heads[data[at]]
		elements := uint64(h.elements)
		if h.length != 0 {
			n, err := length(data[at:], h)
			if err != nil {
				return err
			}
			if h.counts == countsBytes {
				at += n
			}
			elements = uint64(n) * uint64(h.counts)
		} else if h.size == 0 {
			return errByte
		}
		at += int(h.size)
		if elements == 0 {
			continue
		}
		if at > len(data) || elements > uint64(len(data)-at) { // each takes a byte at least
			return errShort
		}
		if len(open) == DepthMax {
			return errDeep
		}
		open = append(open, left)
		left = elements
	}
}

// length returns the length behind a first byte. It is at most what data has.
func length(data []byte, h *head) (int, error) {
	if len(data) < 1+int(h.length) {
		return 0, errShort
	}
	var n uint64
	for _, b := range data[1 : 1+h.length] {
		n = n<<8 | uint64(b)
	}
	if n > uint64(len(data)) {
		return 0, errShort
	}
	return int(n), nil
}
