// Package passthrough lets a client of Redis that can be told how to connect, such as go-redis, use the channels of one RESPB connection
// as its connections: nobody's code changes but for one line.
//
//	conn, err := respb.Dial(ctx, respb.Options{Addr: addr, Protocol: respb.RESPB})
//	db := redis.NewClient(&redis.Options{Dialer: passthrough.Dialer(conn), PoolSize: 64})
//
// The RESP that the client writes goes as it is, in passthrough frames; replies are turned back into RESP3. WATCH, MULTI and EXEC work,
// because each connection of the client's pool is a channel, with a state of its own. A command is sent when its reply is read. What comes
// without being asked for does not: subscriptions, MONITOR and client-side caching need a connection of the client's own.
//
// The server is to speak RESPB, which Options.Protocol sees to. The Conn is the caller's: closing it ends all connections.
package passthrough

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/weft-db/weft/sdk/go/resp"
	"github.com/weft-db/weft/sdk/go/respb"
)

// Dialer returns what redis.Options.Dialer takes. Each connection that the client asks for is a new channel of conn, whatever its address:
// its pool becomes a pool of channels, and what its goroutines send at the same time leaves in one write.
func Dialer(conn *respb.Conn) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		ch, err := conn.Channel(ctx)
		if err != nil {
			return nil, err
		}
		c := &channelConn{ch: ch, closed: make(chan struct{})}
		c.replies = resp.NewWriter(&c.out)
		return c, nil
	}
}

// channelConn is a channel that looks like a connection to a RESP3 server. Writing keeps commands; reading sends those that are whole
// and waits for all their replies. Subscriptions need a connection of their own: nothing arrives here that was not asked for.
type channelConn struct {
	ch *respb.Channel

	mu       sync.Mutex
	deadline time.Time // of reading
	end      sync.Once
	closed   chan struct{}

	in      []byte // commands that were not sent
	out     bytes.Buffer
	replies *resp.Writer
}

var errTwisted = errors.New("passthrough: what was written is no RESP command")

func (c *channelConn) Write(b []byte) (int, error) {
	c.in = append(c.in, b...)
	return len(b), nil
}

func (c *channelConn) Read(b []byte) (int, error) {
	if c.out.Len() == 0 {
		if err := c.exchange(); err != nil {
			return 0, err
		}
	}
	return c.out.Read(b)
}

// exchange sends what was written and gathers the replies.
func (c *channelConn) exchange() error {
	p := c.ch.Pipeline()
	rest := c.in
	for {
		size, err := commandSize(rest)
		if err != nil {
			return err
		}
		if size == 0 {
			break
		}
		command := rest[:size]
		rest = rest[size:]
		if isHello(command) {
			// The channel has its user and its protocol from the connection: what HELLO would say, HELLO says without arguments.
			p.Do("HELLO")
			continue
		}
		p.Passthrough(command)
	}
	c.in = append(c.in[:0], rest...)
	ctx, cancel := c.context()
	defer cancel()
	if p.Len() == 0 {
		select {
		case <-ctx.Done():
			return os.ErrDeadlineExceeded
		case <-c.closed:
			return net.ErrClosed
		}
	}
	values, err := p.Exec(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return os.ErrDeadlineExceeded
	}
	if err != nil {
		return err
	}
	for i := range values {
		if err := c.replies.WriteValue(&values[i]); err != nil {
			return err
		}
	}
	return c.replies.Flush()
}

func (c *channelConn) context() (context.Context, context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deadline.IsZero() {
		return context.WithCancel(context.Background())
	}
	return context.WithDeadline(context.Background(), c.deadline)
}

// commandSize returns how many bytes the first command has, or 0 if it is not whole.
func commandSize(b []byte) (int, error) {
	at := 0
	count, err := header(b, &at, '*')
	if err != nil || at == 0 {
		return 0, err
	}
	for range count {
		from := at
		size, err := header(b, &at, '$')
		if err != nil || at == from || len(b)-at < size+2 {
			return 0, err
		}
		at += size + 2
	}
	return at, nil
}

// header reads a line of a type byte and a number and moves at behind it, or leaves at when the line is not whole.
func header(b []byte, at *int, kind byte) (int, error) {
	line, _, whole := bytes.Cut(b[*at:], []byte("\r\n"))
	if !whole {
		return 0, nil
	}
	if len(line) < 2 || line[0] != kind {
		return 0, errTwisted
	}
	n, err := strconv.Atoi(string(line[1:]))
	if err != nil || n < 0 {
		return 0, errTwisted
	}
	*at += len(line) + 2
	return n, nil
}

func isHello(command []byte) bool {
	const second = len("*2\r\n$5\r\n")
	return len(command) > second+5 && bytes.EqualFold(command[second:second+5], []byte("HELLO"))
}

// Close gives the channel back, and ends a Read that waits.
func (c *channelConn) Close() error {
	err := net.ErrClosed
	c.end.Do(func() {
		close(c.closed)
		err = c.ch.Close()
	})
	return err
}

func (c *channelConn) LocalAddr() net.Addr                { return channelAddr{} }
func (c *channelConn) RemoteAddr() net.Addr               { return channelAddr{} }
func (c *channelConn) SetWriteDeadline(_ time.Time) error { return nil }
func (c *channelConn) SetDeadline(t time.Time) error      { return c.SetReadDeadline(t) }
func (c *channelConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	c.deadline = t
	c.mu.Unlock()
	return nil
}

type channelAddr struct{}

func (channelAddr) Network() string { return "respb" }
func (channelAddr) String() string  { return "channel" }
