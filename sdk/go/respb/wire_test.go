package respb

// This file owns the tests of how a caller who is alone gets its reply.

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/resp"
)

// TestAloneReadsItsOwnReply: a caller who is alone needs no other goroutine, whether its context can end or not.
func TestAloneReadsItsOwnReply(t *testing.T) {
	addr := serve(t, &resp.Server{Handler: newStore().mux(), RESPB: resp.RESPBDetect})
	c := dial(t, addr, Options{Protocol: RESPB, PollMax: testWait})
	l := c.zero.lane.Load().link
	if l.wire.polled == 0 {
		t.Skip("one processor, or no plain sockets here: nothing is polled")
	}
	for _, ctx := range []context.Context{context.Background(), testContext(t)} {
		for range 100 {
			if v, err := c.Do(ctx, "ECHO", "hello"); err != nil || string(v.Data) != "hello" {
				t.Fatal(v, err)
			}
		}
		if v, err := c.Do(ctx, "BIG", "1000000"); err != nil || len(v.Data) != 1000000 {
			t.Fatal(len(v.Data), err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wire.miss > 0 {
		t.Error("polling found nothing:", l.wire.miss)
	}
}

// TestPollingGivesUp: where replies take longer than a poll, it is tried more and more seldom, and nothing else changes. A
// context that ends meanwhile is noticed.
func TestPollingGivesUp(t *testing.T) {
	for name, protocol := range protocols {
		t.Run(name, func(t *testing.T) {
			addr := serve(t, &resp.Server{Handler: newStore().mux(), RESPB: resp.RESPBDetect})
			c := dial(t, addr, Options{Protocol: protocol, PollMax: time.Nanosecond})
			l := c.zero.lane.Load().link
			if l.wire.polled == 0 {
				t.Skip("one processor, or no plain sockets here: nothing is polled")
			}
			for range 500 {
				for _, ctx := range []context.Context{context.Background(), testContext(t)} {
					if v, err := c.Do(ctx, "ECHO", "hello"); err != nil || string(v.Data) != "hello" {
						t.Fatal(v, err)
					}
				}
			}
			l.mu.Lock()
			missed, reading := l.wire.miss, l.reading
			l.mu.Unlock()
			if missed == 0 && !reading { // with a reading goroutine nobody polls
				t.Error("a poll of a nanosecond has found a thousand replies")
			}
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			if _, err := c.Do(ctx, "BLPOP", "nothing", "0"); err != context.DeadlineExceeded {
				t.Fatal(err)
			}
		})
	}
}

// TestWireWithoutASocket: what is no plain socket, as TLS, is read from and written to as it is.
func TestWireWithoutASocket(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	var w wire
	w.init(near, time.Second)
	if w.mayPoll() {
		t.Fatal("a pipe is polled")
	}
	if n, err := w.read(make([]byte, 1), false); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	go func() { _, _ = far.Write([]byte("x")) }() // ends with the read below
	if n, err := w.read(make([]byte, 1), true); n != 1 || err != nil {
		t.Fatal(n, err)
	}
}
