package frame

// This file owns the encoding of requests: the typed layout where it says exactly the same as the arguments, an ARGV frame
// otherwise (spec section 6).

import "math"

// Mode says how faithful a frame must be to the bytes of the arguments.
type Mode uint8

const (
	// Exact keeps every byte: decoding gives these arguments back.
	Exact Mode = iota
	// Fold keeps the meaning: names and keywords in any case, options in any order.
	Fold
)

// AppendRequest appends a command, its name first, in the shortest frame that says it. It reports whether that is a typed one.
func AppendRequest[T string | []byte](dst []byte, channel uint16, argv []T, mode Mode) ([]byte, bool) {
	if out, ok := appendStraight(dst, channel, argv, mode); ok {
		return out, true
	}
	// A copy, because the compiler takes what the matcher holds for escaping: so the caller's list need not be on the heap.
	held := append([]T(nil), argv...)
	if out, ok := appendTyped(dst, channel, held, mode); ok {
		return out, true
	}
	return AppendArgv(dst, channel, held), false
}

// appendStraight appends the layouts that most requests have: byte strings and integers, then perhaps a list of byte strings to the
// end, or no options, or one that is a keyword and an integer. It appends nothing and reports false when the matcher has to look.
func appendStraight[T string | []byte](dst []byte, channel uint16, argv []T, mode Mode) ([]byte, bool) {
	if len(argv) == 0 {
		return dst, false
	}
	op, ok := find(argv[0], mode)
	if !ok || op.core == ModuleCommand || op.layout.Args {
		return dst, false
	}
	fields, next, from := op.layout.Fields, 1, len(dst)
	dst = appendHead(dst, op.core, channel)
	for i := range fields {
		f := &fields[i]
		if len(f.Token) > 0 {
			return dst[:from], false
		}
		switch {
		case f.Kind == Opts8 && i == len(fields)-1 && next == len(argv):
			return append(dst, 0), true
		case f.Kind == Opts8 && i == len(fields)-1 && next == len(argv)-2:
			bit, v, ok := oneNumber(f, argv[next], argv[next+1], mode)
			if !ok {
				return dst[:from], false
			}
			return append64(append(dst, 1<<bit), uint64(v)), true
		case f.Kind == List16 && i == len(fields)-1:
			n := len(argv) - next
			if f.Counted || len(f.Items) != 1 || f.Items[0].Kind != Str16 || n < max(1, f.Min) || n > math.MaxUint16 {
				return dst[:from], false
			}
			dst = append16(dst, uint16(n))
			for ; next < len(argv); next++ {
				if len(argv[next]) > math.MaxUint16 {
					return dst[:from], false
				}
				dst = append(append16(dst, uint16(len(argv[next]))), argv[next]...)
			}
			return dst, true
		case next == len(argv):
			return dst[:from], false
		case f.Kind == Str16 && len(argv[next]) <= math.MaxUint16:
			dst = append(append16(dst, uint16(len(argv[next]))), argv[next]...)
		case f.Kind == Blob32 && uint64(len(argv[next])) <= math.MaxUint32:
			dst = append(append32(dst, uint32(len(argv[next]))), argv[next]...)
		case f.Kind == I64:
			v, ok := ParseInt(argv[next])
			if !ok {
				return dst[:from], false
			}
			dst = append64(dst, uint64(v))
		default:
			return dst[:from], false
		}
		next++
	}
	if next != len(argv) {
		return dst[:from], false
	}
	return dst, true
}

