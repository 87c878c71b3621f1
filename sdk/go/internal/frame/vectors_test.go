package frame

// This file runs the conformance vectors of RESPB: whole, with bytes behind, one byte at a time, cut at every byte, and
// encoded again. It leaves none out.

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/weft-db/weft/sdk/go/internal/vectors"
)

const vectorsDir = "../../../../conformance/vectors/respb"

type vector struct {
	ID        string
	Direction string
	Limits    map[string]any
	Wire      json.RawMessage
	Value     map[string]json.RawMessage
	Argv      json.RawMessage
	Canonical bool
	Rewritten json.RawMessage `json:"canonical_wire"`
	Folded    bool
	// EncodeOnly says that the wire decodes to another value.
	EncodeOnly bool `json:"encode_only"`
	Error      string
	Offset     int
}

func limitsOf(t *testing.T, given map[string]any) Limits {
	t.Helper()
	limits := DefaultLimits
	for name, value := range given {
		n, _ := value.(float64)
		switch name {
		case "arguments_max":
			limits.ArgumentsMax = uint32(n)
		case "argument_bytes_max":
			limits.ArgumentBytesMax = uint32(n)
		case "frame_bytes_max":
			limits.FrameBytesMax = uint32(n)
		case "nesting_max":
			limits.NestingMax = uint8(n)
		case "elements_max":
			limits.ElementsMax = uint32(n)
		case "unauthenticated":
			limits.Unauthenticated = value.(bool)
		default:
			t.Fatalf("unknown limit %s", name)
		}
	}
	return limits
}

func load(t *testing.T, kind string) []vector {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(vectorsDir, "*", kind, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors in %s: %v", vectorsDir, err)
	}
	var all []vector
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var file struct{ Vectors []vector }
		if err := json.Unmarshal(raw, &file); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, file.Vectors...)
	}
	return all
}

// result is what a decoder made of a frame, as text that can be compared.
type result struct {
	n       int
	text    string
	err     error
	need    int
	partial int // what has been handed out, complete or not
}

type subject func(in []byte) result

func requests(limits Limits) subject {
	d, args := NewRequestDecoder(&limits), new(Args)
	return func(in []byte) result {
		f, err := d.Decode(in, args)
		r := result{n: f.Len, err: err, need: d.Need(), partial: len(args.List)}
		if err == nil {
			r.text = requestText(f, args, in)
		}
		if err != ErrIncomplete {
			args.Reset()
		}
		return r
	}
}

func replies(limits Limits) subject {
	d := NewReplyDecoder(limits)
	var values []Value
	return func(in []byte) result {
		f, got, err := d.Decode(in, values)
		values = got
		r := result{n: f.Len, err: err, need: d.Need(), partial: len(values)}
		if err == nil {
			r.text = replyText(f, values, in)
		}
		if err != ErrIncomplete {
			values = values[:0]
		}
		return r
	}
}

func requestText(f RequestFrame, args *Args, in []byte) string {
	var b strings.Builder
	fmt.Fprintf(&b, "channel %d ", f.Channel)
	switch {
	case f.Layout != nil:
		fmt.Fprintf(&b, "%04x %s %d", f.Opcode, f.Layout.Name, args.Options)
	case f.Opcode == Argv, f.Opcode == Passthrough:
		fmt.Fprintf(&b, "%04x", f.Opcode)
	default:
		b.WriteString(controlText(f.Opcode, f.Control))
	}
	for _, arg := range args.List {
		switch arg.Kind {
		case Int:
			fmt.Fprintf(&b, " int %d", arg.Int())
		case Double:
			fmt.Fprintf(&b, " double %016x", math.Float64bits(arg.Double()))
		case Keyword:
			fmt.Fprintf(&b, " word %s", arg.Word)
		default:
			fmt.Fprintf(&b, " %q", arg.Bytes(in))
		}
	}
	return b.String()
}

func controlText(opcode uint16, c Control) string {
	return fmt.Sprintf("%04x %d %q %d %d %t %q", opcode, c.Code, c.Reason, c.Sequence, c.More, c.Last, c.Slice)
}

func replyText(f ReplyFrame, values []Value, in []byte) string {
	if f.Opcode > ReplyLast {
		return fmt.Sprintf("channel %d %s", f.Channel, controlText(f.Opcode, f.Control))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "channel %d push %t", f.Channel, f.Push)
	for _, v := range values {
		switch v.Type {
		case OK:
			b.WriteString(" simple \"OK\"")
		case Simple:
			fmt.Fprintf(&b, " simple %q", v.Bytes(in))
		case Error:
			fmt.Fprintf(&b, " error %q", v.Bytes(in))
		case Bulk:
			fmt.Fprintf(&b, " bulk %q", v.Bytes(in))
		case BigNumber:
			fmt.Fprintf(&b, " big %q", v.Bytes(in))
		case Verbatim:
			fmt.Fprintf(&b, " verbatim %s %q", v.Format, v.Bytes(in))
		case Integer:
			fmt.Fprintf(&b, " int %d", v.Int())
		case Float:
			fmt.Fprintf(&b, " double %016x", math.Float64bits(v.Float()))
		case Bool:
			fmt.Fprintf(&b, " bool %t", v.Bool())
		case Null:
			b.WriteString(" null")
		default:
			fmt.Fprintf(&b, " open %d %d", v.Type, v.Count)
		}
	}
	return b.String()
}

