package respb

// This file owns a server of which a test says each frame: for what servers do only at the wrong moment.

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/internal/frame"
	"github.com/weft-db/weft/sdk/go/resp"
)

// script accepts connections, when it is asked to.
type script struct {
	t     *testing.T
	l     net.Listener
	dials atomic.Int64
}

// newScript returns a script and a Conn to it, which has not connected yet.
func newScript(t *testing.T, opts Options) (*script, *Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &script{t: t, l: l}
	opts.Dialer = func(ctx context.Context) (net.Conn, error) {
		s.dials.Add(1)
		return (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
	}
	patient(&opts)
	if opts.Protocol == Auto {
		opts.Protocol = RESPB
	}
	c := own(New(opts))
	t.Cleanup(func() { _ = c.Close(); _ = l.Close() })
	return s, c
}

// connected is newScript with the connection that it says.
func connected(t *testing.T, opts Options) (*peer, *Conn) {
	t.Helper()
	s, c := newScript(t, opts)
	failed := make(chan error, 1)
	go func() { _, err := c.zero.open(testContext(t), 1); failed <- err }()
	p := s.accept()
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	return p, c
}

// peer is the server's end of one connection.
type peer struct {
	t   *testing.T
	nc  net.Conn
	dec *frame.RequestDecoder
	in  []byte
}

// request is a frame from the client: the words of a command, or a control frame.
type request struct {
	opcode, channel uint16
	control         frame.Control
	words           []string
}

// agree answers HELLO: RESPB, without the profile Typed: all goes as ARGV.
func agree(nc net.Conn) error {
	w := resp.NewWriter(nc)
	_ = w.WriteMapHeader(1)
	_ = w.WriteBulkString("respb")
	_ = w.WriteMapHeader(1)
	_ = w.WriteBulkString("version")
	_ = w.WriteInt(1)
	return w.Flush()
}

// accept takes the next connection and agrees on RESPB, without the profile Typed: all goes as ARGV.
func (s *script) accept() *peer {
	s.t.Helper()
	_ = s.l.(*net.TCPListener).SetDeadline(time.Now().Add(testWait))
	nc, err := s.l.Accept()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = nc.Close() })
	return greet(s.t, nc)
}

// greet answers HELLO.
func greet(t *testing.T, nc net.Conn) *peer {
	t.Helper()
	_ = nc.SetDeadline(time.Now().Add(testWait))
	if hello, err := resp.NewClientConn(nc).Next(); err != nil || !strings.EqualFold(string(hello[0]), "HELLO") {
		t.Fatal(hello, err)
	}
	if err := agree(nc); err != nil {
		t.Fatal(err)
	}
	return &peer{t: t, nc: nc, dec: frame.NewRequestDecoder(&frame.DefaultLimits)}
}

// read returns the client's next frame.
func (p *peer) read() (request, error) {
	for {
		var args frame.Args
		f, err := p.dec.Decode(p.in, &args)
		if err == nil {
			r := request{opcode: f.Opcode, channel: f.Channel, control: f.Control}
			r.control.Slice, r.control.Reason = bytes.Clone(f.Control.Slice), bytes.Clone(f.Control.Reason)
			for i := range args.List {
				r.words = append(r.words, string(args.List[i].AppendText(nil, p.in)))
			}
			p.in = p.in[f.Len:]
			return r, nil
		}
		if err != frame.ErrIncomplete {
			return request{}, err
		}
		more := make([]byte, 4096)
		n, err := p.nc.Read(more)
		if p.in = append(p.in, more[:n]...); n == 0 {
			if err == nil {
				err = io.ErrNoProgress
			}
			return request{}, err
		}
	}
}

// expect returns the client's next frame, which has to be a command of these words.
func (p *peer) expect(words ...string) request {
	p.t.Helper()
	r, err := p.read()
	if err != nil || !slices.Equal(r.words, words) {
		p.t.Fatalf("got %q of opcode %#x, %v, want %q", r.words, r.opcode, err, words)
	}
	return r
}

// control returns the client's next frame, which has to be a control frame of this kind.
func (p *peer) control(opcode uint16) request {
	p.t.Helper()
	r, err := p.read()
	if err != nil || r.opcode != opcode {
		p.t.Fatalf("got %q of opcode %#x, %v, want opcode %#x", r.words, r.opcode, err, opcode)
	}
	return r
}

// say sends what fn writes for a channel.
func (p *peer) say(channel uint16, fn func(w *frame.ReplyWriter)) {
	p.t.Helper()
	w := frame.ReplyWriter{Channel: channel}
	fn(&w)
	if _, err := p.nc.Write(w.Out); err != nil {
		p.t.Fatal(err)
	}
}

// text answers with bulk strings, one reply each.
func (p *peer) text(channel uint16, replies ...string) {
	p.t.Helper()
	p.say(channel, func(w *frame.ReplyWriter) {
		for _, text := range replies {
			w.Bulk([]byte(text))
		}
	})
}

// pushed encodes a push of bulk strings.
func pushed(channel uint16, words ...string) []byte {
	w := frame.ReplyWriter{Channel: channel}
	w.Open(frame.Push, uint32(len(words)))
	for _, word := range words {
		w.Bulk([]byte(word))
	}
	return w.Out
}

// invalidate pushes that a key has changed, or for "" all.
func (p *peer) invalidate(channel uint16, key string) {
	p.t.Helper()
	p.say(channel, func(w *frame.ReplyWriter) {
		w.Open(frame.Push, 2)
		w.Bulk([]byte("invalidate"))
		if key == "" {
			w.Null()
			return
		}
		w.Open(frame.Array, 1)
		w.Bulk([]byte(key))
	})
}

// outcome is what a call came to that another goroutine makes.
type outcome struct {
	v   Value
	err error
}

// goDo makes a call on another goroutine.
func goDo(ctx context.Context, ch *Channel, words ...string) <-chan outcome {
	got := make(chan outcome, 1)
	go func() {
		v, err := ch.Do(ctx, words...)
		got <- outcome{v, err}
	}()
	return got
}

// is checks an outcome.
func (o outcome) is(t *testing.T, want string) {
	t.Helper()
	if o.err != nil || string(o.v.Data) != want {
		t.Errorf("got %q, %v, want %q", o.v.Data, o.err, want)
	}
}

// lost checks that the connection broke under a call.
func (o outcome) lost(t *testing.T) {
	t.Helper()
	var lost *ConnError
	if !errors.As(o.err, &lost) {
		t.Errorf("got %q, %v, want a ConnError", o.v.Data, o.err)
	}
}

// until waits for something that another goroutine brings about.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(testWait); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not happen", what)
		}
	}
}

// locked looks at a link.
func locked(ch *Channel, look func(l *link) bool) bool {
	l := ch.lane.Load().link
	l.mu.Lock()
	defer l.mu.Unlock()
	return look(l)
}

// waitsForRoom reports that somebody waits for room, or that more is on its way than may be.
func waitsForRoom(c *Conn, pending int) func() bool {
	return func() bool {
		return locked(c.zero, func(l *link) bool { return l.room != nil || l.pending > pending })
	}
}