// oneNumber returns which bit the only option of a command is, and its integer, if it has just that: SET key value PX 1000.
func oneNumber[T string | []byte](f *Field, word, number T, mode Mode) (bit int, v int64, ok bool) {
	if len(word) == 0 {
		return 0, 0, false
	}
	for i := range f.Bits {
		b := &f.Bits[i]
		if len(b.Token) == 0 || len(b.Token[0]) != len(word) || b.Token[0][0] != word[0]&^0x20 && b.Token[0][0] != word[0] {
			continue
		}
		if string(word) != b.Token[0] && (mode == Exact || !equalFold(word, b.Token[0])) {
			continue
		}
		// A bit that is alone excludes none, and may need none but itself: the rest of what checkBits looks at.
		if len(b.Token) != 1 || len(b.Fields) != 1 || b.Fields[0].Kind != I64 || b.Requires&^(1<<i) != 0 {
			return 0, 0, false
		}
		v, ok = ParseInt(number)
		return i, v, ok
	}
	return 0, 0, false
}

// AppendArgv appends an ARGV frame.
func AppendArgv[T string | []byte](dst []byte, channel uint16, argv []T) []byte {
	return appendArgs(appendHead(dst, Argv, channel), argv)
}

// AppendPassthrough appends a passthrough frame with a RESP command that the caller has checked to be exactly one.
func AppendPassthrough(dst []byte, channel uint16, resp []byte) []byte {
	dst = append32(appendHead(dst, Passthrough, channel), uint32(len(resp)))
	return append(dst, resp...)
}

// AppendControl appends a control frame.
func AppendControl(dst []byte, channel, opcode uint16, c Control) []byte {
	dst = appendHead(dst, opcode, channel)
	switch opcode {
	case Close:
		if c.Code == 0 && len(c.Reason) == 0 {
			return append32(dst, 0)
		}
		return appendReason(dst, c)
	case GoAway:
		return appendReason(dst, c)
	case Cancel:
		return append32(append32(dst, 4), c.Sequence)
	case Window:
		return append32(append32(dst, 4), c.More)
	case Fragment:
		last := byte(0)
		if c.Last {
			last = 1
		}
		dst = append(append32(dst, uint32(1+len(c.Slice))), last)
		return append(dst, c.Slice...)
	default:
		return append32(dst, 0)
	}
}

// appendReason appends the code and the reason of CLOSE or GOAWAY behind their length.
func appendReason(dst []byte, c Control) []byte {
	dst = append16(append32(dst, uint32(2+len(c.Reason))), c.Code)
	return append(dst, c.Reason...)
}

func append16(dst []byte, v uint16) []byte { return append(dst, byte(v>>8), byte(v)) }

