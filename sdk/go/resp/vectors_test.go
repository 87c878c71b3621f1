package resp

// This file runs the conformance vectors of RESP2 and RESP3: whole, with bytes behind, one byte at a time, cut at every byte, and
// written again.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/weft-db/weft/sdk/go/internal/vectors"
)

// leftOut names the vectors that are left out and why. One that passes all the same is a failure.
var leftOut = map[string]string{
	"resp3.reply.attribute-on-attribute": "a Value has one list of attributes, to which those of both are added",
}

// leftOutBecause returns the reason for groups of vectors.
func leftOutBecause(v *vectors.Vector) string {
	if v.Direction == "reply" {
		switch {
		case v.Limits["frame_bytes_max"] != nil:
			return "Reader bounds strings, lines and values, not the frame's bytes"
		case v.Limits["elements_max"] != nil:
			return "Reader bounds the values of a whole reply, not of one aggregate"
		}
	}
	return leftOut[v.ID]
}

func loadVectors(t *testing.T, kind string) []vectors.Vector {
	t.Helper()
	var all []vectors.Vector
	for _, protocol := range []string{"resp2", "resp3"} {
		some, err := vectors.Load(protocol, kind)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, some...)
	}
	return all
}

// vectorCuts are the ways in which a wire comes: whole, byte by byte, in two parts cut at every byte.
func vectorCuts(wire []byte) map[string]io.Reader {
	ways := map[string]io.Reader{"whole": bytes.NewReader(wire)}
	longest := 8192
	if raceEnabled {
		longest = 64 // decoders share nothing
	}
	if len(wire) > longest {
		for _, n := range []int{1, 63, min(4096, len(wire)/3), len(wire) / 2, len(wire) - 1} {
			ways[fmt.Sprint("cut at ", n)] = &partReader{parts: [][]byte{wire[:n], wire[n:]}}
		}
		return ways
	}
	ways["byte by byte"] = &cutReader{wire, 1}
	for n := 1; n < len(wire); n++ {
		ways[fmt.Sprint("cut at ", n)] = &partReader{parts: [][]byte{wire[:n], wire[n:]}}
	}
	return ways
}

// partReader delivers parts one by one.
type partReader struct{ parts [][]byte }

func (r *partReader) Read(b []byte) (int, error) {
	for len(r.parts) > 0 && len(r.parts[0]) == 0 {
		r.parts = r.parts[1:]
	}
	if len(r.parts) == 0 {
		return 0, io.EOF
	}
	n := copy(b, r.parts[0])
	r.parts[0] = r.parts[0][n:]
	return n, nil
}

func requestConn(v *vectors.Vector, r io.Reader) *ClientConn {
	conn := NewClientConn(&pipeConn{in: r})
	number := func(name string) int { n, _ := v.Limits[name].(float64); return int(n) }
	l := Limits{ArgsMax: number("arguments_max"), ArgBytesMax: number("argument_bytes_max"), CommandBytesMax: number("frame_bytes_max"),
		InlineBytesMax: number("inline_bytes_max")}
	strangers := v.Limits["unauthenticated"] == true
	if strangers {
		// The vector's limit is the stranger's.
		l.UnauthArgsMax, l.UnauthBytesMax = l.ArgsMax, l.ArgBytesMax
		if l.UnauthArgsMax == 0 {
			l.UnauthArgsMax = math.MaxInt32
		}
		if l.UnauthBytesMax == 0 {
			l.UnauthBytesMax = math.MaxInt32
		}
		l.ArgsMax, l.ArgBytesMax = math.MaxInt32, math.MaxInt32
	}
	conn.SetLimits(l)
	conn.SetAuthenticated(!strangers)
	return conn
}

func replyReader(v *vectors.Vector, r io.Reader) *Reader {
	rd := NewReader(r)
	number := func(name string) int { n, _ := v.Limits[name].(float64); return int(n) }
	rd.SetLimits(ReaderLimits{DepthMax: number("nesting_max"), BytesMax: number("argument_bytes_max"), LineBytesMax: number("inline_bytes_max")})
	return rd
}

// replyText shows a Value as vectors.Vector.ReplyText does.
func replyText(b *strings.Builder, v *Value) {
	if len(v.Attrs) > 0 {
		fmt.Fprintf(b, " attr %d", len(v.Attrs)/2)
		for i := range v.Attrs {
			replyText(b, &v.Attrs[i])
		}
	}
	switch v.Kind {
	case Status:
		fmt.Fprintf(b, " simple %q", v.Data)
	case ErrorLine, BlobError:
		fmt.Fprintf(b, " error %q", v.Data)
	case Bulk:
		fmt.Fprintf(b, " bulk %q", v.Data)
	case BigNumber:
		fmt.Fprintf(b, " big %q", v.Data)
	case Verbatim:
		fmt.Fprintf(b, " verbatim %s %q", v.Format[:], v.Data)
	case Integer:
		fmt.Fprintf(b, " int %d", v.Int)
	case Double:
		bits := math.Float64bits(v.Float)
		if v.Float != v.Float {
			bits = 0x7ff8000000000000
		}
		fmt.Fprintf(b, " double %016x", bits)
	case Boolean:
		fmt.Fprintf(b, " bool %t", v.Int != 0)
	case Null:
		b.WriteString(" null")
	case Array:
		fmt.Fprintf(b, " array %d", len(v.Elems))
	case Set:
		fmt.Fprintf(b, " set %d", len(v.Elems))
	case Push:
		fmt.Fprintf(b, " push %d", len(v.Elems))
	case Map:
		fmt.Fprintf(b, " map %d", len(v.Elems)/2)
	}
	for i := range v.Elems {
		replyText(b, &v.Elems[i])
	}
}

