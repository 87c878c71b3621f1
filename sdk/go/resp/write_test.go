package resp

// This file owns the tests of writing replies.

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/big"
	"net"
	"os"
	"strings"
	"testing"
)

var huge, _ = new(big.Int).SetString("-340282366920938463463374607431768211456", 10)

// writeCases are single writes and what they look like in both protocols. They are the seeds of FuzzReader too.
var writeCases = []struct {
	name  string
	write func(w *Writer) error
	resp3 string
	resp2 string // "=" is the same
}{
	{"OK", func(w *Writer) error { return w.WriteOK() }, "+OK\r\n", "="},
	{"status", func(w *Writer) error { return w.WriteStatusString("PONG") }, "+PONG\r\n", "="},
	{"status with line breaks", func(w *Writer) error { return w.WriteStatusString("a\r\n+b") }, "+a  +b\r\n", "="},
	{"status bytes", func(w *Writer) error { return w.WriteStatusBytes([]byte("a\nb")) }, "+a b\r\n", "="},
	{"error", func(w *Writer) error { return w.WriteErrorString("no such thing") }, "-ERR no such thing\r\n", "="},
	{"error with prefix", func(w *Writer) error { return w.WriteErrorString("WRONGTYPE Operation") }, "-WRONGTYPE Operation\r\n", "="},
	{"error bytes", func(w *Writer) error { return w.WriteErrorBytes([]byte("a\r\n-b")) }, "-ERR a  -b\r\n", "="},
	{"error with one capital", func(w *Writer) error { return w.WriteErrorString("A thing") }, "-ERR A thing\r\n", "="},
	{"typed error", func(w *Writer) error { return w.WriteError(Moved(3999, "127.0.0.1:6381")) }, "-MOVED 3999 127.0.0.1:6381\r\n", "="},
	{"ask", func(w *Writer) error { return w.WriteError(Ask(1, "a:1")) }, "-ASK 1 a:1\r\n", "="},
	{"wrapped error", func(w *Writer) error { return w.WriteError(errors.Join(ErrWrongType)) }, "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n", "="},
	{"NOAUTH", func(w *Writer) error { return w.WriteError(ErrNoAuth) }, "-NOAUTH Authentication required.\r\n", "="},
	{"plain error", func(w *Writer) error { return w.WriteError(io.EOF) }, "-ERR EOF\r\n", "="},
	{"error of a prefix", func(w *Writer) error { return w.WriteErrorPrefix("BUSY\n", "x\ry") }, "-BUSY  x y\r\n", "="},
	{"blob error", func(w *Writer) error { return w.WriteBlobErrorString("SYNTAX a\r\nb") }, "!11\r\nSYNTAX a\r\nb\r\n", "-SYNTAX a  b\r\n"},
	{"blob error bytes", func(w *Writer) error { return w.WriteBlobErrorBytes([]byte("x")) }, "!5\r\nERR x\r\n", "-ERR x\r\n"},
	{"bytes", func(w *Writer) error { return w.WriteBulkBytes([]byte("a\r\nb")) }, "$4\r\na\r\nb\r\n", "="},
	{"nil bytes", func(w *Writer) error { return w.WriteBulkBytes(nil) }, "$0\r\n\r\n", "="},
	{"string of 99", func(w *Writer) error { return w.WriteBulkString(strings.Repeat("x", 99)) }, "$99\r\n" + strings.Repeat("x", 99) + "\r\n", "="},
	{"string of 999", func(w *Writer) error { return w.WriteBulkString(strings.Repeat("x", 999)) }, "$999\r\n" + strings.Repeat("x", 999) + "\r\n", "="},
	{"string of 9999", func(w *Writer) error { return w.WriteBulkString(strings.Repeat("x", 9999)) }, "$9999\r\n" + strings.Repeat("x", 9999) + "\r\n", "="},
	{"string of 10000", func(w *Writer) error { return w.WriteBulkString(strings.Repeat("x", 10000)) }, "$10000\r\n" + strings.Repeat("x", 10000) + "\r\n", "="},
	{"large bytes", func(w *Writer) error { return w.WriteBulkBytes(bytes.Repeat([]byte("x"), 100000)) }, "$100000\r\n" + strings.Repeat("x", 100000) + "\r\n", "="},
	{"large string", func(w *Writer) error { return w.WriteBulkString(strings.Repeat("x", 100000)) }, "$100000\r\n" + strings.Repeat("x", 100000) + "\r\n", "="},
	{"int", func(w *Writer) error { return w.WriteInt(-7) }, ":-7\r\n", "="},
	{"int32", func(w *Writer) error { return w.WriteInt32(math.MinInt32) }, ":-2147483648\r\n", "="},
	{"smallest", func(w *Writer) error { return w.WriteInt64(math.MinInt64) }, ":-9223372036854775808\r\n", "="},
	{"int of 10000", func(w *Writer) error { return w.WriteInt64(10000) }, ":10000\r\n", "="},
	{"uint", func(w *Writer) error { return w.WriteUint64(9999) }, ":9999\r\n", "="},
	{"largest uint", func(w *Writer) error { return w.WriteUint64(math.MaxUint64) }, "(18446744073709551615\r\n", "$20\r\n18446744073709551615\r\n"},
	{"big", func(w *Writer) error { return w.WriteBigInt(huge) }, "(" + huge.String() + "\r\n", "$40\r\n" + huge.String() + "\r\n"},
	{"no big", func(w *Writer) error { return w.WriteBigInt(nil) }, "_\r\n", "$-1\r\n"},
	{"float", func(w *Writer) error { return w.WriteFloat(3.25) }, ",3.25\r\n", "$4\r\n3.25\r\n"},
	{"whole float", func(w *Writer) error { return w.WriteFloat64(10) }, ",10\r\n", "$2\r\n10\r\n"},
	{"minus zero", func(w *Writer) error { return w.WriteFloat(math.Copysign(0, -1)) }, ",-0\r\n", "$2\r\n-0\r\n"},
	{"large float", func(w *Writer) error { return w.WriteFloat(1e300) }, ",1e+300\r\n", "$6\r\n1e+300\r\n"},
	{"float32", func(w *Writer) error { return w.WriteFloat32(0.1) }, ",0.1\r\n", "$3\r\n0.1\r\n"},
	{"infinity", func(w *Writer) error { return w.WriteFloat(math.Inf(1)) }, ",inf\r\n", "$3\r\ninf\r\n"},
	{"minus infinity", func(w *Writer) error { return w.WriteFloat(math.Inf(-1)) }, ",-inf\r\n", "$4\r\n-inf\r\n"},
	{"not a number", func(w *Writer) error { return w.WriteFloat(math.NaN()) }, ",nan\r\n", "$3\r\nnan\r\n"},
	{"true", func(w *Writer) error { return w.WriteBool(true) }, "#t\r\n", ":1\r\n"},
	{"false", func(w *Writer) error { return w.WriteBool(false) }, "#f\r\n", ":0\r\n"},
	{"null", func(w *Writer) error { return w.WriteNull() }, "_\r\n", "$-1\r\n"},
	{"null array", func(w *Writer) error { return w.WriteNullArray() }, "_\r\n", "*-1\r\n"},
	{"verbatim", func(w *Writer) error { return w.WriteVerbatimString("txt", "a\nb") }, "=7\r\ntxt:a\nb\r\n", "$3\r\na\nb\r\n"},
	{"verbatim bytes", func(w *Writer) error { return w.WriteVerbatimBytes("mkd", []byte("#")) }, "=5\r\nmkd:#\r\n", "$1\r\n#\r\n"},
	{"array", func(w *Writer) error { return w.WriteArrayString([]string{"a", ""}) }, "*2\r\n$1\r\na\r\n$0\r\n\r\n", "="},
	{"array bytes", func(w *Writer) error { return w.WriteArrayBytes([][]byte{[]byte("a"), nil}) }, "*2\r\n$1\r\na\r\n$0\r\n\r\n", "="},
	{"map", func(w *Writer) error { return w.WriteMapString([]string{"a", "b"}) }, "%1\r\n$1\r\na\r\n$1\r\nb\r\n", "*2\r\n$1\r\na\r\n$1\r\nb\r\n"},
	{"map bytes", func(w *Writer) error { return w.WriteMapBytes([][]byte{{'a'}, {'b'}}) }, "%1\r\n$1\r\na\r\n$1\r\nb\r\n", "*2\r\n$1\r\na\r\n$1\r\nb\r\n"},
	{"set", func(w *Writer) error { return w.WriteSetString([]string{"a"}) }, "~1\r\n$1\r\na\r\n", "*1\r\n$1\r\na\r\n"},
	{"set bytes", func(w *Writer) error { return w.WriteSetBytes([][]byte{{'a'}}) }, "~1\r\n$1\r\na\r\n", "*1\r\n$1\r\na\r\n"},
	{"push", func(w *Writer) error { return w.WritePushString([]string{"message", "c", "m"}) }, ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n", "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n"},
	{"push bytes", func(w *Writer) error { return w.WritePushBytes([][]byte{{'a'}}) }, ">1\r\n$1\r\na\r\n", "*1\r\n$1\r\na\r\n"},
	{"empty header", func(w *Writer) error { return w.WriteArrayHeader(0) }, "*0\r\n", "="},
	{"nested", func(w *Writer) error {
		_ = w.WriteMapHeader(1)
		_ = w.WriteStatusString("k")
		_ = w.WriteSetHeader(1)
		_ = w.WritePushHeader(1)
		return w.WriteInt(1)
	}, "%1\r\n+k\r\n~1\r\n>1\r\n:1\r\n", "*2\r\n+k\r\n*1\r\n*1\r\n:1\r\n"},
	{"attribute", func(w *Writer) error {
		_ = w.WriteAttributeString([]string{"ttl", "5"})
		return w.WriteBulkString("v")
	}, "|1\r\n$3\r\nttl\r\n$1\r\n5\r\n$1\r\nv\r\n", "$1\r\nv\r\n"},
	{"attribute bytes", func(w *Writer) error {
		_ = w.WriteAttributeBytes([][]byte{{'a'}, {'b'}})
		return w.WriteBulkString("v")
	}, "|1\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nv\r\n", "$1\r\nv\r\n"},
	{"attribute by header", func(w *Writer) error {
		_ = w.WriteArrayHeader(2)
		_ = w.WriteAttributeHeader(2)
		_ = w.WriteStatusString("a")
		_ = w.WriteMapHeader(1) // an aggregate among the pairs, with an attribute of its own
		_ = w.WriteAttributeHeader(1)
		_ = w.WriteOK()
		_ = w.WriteArrayString([]string{"x", "y"})
		_ = w.WriteInt(1)
		_ = w.WriteNull()
		_ = w.WriteStatusString("b")
		_ = w.WriteBool(true)
		_ = w.WriteInt(1)
		return w.WriteInt(2)
	}, "*2\r\n|2\r\n+a\r\n%1\r\n|1\r\n+OK\r\n*2\r\n$1\r\nx\r\n$1\r\ny\r\n:1\r\n_\r\n+b\r\n#t\r\n:1\r\n:2\r\n", "*2\r\n:1\r\n:2\r\n"},
	{"raw", func(w *Writer) error { return w.WriteRaw([]byte(":1\r\n")) }, ":1\r\n", "="},
	{"from a reader", func(w *Writer) error { return w.WriteBulkFrom(strings.NewReader("abcdef"), 5) }, "$5\r\nabcde\r\n", "="},
	{"stream", func(w *Writer) error { return w.WriteStream(strings.NewReader("abc")) }, "$?\r\n;3\r\nabc\r\n;0\r\n", "$3\r\nabc\r\n"},
}

func TestWrite(t *testing.T) {
	for _, c := range writeCases {
		for _, resp2 := range []bool{false, true} {
			want := c.resp3
			if resp2 && c.resp2 != "=" {
				want = c.resp2
			}
			var direct bytes.Buffer
			w := NewWriter(&direct)
			w.SetRESP2Compat(resp2)
			if err := errors.Join(c.write(w), w.Flush()); err != nil || direct.String() != want {
				t.Errorf("%s, RESP2 %v: Writer: got %.80q %v, want %.80q", c.name, resp2, direct.String(), err, want)
			}
			pipe := &pipeConn{}
			conn := NewClientConn(pipe)
			conn.SetRESP2Compat(resp2)
			if err := c.write(&conn.Writer); err != nil || pipe.out.String() != want {
				t.Errorf("%s, RESP2 %v: unbuffered: got %.80q %v, want %.80q", c.name, resp2, pipe.out.String(), err, want)
			}
			pipe.out.Reset()
			err := conn.WriteBuffered(func() error {
				err := c.write(&conn.Writer)
				if pipe.out.Len() > 0 {
					t.Errorf("%s: sent inside WriteBuffered", c.name)
				}
				return err
			})
			if err != nil || pipe.out.String() != want {
				t.Errorf("%s, RESP2 %v: WriteBuffered: got %.80q %v, want %.80q", c.name, resp2, pipe.out.String(), err, want)
			}
		}
	}
}

// TestWriteRefuses: calls that make no sense write nothing.
func TestWriteRefuses(t *testing.T) {
	for name, write := range map[string]func(w *Writer) error{
		"negative array":     func(w *Writer) error { return w.WriteArrayHeader(-1) },
		"negative map":       func(w *Writer) error { return w.WriteMapHeader(-1) },
		"negative attribute": func(w *Writer) error { return w.WriteAttributeHeader(-1) },
		"negative length":    func(w *Writer) error { return w.WriteBulkFrom(nil, -1) },
		"odd map":            func(w *Writer) error { return w.WriteMapString([]string{"a"}) },
		"format":             func(w *Writer) error { return w.WriteVerbatimString("text", "") },
		"kind":               func(w *Writer) error { return w.WriteValue(&Value{Kind: 'x'}) },
	} {
		for _, resp2 := range []bool{false, true} {
			var out bytes.Buffer
			w := NewWriter(&out)
			w.SetRESP2Compat(resp2)
			if err := write(w); err == nil {
				t.Errorf("%s: accepted", name)
			}
			if w.Flush(); out.Len() > 0 {
				t.Errorf("%s: wrote %q", name, out.String())
			}
		}
	}
}

// TestErrorStringIsNotChanged: errors used to be cleaned in place, which crashed on constants and changed the caller's bytes.
func TestErrorStringIsNotChanged(t *testing.T) {
	const constant = "a\r\nb"
	own := []byte(constant)
	w := NewWriter(io.Discard)
	_ = w.WriteErrorString(constant)
	_ = w.WriteStatusString(constant)
	_ = w.WriteErrorBytes(own)
	_ = w.WriteStatusBytes(own)
	if string(own) != constant {
		t.Errorf("the caller's bytes became %q", own)
	}
}

// TestWriteBufferedDropsOnError: half a reply must not be sent.
func TestWriteBufferedDropsOnError(t *testing.T) {
	pipe := &pipeConn{}
	conn := NewClientConn(pipe)
	err := conn.WriteBuffered(func() error {
		_ = conn.WriteArrayHeader(2)
		_ = conn.WriteBuffered(func() error { _ = conn.WriteInt(1); return io.ErrNoProgress })
		return conn.WriteErrorString("inner failed")
	})
	if want := "*2\r\n-ERR inner failed\r\n"; err != nil || pipe.out.String() != want {
		t.Errorf("got %q %v, want %q", pipe.out.String(), err, want)
	}
	pipe.out.Reset()
	err = conn.WriteBuffered(func() error { _ = conn.WriteArrayHeader(2); return io.ErrNoProgress })
	if err != io.ErrNoProgress || pipe.out.Len() > 0 || conn.Buffered() > 0 {
		t.Errorf("got %q %v", pipe.out.String(), err)
	}
}

// TestPipelineIsOneWrite: replies wait for each other while whole commands wait, and leave when none does.
func TestPipelineIsOneWrite(t *testing.T) {
	pipe := &pipeConn{in: strings.NewReader(strings.Repeat("*1\r\n$4\r\nPING\r\n", 200) + "*1\r\n$4\r\nPI")}
	conn := NewClientConn(pipe)
	conn.in.wide = true // one read
	for i := range 200 {
		if _, err := conn.Next(); err != nil {
			t.Fatal(err)
		}
		if pipe.out.Len() > 0 {
			t.Fatalf("sent before command %d was answered", i)
		}
		if err := conn.WriteOK(); err != nil {
			t.Fatal(err)
		}
	}
	if pipe.out.Len() != 200*5 {
		t.Errorf("%d bytes were sent after the last reply", pipe.out.Len())
	}
}

// TestFlushOnNext: a reply is not held back by a later command that gets none.
func TestFlushOnNext(t *testing.T) {
	pipe := &pipeConn{in: strings.NewReader("a\nb\n")}
	conn := NewClientConn(pipe)
	conn.SetFlushOnNext(true)
	_, _ = conn.Next()
	_ = conn.WriteOK()
	_, _ = conn.Next()
	if pipe.out.Len() > 0 {
		t.Error("sent too early")
	}
	if _, err := conn.Next(); err != io.EOF || pipe.out.String() != "+OK\r\n" {
		t.Error(pipe.out.String(), err)
	}
}

// stuckConn takes a few bytes and then times out until more may pass.
type stuckConn struct {
	pipeConn
	allowed int
}

func (c *stuckConn) Write(b []byte) (int, error) {
	n := min(len(b), c.allowed)
	c.allowed -= n
	c.out.Write(b[:n])
	if n < len(b) {
		return n, os.ErrDeadlineExceeded
	}
	return n, nil
}

// TestWriteGoesOnAfterTimeout: nothing is lost or doubled when writes time out and are tried again.
func TestWriteGoesOnAfterTimeout(t *testing.T) {
	for _, size := range []int{10, 1000, direct, 3 * blockBytes} {
		value := bytes.Repeat([]byte("v"), size)
		stuck := &stuckConn{allowed: 7}
		conn := NewClientConn(stuck)
		write := func(w *Writer) error {
			err := w.WriteOK()
			err = errors.Join(err, w.WriteBulkBytes(value))
			return errors.Join(err, w.WriteArrayBytes([][]byte{value, value}), w.WriteInt(5))
		}
		if err := write(&conn.Writer); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("%d: %v", size, err)
		}
		for tries := 0; conn.Buffered() > 0; tries++ {
			stuck.allowed = size/3 + 1
			if err := conn.Flush(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) || tries > 100 {
				t.Fatalf("%d: %v after %d tries", size, err, tries)
			}
		}
		var want bytes.Buffer
		w := NewWriter(&want)
		_ = write(w)
		_ = w.Flush()
		if !bytes.Equal(stuck.out.Bytes(), want.Bytes()) {
			t.Errorf("%d: what arrived differs from what was written", size)
		}
	}
}