func append32(dst []byte, v uint32) []byte {
	return append(dst, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

func append64(dst []byte, v uint64) []byte { return append32(append32(dst, uint32(v>>32)), uint32(v)) }

func appendHead(dst []byte, opcode, channel uint16) []byte {
	return append16(append16(dst, opcode), channel)
}

// appendArgs appends [total u32] and each argument with its u32 length.
func appendArgs[T string | []byte](dst []byte, argv []T) []byte {
	total := 0
	for _, arg := range argv {
		total += 4 + len(arg)
	}
	dst = append32(dst, uint32(total))
	for _, arg := range argv {
		dst = append(append32(dst, uint32(len(arg))), arg...)
	}
	return dst
}

// byName finds a command's opcode by its upper-case name.
var byName = func() map[string]opcode {
	names := make(map[string]opcode, len(core))
	for i := range core {
		if core[i].Name != "" {
			names[core[i].Name] = opcode{layout: &core[i], core: uint16(i)}
		}
	}
	for module := range modules {
		for command := range modules[module] {
			l := &modules[module][command]
			names[l.Name] = opcode{layout: l, core: ModuleCommand, module: uint16(module), command: uint16(command)}
		}
	}
	return names
}()

type opcode struct {
	layout                *Layout
	core, module, command uint16
}

// nameMax is more than the longest name of a command.
const nameMax = 32

// near has commands by place, so that most are found without a hash. The first of a place has it, and opcodes begin with what is used most.
var near = func() (places [1 << 8]struct {
	name string
	op   opcode
}) {
	for i := range core {
		if name := core[i].Name; name != "" {
			if at := &places[place(name)]; at.name == "" {
				at.name, at.op = name, opcode{layout: &core[i], core: uint16(i)}
			}
		}
	}
	return places
}()

// place is where near has a name, which is not empty.
func place[T string | []byte](name T) uint8 {
	return name[0]*3 ^ name[len(name)/3]*7 ^ name[len(name)-1]*29 ^ uint8(len(name))<<5
}

func find[T string | []byte](name T, mode Mode) (opcode, bool) {
	if len(name) > nameMax || len(name) == 0 {
		return opcode{}, false
	}
	if at := &near[place(name)]; string(name) == at.name {
		return at.op, true
	}
	var room [nameMax]byte
	key := room[:copy(room[:], name)]
	if mode == Fold {
		for i, c := range key {
			if c >= 'a' && c <= 'z' {
				key[i] = c - 'a' + 'A'
			}
		}
	}
	op, ok := byName[string(key)]
	return op, ok
}

func appendTyped[T string | []byte](dst []byte, channel uint16, argv []T, mode Mode) ([]byte, bool) {
	if len(argv) == 0 {
		return dst, false
	}
	op, ok := find(argv[0], mode)
	if !ok {
		return dst, false
	}
	m := matcher[T]{argv: argv, next: 1, mode: mode, out: appendHead(dst, op.core, channel)}
	if op.core == ModuleCommand {
		m.out = append16(append16(m.out, op.module), op.command)
	}
	if op.layout.Args {
		return appendArgs(m.out, argv[1:]), true
	}
	if !m.fields(op.layout.Fields) || m.next != len(argv) {
		return dst, false
	}
	return m.out, true
}

// matcher fits arguments to a layout and writes it. Its methods report whether they fit.
type matcher[T string | []byte] struct {
	argv []T
	next int
	mode Mode
	out  []byte
}

func (m *matcher[T]) left() int { return len(m.argv) - m.next }

func (m *matcher[T]) fields(fields []Field) bool {
	for i := range fields {
		f := &fields[i]
		if !m.wordsAt(m.next, f.Token) {
			return false
		}
		m.next += len(f.Token)
		ok := false
		switch f.Kind {
		case List16:
			ok = m.list(f, fields[i+1:])
		case Opts8:
			ok = m.options(f, least(fields[i+1:]))
		case Enum:
			ok = m.enum(f)
		default:
			ok = m.left() > 0 && m.value(f, m.next)
			m.next++
		}
		if !ok {
			return false
		}
	}
	return true
}

// least is the fewest arguments that these fields take.
func least(fields []Field) int {
	n := 0
	for i := range fields {
		f := &fields[i]
		n += len(f.Token)
		switch f.Kind {
		case Opts8:
		case List16:
			n += f.Min * len(f.Items)
			if f.Counted {
				n++
			}
		default:
			n++
		}
	}
	return n
}

func (m *matcher[T]) wordsAt(at int, words []string) bool {
	if at+len(words) > len(m.argv) {
		return false
	}
	for i, word := range words {
		arg := m.argv[at+i]
		if string(arg) != word && (m.mode == Exact || len(arg) != len(word) || !equalFold(arg, word)) {
			return false
		}
	}
	return true
}

// equalFold compares with a word in upper case without regard to the case of ASCII letters, and nothing else.
func equalFold[T string | []byte](text T, upper string) bool {
	for i := range len(text) {
		c := text[i]
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != upper[i] {
			return false
		}
	}
	return true
}

func (m *matcher[T]) enum(f *Field) bool {
	best := -1
	for i, words := range f.Values {
		if m.wordsAt(m.next, words) && (best < 0 || len(words) > len(f.Values[best])) {
			best = i
		}
	}
	if best < 0 {
		return false
	}
	m.out = append(m.out, byte(best))
	m.next += len(f.Values[best])
	return true
}

// value writes argument at as a field that is one argument.
func (m *matcher[T]) value(f *Field, at int) bool {
	arg := m.argv[at]
	switch f.Kind {
	case Str16:
		if len(arg) > math.MaxUint16 {
			return false
		}
		m.out = append(append16(m.out, uint16(len(arg))), arg...)
		return true
	case Blob32:
		if uint64(len(arg)) > math.MaxUint32 {
			return false
		}
		m.out = append(append32(m.out, uint32(len(arg))), arg...)
		return true
	case F64:
		v, ok := ParseDouble(arg)
		m.out = append64(m.out, math.Float64bits(v))
		return ok
	}
	v, ok := ParseInt(arg)
	switch f.Kind {
	case I64:
		m.out = append64(m.out, uint64(v))
		return ok
	case U16:
		m.out = append16(m.out, uint16(v))
		return ok && v >= 0 && v <= math.MaxUint16
	case U8:
		m.out = append(m.out, byte(v))
		return ok && v >= 0 && v <= math.MaxUint8
	}
	return false
}

func (m *matcher[T]) list(f *Field, after []Field) bool {
	width, count := len(f.Items), 0
	if f.Counted {
		if m.left() == 0 {
			return false
		}
		v, ok := ParseInt(m.argv[m.next])
		if !ok || v < 0 || v > math.MaxUint16 {
			return false
		}
		m.next++
		count = int(v)
	} else {
		n := m.uncounted(after)
		if n < 0 || n%width != 0 {
			return false
		}
		count = n / width
	}
	if count < f.Min || count > math.MaxUint16 || m.left()/width < count {
		return false
	}
	m.out = append16(m.out, uint16(count))
	for row := range count {
		for column := range f.Items {
			at := row*width + column
			if f.Transposed {
				at = column*count + row
			}
			if !m.value(&f.Items[column], m.next+at) {
				return false
			}
		}
	}
	m.next += count * width
	return true
}

// uncounted is how many arguments belong to a list that does not say: all before the first option, or all but those that
// later fields need.
func (m *matcher[T]) uncounted(after []Field) int {
	if len(after) == 1 && after[0].Kind == Opts8 {
		n := 0
		for ; n < m.left(); n++ {
			for i := range after[0].Bits {
				if m.wordsAt(m.next+n, after[0].Bits[i].Token) {
					return n
				}
			}
		}
		return n
	}
	return m.left() - least(after)
}

// options finds which bits are given and where, then writes them in the order of the bits. The last reserved arguments
// belong to the fields that follow.
func (m *matcher[T]) options(f *Field, reserved int) bool {
	ordered := m.mode == Exact
	for i := range f.Bits {
		ordered = ordered || len(f.Bits[i].Token) == 0
	}
	var found [16]int
	var bits uint16
	lowest := 0
	for m.left() > reserved {
		i := m.nextOption(f, bits, lowest, reserved)
		if i < 0 || ordered && i < lowest {
			break
		}
		bits, lowest = bits|1<<i, i+1
		found[i] = m.next + len(f.Bits[i].Token)
		m.next = found[i] + len(f.Bits[i].Fields)
		if m.next+reserved > len(m.argv) {
			return false
		}
	}
	if f.checkBits(bits) != "" {
		return false
	}
	m.out = append(m.out, byte(bits))
	for i := range f.Bits {
		for j := range f.Bits[i].Fields {
			if bits>>i&1 == 1 && !m.value(&f.Bits[i].Fields[j], found[i]+j) {
				return false
			}
		}
	}
	return true
}

// nextOption is the bit that the next argument names, or the next one that has no keyword and that it can be; -1 for none.
func (m *matcher[T]) nextOption(f *Field, bits uint16, lowest, reserved int) int {
	for i := range f.Bits {
		if bits>>i&1 == 0 && len(f.Bits[i].Token) > 0 && m.wordsAt(m.next, f.Bits[i].Token) {
			return i
		}
	}
	for i := lowest; i < len(f.Bits); i++ {
		bit := &f.Bits[i]
		if len(bit.Token) == 0 && bit.Requires&^bits == 0 && m.left() >= len(bit.Fields)+reserved {
			return i
		}
	}
	return -1
}
