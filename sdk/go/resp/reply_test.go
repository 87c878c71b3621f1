package resp

// This file owns the tests of reading replies.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
)

// readCases are replies, with how Value shows them or why they are refused.
var readCases = []struct{ wire, want, err string }{
	{"+OK\r\n", "OK", ""},
	{"+\r\n", "", ""},
	{"-ERR no\r\n", "(error) ERR no", ""},
	{":-12\r\n", "-12", ""},
	{":+5\r\n", "5", ""},
	{":9223372036854775807\r\n", "9223372036854775807", ""},
	{":-9223372036854775808\r\n", "-9223372036854775808", ""},
	{"$3\r\na\r\n\r\n", `"a\r\n"`, ""},
	{"$-1\r\n", "(nil)", ""},
	{"*-1\r\n", "(nil)", ""},
	{"_\r\n", "(nil)", ""},
	{"#t\r\n", "true", ""},
	{"#f\r\n", "false", ""},
	{",1.50\r\n", "1.50", ""},
	{",inf\r\n", "inf", ""},
	{",-inf\r\n", "-inf", ""},
	{",nan\r\n", "nan", ""},
	{"(-123456789012345678901234567890\r\n", "-123456789012345678901234567890", ""},
	{"=5\r\ntxt:a\r\n", `"a"`, ""},
	{"!5\r\nERR x\r\n", "(error) ERR x", ""},
	{"*2\r\n:1\r\n*1\r\n$1\r\na\r\n", `*[1 *["a"]]`, ""},
	{"%1\r\n+k\r\n~1\r\n:1\r\n", "%[k ~[1]]", ""},
	{">2\r\n+message\r\n+m\r\n", ">[message m]", ""},
	{"*?\r\n:1\r\n+a\r\n.\r\n", "*[1 a]", ""},
	{"*?\r\n.\r\n", "*[]", ""},
	{"%?\r\n+k\r\n*?\r\n:1\r\n.\r\n.\r\n", "%[k *[1]]", ""},
	{"~?\r\n_\r\n.\r\n", "~[(nil)]", ""},
	{"$?\r\n;2\r\nab\r\n;1\r\nc\r\n;0\r\n", `"abc"`, ""},
	{"|1\r\n+ttl\r\n:5\r\n$1\r\nv\r\n", `"v"`, ""},
	{"*1\r\n|1\r\n+a\r\n|1\r\n+b\r\n:1\r\n:2\r\n:3\r\n", "*[3]", ""},

	{"\r\n", "", "no reply starts with"},
	{"+a\n", "", "without CRLF"},
	{"+a\rb\r\n", "", "bare CR"},
	{"?\r\n", "", "no reply starts with '?'"},
	{":\r\n", "", "invalid value"},
	{":1a\r\n", "", "invalid value"},
	{":9223372036854775808\r\n", "", "invalid value"},
	{":-9223372036854775809\r\n", "", "invalid value"},
	{"#x\r\n", "", "invalid value"},
	{"_x\r\n", "", "invalid value"},
	{",0x1p3\r\n", "", "invalid value"},
	{",1_0\r\n", "", "invalid value"},
	{",\r\n", "", "invalid value"},
	{"(1.5\r\n", "", "invalid value"},
	{"$-2\r\n", "", "invalid length"},
	{"$a\r\n", "", "invalid length"},
	{"$1\r\nab\r\n", "", "does not end with CRLF"},
	{"=3\r\ntxt\r\n", "", "without a format"},
	{"=4\r\ntext\r\n", "", "without a format"},
	{"$?\r\n;1\r\na\r\n+x\r\n", "", "invalid part"},
	{"*-2\r\n", "", "invalid count"},
	{"%-1\r\n", "", "invalid count"},
	{">?\r\n", "", "invalid count"},
	{".\r\n", "", "where none is open"},
	{"*1\r\n.\r\n", "", "where none is open"},
	{"%?\r\n+k\r\n.\r\n", "", "ends after a key"},
	{"*?\r\n|1\r\n+a\r\n+b\r\n.\r\n", "", "where none is open"},
	{"*2\r\n:1\r\n", "", "unexpected EOF"},
	{"$5\r\nab", "", "unexpected EOF"},
	{"+OK", "", "unexpected EOF"},
	{"$536870913\r\n", "", "BytesMax"},
	{"*4194305\r\n", "", "ValuesMax"},
	{"%9223372036854775807\r\n", "", "ValuesMax"},
	{"|9223372036854775807\r\n", "", "ValuesMax"},
	{strings.Repeat("*1\r\n", 200), "", "DepthMax"},
	{"+" + strings.Repeat("x", DefaultLineBytesMax+1), "", "LineBytesMax"},
}

func TestReader(t *testing.T) {
	for _, c := range readCases {
		for cut, reader := range cuts {
			t.Run(fmt.Sprintf("%.30q/%s", c.wire, cut), func(t *testing.T) {
				r := NewReader(reader(strings.NewReader(c.wire)))
				var v Value
				err := r.Read(&v)
				if c.err != "" {
					checkEnd(t, err, c.err)
					if again := r.Read(&v); again != err {
						t.Errorf("the next Read returned %v", again)
					}
					return
				}
				if err != nil || v.String() != c.want {
					t.Fatalf("got %s %v, want %s", v.String(), err, c.want)
				}
				if err := r.Read(&v); err != io.EOF {
					t.Errorf("ended with %v", err)
				}
			})
		}
	}
}

