package frame

// This file owns straight code for the frames that most requests are: no field, a key, a key and a value without options.

// shape is the form of a layout that has straight code.
type shape uint8

const (
	crooked    shape = iota // to be walked
	noField                 // PING
	oneText                 // str16: GET
	textBlob                // str16, blob32
	textBlobNo              // str16, blob32, options that must be none: SET
	twoTexts                // str16, str16: HGET
)

// straightNameMax is the longest name of a command with straight code, so that an entry is 16 bytes.
const straightNameMax = 14

// StraightName is a command's name and its length.
type StraightName struct {
	Text [straightNameMax]byte
	Len  uint8
}

type straightEntry struct {
	name  StraightName
	shape shape
}

var straightEntries = func() (entries [CoreLast + 1]straightEntry) {
	text := func(kinds ...Kind) (s string) {
		for _, k := range kinds {
			s += string(rune('a' + k))
		}
		return s
	}
	shapes := map[string]shape{"": noField, text(Str16): oneText, text(Str16, Blob32): textBlob, text(Str16, Blob32, Opts8): textBlobNo,
		text(Str16, Str16): twoTexts}
	for i := range core {
		l := &core[i]
		if l.Name == "" || l.Args || len(l.Name) > straightNameMax {
			continue
		}
		kinds := ""
		for _, f := range l.Fields {
			if len(f.Token) > 0 {
				kinds = "a keyword"
				break
			}
			kinds += text(f.Kind)
		}
		entries[i].shape = shapes[kinds]
		entries[i].name.Len = uint8(copy(entries[i].name.Text[:], l.Name))
	}
	return entries
}()

// StraightMax is the longest argument and frame that Straight may take under limits; 0 turns it off.
func StraightMax(limits *Limits) int {
	if limits.ArgumentsMax < 3 {
		return 0
	}
	return int(min(int64(limits.ArgumentBytesMax), int64(limits.FrameBytesMax), 1<<30))
}

// Straight decodes the frame at the start of in if it is whole, simple and not over most bytes, which is nearly always so. It returns
// its length, or 0 when RequestDecoder has to look. n says how many arguments there are behind the name: the first ends at aEnd and
// begins at 6, the second is in[b:bEnd].
func Straight(in []byte, most int) (size, n, aEnd, b, bEnd int, name *StraightName) {
	if len(in) < headerLen+2 {
		if len(in) < headerLen || in[0] > CoreLast>>8 {
			return
		}
		if e := &straightEntries[(int(in[0])<<8|int(in[1]))&CoreLast]; e.shape == noField && most >= headerLen {
			return headerLen, 0, 0, 0, 0, &e.name
		}
		return
	}
	if in[0] > CoreLast>>8 {
		return
	}
	e := &straightEntries[(int(in[0])<<8|int(in[1]))&CoreLast]
	end := headerLen + 2 + int(in[4])<<8 + int(in[5])
	switch {
	case e.shape == noField && most >= headerLen:
		return headerLen, 0, 0, 0, 0, &e.name
	case e.shape <= noField || end > len(in) || end > most:
		return
	case e.shape == oneText:
		return end, 1, end, 0, 0, &e.name
	case e.shape == twoTexts:
		if len(in)-end < 2 {
			return
		}
		last := end + 2 + int(in[end])<<8 + int(in[end+1])
		if last > len(in) || last > most {
			return
		}
		return last, 2, end, end + 2, last, &e.name
	}
	rest := in[end:]
	if len(rest) < 5 {
		return
	}
	length := int64(be32(rest))
	if length > int64(len(rest)-4) || length > int64(most) {
		return
	}
	last := end + 4 + int(length)
	size = last
	if e.shape == textBlobNo {
		if size == len(in) || in[size] != 0 {
			return 0, 0, 0, 0, 0, nil
		}
		size++
	}
	if size > most {
		return 0, 0, 0, 0, 0, nil
	}
	return size, 2, end, end + 4, last, &e.name
}