// runVector returns what the decoder makes of a wire: the command or the value, and how it ends.
func runVector(v *vectors.Vector, r io.Reader) (text string, err error) {
	if v.Direction == "request" {
		all, err := readAll(requestConn(v, r))
		return fmt.Sprintf("%q", all), err
	}
	var value Value
	rd := replyReader(v, r)
	if err := rd.Read(&value); err != nil {
		return "", err
	}
	var b strings.Builder
	replyText(&b, &value)
	return b.String(), rd.Read(&value)
}

// emptyAttributes drops attributes without pairs, which a Value does not keep.
func emptyAttributes(text string) string { return strings.ReplaceAll(text, " attr 0", "") }

func TestValidVectors(t *testing.T) {
	count, skipped := 0, 0
	for _, v := range loadVectors(t, "valid") {
		wire, want := v.Wire(), ""
		if v.Direction == "request" {
			var commands [][]string
			if args := v.Args(); len(args) > 0 {
				commands = append(commands, args)
			}
			want = fmt.Sprintf("%q", commands)
		} else {
			want = emptyAttributes(v.ReplyText())
		}
		check := func(how string, r io.Reader) error {
			text, err := runVector(&v, r)
			if err != io.EOF || text != want {
				return fmt.Errorf("%s, %s: %v\n got %.300s\nwant %.300s", v.ID, how, err, text, want)
			}
			return nil
		}
		if reason := leftOutBecause(&v); reason != "" {
			skipped++
			if v.Limits == nil && check("whole", bytes.NewReader(wire)) == nil {
				t.Errorf("%s is left out (%s) and passes", v.ID, reason)
			}
			continue
		}
		count++
		for how, r := range vectorCuts(wire) {
			if err := check(how, r); err != nil {
				t.Error(err)
				break
			}
		}
		writeVector(t, &v, wire)
	}
	t.Logf("%d valid vectors, %d left out", count, skipped)
}

// writeVector checks that writing the value gives the wire, or the canonical one.
func writeVector(t *testing.T, v *vectors.Vector, wire []byte) {
	want := wire
	if !v.Canonical {
		if v.CanonicalWire == nil {
			return
		}
		want = vectors.Bytes(v.CanonicalWire)
	}
	var out bytes.Buffer
	w := NewWriter(&out)
	w.SetRESP2Compat(strings.HasPrefix(v.ID, "resp2."))
	if v.Direction == "request" {
		_ = w.WriteArrayString(v.Args())
	} else {
		var value Value
		rd := replyReader(v, bytes.NewReader(wire))
		if err := rd.Read(&value); err != nil {
			t.Fatal(v.ID, err)
		}
		_ = w.WriteValue(&value)
	}
	_ = w.Flush()
	if !bytes.Equal(out.Bytes(), want) && notWritten(v) == "" {
		t.Errorf("%s is written as %.200q, want %.200q", v.ID, out.Bytes(), want)
	}
}

// notWritten says of which vectors the text is written otherwise, and why that means the same.
func notWritten(v *vectors.Vector) string {
	text := replyTextOf(v)
	switch {
	case strings.Contains(text, " double "):
		return "doubles have Go's shortest form, whose exponent is spelled otherwise"
	case strings.Contains(text, " error "):
		return "an error without line breaks may be a simple or a blob error"
	case strings.Contains(text, " null"):
		return "a Value has one null"
	case strings.Contains(text, " attr 0"):
		return "a Value does not keep an attribute without pairs"
	}
	return ""
}

// wantError says which error an error name of the vectors is here.
func wantError(name string, direction string, err error) bool {
	var protocol *ProtocolError
	var limit *LimitError
	if direction == "reply" {
		switch name {
		case "too-deep":
			return errors.As(err, &limit) && limit.Limit == "DepthMax"
		case "argument-too-long":
			return errors.As(err, &limit) && limit.Limit == "BytesMax"
		case "line-too-long":
			return errors.As(err, &limit) && limit.Limit == "LineBytesMax"
		}
		return errors.As(err, &protocol) || errors.As(err, &limit)
	}
	reasons := map[string]string{
		"multibulk-length": "invalid multibulk length", "multibulk-line": "too big mbulk count string",
		"expected-bulk": "expected '$'", "bulk-length": "invalid bulk length", "bulk-line": "too big bulk count string",
		"bulk-end": "does not end with CRLF", "unbalanced-quotes": "unbalanced quotes", "inline-too-long": "too big inline request",
		"unauthenticated-arguments": "unauthenticated", "unauthenticated-argument": "unauthenticated", "frame-too-long": "",
		"too-many-arguments": "too many", "argument-too-long": "",
	}
	return (errors.As(err, &protocol) || errors.As(err, &limit)) && strings.Contains(err.Error(), reasons[name])
}

func TestInvalidVectors(t *testing.T) {
	count, skipped := 0, 0
	for _, v := range loadVectors(t, "invalid") {
		wire := v.Wire()
		reason := leftOutBecause(&v)
		failure := ""
		for how, r := range vectorCuts(wire) {
			text, err := runVector(&v, r)
			if text != "" && text != "[]" || !wantError(v.Error, v.Direction, err) {
				failure = fmt.Sprintf("%s, %s: got %s, %v, want %s", v.ID, how, text, err, v.Error)
				break
			}
		}
		switch {
		case reason != "" && failure == "":
			t.Errorf("%s is left out (%s) and passes", v.ID, reason)
		case reason != "":
			skipped++
		case failure != "":
			t.Error(failure)
		default:
			count++
		}
	}
	t.Logf("%d invalid vectors, %d left out", count, skipped)
}

func replyTextOf(v *vectors.Vector) string {
	if v.Direction != "reply" {
		return ""
	}
	return v.ReplyText()
}
