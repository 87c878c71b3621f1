package resp

// This file owns the speed comparison with what one writes by hand: a bufio.Reader and a bufio.Writer with strconv.
// The baselines allocate nothing either and reuse their slices, so the difference is decoding and encoding alone.

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/internal/frame"
	"github.com/weft-db/weft/sdk/go/internal/rounds"
)

// loopConn delivers the same bytes over and over, never cutting them anywhere in particular, and drops what is written.
type loopConn struct {
	data []byte
	at   int
}

func (c *loopConn) Read(b []byte) (int, error) {
	n := 0
	for n < len(b) {
		m := copy(b[n:], c.data[c.at:])
		n += m
		if c.at += m; c.at == len(c.data) {
			c.at = 0
		}
	}
	return n, nil
}
func (c *loopConn) Write(b []byte) (int, error)      { return len(b), nil }
func (c *loopConn) Close() error                     { return nil }
func (c *loopConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *loopConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *loopConn) SetDeadline(time.Time) error      { return nil }
func (c *loopConn) SetReadDeadline(time.Time) error  { return nil }
func (c *loopConn) SetWriteDeadline(time.Time) error { return nil }

func newLoop(command string) *loopConn {
	return &loopConn{data: []byte(strings.Repeat(command, 1+blockBytes/len(command)))}
}

// benchCommand is a command that is parsed.
type benchCommand struct {
	name string
	argv []string
}

var benchCommands = []benchCommand{
	{"PING", []string{"PING"}},
	{"GET", []string{"GET", "key:123456"}},
	{"SET64", []string{"SET", "key:123456", strings.Repeat("v", 64)}},
	{"SET4K", []string{"SET", "key:123456", strings.Repeat("v", 4096)}},
}

// wire is the command as RESP.
func (c benchCommand) wire() string {
	wire := fmt.Sprintf("*%d\r\n", len(c.argv))
	for _, arg := range c.argv {
		wire += fmt.Sprintf("$%d\r\n%s\r\n", len(arg), arg)
	}
	return wire
}

// bufioReader is the baseline reader: ReadSlice for lines, ReadFull for arguments, buffers reused.
type bufioReader struct {
	r    *bufio.Reader
	args [][]byte
	mem  [][]byte
}

var errBaseline = errors.New("baseline: protocol error")

func (r *bufioReader) line(kind byte) (int, error) {
	line, err := r.r.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(line) < 4 || line[0] != kind || line[len(line)-2] != '\r' {
		return 0, errBaseline
	}
	return strconv.Atoi(string(line[1 : len(line)-2]))
}

func (r *bufioReader) next() ([][]byte, error) {
	n, err := r.line('*')
	if err != nil {
		return nil, err
	}
	r.args = r.args[:0]
	for i := range n {
		size, err := r.line('$')
		if err != nil {
			return nil, err
		}
		if i == len(r.mem) {
			r.mem = append(r.mem, nil)
		}
		if cap(r.mem[i]) < size+2 {
			r.mem[i] = make([]byte, size+2)
		}
		arg := r.mem[i][:size+2]
		if _, err := io.ReadFull(r.r, arg); err != nil {
			return nil, err
		}
		if arg[size] != '\r' || arg[size+1] != '\n' {
			return nil, errBaseline
		}
		r.args = append(r.args, arg[:size])
	}
	return r.args, nil
}

// sink keeps the compiler from dropping what is measured: lengths and the edges of each argument are used.
var benchSum int

func consume(args [][]byte) {
	for _, a := range args {
		benchSum += len(a) + int(a[0]) + int(a[len(a)-1])
	}
}

// BenchmarkParse has the readers of a command take turns.
func BenchmarkParse(b *testing.B) {
	for _, c := range benchCommands {
		cases := []rounds.Case{
			{Name: "lib=bufio", Run: func(b *testing.B) {
				r := &bufioReader{r: bufio.NewReaderSize(newLoop(c.wire()), blockBytes)}
				b.ReportAllocs()
				told := rounds.CPU(b)
				for b.Loop() {
					args, err := r.next()
					if err != nil {
						b.Fatal(err)
					}
					consume(args)
				}
				told()
			}},
			{Name: "lib=resp", Run: func(b *testing.B) {
				conn := NewClientConn(newLoop(c.wire()))
				b.ReportAllocs()
				told := rounds.CPU(b)
				for b.Loop() {
					args, err := conn.Next()
					if err != nil {
						b.Fatal(err)
					}
					consume(args)
				}
				told()
			}},
			{Name: "lib=respb", Run: func(b *testing.B) {
				r := newBinaryReader(c.argv...)
				b.ReportAllocs()
				told := rounds.CPU(b)
				for b.Loop() {
					args, err := r.next()
					if err != nil {
						b.Fatal(err)
					}
					consume(args)
				}
				told()
			}},
		}
		b.Run(c.name, func(b *testing.B) { rounds.Turns(b, cases...) })
	}
}

