package resp

// This file owns the decoding of requests. It does no I/O: bytes are put into buf by whoever reads, commands come
// out of next. A command that is not yet whole is a state, not an error; decoding resumes at the argument
// where it stopped, so each byte is looked at once however it was cut up on its way.

import (
	"encoding/binary"
	"math"
)

// span is one argument: buf[start:end].
type span struct{ start, end int }

// parser turns bytes into commands, up to batchMax ahead of the caller.
//
//	buf:  | handed out | parsed, waiting | command being received | free |
//	      0                              start      pos           end    len(buf)
//
// Spans are indices and not slices, so the bytes of an unfinished command may be moved.
type parser struct {
	buf   []byte
	block *block // what buf is made of when it is pooled; nil otherwise
	start int    // first byte of the command being received
	pos   int    // first byte not yet parsed
	end   int    // first free byte

	spans []span // arguments: of whole commands, then of the one being received
	ends  []int  // ends[i] is where command i ends in spans
	head  int    // commands handed out
	taken int    // spans handed out
	cut   bool   // the batch was full: there may be more whole commands in buf
	args  [][]byte

	borrowed bool // spans and ends are parts of block

	need    int // arguments still missing from the command being received
	bulk    int // length of the argument whose header was parsed, or -1
	scanned int // bytes of an inline command, from start, that hold no line end

	lim      *Limits
	unauth   bool // the limits for strangers apply
	fastMax  int  // longest argument that the fast path may take; see setLimits
	fastArgs int

	streamFrom int                    // arguments of at least this length are streamed, 0: none
	streams    func(name []byte) bool // which commands take a streamed last argument, nil: all
	body       int                    // length of the streamed argument of the last command, or -1
	stopped    bool                   // a streamed body follows; nothing may be parsed before it is consumed

	wide   bool // read into blocks instead of the small buffer
	narrow int  // reads in a row that the small buffer would have held
}

// init prepares p for its first byte.
func (p *parser) init(lim *Limits) {
	p.bulk, p.body = -1, -1
	p.setLimits(lim, false)
}

// setLimits applies lim from the next command that is parsed.
func (p *parser) setLimits(lim *Limits, unauth bool) {
	p.lim, p.unauth = lim, unauth
	p.fastMax, p.fastArgs = lim.ArgBytesMax, lim.ArgsMax
	if unauth {
		p.fastMax, p.fastArgs = min(p.fastMax, lim.UnauthBytesMax), min(p.fastArgs, lim.UnauthArgsMax)
	}
	// The fast path checks a command's total only by bounding its parts: nine arguments and their lengths.
	p.fastMax = min(p.fastMax, lim.CommandBytesMax/9-headerBytesMax)
	if p.streamFrom > 0 {
		p.fastMax = min(p.fastMax, p.streamFrom-1)
	}
}

// setStream turns on streaming of last arguments of n bytes and more.
func (p *parser) setStream(n int, streams func(name []byte) bool) {
	p.streamFrom, p.streams = n, streams
	p.setLimits(p.lim, p.unauth)
}

// next hands out the next whole command in buf. ok is false when more bytes are needed. The slices are valid until next
// is called again or buf is changed.
func (p *parser) next() (args [][]byte, ok bool, err error) {
	if p.head == len(p.ends) {
		if err := p.refill(); err != nil || len(p.ends) == 0 {
			return nil, false, err
		}
	}
	last := p.ends[p.head]
	spans := p.spans[p.taken:last]
	if len(spans) > cap(p.args) {
		p.args = make([][]byte, len(spans)+4)
	}
	args = p.args[:len(spans)]
	buf := p.buf
	for i, s := range spans {
		// The capacity is capped: append by the caller must not reach the next argument.
		args[i] = buf[s.start:s.end:s.end]
	}
	p.head++
	p.taken = last
	return args, true, nil
}

