//go:build go1.25

package resp

// This file owns the tests of what a client that does not read may have waiting before the server reads no more of it. They run in a bubble of
// testing/synctest, where "nothing moves any more" is an event: who is held back is held back for good, and no clock decides.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/weft-db/weft/sdk/go/internal/frame"
)

// oneConn is a listener with one connection in memory, which buffers nothing: what the client has not read waits in the server.
type oneConn struct {
	conns chan net.Conn
	done  context.Context
	close context.CancelFunc
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case nc := <-l.conns:
		return nc, nil
	case <-l.done.Done():
		return nil, net.ErrClosed
	}
}

func (l *oneConn) Close() error   { l.close(); return nil }
func (l *oneConn) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

// servePiped serves s until stop to the client that it returns. Both belong to the bubble.
func servePiped(t *testing.T, s *Server) (nc net.Conn, stop func()) {
	server, client := net.Pipe()
	l := &oneConn{conns: make(chan net.Conn, 1)}
	l.done, l.close = context.WithCancel(context.Background())
	l.conns <- server
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	return client, func() {
		_ = client.Close()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, ErrServerClosed) {
			t.Error(err)
		}
	}
}

// counted is a handler of ECHO and BIG that counts the bytes that it has answered.
func counted() (Handler, *atomic.Int64) {
	m, n := muxMux(nil), new(atomic.Int64)
	return HandlerFunc(func(s *Session, r *Request) error {
		if string(r.Name()) == "BIG" {
			size, err := r.Int(1)
			if err != nil {
				return err
			}
			n.Add(size)
		} else {
			n.Add(int64(len(r.Arg(1))))
		}
		return m.ServeCommand(s, r)
	}), n
}

// TestHeldBackAtHalf: over RESP no more commands are read when half of the limit waits, so that the other half is left for pushes, which nobody can
// hold back.
func TestHeldBackAtHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, size = 1 << 20, 4 << 10
		const n = 8 * limit / size
		m, bytesAnswered := counted()
		var session atomic.Pointer[Session]
		nc, stop := servePiped(t, &Server{
			Handler: m, StartRESP3: true, Limits: Limits{OutputBytesMax: limit}, OnOpen: func(s *Session) { session.Store(s) },
		})
		defer stop()
		word := strings.Repeat("x", size)
		go func() { // ends when all is taken
			_, _ = nc.Write(bytes.Repeat([]byte(fmt.Sprintf("*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n", size, word)), n))
		}()
		synctest.Wait()
		// What is gathered for one write, and the reply that passes the half, come on top.
		if got := bytesAnswered.Load(); got < limit/2 || got > limit/2+blockBytes+2*size {
			t.Errorf("%d bytes were answered to a client that reads none, half of the limit are %d", got, limit/2)
		}
		const push = limit/2 - 2*blockBytes
		if err := session.Load().Push(func(w *Writer) error { return w.WritePushBytes([][]byte{make([]byte, push)}) }); err != nil {
			t.Errorf("a push that has its room: %v", err)
		}
		r, pushes := NewReader(nc), 0
		var v Value
		for replies := 0; replies < n; {
			if err := r.Read(&v); err != nil {
				t.Fatalf("after %d replies: %v", replies, err)
			}
			if v.Kind == Push {
				pushes++
				continue
			}
			if replies++; string(v.Data) != word {
				t.Fatalf("reply %d is %.40s", replies, v.String())
			}
		}
		if pushes != 1 || bytesAnswered.Load() != n*size {
			t.Errorf("%d pushes, %d bytes answered", pushes, bytesAnswered.Load())
		}
	})
}

// TestConnectionIsHeldBackAsAWhole: over RESPB what waits on all channels together is bounded too, although none of them passes its own limit; the
// client's next frames are not read, and nobody is cut. Once all of one batch was answered however much that was.
func TestConnectionIsHeldBackAsAWhole(t *testing.T) {
	const limit, size, channels = 1 << 20, 32 << 10, 16
	const each = limit / size * 3 / 4
	for name, requests := range map[string]func(write func(channel uint16)){
		"in turns": func(write func(channel uint16)) {
			for range each {
				for channel := range uint16(channels) {
					write(channel)
				}
			}
		},
		"one after the other": func(write func(channel uint16)) {
			for channel := range uint16(channels) {
				for range each {
					write(channel)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, bytesAnswered := counted()
				nc, stop := servePiped(t, &Server{Handler: m, Limits: Limits{OutputBytesMax: limit}})
				defer stop()
				var wire []byte
				requests(func(channel uint16) {
					wire, _ = frame.AppendRequest(wire, channel, []string{"BIG", fmt.Sprint(size)}, frame.Fold)
				})
				go func() { _, _ = nc.Write(wire) }() // ends when all is taken
				synctest.Wait()
				if got := bytesAnswered.Load(); got <= 2*limit || got > 2*limit+2*queueBytes+2*blockBytes {
					t.Errorf("%d bytes were answered to a client that reads none, and two channels may have %d", got, 2*limit)
				}
				c := &muxClient{t: t, Conn: nc, dec: frame.NewReplyDecoder(frame.DefaultLimits)}
				got := map[string]int{}
				for range channels * each {
					text, err := c.next()
					if err != nil {
						t.Fatal(err, got)
					}
					got[text]++
				}
				for channel := range channels {
					if text := fmt.Sprintf("%d xxxxxxxx…%d", channel, size); got[text] != each {
						t.Errorf("%q came %d times, want %d", text, got[text], each)
					}
				}
				_ = nc.Close()
				_, _ = io.Copy(io.Discard, nc)
			})
		})
	}
}
