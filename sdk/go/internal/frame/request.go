package frame

// This file owns the decoding of what a client sends: the header, the dispatch on the opcode, and straight code for the
// layouts that most requests have.

// RequestFrame is a whole frame from a client. The arguments went to Args.
type RequestFrame struct {
	// Len is the number of bytes of the frame.
	Len     int
	Channel uint16
	Opcode  uint16
	// Layout is that of a typed frame; the name is not among its arguments. It is nil for ARGV and passthrough, whose first
	// argument is the name, and for control and unknown frames.
	Layout *Layout
	// Control is the payload of a control frame.
	Control Control
}

// RequestDecoder decodes requests, one frame after the other, going on where a frame that was not whole stopped. The zero
// value is not ready: use NewRequestDecoder.
type RequestDecoder struct {
	limits *Limits
	// need is how many bytes must be there before another attempt; 0 between frames.
	need     int
	straight int // StraightMax of limits
	walk     walk
}

// NewRequestDecoder returns a decoder at the start of a frame. It keeps limits, which must not change.
func NewRequestDecoder(limits *Limits) *RequestDecoder {
	return &RequestDecoder{limits: limits, straight: StraightMax(limits)}
}

// SetLimits replaces the limits. It may only be called between frames and keeps them.
func (d *RequestDecoder) SetLimits(limits *Limits) {
	d.limits, d.straight = limits, StraightMax(limits)
}

// Limits returns what limits frames.
func (d *RequestDecoder) Limits() *Limits { return d.limits }

// Need returns how many bytes, from the start of the frame, must be there before Decode can make progress after
// ErrIncomplete. It is a hint for reading, never a size to allocate.
func (d *RequestDecoder) Need() int { return d.need }

// Decode decodes the frame at the start of in and appends its arguments to args. After ErrIncomplete it is called again with
// the same bytes and more, and the same args: nothing is appended twice. Any other error is a *WireError, after which the
// stream is lost.
func (d *RequestDecoder) Decode(in []byte, args *Args) (RequestFrame, error) {
	if d.need == 0 {
		if size, n, aEnd, b, bEnd, _ := Straight(in, d.straight); size > 0 {
			opcode := be16(in)
			if n > 0 {
				args.bytes(headerLen+2, aEnd-headerLen-2)
			}
			if n > 1 {
				args.bytes(b, bEnd-b)
			}
			return RequestFrame{Len: size, Channel: be16(in[2:]), Opcode: opcode, Layout: &core[opcode]}, nil
		}
	}
	if len(in) < d.need {
		return RequestFrame{}, ErrIncomplete
	}
	frame, err := d.frame(in, args)
	if err != ErrIncomplete {
		d.need, d.walk = 0, walk{}
	}
	return frame, err
}

func (d *RequestDecoder) frame(in []byte, args *Args) (RequestFrame, error) {
	if len(in) < headerLen {
		return d.short(headerLen)
	}
	f := RequestFrame{Opcode: be16(in), Channel: be16(in[2:])}
	at := headerLen
	switch {
	case f.Opcode <= CoreLast:
		f.Layout = Core(f.Opcode)
	case f.Opcode == ModuleCommand:
		if len(in) < longHeaderLen {
			return d.short(longHeaderLen)
		}
		at = longHeaderLen
		f.Layout = Module(be16(in[4:]), be16(in[6:]))
		if f.Layout == nil {
			return f, wrong(UnknownOpcode, headerLen)
		}
	case f.Opcode == Argv:
		return d.walked(f, d.walk.args(d, in, at, true, args))
	case f.Opcode >= ReplyFirst && f.Opcode <= ReplyLast || f.Opcode == Fragment || f.Opcode == GoAway:
		return f, wrong(WrongDirection, 0)
	case f.Opcode >= ExtendedFirst:
		return d.long(f, in, args)
	}
	switch {
	case f.Layout == nil:
		return f, wrong(UnknownOpcode, 0)
	case f.Layout.Args:
		return d.walked(f, d.walk.args(d, in, at, false, args))
	}
	return d.walked(f, d.walk.fields(d, f.Layout.Fields, in, at, args))
}

// walked ends a frame whose payload was walked: its length is where the walk stands.
func (d *RequestDecoder) walked(f RequestFrame, err error) (RequestFrame, error) {
	if err != nil {
		return f, err
	}
	f.Len = d.walk.at
	if uint64(f.Len) > uint64(d.limits.FrameBytesMax) {
		return f, wrong(FrameTooLong, 0)
	}
	return f, nil
}