// TestReaderFields looks at what String does not show.
func TestReaderFields(t *testing.T) {
	wire := "|1\r\n+ttl\r\n:5\r\n=6\r\nmkd:#a\r\n-MOVED 1 a:1\r\n(12345678901234567890\r\n,-inf\r\n"
	r := NewReader(strings.NewReader(wire))
	var v Value
	read := func() {
		t.Helper()
		if err := r.Read(&v); err != nil {
			t.Fatal(err)
		}
	}
	if read(); len(v.Attrs) != 2 || v.Attrs[1].Int != 5 || string(v.Format[:]) != "mkd" || v.Err() != nil {
		t.Errorf("%+v", v)
	}
	if read(); len(v.Attrs) != 0 || !errors.Is(v.Err(), &Error{Prefix: "MOVED"}) || errors.Is(v.Err(), ErrNoAuth) {
		t.Errorf("%+v", v)
	}
	if read(); v.Kind != BigNumber {
		t.Errorf("%+v", v)
	}
	if n, err := v.BigInt(); err != nil || n.String() != "12345678901234567890" {
		t.Error(n, err)
	}
	if read(); !math.IsInf(v.Float, -1) {
		t.Errorf("%+v", v)
	}
}

// TestReaderOwnsValues: a value stays what it was while others are read.
func TestReaderOwnsValues(t *testing.T) {
	r := NewReader(strings.NewReader("*2\r\n$3\r\nabc\r\n$3\r\ndef\r\n*2\r\n$3\r\nxxx\r\n$3\r\nyyy\r\n"))
	var first, second Value
	if err := errors.Join(r.Read(&first), r.Read(&second)); err != nil {
		t.Fatal(err)
	}
	if first.String() != `*["abc" "def"]` || second.String() != `*["xxx" "yyy"]` {
		t.Error(first.String(), second.String())
	}
}

// TestReaderMemory: counts and lengths that are only announced cost nothing.
func TestReaderMemory(t *testing.T) {
	for _, wire := range []string{"*4000000\r\n", "$500000000\r\nabc"} {
		r := NewReader(strings.NewReader(wire))
		var v Value
		if err := r.Read(&v); err != io.ErrUnexpectedEOF {
			t.Fatal(err)
		}
		if cap(v.Data) > 1024 || cap(v.Elems) > 16 {
			t.Errorf("%q: %d bytes, %d values", wire, cap(v.Data), cap(v.Elems))
		}
	}
}

// TestRoundTrip writes what was read and reads what was written.
func TestRoundTrip(t *testing.T) {
	for _, c := range readCases {
		if c.err == "" {
			roundTrip(t, []byte(c.wire))
		}
	}
	for _, c := range writeCases {
		roundTrip(t, []byte(c.resp3))
	}
}

// roundTrip checks that each value in wire comes back equal after being written, and that the second writing is byte for byte the first.
func roundTrip(t *testing.T, wire []byte) {
	r := NewReader(bytes.NewReader(wire))
	for {
		var v, back Value
		if r.Read(&v) != nil {
			return
		}
		once, err := encode(speaksRESP3, func(w *Writer) error { return w.WriteValue(&v) })
		if err != nil {
			t.Fatalf("%q: %v", wire, err)
		}
		if err := NewReader(bytes.NewReader(once)).Read(&back); err != nil {
			t.Fatalf("%q was written as %q: %v", wire, once, err)
		}
		if !equalValues(&v, &back) {
			t.Fatalf("%q was written as %q: %s became %s", wire, once, v.String(), back.String())
		}
		twice, _ := encode(speaksRESP3, func(w *Writer) error { return w.WriteValue(&back) })
		if !bytes.Equal(once, twice) {
			t.Fatalf("%q was written as %q and then as %q", wire, once, twice)
		}
		old, err := encode(speaksRESP2, func(w *Writer) error { return w.WriteValue(&v) })
		if err != nil {
			t.Fatalf("%q: RESP2: %v", wire, err)
		}
		reader := NewReader(bytes.NewReader(old))
		if err := reader.Read(&back); err != nil || reader.Buffered() > 0 {
			t.Fatalf("%q was written for RESP2 as %q: %v, %d bytes left", wire, old, err, reader.Buffered())
		}
	}
}

// equalValues compares what v and w mean; the text of a double may differ.
func equalValues(v, w *Value) bool {
	if v.Kind != w.Kind || v.Int != w.Int || v.Format != w.Format || len(v.Elems) != len(w.Elems) || len(v.Attrs) != len(w.Attrs) {
		return false
	}
	if v.Kind == Double && !(v.Float == w.Float || v.Float != v.Float && w.Float != w.Float) {
		return false
	}
	if v.Kind != Double && !bytes.Equal(v.Data, w.Data) {
		return false
	}
	for i := range v.Elems {
		if !equalValues(&v.Elems[i], &w.Elems[i]) {
			return false
		}
	}
	for i := range v.Attrs {
		if !equalValues(&v.Attrs[i], &w.Attrs[i]) {
			return false
		}
	}
	return true
}
