package resp

// This file owns the fuzz targets.

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"

	"github.com/weft-db/weft/sdk/go/internal/frame"
	"github.com/weft-db/weft/sdk/go/internal/vectors"
)

// The seeds of these targets are the tables of the other tests and the files under testdata/fuzz; all of them run
// as tests. What a target finds goes into testdata/fuzz.

// FuzzNext checks that Next gives the same commands and the same end however the bytes are cut, agrees with
// the resumable path alone where the fast path takes part, and reads back what Writer makes of the commands.
func FuzzNext(f *testing.F) {
	for _, c := range nextCases {
		f.Add([]byte(c.wire), byte(3))
	}
	addSeeds(f, "resp2", "request")
	f.Fuzz(func(t *testing.T, wire []byte, cut byte) {
		read := func(r io.Reader, fast bool) ([][]string, error) {
			conn := NewClientConn(&pipeConn{in: r})
			conn.SetLimits(Limits{ArgsMax: 1000, ArgBytesMax: 1 << 16, InlineBytesMax: 1 << 10})
			if !fast {
				conn.in.fastMax = -1
			}
			return readAll(conn)
		}
		whole, err := read(bytes.NewReader(wire), true)
		for _, other := range []struct {
			r    io.Reader
			fast bool
		}{
			{bytes.NewReader(wire), false},
			{cuts["byte by byte"](bytes.NewReader(wire)), true},
			{&cutReader{wire, int(cut) + 1}, true},
		} {
			got, gotErr := read(other.r, other.fast)
			if !reflect.DeepEqual(got, whole) || !sameEnd(err, gotErr) {
				t.Fatalf("%q %v\n%q %v", whole, err, got, gotErr)
			}
		}
		var again bytes.Buffer
		w := NewWriter(&again)
		for _, command := range whole {
			_ = w.WriteArrayString(command)
		}
		_ = w.Flush()
		if got, err := read(&again, true); err != io.EOF || !reflect.DeepEqual(got, whole) {
			t.Fatalf("%q was written and read as %q, %v", whole, got, err)
		}
	})
}

// addSeeds adds the wires of the conformance vectors.
func addSeeds(f *testing.F, protocol, direction string) {
	seeds, err := vectors.Seeds(protocol, direction, 4096)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range seeds {
		f.Add(seed, byte(3))
	}
}

// sameEnd compares the kind of two errors. Got of a limit error may depend on how much had arrived.
func sameEnd(a, b error) bool {
	var p1, p2 *ProtocolError
	var l1, l2 *LimitError
	switch {
	case errors.As(a, &p1) && errors.As(b, &p2):
		return p1.Reason == p2.Reason
	case errors.As(a, &l1) && errors.As(b, &l2):
		return l1.Limit == l2.Limit
	}
	return a == b
}

// cutReader delivers n bytes at a time.
type cutReader struct {
	data []byte
	n    int
}

func (r *cutReader) Read(b []byte) (int, error) {
	if len(r.data) == 0 {
		return 0, io.EOF
	}
	n := copy(b, r.data[:min(r.n, len(r.data))])
	r.data = r.data[n:]
	return n, nil
}

// FuzzReader checks that replies are read the same however they are cut and that values survive being written.
func FuzzReader(f *testing.F) {
	for _, c := range readCases {
		f.Add([]byte(c.wire), byte(3))
	}
	for _, c := range writeCases {
		f.Add([]byte(c.resp3), byte(0))
	}
	addSeeds(f, "resp2", "reply")
	addSeeds(f, "resp3", "reply")
	f.Fuzz(func(t *testing.T, wire []byte, cut byte) {
		whole, byParts := NewReader(bytes.NewReader(wire)), NewReader(&cutReader{wire, int(cut) + 1})
		limits := ReaderLimits{DepthMax: 16, BytesMax: 1 << 16, ValuesMax: 1 << 12, LineBytesMax: 1 << 10}
		whole.SetLimits(limits)
		byParts.SetLimits(limits)
		for {
			var a, b Value
			errA, errB := whole.Read(&a), byParts.Read(&b)
			if !sameEnd(errA, errB) || errA == nil && !equalValues(&a, &b) {
				t.Fatalf("%s %v\n%s %v", a.String(), errA, b.String(), errB)
			}
			if errA != nil {
				break
			}
		}
		roundTrip(t, wire)
	})
}

