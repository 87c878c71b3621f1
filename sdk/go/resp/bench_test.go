package resp

// This file owns the speed comparison with what one writes by hand: a bufio.Reader and a bufio.Writer with strconv.
// The baselines allocate nothing either and reuse their slices, so the difference is decoding and encoding alone.

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/internal/frame"
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

var benchCommands = []struct{ name, wire string }{
	{"PING", "*1\r\n$4\r\nPING\r\n"},
	{"GET", "*2\r\n$3\r\nGET\r\n$10\r\nkey:123456\r\n"},
	{"SET64", "*3\r\n$3\r\nSET\r\n$10\r\nkey:123456\r\n$64\r\n" + strings.Repeat("v", 64) + "\r\n"},
	{"SET4K", "*3\r\n$3\r\nSET\r\n$10\r\nkey:123456\r\n$4096\r\n" + strings.Repeat("v", 4096) + "\r\n"},
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

func BenchmarkParse(b *testing.B) {
	defer benchBinary(b)
	for _, c := range benchCommands {
		b.Run(c.name+"/lib=bufio", func(b *testing.B) {
			r := &bufioReader{r: bufio.NewReaderSize(newLoop(c.wire), blockBytes)}
			b.ReportAllocs()
			for b.Loop() {
				args, err := r.next()
				if err != nil {
					b.Fatal(err)
				}
				consume(args)
			}
		})
		b.Run(c.name+"/lib=resp", func(b *testing.B) {
			conn := NewClientConn(newLoop(c.wire))
			b.ReportAllocs()
			for b.Loop() {
				args, err := conn.Next()
				if err != nil {
					b.Fatal(err)
				}
				consume(args)
			}
		})
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

// benchBinary is part of BenchmarkParse.
func benchBinary(b *testing.B) {
	for _, c := range [][]string{{"PING"}, {"GET", "key:123456"}, {"SET", "key:123456", strings.Repeat("v", 64)}} {
		name := c[0]
		if name == "SET" {
			name = "SET64"
		}
		b.Run(name+"/lib=respb", func(b *testing.B) {
			r := newBinaryReader(c...)
			b.ReportAllocs()
			for b.Loop() {
				args, err := r.next()
				if err != nil {
					b.Fatal(err)
				}
				consume(args)
			}
		})
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

func BenchmarkWrite(b *testing.B) {
	value := []byte(strings.Repeat("v", 64))
	base := func(write func(w *bufioWriter) error) func(*testing.B) {
		return func(b *testing.B) {
			w := &bufioWriter{w: bufio.NewWriterSize(io.Discard, blockBytes)}
			b.ReportAllocs()
			for b.Loop() {
				if err := write(w); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	// pipelined is how replies are written while more commands wait: nothing is sent before the buffer is full.
	pipelined := func(write func(c *ClientConn) error) func(*testing.B) {
		return func(b *testing.B) {
			c := NewClientConn(&loopConn{})
			c.whole.Store(true)
			b.ReportAllocs()
			for b.Loop() {
				if err := write(c); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.Run("OK/lib=bufio", base(func(w *bufioWriter) error { return w.status("OK") }))
	b.Run("OK/lib=resp", pipelined(func(c *ClientConn) error { return c.WriteStatusString("OK") }))
	b.Run("WriteOK/lib=resp", pipelined(func(c *ClientConn) error { return c.WriteOK() }))
	b.Run("Bulk64/lib=bufio", base(func(w *bufioWriter) error { return w.bulk(value) }))
	b.Run("Bulk64/lib=resp", pipelined(func(c *ClientConn) error { return c.WriteBulkBytes(value) }))
}