// tree writes a value of a vector as replyText does, and into a writer.
type tree struct {
	t *testing.T
	b strings.Builder
	w ReplyWriter
}

func (e *tree) value(raw json.RawMessage) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		e.t.Fatalf("no value: %s", raw)
	}
	if nest, ok := object["nest"]; ok {
		e.nest(string(nest), object)
		return
	}
	if pairs, ok := object["attribute"]; ok {
		e.pairs(Attribute, pairs)
		e.value(object["value"])
		return
	}
	for name, member := range object {
		e.member(name, member)
	}
}

func (e *tree) member(name string, raw json.RawMessage) {
	switch name {
	case "simple":
		s := vectors.Text(raw)
		fmt.Fprintf(&e.b, " simple %q", s)
		e.w.Simple(s)
	case "error":
		s := vectors.Text(raw)
		fmt.Fprintf(&e.b, " error %q", s)
		e.w.Error(s)
	case "bulk":
		s := vectors.Text(raw)
		fmt.Fprintf(&e.b, " bulk %q", s)
		e.w.Bulk(s)
	case "big":
		s := vectors.Text(raw)
		fmt.Fprintf(&e.b, " big %q", s)
		e.w.BigNumber(s)
	case "verbatim":
		var parts []json.RawMessage
		var format string
		if json.Unmarshal(raw, &parts) != nil || json.Unmarshal(parts[0], &format) != nil {
			e.t.Fatalf("no verbatim string: %s", raw)
		}
		s := vectors.Text(parts[1])
		fmt.Fprintf(&e.b, " verbatim %s %q", format, s)
		e.w.Verbatim([3]byte([]byte(format)), s)
	case "int":
		v := integer(e.t, raw)
		fmt.Fprintf(&e.b, " int %d", v)
		e.w.Int(v)
	case "bits":
		bits := bitsOf(e.t, raw)
		fmt.Fprintf(&e.b, " double %016x", bits)
		e.w.Float(math.Float64frombits(bits))
	case "double": // its bits stand beside it
	case "bool":
		v := string(raw) == "true"
		fmt.Fprintf(&e.b, " bool %t", v)
		e.w.Bool(v)
	case "null":
		e.b.WriteString(" null")
		e.w.Null()
	case "array":
		e.list(Array, raw)
	case "set":
		e.list(Set, raw)
	case "push":
		e.list(Push, raw)
	case "map":
		e.pairs(Map, raw)
	default:
		e.t.Fatalf("unknown member %s", name)
	}
}

func (e *tree) open(kind Type, n int) {
	fmt.Fprintf(&e.b, " open %d %d", kind, n)
	e.w.Open(kind, uint32(n))
}

func (e *tree) list(kind Type, raw json.RawMessage) {
	items := vectors.Expand(raw)
	e.open(kind, len(items))
	for _, item := range items {
		e.value(item)
	}
}

func (e *tree) pairs(kind Type, raw json.RawMessage) {
	items := vectors.Expand(raw)
	e.open(kind, len(items))
	for _, item := range items {
		for _, half := range vectors.Expand(item) {
			e.value(half)
		}
	}
}

func (e *tree) nest(kind string, object map[string]json.RawMessage) {
	var depth int
	if err := json.Unmarshal(object["depth"], &depth); err != nil {
		e.t.Fatal(err)
	}
	for range depth {
		switch kind {
		case `"array"`:
			e.open(Array, 1)
		case `"set"`:
			e.open(Set, 1)
		case `"map_value"`:
			e.open(Map, 1)
			e.member("bulk", json.RawMessage(`{"text": "k"}`))
		case `"map_key"`:
			e.open(Map, 1)
		default:
			e.t.Fatalf("unknown nesting %s", kind)
		}
	}
	e.value(object["value"])
	if kind == `"map_key"` {
		for range depth {
			e.member("null", nil)
		}
	}
}

