package frame

// This file owns the canonical texts of numbers (spec section E.3).

import (
	"math"
	"strconv"
)

// ParseInt reads an integer in its canonical text, and nothing else.
func ParseInt[T string | []byte](text T) (int64, bool) {
	digits := text
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		digits = text[1:]
	}
	if len(digits) == 0 || len(digits) > 19 || digits[0] == '0' && (len(digits) > 1 || negative) {
		return 0, false
	}
	var value uint64
	for i := range len(digits) {
		c := digits[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		// 19 digits are below 10^19, which fits.
		value = value*10 + uint64(c-'0')
	}
	switch {
	case !negative && value <= math.MaxInt64:
		return int64(value), true
	case negative && value <= 1<<63:
		return -int64(value-1) - 1, true
	}
	return 0, false
}

// AppendInt appends an integer's text.
func AppendInt(dst []byte, v int64) []byte { return strconv.AppendInt(dst, v, 10) }

const doubleTextMax = 32

// ParseDouble reads a double in its canonical text, and nothing else. NaN has none.
func ParseDouble[T string | []byte](text T) (float64, bool) {
	if len(text) == 0 || len(text) > doubleTextMax {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || math.IsNaN(v) {
		return 0, false
	}
	var room [doubleTextMax]byte
	return v, string(AppendDouble(room[:0], v)) == string(text)
}

// AppendDouble appends a double's canonical text.
func AppendDouble(dst []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, "nan"...)
	case math.IsInf(v, 1):
		return append(dst, "inf"...)
	case math.IsInf(v, -1):
		return append(dst, "-inf"...)
	case v == 0 && math.Signbit(v):
		return append(dst, "-0"...)
	case math.Abs(v) <= 1<<62 && v == math.Trunc(v):
		return strconv.AppendInt(dst, int64(v), 10)
	}
	if v < 0 {
		dst, v = append(dst, '-'), -v
	}
	digits, k := shortest(v)
	return layOut(dst, digits, k)
}

// shortest returns the shortest digits of a positive double, and the exponent of the last one.
func shortest(v float64) (digits []byte, k int) {
	var room [doubleTextMax]byte
	text := strconv.AppendFloat(room[:0], v, 'e', -1, 64)
	digits = make([]byte, 0, 17)
	for i, c := range text {
		if c == 'e' {
			exponent, _ := strconv.Atoi(string(text[i+1:]))
			return digits, exponent - (len(digits) - 1)
		}
		if c != '.' {
			digits = append(digits, c)
		}
	}
	return digits, 0
}

func layOut(dst, digits []byte, k int) []byte {
	n := len(digits)
	e := k + n - 1
	size := max(e, -e)
	zeros := func(count int) {
		for range count {
			dst = append(dst, '0')
		}
	}
	switch point := n + k; {
	case k >= 0 && e < n+7:
		dst = append(dst, digits...)
		zeros(k)
	case k < 0 && (k > -7 || size < 4) && point <= 0:
		dst = append(dst, "0."...)
		zeros(-point)
		dst = append(dst, digits...)
	case k < 0 && (k > -7 || size < 4):
		dst = append(dst, digits[:point]...)
		dst = append(append(dst, '.'), digits[point:]...)
	default:
		dst = append(dst, digits[0])
		if n > 1 {
			dst = append(append(dst, '.'), digits[1:]...)
		}
		sign := byte('+')
		if e < 0 {
			sign = '-'
		}
		dst = strconv.AppendInt(append(dst, 'e', sign), int64(size), 10)
	}
	return dst
}
