package respb

// This file owns the tests of the connections that there are without RESPB, and of those that ended while nobody looked.

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/resp"
)

// TestSlowCommandHoldsNobodyUp: over RESP3 a command that may be slow has another connection than those that are not.
func TestSlowCommandHoldsNobodyUp(t *testing.T) {
	ctx := testContext(t)
	release := make(chan struct{})
	begun := make(chan string, sidesMax+2)
	m := resp.NewMux()
	m.HandleFunc("KEYS", 2, func(s *resp.Session, r *resp.Request) error {
		begun <- fmt.Sprint(s.ID())
		<-release
		return s.WriteArrayString([]string{r.String(1)})
	})
	m.HandleFunc("GET", 2, func(s *resp.Session, r *resp.Request) error { return s.WriteBulkBytes(r.Arg(1)) })
	m.HandleFunc("SELECT", 2, func(s *resp.Session, r *resp.Request) error { return s.WriteOK() })
	c := dial(t, serve(t, &resp.Server{Handler: m}), Options{Protocol: RESP3, DB: 1})
	c.zero.shared = true
	var done sync.WaitGroup
	connections := map[string]bool{}
	for i := range sidesMax + 2 {
		done.Add(1)
		go func() {
			defer done.Done()
			pattern := fmt.Sprint(i)
			p := c.Pipeline()
			if i%2 == 0 {
				if got, err := c.Keys(ctx, pattern); err != nil || got[0] != pattern {
					t.Errorf("Keys: %v, %v", got, err)
				}
				return
			}
			keys := p.Keys(pattern)
			if _, err := p.Exec(ctx); err != nil {
				t.Error(err)
			}
			if got, err := keys.Get(); err != nil || got[0] != pattern {
				t.Errorf("Keys in a pipeline: %v, %v", got, err)
			}
		}()
		if i < sidesMax {
			connections[<-begun] = true
		}
	}
	if got, err := c.Get(ctx, "key"); got != "key" || err != nil {
		t.Errorf("Get: %q, %v", got, err)
	}
	if n := c.Stats().Connections; n != sidesMax+1 || len(connections) != sidesMax {
		t.Errorf("%d connections, %d with slow commands; want %d and %d", n, len(connections), sidesMax+1, sidesMax)
	}
	close(release)
	done.Wait()
}

// TestStillReplyHoldsNobodyUp: the same for a command that is not known to be slow, after a while.
func TestStillReplyHoldsNobodyUp(t *testing.T) {
	ctx := testContext(t)
	release := make(chan struct{})
	begun := make(chan struct{})
	m := resp.NewMux()
	m.HandleFunc("GET", 2, func(s *resp.Session, r *resp.Request) error {
		if r.String(1) == "large" {
			close(begun)
			<-release
		}
		return s.WriteBulkBytes(r.Arg(1))
	})
	c := dial(t, serve(t, &resp.Server{Handler: m}), Options{Protocol: RESP3})
	c.zero.shared = true
	var all sync.WaitGroup
	get := func(key string, passed chan<- struct{}) {
		all.Add(1)
		go func() {
			defer all.Done()
			if got, err := c.Get(ctx, key); got != key || err != nil {
				t.Errorf("Get: %q, %v", got, err)
			}
			passed <- struct{}{}
		}()
	}
	passed := make(chan struct{}, 1<<16)
	get("large", make(chan struct{}, 1))
	<-begun
	for ok := false; !ok; { // the first of them wait behind it
		get("small", passed)
		select {
		case <-passed:
			ok = true
		case <-time.After(stillMax):
		case <-ctx.Done():
			t.Fatal("everybody waits for the large reply")
		}
	}
	close(release)
	all.Wait()
}

