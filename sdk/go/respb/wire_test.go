package respb

// This file owns the tests of who reads: how a caller who is alone gets its reply, and what that costs in goroutines.

import (
	"context"
	"net"
	"runtime"
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

// TestChannelsCostNoGoroutine, nor a connection; and who waits with a context that cannot end reads for itself, so that the connection has no
// goroutine either until a context can.
func TestChannelsCostNoGoroutine(t *testing.T) {
	const n = 200
	ctx := testContext(t)
	server := &resp.Server{Handler: newStore().handler()}
	c := dial(t, serve(t, server), Options{Protocol: RESPB, PollMax: -1})
	use := func(ctx context.Context, ch *Channel) {
		t.Helper()
		if _, err := ch.Do(ctx, "PING"); err != nil {
			t.Fatal(err)
		}
	}
	started := func() bool { return locked(c.zero, func(l *link) bool { return l.started }) }
	use(context.Background(), c.zero)
	before := runtime.NumGoroutine()
	var all []*Channel
	for range n {
		ch, err := c.Channel(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		use(context.Background(), ch)
		all = append(all, ch)
	}
	if more := runtime.NumGoroutine() - before; more > n/10 || started() {
		t.Errorf("%d goroutines more with %d channels; one reads: %v", more, n, started())
	}
	for _, ch := range all {
		use(ctx, ch)
	}
	if more := runtime.NumGoroutine() - before; more > n/10 || !started() {
		t.Errorf("%d goroutines more with contexts that may end; one reads: %v", more, started())
	}
	if s := server.Stats(); s.Accepted != 1 || s.Channels != n+1 {
		t.Errorf("%d connections, %d channels", s.Accepted, s.Channels)
	}
}