// FuzzWriter drives a Writer by a program of bytes and checks that what comes out is, value by value, what went in, for every way of
// sending; with RESP2 that it is as many whole values.
func FuzzWriter(f *testing.F) {
	f.Add([]byte("\x00a\x01bc\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e"))
	f.Add([]byte("\x0c\x02\x00x\x0c\x01\x05\x0b\x02\x06\x01\x02\x03\x04"))
	f.Fuzz(func(t *testing.T, program []byte) {
		for _, resp2 := range []bool{false, true} {
			var buffered bytes.Buffer
			w := NewWriter(&buffered)
			w.SetRESP2Compat(resp2)
			values := runProgram(w, program)
			_ = w.Flush()

			pipe := &pipeConn{}
			conn := NewClientConn(pipe)
			conn.SetRESP2Compat(resp2)
			runProgram(&conn.Writer, program)
			_ = conn.Flush()
			if !bytes.Equal(buffered.Bytes(), pipe.out.Bytes()) {
				t.Fatalf("buffered %q, unbuffered %q", buffered.Bytes(), pipe.out.Bytes())
			}

			r := NewReader(&buffered)
			var v Value
			for range values {
				if err := r.Read(&v); err != nil {
					t.Fatalf("after %q: %v", pipe.out.Bytes(), err)
				}
			}
			if err := r.Read(&v); err != io.EOF {
				t.Fatalf("%q holds more than %d values: %v", pipe.out.Bytes(), values, err)
			}
		}
	})
}

// runProgram writes one value after another, completes what is open, and returns how many it wrote at the top.
func runProgram(w *Writer, program []byte) (values int) {
	next := func() byte {
		if len(program) == 0 {
			return 0
		}
		b := program[0]
		program = program[1:]
		return b
	}
	var value func(depth int)
	value = func(depth int) {
		op := next() % 18
		if depth > 8 {
			op %= 11
		}
		if op == 14 && depth > 0 {
			op = 11 // a push stands between replies, not inside one
		}
		switch op {
		case 0:
			_ = w.WriteStatusString(string([]byte{next(), next()}))
		case 1:
			_ = w.WriteBulkBytes(bytes.Repeat([]byte{next()}, int(next())*int(next())))
		case 2:
			_ = w.WriteErrorString(string([]byte{next(), next()}))
		case 3:
			_ = w.WriteInt64(int64(next())<<56 | int64(next()))
		case 4:
			_ = w.WriteFloat(float64(next()) / float64(next()))
		case 5:
			_ = w.WriteNull()
		case 6:
			_ = w.WriteBool(next()&1 == 0)
		case 7:
			_ = w.WriteUint64(uint64(next()) << 56)
		case 8:
			_ = w.WriteVerbatimString("txt", string([]byte{next()}))
		case 9:
			_ = w.WriteBlobErrorBytes([]byte{next(), next()})
		case 10:
			_ = w.WriteArrayBytes([][]byte{{next()}, {next()}})
		case 11, 12, 13, 14:
			header := []func(int) error{w.WriteArrayHeader, w.WriteMapHeader, w.WriteSetHeader, w.WritePushHeader}[op-11]
			n := int(next() % 4)
			_ = header(n)
			if op == 12 {
				n *= 2
			}
			for range n {
				value(depth + 1)
			}
		case 15:
			n := int(next() % 3)
			_ = w.WriteAttributeHeader(n)
			for range 2 * n {
				value(depth + 1)
			}
			value(depth + 1)
		case 16:
			_ = w.WriteBuffered(func() error { value(depth + 1); return nil })
		case 17:
			_ = w.WriteStream(bytes.NewReader(bytes.Repeat([]byte{next()}, int(next())*int(next()))))
		}
	}
	for len(program) > 0 {
		value(0)
		values++
	}
	return values
}

// FuzzRESPBServer feeds bytes to a server that speaks RESPB, cut in two ways: it must answer the same, frame by frame for each
// channel, and end.
func FuzzRESPBServer(f *testing.F) {
	addSeeds(f, "respb", "request")
	handler := HandlerFunc(func(s *Session, r *Request) error {
		_ = s.WriteArrayHeader(r.Len())
		for _, a := range r.Args() {
			_ = s.WriteBulkBytes(a)
		}
		return nil
	})
	f.Fuzz(func(t *testing.T, wire []byte, cut byte) {
		if len(wire) == 0 || wire[0] > 7 && wire[0] < 0xF0 {
			return // not RESPB
		}
		serve := func(r io.Reader) map[uint16]string {
			pipe := &pipeConn{in: r}
			s := &Server{Handler: handler, Limits: Limits{ArgBytesMax: 1 << 12, CommandBytesMax: 1 << 13}, Logger: quietLogger()}
			_ = s.ServeConn(pipe)
			// What comes of one channel is the same however the channels interleave.
			answers := map[uint16]string{}
			out := pipe.out.Bytes()
			dec := frame.NewReplyDecoder(frame.DefaultLimits)
			for len(out) > 0 {
				fr, _, err := dec.Decode(out, nil)
				if err != nil {
					t.Fatalf("the server wrote what is no frame: %x: %v", out, err)
				}
				answers[fr.Channel] += string(out[:fr.Len])
				out = out[fr.Len:]
			}
			return answers
		}
		whole, parts := serve(bytes.NewReader(wire)), serve(&cutReader{wire, int(cut) + 1})
		if !reflect.DeepEqual(whole, parts) {
			t.Fatalf("whole %q\nparts %q", whole, parts)
		}
	})
}
