package resp

// This file owns what the tests share.

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"testing"
	"testing/iotest"
	"time"
)

// testWait bounds everything a test waits for; it is never a pause.
const testWait = 240 * time.Second

// idleTries is how often a client with a short idle timeout is tried: on a machine that stalls its time may be over before it is heard.
const idleTries = 100

// pipeConn is the server's end of a connection in memory: Next reads from in, replies gather in out.
type pipeConn struct {
	loopConn
	in  io.Reader
	out bytes.Buffer
}

func (c *pipeConn) Read(b []byte) (int, error)  { return c.in.Read(b) }
func (c *pipeConn) Write(b []byte) (int, error) { return c.out.Write(b) }

// cuts are the ways in which bytes may be cut up on their way.
var cuts = map[string]func(io.Reader) io.Reader{
	"whole":        func(r io.Reader) io.Reader { return r },
	"byte by byte": iotest.OneByteReader,
	"halves":       iotest.HalfReader,
	"with EOF":     iotest.DataErrReader,
}

// readAll reads every command in wire and returns copies, and the error that ended it.
func readAll(conn *ClientConn) (all [][]string, err error) {
	for {
		args, err := conn.Next()
		if err != nil {
			return all, err
		}
		var words []string
		for _, a := range args {
			if cap(a) != len(a) {
				return all, errors.New("an argument's capacity is not capped")
			}
			words = append(words, string(a))
		}
		all = append(all, words)
	}
}

// startServer serves s on an ephemeral port and shuts it down with the test.
func startServer(t testing.TB, s *Server) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testWait)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-done; err != ErrServerClosed {
			t.Errorf("Serve returned %v", err)
		}
	})
	return l.Addr().String()
}

// client is a plain socket with a reply reader.
type client struct {
	t testing.TB
	net.Conn
	r *Reader
}

func dial(t testing.TB, addr string) *client {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(testWait))
	return &client{t, nc, NewReader(nc)}
}

func (c *client) send(wire string) {
	c.t.Helper()
	if _, err := io.WriteString(c.Conn, wire); err != nil {
		c.t.Fatal(err)
	}
}

// expect reads one reply and compares it with the form that Value.String shows.
func (c *client) expect(want string) {
	c.t.Helper()
	var v Value
	if err := c.r.Read(&v); err != nil {
		c.t.Fatalf("want %s, got error %v", want, err)
	}
	if got := v.String(); got != want {
		c.t.Fatalf("got %s, want %s", got, want)
	}
}

// expectEnd reads until the server has closed the connection.
func (c *client) expectEnd() {
	c.t.Helper()
	var v Value
	for {
		err := c.r.Read(&v)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.t.Fatal("the server did not close the connection")
		}
		if err != nil {
			return
		}
	}
}

// echoMux answers what most tests need.
func echoMux() *Mux {
	m := NewMux()
	m.HandleFunc("PING", -1, func(s *Session, r *Request) error { return s.WriteStatusString("PONG") })
	m.HandleFunc("ECHO", 2, func(s *Session, r *Request) error { return s.WriteBulkBytes(r.Arg(1)) })
	return m
}

// quietLogger keeps what tests provoke out of their output.
func quietLogger() *slog.Logger { return slog.New(slog.DiscardHandler) }
