package differential

// This file owns the fuzz targets. Their seeds are the conformance vectors; all of them run as tests.

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/weft-db/weft/sdk/go/internal/frame"
	"github.com/weft-db/weft/sdk/go/internal/vectors"
)

// framesMax is as many frames as the library is asked for at once.
const framesMax = 64

func seeds(f *testing.F, direction string) {
	all, err := vectors.Seeds("respb", direction, 4096)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range all {
		f.Add(seed)
	}
}

// FuzzRequests compares what both make of a stream of requests, to the error and its offset.
func FuzzRequests(f *testing.F) {
	seeds(f, "request")
	lib := newLibrary()
	f.Cleanup(lib.close)
	f.Fuzz(func(t *testing.T, wire []byte) {
		want, got := lib.decode(wire, false), requests(wire)
		if want != got && want != "full" && !strings.HasSuffix(want, "full") {
			t.Fatalf("Rust:\n%s\nGo:\n%s", want, got)
		}
	})
}

// FuzzReplies is FuzzRequests for what servers send.
func FuzzReplies(f *testing.F) {
	seeds(f, "reply")
	lib := newLibrary()
	f.Cleanup(lib.close)
	f.Fuzz(func(t *testing.T, wire []byte) {
		want, got := lib.decode(wire, true), replies(wire)
		if want != got && !strings.HasSuffix(want, "full") {
			t.Fatalf("Rust:\n%s\nGo:\n%s", want, got)
		}
	})
}

// FuzzEncode compares the frames of commands, exact and folded. The commands are those that the seeds' frames stand for, changed by
// the fuzzer as text: arguments are separated by zero bytes.
func FuzzEncode(f *testing.F) {
	all, err := vectors.Load("respb", "valid")
	if err != nil {
		f.Fatal(err)
	}
	for i := range all {
		if wire := all[i].Wire(); all[i].Direction == "request" && len(wire) <= 4096 {
			if argv := commandOf(wire); argv != nil {
				f.Add(bytes.Join(argv, []byte{0}))
				f.Add(bytes.ToLower(bytes.Join(argv, []byte{0})))
			}
		}
	}
	lib := newLibrary()
	f.Cleanup(lib.close)
	f.Fuzz(func(t *testing.T, text []byte) {
		argv := bytes.Split(text, []byte{0})
		if len(argv[0]) == 0 {
			return
		}
		for _, fold := range []bool{false, true} {
			mode := frame.Exact
			if fold {
				mode = frame.Fold
			}
			got, _ := frame.AppendRequest(nil, 7, argv, mode)
			if want := lib.encode(7, argv, fold); !bytes.Equal(got, want) {
				t.Fatalf("%q, fold %t:\nRust %x\nGo   %x", argv, fold, want, got)
			}
		}
	})
}

// commandOf returns the command that a request stands for.
func commandOf(wire []byte) [][]byte {
	var args frame.Args
	f, err := frame.NewRequestDecoder(&frame.DefaultLimits).Decode(wire, &args)
	if err != nil || f.Opcode >= frame.ExtendedFirst && f.Opcode != frame.Passthrough {
		return nil
	}
	var argv [][]byte
	if f.Layout != nil {
		argv = append(argv, []byte(f.Layout.Name))
	}
	for _, a := range args.List {
		argv = append(argv, a.AppendText(nil, wire))
	}
	return argv
}

func ending(b *strings.Builder, err error, consumed int) string {
	if e, ok := err.(*frame.WireError); ok {
		fmt.Fprintf(b, "invalid %s at %d", e.Name, e.Offset)
	} else {
		fmt.Fprintf(b, "incomplete after %d", consumed)
	}
	return b.String()
}

func control(b *strings.Builder, opcode uint16, c frame.Control) {
	switch {
	case opcode == frame.Close:
		fmt.Fprintf(b, " close %d %q", c.Code, c.Reason)
	case opcode == frame.GoAway:
		fmt.Fprintf(b, " goaway %d %q", c.Code, c.Reason)
	case opcode == frame.Cancel:
		fmt.Fprintf(b, " cancel %d", c.Sequence)
	case opcode == frame.Window:
		fmt.Fprintf(b, " window %d", c.More)
	case opcode == frame.Fragment:
		fmt.Fprintf(b, " fragment %t %q", c.Last, c.Slice)
	default:
		fmt.Fprintf(b, " unknown %04x", opcode)
	}
}