// TestOutputLimit: WriteBuffered cannot hold more than the limit, and the connection stays broken.
func TestOutputLimit(t *testing.T) {
	conn := NewClientConn(&pipeConn{})
	conn.SetLimits(Limits{OutputBytesMax: 1000})
	var limit *LimitError
	err := conn.WriteBuffered(func() error {
		for range 100 {
			if err := conn.WriteBulkString("0123456789"); err != nil {
				return err
			}
		}
		return nil
	})
	if !errors.As(err, &limit) || limit.Limit != "OutputBytesMax" {
		t.Fatal(err)
	}
	if again := conn.WriteOK(); again != err {
		t.Errorf("the next write returned %v", again)
	}
}

// TestWriteAfterClose: every write method returns an error and none panics, before and while another goroutine closes.
func TestWriteAfterClose(t *testing.T) {
	for _, c := range writeCases {
		server, peer := net.Pipe()
		conn := NewClientConn(server)
		_ = peer.Close()
		_ = conn.Close()
		if err := c.write(&conn.Writer); err == nil {
			t.Errorf("%s: no error", c.name)
		}
		if err := c.write(&conn.Writer); err == nil {
			t.Errorf("%s: no error the second time", c.name)
		}
		if err := conn.Flush(); err == nil {
			t.Errorf("%s: Flush: no error", c.name)
		}
	}
}

