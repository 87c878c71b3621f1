package respb

// This file owns the fuzz target of the client: what a server may send. Its seeds are the conformance vectors.

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/internal/frame"
	"github.com/weft-db/weft/sdk/go/internal/vectors"
)

// scriptedConn delivers bytes, n at a time, and drops what is written.
type scriptedConn struct {
	data []byte
	n    int
}

func (c *scriptedConn) Read(b []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.data[:min(c.n, len(c.data))])
	c.data = c.data[n:]
	return n, nil
}
func (c *scriptedConn) Write(b []byte) (int, error)      { return len(b), nil }
func (c *scriptedConn) Close() error                     { return nil }
func (c *scriptedConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *scriptedConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *scriptedConn) SetDeadline(time.Time) error      { return nil }
func (c *scriptedConn) SetReadDeadline(time.Time) error  { return nil }
func (c *scriptedConn) SetWriteDeadline(time.Time) error { return nil }

// FuzzFromServer feeds bytes to a link on which commands wait: each must end, with a reply or an error, whatever comes, and however it is
// cut the replies are the same.
func FuzzFromServer(f *testing.F) {
	seeds, err := vectors.Seeds("respb", "reply", 4096)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range seeds {
		f.Add(seed, byte(3))
	}
	f.Fuzz(func(t *testing.T, wire []byte, cut byte) {
		whole, parts := feed(wire, len(wire)+1), feed(wire, int(cut)+1)
		if !bytes.Equal(whole, parts) {
			t.Fatalf("whole %q\nparts %q", whole, parts)
		}
	})
}

// feed returns what became of the calls.
func feed(wire []byte, n int) []byte {
	c := &Conn{opts: Options{ReplyBytesMax: 1 << 20}, links: map[*link]struct{}{}}
	c.opts.setDefaults()
	c.opts.Reconnect.Disabled = true
	c.ctx, c.cancel = context.WithCancel(context.Background())
	defer c.cancel()
	c.zero = newChannel(c, ChannelOptions{})
	c.zero.isRoot = true
	l := &link{conn: c, binary: true, wake: make(chan struct{}, 1), dead: make(chan struct{}),
		lanes: map[uint16]*lane{}, nextID: 1}
	l.wire.init(&scriptedConn{wire, n}, 0)
	l.limits = serverLimits{channels: 1 << 16}
	l.in.dec, l.in.inner = frame.NewReplyDecoder(frame.DefaultLimits), frame.NewReplyDecoder(frame.DefaultLimits)
	var calls []*call
	for i := range 4 {
		ch := c.zero
		if i > 0 {
			ch = newChannel(c, ChannelOptions{})
		}
		la, err := l.add(ch)
		if err != nil {
			panic(err)
		}
		for range 3 {
			k := newCall()
			l.mu.Lock()
			l.begin(la, k, 1)
			l.mu.Unlock()
			calls = append(calls, k)
		}
	}
	l.writing = false
	for l.receive(true) {
	}
	var out []byte
	for _, k := range calls {
		<-k.done
		if k.err != nil {
			out = append(out, "error\n"...)
			continue
		}
		out = append(append(out, k.one[0].String()...), '\n')
	}
	return out
}