func integer(t *testing.T, raw json.RawMessage) int64 {
	t.Helper()
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func bitsOf(t *testing.T, raw json.RawMessage) uint64 {
	t.Helper()
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	v, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// expected writes a vector's value as requestText and replyText do.
func expected(t *testing.T, v *vector) string {
	var frame string
	if err := json.Unmarshal(v.Value["frame"], &frame); err != nil {
		t.Fatal(err)
	}
	number := func(name string) int64 {
		raw, ok := v.Value[name]
		if !ok {
			return 0
		}
		var n int64
		if json.Unmarshal(raw, &n) != nil {
			n = integer(t, raw)
		}
		return n
	}
	opcodes := map[string]uint16{"close": Close, "cancel": Cancel, "window": Window, "goaway": GoAway, "fragment": Fragment}
	head := fmt.Sprintf("channel %d ", number("channel"))
	switch frame {
	case "reply", "push":
		e := tree{t: t}
		e.value(v.Value["reply"])
		return fmt.Sprintf("%spush %t%s", head, frame == "push", e.b.String())
	case "core", "module", "argv", "passthrough":
		return head + requestExpected(t, v, frame)
	case "unknown":
		var s string
		if err := json.Unmarshal(v.Value["opcode"], &s); err != nil {
			t.Fatal(err)
		}
		opcode, _ := strconv.ParseUint(s[2:], 16, 16)
		return head + controlText(uint16(opcode), Control{})
	}
	c := Control{Code: uint16(number("code")), Sequence: uint32(number("sequence")), More: uint32(number("more"))}
	c.Last = string(v.Value["last"]) == "true"
	if raw, ok := v.Value["reason"]; ok {
		c.Reason = vectors.Text(raw)
	}
	if raw, ok := v.Value["slice"]; ok {
		c.Slice = sliceOf(t, raw)
	}
	return head + controlText(opcodes[frame], c)
}

// sliceOf reads bytes, with or without an object around them.
func sliceOf(t *testing.T, raw json.RawMessage) []byte {
	if bytes.HasPrefix(raw, []byte("{")) {
		return vectors.Text(raw)
	}
	return vectors.Bytes(raw)
}

func requestExpected(t *testing.T, v *vector, frame string) string {
	var b strings.Builder
	switch frame {
	case "argv":
		b.WriteString("f001")
	case "passthrough":
		b.WriteString("ffff")
	default:
		var name string
		if err := json.Unmarshal(v.Value["command"], &name); err != nil {
			t.Fatal(err)
		}
		var options uint64
		if raw, ok := v.Value["options"]; ok {
			var s string
			if err := json.Unmarshal(raw, &s); err != nil {
				t.Fatal(err)
			}
			options, _ = strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 16)
		}
		fmt.Fprintf(&b, "%04x %s %d", byName[name].core, name, options)
	}
	for _, raw := range vectors.Expand(v.Value["args"]) {
		var arg map[string]json.RawMessage
		if err := json.Unmarshal(raw, &arg); err != nil {
			t.Fatal(err)
		}
		switch {
		case arg["int"] != nil:
			fmt.Fprintf(&b, " int %d", integer(t, arg["int"]))
		case arg["bits"] != nil:
			fmt.Fprintf(&b, " double %016x", bitsOf(t, arg["bits"]))
		case arg["keyword"] != nil:
			var word string
			_ = json.Unmarshal(arg["keyword"], &word)
			fmt.Fprintf(&b, " word %s", word)
		default:
			fmt.Fprintf(&b, " %q", vectors.Text(raw))
		}
	}
	return b.String()
}

// shortened keeps a failure readable.
func shortened(s string) string {
	if len(s) > 300 {
		return s[:300] + "…"
	}
	return s
}

// cuts are the lengths at which a frame is cut.
func cuts(n int) []int {
	var at []int
	if n > wireMax {
		return at
	}
	for i := range n {
		if n <= cutsMax || i < 8 || i >= n-8 || i%(n/4) == 0 {
			at = append(at, i)
		}
	}
	return at
}

func TestValidVectors(t *testing.T) {
	count := 0
	for _, v := range load(t, "valid") {
		count++
		if v.EncodeOnly {
			encodeAgain(t, &v, vectors.Bytes(v.Wire))
			continue
		}
		wire, want, limits := vectors.Bytes(v.Wire), expected(t, &v), limitsOf(t, v.Limits)
		decode := requests(limits)
		if v.Direction == "reply" {
			decode = replies(limits)
		}
		check := func(how string, r result) {
			if r.err != nil || r.n != len(wire) || r.text != want {
				t.Fatalf("%s, %s: %v, %d of %d bytes\n got %s\nwant %s", v.ID, how, r.err, r.n, len(wire),
					shortened(r.text), shortened(want))
			}
		}
		check("whole", decode(wire))
		check("with zeros behind", decode(append(wire[:len(wire):len(wire)], 0, 0, 0, 0, 0, 0, 0, 0)))
		check("with ones behind", decode(append(wire[:len(wire):len(wire)], 0xFF, 0xFF, 0xFF, 0xFF)))
		all := cuts(len(wire))
		for _, at := range all {
			if r := decode(wire[:at:at]); r.err != ErrIncomplete || at > 0 && (r.need <= at || r.need > len(wire)) {
				t.Fatalf("%s cut at %d of %d: %v, needs %d", v.ID, at, len(wire), r.err, r.need)
			}
			check(fmt.Sprintf("cut at %d", at), decode(wire))
		}
		for _, at := range all {
			if r := decode(wire[:at:at]); r.err != ErrIncomplete {
				t.Fatalf("%s in pieces, at %d of %d: %v", v.ID, at, len(wire), r.err)
			}
		}
		check("in pieces", decode(wire))
		encodeAgain(t, &v, wire)
	}
	t.Logf("%d valid vectors", count)
}

// encodeAgain checks what the encoders give for the value.
func encodeAgain(t *testing.T, v *vector, wire []byte) {
	want := wire
	if !v.Canonical {
		if v.Rewritten == nil {
			return
		}
		want = vectors.Bytes(v.Rewritten)
	}
	var channel uint16
	if err := json.Unmarshal(v.Value["channel"], &channel); err != nil {
		t.Fatal(err)
	}
	var got []byte
	switch {
	case v.Folded:
		argv := splitRESP(t, vectors.Bytes(v.Argv))
		got, _ = AppendRequest(nil, channel, argv, Fold)
		if exact, _ := AppendRequest(nil, channel, argv, Exact); !bytes.Equal(exact, AppendArgv(nil, channel, argv)) {
			t.Fatalf("%s: not ARGV in exact mode: %x", v.ID, exact)
		}
	case v.Argv != nil:
		argv := splitRESP(t, vectors.Bytes(v.Argv))
		got, _ = AppendRequest(nil, channel, argv, Exact)
		if v.Canonical && string(v.Value["frame"]) != `"argv"` {
			folded, typed := AppendRequest(nil, channel, lower(argv), Fold)
			if _, known := find(argv[0], Exact); known && typed && !bytes.EqualFold(folded, want) {
				t.Fatalf("%s: folded %x, want %x", v.ID, folded, want)
			}
		}
	case v.Value["reply"] != nil:
		e := tree{t: t, w: ReplyWriter{Channel: channel}}
		e.value(v.Value["reply"])
		got = e.w.Out
	default:
		opcode := be16(wire)
		c, err := parseControl(opcode, wire[longHeaderLen:])
		if err != nil {
			t.Fatal(err)
		}
		got = AppendControl(nil, channel, opcode, c)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("%s encoded again:\n got %s\nwant %s", v.ID, shortened(hex.EncodeToString(got)),
			shortened(hex.EncodeToString(want)))
	}
}

// lower returns the command with its name in lower case.
func lower(argv [][]byte) [][]byte {
	out := append([][]byte(nil), argv...)
	out[0] = bytes.ToLower(argv[0])
	return out
}

// splitRESP reads an array of bulks that is known to be one.
func splitRESP(t *testing.T, b []byte) [][]byte {
	line := func() int {
		end := bytes.IndexByte(b, '\r')
		n, err := strconv.Atoi(string(b[1:end]))
		if err != nil {
			t.Fatal(err)
		}
		b = b[end+2:]
		return n
	}
	argv := make([][]byte, line())
	for i := range argv {
		n := line()
		argv[i], b = b[:n:n], b[n+2:]
	}
	return argv
}

func TestInvalidVectors(t *testing.T) {
	count := 0
	for _, v := range load(t, "invalid") {
		count++
		wire, limits := vectors.Bytes(v.Wire), limitsOf(t, v.Limits)
		fresh := func() subject {
			if v.Direction == "reply" {
				return replies(limits)
			}
			return requests(limits)
		}
		check := func(how string, r result) {
			e, ok := r.err.(*WireError)
			if !ok || e.Name != v.Error || e.Offset != v.Offset {
				t.Fatalf("%s, %s: %v, want %s at %d", v.ID, how, r.err, v.Error, v.Offset)
			}
		}
		check("whole", fresh()(wire))
		check("with zeros behind", fresh()(append(wire[:len(wire):len(wire)], 0, 0, 0, 0, 0, 0, 0, 0)))
		decode := fresh()
		for _, at := range append(cuts(len(wire)), len(wire)) {
			r := decode(wire[:at:at])
			if r.err != ErrIncomplete {
				check(fmt.Sprintf("in pieces, at %d", at), r)
				break
			}
			if at == len(wire) {
				t.Fatalf("%s: incomplete with all its bytes", v.ID)
			}
		}
	}
	t.Logf("%d invalid vectors", count)
}