// TestBrokenStreams: a value whose length was announced and cannot be kept ends the connection.
func TestBrokenStreams(t *testing.T) {
	w := NewWriter(io.Discard)
	if err := w.WriteBulkFrom(strings.NewReader("abc"), 5); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	if err := w.WriteOK(); err == nil {
		t.Error("the connection went on")
	}
	w = NewWriter(io.Discard)
	if err := w.WriteStream(io.MultiReader(strings.NewReader("abc"), brokenReader{})); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestStreamOutHoldsLittle streams 64 MiB and looks at the buffer.
func TestStreamOutHoldsLittle(t *testing.T) {
	const size = 64 << 20
	n := &countingWriter{}
	w := NewWriter(n)
	if err := w.WriteBulkFrom(io.LimitReader(zeros{}, size), size); err != nil {
		t.Fatal(err)
	}
	if cap(w.buf) > blockBytes {
		t.Errorf("%d bytes are held", cap(w.buf))
	}
	if err := w.Flush(); err != nil || n.n != int64(len("$67108864\r\n\r\n")+size) {
		t.Errorf("%d bytes were written, %v", n.n, err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

type countingWriter struct{ n int64 }

func (w *countingWriter) Write(b []byte) (int, error) { w.n += int64(len(b)); return len(b), nil }

// TestNoAllocations asserts it for the hot paths of both directions.
func TestNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	check := func(name string, f func() error) {
		t.Helper()
		run := func() {
			if err := f(); err != nil {
				t.Fatal(name, err)
			}
		}
		for range 1000 {
			run() // past every growth
		}
		if n := testing.AllocsPerRun(5000, run); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	for _, c := range benchCommands {
		conn := NewClientConn(newLoop(c.wire()))
		check("Next "+c.name, func() error { _, err := conn.Next(); return err })
	}
	value := bytes.Repeat([]byte("v"), 64)
	values := [][]byte{value, value}
	for _, resp2 := range []bool{false, true} {
		conn := NewClientConn(&loopConn{})
		conn.SetRESP2Compat(resp2)
		for name, f := range map[string]func() error{
			"WriteOK":           conn.WriteOK,
			"WriteStatusString": func() error { return conn.WriteStatusString("PONG") },
			"WriteErrorString":  func() error { return conn.WriteErrorString("no") },
			"WriteError":        func() error { return conn.WriteError(ErrWrongType) },
			"WriteBytes":        func() error { return conn.WriteBulkBytes(value) },
			"WriteString":       func() error { return conn.WriteBulkString("value") },
			"WriteInt":          func() error { return conn.WriteInt(123456789) },
			"WriteFloat":        func() error { return conn.WriteFloat(3.14159) },
			"WriteNull":         conn.WriteNull,
			"WriteBool":         func() error { return conn.WriteBool(true) },
			"WriteArrayBytes":   func() error { return conn.WriteArrayBytes(values) },
			"WriteMapBytes":     func() error { return conn.WriteMapBytes(values) },
		} {
			check(name, f)
			conn.whole.Store(true) // the same while commands wait
			check(name+" pipelined", f)
			conn.whole.Store(false)
		}
	}
	reader := NewReader(&loopConn{data: []byte("*2\r\n$3\r\nabc\r\n:5\r\n%1\r\n+a\r\n,1.5\r\n")})
	var v Value
	check("Reader.Read", func() error { return reader.Read(&v) })
}