// short says that so many bytes are needed.
func (d *RequestDecoder) short(need int) (RequestFrame, error) {
	d.need = need
	return RequestFrame{}, ErrIncomplete
}

// long decodes a frame that carries its length and is not ARGV.
func (d *RequestDecoder) long(f RequestFrame, in []byte, args *Args) (RequestFrame, error) {
	end, err := longEnd(in, d.limits)
	if err != nil {
		return f, err
	}
	if len(in) < end {
		return d.short(end)
	}
	f.Len = end
	payload := in[longHeaderLen:end:end]
	switch {
	case f.Opcode == Passthrough:
		err = passthrough(payload, d.limits, args)
	case f.Opcode >= IgnorableFirst:
		f.Control, err = parseControl(f.Opcode, payload)
	}
	return f, err
}

// longEnd returns where a frame with [len u32] after the channel ends; 8 when the length itself is not there yet.
func longEnd(in []byte, limits *Limits) (int, error) {
	if len(in) < longHeaderLen {
		return longHeaderLen, nil
	}
	end := uint64(longHeaderLen) + uint64(be32(in[headerLen:]))
	if end > uint64(limits.FrameBytesMax) {
		return 0, wrong(FrameTooLong, headerLen)
	}
	return int(end), nil
}

// passthrough reads exactly one RESP array of bulks.
func passthrough(payload []byte, limits *Limits, args *Args) error {
	r := respReader{in: payload, limits: limits}
	if len(payload) == 0 || payload[0] != '*' {
		return wrong(NotOneCommand, longHeaderLen)
	}
	count, err := r.length('*', MultibulkLength, MultibulkLine, int64(limits.ArgumentsMax), UnauthenticatedArguments)
	if err != nil {
		return err
	}
	if count <= 0 {
		return wrong(NotOneCommand, longHeaderLen)
	}
	for range count {
		if err := r.bulk(args); err != nil {
			return err
		}
	}
	if r.at != len(payload) {
		return wrong(NotOneCommand, longHeaderLen+r.at)
	}
	return nil
}

// respReader reads the RESP of a passthrough frame. What is missing is an error: the frame is whole.
type respReader struct {
	in     []byte
	at     int
	limits *Limits
}

// lengthLineMax is the longest length line that can hold a number.
const lengthLineMax = 32

// length reads the line at r.at, whose type byte has been looked at.
func (r *respReader) length(kind byte, bad, endless string, most int64, early string) (int64, error) {
	at, line := r.at, r.in[r.at+1:]
	visible := line[:min(len(line), lengthLineMax)]
	n := 0
	for n < len(visible) && visible[n] != '\r' {
		n++
	}
	if n == len(visible) {
		if n == lengthLineMax {
			return 0, wrong(endless, longHeaderLen+at)
		}
		return 0, wrong(NotOneCommand, longHeaderLen+len(r.in))
	}
	if n+1 >= len(line) {
		return 0, wrong(NotOneCommand, longHeaderLen+len(r.in))
	}
	value, ok := ParseInt(line[:n])
	if !ok || line[n+1] != '\n' {
		return 0, wrong(bad, longHeaderLen+at)
	}
	if value > most {
		if r.limits.Unauthenticated {
			bad = early
		}
		return 0, wrong(bad, longHeaderLen+at)
	}
	r.at += n + 3
	return value, nil
}

func (r *respReader) bulk(args *Args) error {
	at := r.at
	switch {
	case at == len(r.in):
		return wrong(NotOneCommand, longHeaderLen+at)
	case r.in[at] != '$':
		return wrong(ExpectedBulk, longHeaderLen+at)
	}
	n, err := r.length('$', BulkLength, BulkLine, int64(r.limits.ArgumentBytesMax), UnauthenticatedArgument)
	if err != nil {
		return err
	}
	if n < 0 {
		return wrong(BulkLength, longHeaderLen+at)
	}
	if int64(len(r.in)-r.at) < n+2 {
		return wrong(NotOneCommand, longHeaderLen+len(r.in))
	}
	end := r.at + int(n)
	if r.in[end] != '\r' || r.in[end+1] != '\n' {
		return wrong(BulkEnd, longHeaderLen+end)
	}
	args.bytes(longHeaderLen+r.at, int(n))
	r.at = end + 2
	return nil
}