// binaryReader reads frames as a Server does, a frame at a time: bytes → decoder → the arguments that a handler gets.
type binaryReader struct {
	*muxReader
	src *loopConn
}

func newBinaryReader(command ...string) *binaryReader {
	wire, _ := frame.AppendRequest(nil, 0, command, frame.Exact)
	m := &muxConn{c: &serverConn{server: &Server{frames: [2]frame.Limits{frame.DefaultLimits, frame.DefaultLimits}}}}
	m.authed.Store(true)
	return &binaryReader{newMuxReader(m), newLoop(string(wire))}
}

func (r *binaryReader) next() ([][]byte, error) {
	for {
		if _, raw := r.straight(); raw != nil {
			return r.args, nil
		}
		f, raw, err := r.decode()
		if err == frame.ErrIncomplete {
			r.room(1)
			n, err := r.src.Read(r.buf[r.end:])
			if err != nil {
				return nil, err
			}
			r.end += n
			continue
		}
		if err != nil {
			return nil, err
		}
		r.arguments(&f, raw)
		return r.args, nil
	}
}

// bufioWriter is the baseline writer.
type bufioWriter struct {
	w       *bufio.Writer
	scratch [20]byte
}

func (w *bufioWriter) status(s string) error {
	w.w.WriteByte('+')
	w.w.WriteString(s)
	_, err := w.w.WriteString("\r\n")
	return err
}

func (w *bufioWriter) bulk(v []byte) error {
	w.w.WriteByte('$')
	w.w.Write(strconv.AppendInt(w.scratch[:0], int64(len(v)), 10))
	w.w.WriteString("\r\n")
	w.w.Write(v)
	_, err := w.w.WriteString("\r\n")
	return err
}

// BenchmarkWrite has the writers of a reply take turns.
func BenchmarkWrite(b *testing.B) {
	value := []byte(strings.Repeat("v", 64))
	base := func(write func(w *bufioWriter) error) func(*testing.B) {
		return func(b *testing.B) {
			w := &bufioWriter{w: bufio.NewWriterSize(io.Discard, blockBytes)}
			b.ReportAllocs()
			told := rounds.CPU(b)
			for b.Loop() {
				if err := write(w); err != nil {
					b.Fatal(err)
				}
			}
			told()
		}
	}
	// pipelined is how replies are written while more commands wait: nothing is sent before the buffer is full.
	pipelined := func(write func(c *ClientConn) error) func(*testing.B) {
		return func(b *testing.B) {
			c := NewClientConn(&loopConn{})
			c.whole.Store(true)
			b.ReportAllocs()
			told := rounds.CPU(b)
			for b.Loop() {
				if err := write(c); err != nil {
					b.Fatal(err)
				}
			}
			told()
		}
	}
	for _, each := range []struct {
		name  string
		cases []rounds.Case
	}{
		{"OK", []rounds.Case{
			{Name: "lib=bufio", Run: base(func(w *bufioWriter) error { return w.status("OK") })},
			{Name: "lib=resp", Run: pipelined(func(c *ClientConn) error { return c.WriteStatusString("OK") })},
		}},
		{"WriteOK", []rounds.Case{{Name: "lib=resp", Run: pipelined(func(c *ClientConn) error { return c.WriteOK() })}}},
		{"Bulk64", []rounds.Case{
			{Name: "lib=bufio", Run: base(func(w *bufioWriter) error { return w.bulk(value) })},
			{Name: "lib=resp", Run: pipelined(func(c *ClientConn) error { return c.WriteBulkBytes(value) })},
		}},
	} {
		b.Run(each.name, func(b *testing.B) { rounds.Turns(b, each.cases...) })
	}
}
