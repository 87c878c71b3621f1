package frame

// This file owns straight code for the frames that most requests are: no field, a key, a key and a value without options.

// Straight shapes of a layout.
const (
	crooked    uint8 = iota // to be walked
	noField                 // PING
	oneText                 // str16: GET
	textBlob                // str16, blob32
	textBlobNo              // str16, blob32, options that must be none: SET
	twoTexts                // str16, str16: HGET
)

var straightShapes = func() (shapes [CoreLast + 1]uint8) {
	for i := range core {
		l := &core[i]
		if l.Name == "" || l.Args {
			continue
		}
		kinds := ""
		for _, f := range l.Fields {
			if len(f.Token) > 0 {
				kinds = "?"
				break
			}
			kinds += string(rune('a' + f.Kind))
		}
		name := func(kinds ...Kind) (s string) {
			for _, k := range kinds {
				s += string(rune('a' + k))
			}
			return s
		}
		switch kinds {
		case "":
			shapes[i] = noField
		case name(Str16):
			shapes[i] = oneText
		case name(Str16, Blob32):
			shapes[i] = textBlob
		case name(Str16, Blob32, Opts8):
			shapes[i] = textBlobNo
		case name(Str16, Str16):
			shapes[i] = twoTexts
		}
	}
	return shapes
}()

// DecodeStraight decodes the frame at the start of in if it is whole, simple and within limits, which is nearly always so. It returns its
// length, or 0 when RequestDecoder has to look; a and b are its arguments behind the name, as many as n says.
func DecodeStraight(in []byte, limits *Limits) (size int, a, b []byte, n int) {
	if len(in) < headerLen || in[0] > CoreLast>>8 {
		return 0, nil, nil, 0
	}
	shape := straightShapes[(int(in[0])<<8|int(in[1]))&CoreLast]
	if shape == crooked || limits.ArgumentsMax < 3 {
		return 0, nil, nil, 0
	}
	if shape == noField {
		return headerLen, nil, nil, 0
	}
	if len(in) < headerLen+2 {
		return 0, nil, nil, 0
	}
	most := int64(min(limits.ArgumentBytesMax, limits.FrameBytesMax))
	end := headerLen + 2 + int(in[4])<<8 + int(in[5])
	if end > len(in) || int64(end) > most {
		return 0, nil, nil, 0
	}
	a = in[headerLen+2 : end : end]
	if shape == oneText {
		return end, a, nil, 1
	}
	rest := in[end:]
	if shape == twoTexts {
		if len(rest) < 2 {
			return 0, nil, nil, 0
		}
		size := 2 + int(rest[0])<<8 + int(rest[1])
		if size > len(rest) || int64(end+size) > most {
			return 0, nil, nil, 0
		}
		return end + size, a, rest[2:size:size], 2
	}
	if len(rest) < 5 {
		return 0, nil, nil, 0
	}
	length := be32(rest)
	if int64(length) > most || int64(length) > int64(len(rest)-4) {
		return 0, nil, nil, 0
	}
	size = 4 + int(length)
	b = rest[4:size:size]
	if shape == textBlobNo {
		if size == len(rest) || rest[size] != 0 {
			return 0, nil, nil, 0
		}
		size++
	}
	if int64(end+size) > most {
		return 0, nil, nil, 0
	}
	return end + size, a, b, 2
}

// Name returns the name of a core opcode.
func Name(opcode int) string { return core[opcode].Name }