// ready reports whether next has another whole command without more bytes. An error ahead counts as none; it is reported in
// its turn.
func (p *parser) ready() bool {
	if p.head < len(p.ends) {
		return true
	}
	if !p.cut {
		return false
	}
	err := p.refill()
	return err == nil && len(p.ends) > 0
}

// refill drops what was handed out and parses the next batch.
func (p *parser) refill() error {
	if p.taken > 0 {
		kept := copy(p.spans, p.spans[p.taken:])
		p.spans = p.spans[:kept]
		p.taken = 0
	}
	p.ends = p.ends[:0]
	p.head = 0
	p.cut = false
	if p.stopped || p.pos == p.end {
		return nil
	}
	return p.parse()
}

// parse parses up to batchMax commands. An error behind a whole command is left where it is: the next call finds it
// again, by then perhaps with other limits because the command before it was AUTH.
func (p *parser) parse() error {
	for len(p.ends) < batchMax {
		if p.need == 0 && p.fast() {
			continue
		}
		whole, err := p.step()
		if err != nil && len(p.ends) > 0 {
			p.restart()
			return nil
		}
		if err != nil || !whole {
			return err
		}
		p.ends = append(p.ends, len(p.spans))
		p.start = p.pos
		if p.stopped {
			return nil
		}
	}
	p.cut = p.pos < p.end
	return nil
}

// restart forgets what was parsed of the command being received.
func (p *parser) restart() {
	whole := 0
	if n := len(p.ends); n > 0 {
		whole = p.ends[n-1]
	}
	p.spans = p.spans[:whole]
	p.pos, p.need, p.bulk, p.scanned = p.start, 0, -1, 0
}

// Words as they stand in memory, little endian; x is where a digit stands.
const (
	countWord = 0x0a0d0000 | '*' // "*x\r\n"
	bulkWord  = 0x0a0d0000 | '$' // "$x\r\n"
	wordMask  = 0xffff00ff
	longWord  = 0x0a0d000000 | '$' // "$xx\r\n"
	longMask  = 0xffff0000ff
	crlfWord  = 0x0a0d
)

// fast parses commands of at most nine arguments that are whole in buf, as many as there are, and reports
// whether it took any. Everything else, faults included, it leaves to step; so it has no errors and nothing to resume.
func (p *parser) fast() bool {
	buf, pos := p.buf[:p.end], p.pos
	spans, ends := p.spans, p.ends
	took := false
next:
	for len(ends) < batchMax && len(buf)-pos >= 4 {
		head := binary.LittleEndian.Uint32(buf[pos:])
		n := int(head>>8&0xff) - '0'
		if head&wordMask != countWord || n < 1 || n > 9 || n > p.fastArgs {
			break
		}
		at := pos + 4
		for i := range n {
			var start, size int
			if len(buf)-at >= 8 {
				// One and two digits are nearly all there is, and are done here: the call would cost as much again.
				head := binary.LittleEndian.Uint64(buf[at:])
				one, two := head>>8&0xff-'0', head>>16&0xff-'0'
				switch {
				case head&wordMask == bulkWord && one <= 9:
					start, size = at+4, int(one)
				case head&longMask == longWord && one-1 <= 8 && two <= 9:
					start, size = at+5, int(one*10+two)
				default:
					start, size = bulkHeader(buf, at)
				}
			} else {
				start, size = bulkHeader(buf, at)
			}
			if size < 0 || size > p.fastMax || len(buf)-start < size+2 {
				spans = spans[:len(spans)-i]
				break next
			}
			end := start + size
			if binary.LittleEndian.Uint16(buf[end:]) != crlfWord {
				spans = spans[:len(spans)-i]
				break next
			}
			spans = append(spans, span{start, end})
			at = end + 2
		}
		pos = at
		ends = append(ends, len(spans))
		took = true
	}
	p.spans, p.ends = spans, ends
	p.start, p.pos = pos, pos
	return took
}

