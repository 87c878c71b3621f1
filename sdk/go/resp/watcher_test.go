package resp

// This file owns the tests of contexts that end while a handler runs over RESP, and of what the client sends meanwhile.

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/internal/frame"
)

// waiting is a server with a command that waits for the end of a context and tells why it has ended, and its clients' way to it.
type waiting struct {
	*Server
	dial    func(t *testing.T) *client
	entered chan *Session
	ended   chan error
	leave   chan struct{}
}

// overAll runs a test over each kind of connection: sockets are watched through a duplicate, others are read themselves.
func overAll(t *testing.T, f func(t *testing.T, w *waiting), set ...func(s *Server)) {
	for _, kind := range []string{"tcp", "unix", "tls"} {
		t.Run(kind, func(t *testing.T) {
			w := &waiting{entered: make(chan *Session, 10), ended: make(chan error, 10), leave: make(chan struct{})}
			m := echoMux()
			wait := func(s *Session, ctx context.Context) error {
				w.entered <- s
				select {
				case <-ctx.Done():
					w.ended <- context.Cause(ctx)
					return ctx.Err()
				case <-w.leave:
					return s.WriteOK()
				}
			}
			m.HandleFunc("WAIT", 1, func(s *Session, r *Request) error { return wait(s, r.Context()) })
			m.HandleFunc("WAITSESSION", 1, func(s *Session, r *Request) error { return wait(s, s.Context()) })
			m.HandleFunc("IGNORE", 1, func(s *Session, r *Request) error {
				w.entered <- s
				<-w.leave
				return s.WriteOK()
			})
			w.Server = &Server{Handler: m, Logger: quietLogger(), Limits: Limits{QueueBytesMax: 1 << 16}}
			for _, each := range set {
				each(w.Server)
			}
			network, addr := "tcp", "127.0.0.1:0"
			if kind == "unix" {
				network, addr = "unix", filepath.Join(t.TempDir(), "s")
			}
			var config *tls.Config
			if kind == "tls" {
				w.TLSConfig = &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}}
				config = &tls.Config{InsecureSkipVerify: true} // the certificate is the test's own
			}
			l, err := net.Listen(network, addr)
			if err != nil {
				t.Fatal(err)
			}
			served := make(chan error, 1)
			go func() { served <- w.Serve(l) }()
			t.Cleanup(func() { _ = w.Close(); <-served })
			w.dial = func(t *testing.T) *client {
				nc, err := net.Dial(network, l.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				if config != nil {
					nc = tls.Client(nc, config)
				}
				t.Cleanup(func() { nc.Close() })
				_ = nc.SetDeadline(time.Now().Add(testWait))
				return &client{t, nc, NewReader(nc)}
			}
			f(t, w)
		})
	}
}

// why returns the cause of the end of a handler's context.
func (w *waiting) why(t *testing.T) error {
	t.Helper()
	select {
	case err := <-w.ended:
		return err
	case <-time.After(testWait):
		t.Fatal("the context did not end")
		return nil
	}
}

// TestContextEndsWithItsClient: whoever waits hears that its client has gone, also when that sent more before.
func TestContextEndsWithItsClient(t *testing.T) {
	overAll(t, func(t *testing.T, w *waiting) {
		for _, command := range []string{"WAIT\r\n", "WAITSESSION\r\n", "PING\r\nWAIT\r\nPING\r\n" + strings.Repeat("ECHO x\r\n", 100)} {
			c := w.dial(t)
			c.send(command)
			<-w.entered
			_ = c.Close()
			if err := w.why(t); !errors.Is(err, ErrClientGone) && !isReset(err) {
				t.Errorf("%.20q: %v", command, err)
			}
		}
	})
}

// isReset reports whether a connection was reset: a client that closes with replies unread does that.
func isReset(err error) bool { return err != nil && strings.Contains(err.Error(), "reset") }

// TestContextEndsWithClose: Session.Close from another goroutine ends it.
func TestContextEndsWithClose(t *testing.T) {
	overAll(t, func(t *testing.T, w *waiting) {
		for _, command := range []string{"WAIT\r\n", "WAITSESSION\r\n"} {
			c := w.dial(t)
			c.send(command)
			_ = (<-w.entered).Close()
			if err := w.why(t); !errors.Is(err, net.ErrClosed) {
				t.Errorf("%q: %v", command, err)
			}
			c.expectEnd()
		}
	})
}

// TestContextEndsWithTheServer: a handler that waits for its request's context is told of a shutdown, and its client too.
func TestContextEndsWithTheServer(t *testing.T) {
	overAll(t, func(t *testing.T, w *waiting) {
		c := w.dial(t)
		c.send("WAIT\r\n")
		<-w.entered
		ctx, cancel := context.WithTimeout(context.Background(), testWait)
		defer cancel()
		if err := w.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := w.why(t); !errors.Is(err, ErrShuttingDown) {
			t.Error(err)
		}
		c.expect("(error) ERR server is shutting down")
		c.expectEnd()
	})
}

// TestShutdownKeepsItsWord: it returns when its context ends, with handlers that hear of it then and with one that listens to nothing.
func TestShutdownKeepsItsWord(t *testing.T) {
	overAll(t, func(t *testing.T, w *waiting) {
		a, b := w.dial(t), w.dial(t)
		a.send("WAITSESSION\r\n")
		<-w.entered
		b.send("IGNORE\r\n")
		<-w.entered
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		returned := make(chan error, 1)
		go func() { returned <- w.Shutdown(ctx) }()
		select {
		case err := <-returned:
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		case <-time.After(testWait):
			t.Fatal("Shutdown did not return")
		}
		if err := w.why(t); !errors.Is(err, ErrServerClosed) {
			t.Error(err)
		}
		close(w.leave)
	})
}