// TestChannelsTakeWhatIsThere: over RESP3 a Channel that is closed leaves its connection to the next, unless it has changed it.
func TestChannelsTakeWhatIsThere(t *testing.T) {
	ctx := testContext(t)
	addr := serve(t, &resp.Server{Handler: newStore().handler()})
	c := dial(t, addr, Options{Protocol: RESP3, IdleMax: 1})
	open := func() (*Channel, int64) {
		t.Helper()
		ch, err := c.Channel(ctx)
		if err != nil {
			t.Fatal(err)
		}
		id, err := ch.ClientId(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return ch, id
	}
	ch, first := open()
	_ = ch.Close()
	if _, err := ch.Get(ctx, "k"); !errors.Is(err, ErrClosed) {
		t.Errorf("a command on a closed Channel: %v", err)
	}
	ch, second := open()
	if second != first {
		t.Errorf("a further connection was made")
	}
	other, third := open()
	if third == second {
		t.Error("two Channels share a connection")
	}
	_ = ch.Close()
	_ = other.Close() // one past IdleMax
	if n := c.Stats().Connections; n != 2 {
		t.Errorf("%d connections are open, want the Conn's and %d", n, 1)
	}
	for name, change := range map[string]func(ch *Channel) error{
		"SELECT":    func(ch *Channel) error { return ch.Select(ctx, 1) },
		"WATCH":     func(ch *Channel) error { _, err := ch.Do(ctx, "MULTI"); return err },
		"SUBSCRIBE": func(ch *Channel) error { _, err := ch.Subscribe(ctx, "x"); return err },
		"pipeline":  func(ch *Channel) error { p := ch.Pipeline(); p.Do("SELECT", "2"); _, err := p.Exec(ctx); return err },
	} {
		ch, before := open()
		if err := change(ch); err != nil {
			t.Fatal(err)
		}
		_ = ch.Close()
		ch, after := open()
		if after == before {
			t.Errorf("after %s the connection was kept", name)
		}
		_ = ch.Close()
	}
}

// TestConnectionsAreBounded: at ConnectionsMax a Channel waits for another to be closed, and not for ever.
func TestConnectionsAreBounded(t *testing.T) {
	ctx := testContext(t)
	addr := serve(t, &resp.Server{Handler: newStore().handler()})
	c := dial(t, addr, Options{Protocol: RESP3, ConnectionsMax: 3, IdleMax: -1, DialTimeout: 20 * time.Millisecond})
	var all []*Channel
	for range 2 { // the Conn has one itself
		ch, err := c.Channel(ctx)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ch)
	}
	if _, err := c.Channel(ctx); !errors.Is(err, ErrChannels) || !strings.Contains(err.Error(), "Options.ConnectionsMax is 3") {
		t.Errorf("one past it: %v", err)
	}
	_ = all[0].Close()
	ch, err := c.Channel(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_ = ch.Close()
}

// TestWaitingForAConnection: who waits at ConnectionsMax gets the place of a Channel that is closed, though that could be kept, and of one that is
// kept and of no use to him.
func TestWaitingForAConnection(t *testing.T) {
	ctx := testContext(t)
	addr := serve(t, &resp.Server{Handler: newStore().handler(), Auth: func(*resp.Session, string, string) error { return nil }})
	c := dial(t, addr, Options{Protocol: RESP3, ConnectionsMax: 2, DialTimeout: testWait, Password: "x"})
	ch, err := c.Channel(ctx)
	if err != nil {
		t.Fatal(err)
	}
	type opened struct {
		ch  *Channel
		err error
	}
	got := make(chan opened, 1)
	go func() { ch, err := c.Channel(ctx); got <- opened{ch, err} }()
	until(t, "waiting", func() bool { return c.pool.waiting.Load() == 1 })
	_ = ch.Close()
	second := <-got
	if second.err != nil {
		t.Fatal(second.err)
	}
	_ = second.ch.Close()
	if n := c.Stats().Connections; n != 2 {
		t.Errorf("%d connections, want the Conn's and one that is kept", n)
	}
	if ch, err = c.Channel(ctx, ChannelOptions{Username: "ann", Password: "y"}); err != nil {
		t.Fatal(err)
	}
	_ = ch.Close()
}

// watching is a listener that has the connections that it accepts.
type watching struct {
	net.Listener
	accepted chan net.Conn
}

func (w watching) Accept() (net.Conn, error) {
	nc, err := w.Listener.Accept()
	if err == nil {
		w.accepted <- nc
	}
	return nc, err
}

// TestIdleConnectionThatHasEnded: a connection that the server has closed while nothing was on its way is found out before a command is sent
// that cannot be sent twice.
func TestIdleConnectionThatHasEnded(t *testing.T) {
	for name, protocol := range protocols {
		t.Run(name, func(t *testing.T) {
			ctx := testContext(t)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			w := watching{l, make(chan net.Conn, 8)}
			serveOn(t, &resp.Server{Handler: newStore().handler()}, w)
			c := dial(t, l.Addr().String(), Options{Protocol: protocol})
			c.zero.shared = true
			if _, err := c.Incr(ctx, "n"); err != nil {
				t.Fatal(err)
			}
			link := c.zero.lane.Load().link
			rest(link)
			_ = (<-w.accepted).Close()
			awaitEnd(t, link.wire.nc)
			if n, err := c.Incr(ctx, "n"); err != nil || n != 2 {
				t.Errorf("Incr: %d, %v", n, err)
			}
			if protocol == RESPB {
				return
			}
			// The same for one that was kept.
			ch, err := c.Channel(ctx)
			if err != nil {
				t.Fatal(err)
			}
			link = ch.lane.Load().link
			<-w.accepted
			_ = ch.Close()
			_ = (<-w.accepted).Close()
			awaitEnd(t, link.wire.nc)
			if ch, err = c.Channel(ctx); err != nil {
				t.Fatal(err)
			}
			if n, err := ch.Incr(ctx, "n"); err != nil || n != 3 {
				t.Errorf("Incr over one that was kept: %d, %v", n, err)
			}
		})
	}
}

// rest has a link looked at until it is at rest, as its timer would.
func rest(l *link) {
	for {
		l.look()
		l.mu.Lock()
		armed := l.watch.armed
		l.mu.Unlock()
		if !armed {
			return
		}
	}
}

// awaitEnd returns when the other side has closed.
func awaitEnd(t *testing.T, nc net.Conn) {
	t.Helper()
	raw, err := nc.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Read(func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK)
		return err != syscall.EAGAIN
	})
	if err != nil {
		t.Fatal(err)
	}
}