// bulkHeader parses "$n\r\n" at buf[at:], n of one to seven digits and in its shortest form, and returns where the
// argument starts. A negative size means that step has to look.
func bulkHeader(buf []byte, at int) (start, size int) {
	if len(buf)-at < 4 {
		return 0, -1
	}
	head := binary.LittleEndian.Uint32(buf[at:])
	if digit := head>>8&0xff - '0'; head&wordMask == bulkWord && digit <= 9 {
		return at + 4, int(digit)
	}
	if buf[at] != '$' || buf[at+1] == '0' {
		return 0, -1
	}
	for i := at + 1; i < len(buf)-1 && i < at+9; i++ {
		digit := buf[i] - '0'
		if digit > 9 {
			if i == at+1 || binary.LittleEndian.Uint16(buf[i:]) != crlfWord {
				return 0, -1
			}
			return i + 2, size
		}
		size = size*10 + int(digit)
	}
	return 0, -1
}

// step advances over the command being received and reports whether it is whole.
func (p *parser) step() (whole bool, err error) {
	if p.need == 0 {
		if whole, err = p.begin(); err != nil || p.need == 0 {
			return whole, err
		}
	}
	for p.need > 0 {
		if p.bulk < 0 {
			if ok, err := p.argument(); err != nil || !ok {
				return false, err
			}
			if p.streamed() {
				return true, nil
			}
		}
		if p.end-p.pos < p.bulk+2 {
			return false, nil
		}
		end := p.pos + p.bulk
		if p.buf[end] != '\r' || p.buf[end+1] != '\n' {
			return false, &ProtocolError{"an argument does not end with CRLF where its length says"}
		}
		p.spans = append(p.spans, span{p.pos, end})
		p.pos = end + 2
		p.bulk = -1
		p.need--
	}
	return true, nil
}

// begin parses a command's first line. It skips empty commands, as Redis does, and reports whole for an inline one.
func (p *parser) begin() (whole bool, err error) {
	for p.pos < p.end {
		p.start = p.pos
		if p.buf[p.pos] != '*' {
			done, err := p.inline()
			if err != nil || done {
				return done, err
			}
			if p.start == p.pos {
				return false, nil
			}
			p.start = p.pos
			continue
		}
		n, size, err := p.length("invalid multibulk length", "too big mbulk count string")
		if err != nil || size == 0 {
			return false, err
		}
		if n > int64(p.lim.ArgsMax) {
			return false, &LimitError{"ArgsMax", int64(p.lim.ArgsMax), n, "invalid multibulk length"}
		}
		if p.unauth && n > int64(p.lim.UnauthArgsMax) {
			return false, &LimitError{"UnauthArgsMax", int64(p.lim.UnauthArgsMax), n, "unauthenticated multibulk length"}
		}
		p.pos += size
		if n > 0 {
			// Only the count is kept. Room for arguments is made as they arrive, or a header alone would cost memory.
			p.need, p.bulk = int(n), -1
			return false, nil
		}
		p.start = p.pos
	}
	return false, nil
}

// argument parses the header of the next argument. ok is false when its line has not arrived.
func (p *parser) argument() (ok bool, err error) {
	if p.pos == p.end {
		return false, nil
	}
	if c := p.buf[p.pos]; c != '$' {
		return false, &ProtocolError{"expected '$', got '" + printable(c) + "'"}
	}
	n, size, err := p.length("invalid bulk length", "too big bulk count string")
	if err != nil || size == 0 {
		return false, err
	}
	if n < 0 {
		return false, &ProtocolError{"invalid bulk length"}
	}
	if p.unauth && n > int64(p.lim.UnauthBytesMax) {
		return false, &LimitError{"UnauthBytesMax", int64(p.lim.UnauthBytesMax), n, "unauthenticated bulk length"}
	}
	if !p.wouldStream(n) {
		if n > int64(p.lim.ArgBytesMax) {
			return false, &LimitError{"ArgBytesMax", int64(p.lim.ArgBytesMax), n, "invalid bulk length"}
		}
		total := int64(p.pos-p.start) + int64(size) + n + 2
		if total > int64(p.lim.CommandBytesMax) {
			return false, &LimitError{"CommandBytesMax", int64(p.lim.CommandBytesMax), total, "too big command"}
		}
	}
	if n > math.MaxInt-int64Slack {
		return false, &LimitError{"ArgBytesMax", math.MaxInt - int64Slack, n, "invalid bulk length"}
	}
	p.pos += size
	p.bulk = int(n)
	return true, nil
}