// TestWhatComesMeanwhileIsKept: what a client sends while its handler is watched is answered afterwards, in order, below the limit of what is
// read ahead, at it and past it.
func TestWhatComesMeanwhileIsKept(t *testing.T) {
	overAll(t, func(t *testing.T, w *waiting) {
		const echo = "*2\r\n$4\r\nECHO\r\n$8\r\n%08d\r\n"
		limit := w.Limits.QueueBytesMax
		each := len(fmt.Sprintf(echo, 0))
		for _, size := range []int{each, limit/each*each - each, limit - limit%each + each, 4 * limit} {
			n := size / each
			c := w.dial(t)
			c.send("WAIT\r\n")
			<-w.entered
			var wire strings.Builder
			for i := range n {
				fmt.Fprintf(&wire, echo, i)
			}
			sent := make(chan error, 1)
			go func() { _, err := io.WriteString(c.Conn, wire.String()); sent <- err }()
			if size <= limit { // more is not read, and may not even be taken
				if err := <-sent; err != nil {
					t.Fatal(err)
				}
				sent <- nil
			}
			w.leave <- struct{}{}
			c.expect("OK")
			for i := range n {
				c.expect(fmt.Sprintf(`"%08d"`, i))
			}
			if err := <-sent; err != nil {
				t.Fatal(err)
			}
			c.send("PING\r\n")
			c.expect("PONG")
			_ = c.Close()
		}
	})
}

// TestWatchedWithTimeouts: the deadlines of a connection are what they were after it has been watched.
func TestWatchedWithTimeouts(t *testing.T) {
	overAll(t, func(t *testing.T, w *waiting) {
		c := w.dial(t)
		c.send("WAIT\r\n")
		<-w.entered
		time.Sleep(3 * w.Server.IdleTimeout) // the timeout is what must not end it meanwhile
		w.leave <- struct{}{}
		c.expect("OK")
		c.expectEnd() // and what has to now
	}, func(s *Server) { s.IdleTimeout = 20 * time.Millisecond })
}

// TestStreamsAreNotWatched: a handler that reads its argument from the connection may have a context too.
func TestStreamsAreNotWatched(t *testing.T) {
	m := echoMux()
	m.StreamBytes = 1
	m.HandleStream("STORE", 2, func(s *Session, r *Request) error {
		ctx := r.Context()
		time.Sleep(3 * watchAfter) // a watcher would have begun by now
		b, err := io.ReadAll(r.Body())
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		return s.WriteBulkBytes(b)
	})
	c := dial(t, startServer(t, &Server{Handler: m}))
	for range 3 {
		c.send("*2\r\n$5\r\nSTORE\r\n$4\r\nbody\r\nPING\r\n")
		c.expect(`"body"`)
		c.expect("PONG")
	}
}

// TestStreamsBehindAHandlerThatWaited: the beginning of a command that is streamed comes while another's handler is watched, and its rest long
// after that; no timeout was asked for.
func TestStreamsBehindAHandlerThatWaited(t *testing.T) {
	overAll(t, func(t *testing.T, w *waiting) {
		c := w.dial(t)
		c.send("WAIT\r\n")
		<-w.entered
		c.send("*2\r\n$5\r\nSTORE\r\n$100\r\n" + strings.Repeat("x", 50))
		time.Sleep(20 * watchAfter) // it is read ahead
		w.leave <- struct{}{}
		c.expect("OK")
		c.send(strings.Repeat("x", 50) + "\r\nPING\r\n")
		c.expect("100")
		c.expect("PONG")
	}, func(s *Server) {
		m := s.Handler.(*Mux)
		m.StreamBytes = 1
		m.HandleStream("STORE", 2, func(s *Session, r *Request) error {
			b := make([]byte, 50)
			if _, err := io.ReadFull(r.Body(), b); err != nil {
				return err
			}
			rest, err := io.ReadAll(r.Body())
			if err != nil {
				return err
			}
			return s.WriteInt(len(b) + len(rest))
		})
	})
}

// TestRESPBIsNotWatched: while a handler waits on channel 0, which has the connection's own session, everything that comes meanwhile is the
// reader's, for far longer than a watcher takes to begin; also when the context is from before the connection spoke RESPB.
func TestRESPBIsNotWatched(t *testing.T) {
	for _, hello := range []bool{false, true} {
		overAll(t, func(t *testing.T, w *waiting) {
			nc := w.dial(t)
			_ = nc.SetDeadline(time.Now().Add(20 * time.Second))
			if hello {
				var v Value
				nc.send("HELLO 3 PROTO respb\r\n")
				if err := nc.r.Read(&v); err != nil || v.Kind != Map {
					t.Fatal(v.String(), err)
				}
			}
			c := &muxClient{t: t, Conn: nc.Conn, dec: frame.NewReplyDecoder(frame.DefaultLimits)}
			for range 3 {
				c.send("0 WAIT", "1 PING")
				c.expect("1 PONG")
				<-w.entered
				for from := time.Now(); time.Since(from) < 20*watchAfter; {
					c.send("1 PING")
					c.expect("1 PONG")
				}
				w.leave <- struct{}{}
				c.expect("0 OK")
			}
		}, func(s *Server) {
			if hello {
				s.OnOpen = func(s *Session) { s.Context() }
			}
		})
	}
}