// requests shows what frame.RequestDecoder makes of wire.
func requests(wire []byte) string {
	var b strings.Builder
	dec, args := frame.NewRequestDecoder(&frame.DefaultLimits), frame.Args{}
	at := 0
	for n := 0; ; n++ {
		args.Reset()
		if n == framesMax {
			return b.String() + "full"
		}
		in := wire[at:]
		f, err := dec.Decode(in, &args)
		if err != nil {
			return ending(&b, err, at)
		}
		fmt.Fprintf(&b, "%d bytes, channel %d", f.Len, f.Channel)
		switch {
		case f.Layout != nil:
			fmt.Fprintf(&b, " typed %04x options %d", f.Opcode, args.Options)
		case f.Opcode == frame.Argv || f.Opcode == frame.Passthrough:
			b.WriteString(" arguments")
		default:
			control(&b, f.Opcode, f.Control)
		}
		for _, a := range args.List {
			switch a.Kind {
			case frame.Int:
				fmt.Fprintf(&b, " int %d", a.Int())
			case frame.Double:
				fmt.Fprintf(&b, " double %016x", math.Float64bits(a.Double()))
			default:
				fmt.Fprintf(&b, " %q", a.AppendText(nil, in))
			}
		}
		b.WriteByte('\n')
		at += f.Len
	}
}

// replies shows what frame.ReplyDecoder makes of wire.
func replies(wire []byte) string {
	var b strings.Builder
	dec := frame.NewReplyDecoder(frame.DefaultLimits)
	var values []frame.Value
	at := 0
	for n := 0; ; n++ {
		if n == framesMax {
			return b.String() + "full"
		}
		in := wire[at:]
		f, got, err := dec.Decode(in, values[:0])
		values = got
		if err != nil {
			return ending(&b, err, at)
		}
		fmt.Fprintf(&b, "%d bytes, channel %d", f.Len, f.Channel)
		switch {
		case f.Opcode > frame.ReplyLast:
			control(&b, f.Opcode, f.Control)
			values = values[:0]
		case f.Push:
			b.WriteString(" push")
		default:
			b.WriteString(" reply")
		}
		for _, v := range values {
			text := func() []byte { return v.Bytes(in) }
			switch v.Type {
			case frame.OK:
				b.WriteString(` simple "OK"`)
			case frame.Simple:
				fmt.Fprintf(&b, " simple %q", text())
			case frame.Error:
				fmt.Fprintf(&b, " error %q", text())
			case frame.Bulk:
				fmt.Fprintf(&b, " %q", text())
			case frame.BigNumber:
				fmt.Fprintf(&b, " big %q", text())
			case frame.Verbatim:
				fmt.Fprintf(&b, " verbatim %c%c%c %q", v.Format[0], v.Format[1], v.Format[2], text())
			case frame.Integer:
				fmt.Fprintf(&b, " int %d", v.Int())
			case frame.Float:
				bits := math.Float64bits(v.Float())
				if v.Float() != v.Float() {
					bits = 0
				}
				fmt.Fprintf(&b, " double %016x", bits)
			case frame.Bool:
				fmt.Fprintf(&b, " bool %t", v.Bool())
			case frame.Null:
				b.WriteString(" null")
			case frame.Array:
				fmt.Fprintf(&b, " array %d", v.Count)
			case frame.Map:
				fmt.Fprintf(&b, " map %d", v.Count)
			case frame.Set:
				fmt.Fprintf(&b, " set %d", v.Count)
			case frame.Push:
				fmt.Fprintf(&b, " push %d", v.Count)
			case frame.Attribute:
				fmt.Fprintf(&b, " attribute %d", v.Count)
			}
		}
		b.WriteByte('\n')
		at += f.Len
	}
}
