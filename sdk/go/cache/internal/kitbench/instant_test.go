package kitbench

// This file owns the server that is none: a map in the process of the client, so that what is timed is the client's own work and the kit's, and
// not how fast a processor wakes.

import (
	"bytes"
	"io"
	"net"
	"strconv"
	"sync"
	"time"
)

// instant is a connection whose other end is a map: what was written has been answered when Write returns.
type instant struct {
	store  *instantStore
	mu     sync.Mutex
	filled sync.Cond
	in     []byte // the beginning of a command
	out    []byte // replies
	read   int    // how much of them has been read
	closed bool
}

// instantStore is what the connections of a client share.
type instantStore struct {
	mu     sync.Mutex
	values map[string][]byte
}

func (s *instantStore) dial() net.Conn {
	c := &instant{store: s}
	c.filled.L = &c.mu
	return c
}

func (c *instant) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	data := p
	if len(c.in) > 0 {
		c.in = append(c.in, p...)
		data = c.in
	}
	var words [1 + batch][]byte
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	for {
		n, rest, ok := command(data, &words)
		if !ok {
			break
		}
		c.reply(words[:n])
		data = rest
	}
	c.in = append(c.in[:0], data...)
	c.filled.Signal()
	return len(p), nil
}

// command takes a whole command off data; words beyond what fits are dropped.
func command(data []byte, words *[1 + batch][]byte) (n int, rest []byte, ok bool) {
	n, rest, ok = header(data, '*')
	for i := 0; i < n && ok; i++ {
		var size int
		if size, rest, ok = header(rest, '$'); !ok || len(rest) < size+2 {
			return 0, data, false
		}
		if i < len(words) {
			words[i] = rest[:size]
		}
		rest = rest[size+2:]
	}
	return min(n, len(words)), rest, ok
}

func header(data []byte, mark byte) (n int, rest []byte, ok bool) {
	end := bytes.IndexByte(data, '\n')
	if end < 3 || data[0] != mark {
		return 0, data, false
	}
	for _, digit := range data[1 : end-1] {
		n = 10*n + int(digit-'0')
	}
	return n, data[end+1:], true
}

func (c *instant) reply(words [][]byte) {
	switch name := words[0]; {
	case len(name) == 3 && name[0]|32 == 'g':
		c.value(words[1])
	case len(name) == 4 && name[0]|32 == 'm':
		c.out = append(strconv.AppendInt(append(c.out, '*'), int64(len(words)-1), 10), "\r\n"...)
		for _, key := range words[1:] {
			c.value(key)
		}
	case len(name) == 3 && name[0]|32 == 's':
		key := words[1]
		c.store.values[string(key)] = append(c.store.values[string(key)][:0], words[2]...)
		c.out = append(c.out, "+OK\r\n"...)
	case bytes.EqualFold(name, []byte("HELLO")):
		c.out = append(c.out, "%2\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$5\r\nproto\r\n:3\r\n"...)
	default:
		c.out = append(c.out, "+OK\r\n"...)
	}
}

func (c *instant) value(key []byte) {
	v, ok := c.store.values[string(key)]
	if !ok {
		c.out = append(c.out, "$-1\r\n"...)
		return
	}
	c.out = strconv.AppendInt(append(c.out, '$'), int64(len(v)), 10)
	c.out = append(append(append(c.out, "\r\n"...), v...), "\r\n"...)
}

func (c *instant) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.read == len(c.out) && !c.closed {
		c.filled.Wait()
	}
	if c.closed {
		return 0, io.EOF
	}
	n := copy(p, c.out[c.read:])
	if c.read += n; c.read == len(c.out) {
		c.out, c.read = c.out[:0], 0
	}
	return n, nil
}

func (c *instant) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.filled.Broadcast()
	return nil
}

func (c *instant) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *instant) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *instant) SetDeadline(time.Time) error      { return nil }
func (c *instant) SetReadDeadline(time.Time) error  { return nil }
func (c *instant) SetWriteDeadline(time.Time) error { return nil }