// int64Slack keeps sums of a length and a few header bytes inside an int.
const int64Slack = 64

// wouldStream reports whether the argument now announced with n bytes will be handed out as a stream.
func (p *parser) wouldStream(n int64) bool {
	if p.streamFrom == 0 || p.need != 1 || n < int64(p.streamFrom) {
		return false
	}
	first := 0
	if len(p.ends) > 0 {
		first = p.ends[len(p.ends)-1]
	}
	if first == len(p.spans) {
		return false // the name itself
	}
	name := p.spans[first]
	return p.streams == nil || p.streams(p.buf[name.start:name.end])
}

// streamed ends the command before its last argument if that is to be streamed.
func (p *parser) streamed() bool {
	if !p.wouldStream(int64(p.bulk)) {
		return false
	}
	p.body, p.stopped = p.bulk, true
	p.bulk, p.need = -1, 0
	return true
}

// length parses the line at pos: a type byte, a number in its shortest form, CRLF. size is the line's length, 0
// when it is not all there.
func (p *parser) length(invalid, long string) (n int64, size int, err error) {
	line := p.buf[p.pos+1 : p.end]
	n, used, ok := parseInt(line)
	if !ok && allDigits(line[:min(len(line), headerBytesMax)]) {
		// Too many digits: what is wrong shows when the line has ended, or can no longer end in time.
		used, ok = 0, true
	}
	if !ok {
		return 0, 0, &ProtocolError{invalid}
	}
	if used == 0 {
		if len(line) >= headerBytesMax {
			return 0, 0, &ProtocolError{long}
		}
		return 0, 0, nil
	}
	return n, used + 1, nil
}

func allDigits(b []byte) bool {
	for i, c := range b {
		if (c < '0' || c > '9') && !(i == 0 && c == '-') {
			return false
		}
	}
	return true
}

// parseInt parses a decimal number and the CRLF behind it. used is 0 when the end is missing; ok is false when no
// continuation can make it a number: not a digit, a superfluous zero or sign, more than an int64.
func parseInt(b []byte) (n int64, used int, ok bool) {
	i, negative := 0, false
	if len(b) > 0 && b[0] == '-' {
		negative = true
		i = 1
	}
	first := i
	var u uint64
	for ; i < len(b); i++ {
		digit := b[i] - '0'
		if digit > 9 {
			break
		}
		if i > first && u == 0 || u > (math.MaxInt64+1)/10 {
			return 0, 0, false
		}
		u = u*10 + uint64(digit)
	}
	if i == len(b) {
		return 0, 0, true
	}
	limit := uint64(math.MaxInt64)
	if negative {
		limit++
	}
	if b[i] != '\r' || i == first || u > limit || negative && u == 0 {
		return 0, 0, false
	}
	if i+1 == len(b) {
		return 0, 0, true
	}
	if b[i+1] != '\n' {
		return 0, 0, false
	}
	if negative {
		return -int64(u), i + 2, true
	}
	return int64(u), i + 2, true
}

// printable returns c as it may stand in an error line.
func printable(c byte) string {
	if c < ' ' || c > '~' {
		const hex = "0123456789abcdef"
		return `\x` + string([]byte{hex[c>>4], hex[c&15]})
	}
	return string(rune(c))
}
