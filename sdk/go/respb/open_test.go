package respb

// This file owns the tests of connecting late, of a server that lets callers wait while they connect, and of what goes wrong meanwhile.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/internal/frame"
	"github.com/weft-db/weft/sdk/go/resp"
)

// TestNewConnectsLate has a program begin before its server.
func TestNewConnectsLate(t *testing.T) {
	ctx := testContext(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	up := false
	c := New(Options{Dialer: func(ctx context.Context) (net.Conn, error) {
		if !up {
			return nil, errors.New("not yet")
		}
		var d net.Dialer
		return d.DialContext(ctx, "tcp", l.Addr().String())
	}, Reconnect: Reconnect{Min: time.Millisecond, Max: time.Millisecond, Attempts: 2}})
	defer c.Close()
	var lost *ConnError
	if _, err := c.Do(ctx, "PING"); !errors.As(err, &lost) {
		t.Fatal(err)
	}
	up = true
	s := &resp.Server{Handler: newStore().handler()}
	go func() { _ = s.Serve(l) }() // ends with Close
	defer s.Close()
	if v, err := c.Do(ctx, "PING"); err != nil || string(v.Data) != "PONG" {
		t.Error(v, err)
	}
}

// TestNobodyWaitsForAnothersConnecting has a server take connections and never answer. A caller with patience connects; one without is not
// held up by that.
func TestNobodyWaitsForAnothersConnecting(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := New(Options{Addr: l.Addr().String(), DialTimeout: testWait})
	patient, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		_, err := c.Do(patient, "PING")
		ended <- err
	}()
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	short, stop := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer stop()
	if _, err := c.Do(short, "PING"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	select {
	case err := <-ended:
		t.Error("the patient caller has ended first:", err)
	default:
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	_ = c.Close()
}

// TestCloseWhileOpening: a channel that is closed while another goroutine opens it again is closed for that goroutine too.
func TestCloseWhileOpening(t *testing.T) {
	for name, closing := range map[string]func(c *Conn) (ch *Channel, end func() error){
		"Channel": func(c *Conn) (*Channel, func() error) {
			ch := newChannel(c, ChannelOptions{DB: 3})
			return ch, ch.Close
		},
		"Cache": func(c *Conn) (*Channel, func() error) {
			cache := &Cache{ch: newChannel(c, ChannelOptions{DB: 3}), keys: map[string]*cachedKey{}}
			cache.ch.cache = cache
			return cache.ch, cache.Close
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, c := connected(t, Options{})
			ch, end := closing(c)
			got := goDo(testContext(t), ch, "PING")
			p.expect("SELECT", "3") // it is being opened
			if err := end(); err != nil {
				t.Fatal(err)
			}
			p.say(1, func(w *frame.ReplyWriter) { w.Simple([]byte("OK")) })
			if o := <-got; o.err != ErrClosed {
				t.Errorf("got %v, %v, want ErrClosed", string(o.v.Data), o.err)
			}
		})
	}
}

// TestConnectsThoughItsCallersLeave: a server that takes longer to connect to than each caller has time is connected to all the same, once.
func TestConnectsThoughItsCallersLeave(t *testing.T) {
	s, c := newScript(t, Options{DialTimeout: testWait})
	nc, err := func() (net.Conn, error) {
		ctx, cancel := context.WithCancel(testContext(t))
		defer cancel()
		got := goDo(ctx, c.zero, "PING")
		nc, err := s.l.Accept() // and says nothing yet
		cancel()
		if o := <-got; o.err != context.Canceled {
			t.Errorf("the first caller: %v", o.err)
		}
		return nc, err
	}()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	second := goDo(testContext(t), c.zero, "PING")
	p := greet(t, nc)
	p.expect("PING")
	p.text(0, "PONG")
	(<-second).is(t, "PONG")
	if n := s.dials.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// TestAChannelThatNobodyWaitsForIsClosed: who leaves while its Channel is being opened leaves nothing behind.
func TestAChannelThatNobodyWaitsForIsClosed(t *testing.T) {
	p, c := connected(t, Options{})
	ctx, cancel := context.WithCancel(testContext(t))
	opened := make(chan error, 1)
	go func() { _, err := c.Channel(ctx, ChannelOptions{DB: 3}); opened <- err }()
	p.expect("SELECT", "3")
	cancel()
	if err := <-opened; err != context.Canceled {
		t.Error(err)
	}
	p.say(1, func(w *frame.ReplyWriter) { w.Simple([]byte("OK")) })
	if r := p.control(frame.Close); r.channel != 1 {
		t.Errorf("CLOSE of channel %d", r.channel)
	}
}

// panics is a hook that panics when the first connection is told.
type panics struct {
	NoHook
	left *atomic.Int64
}

func (h panics) Dialed(context.Context, *Dialed) {
	if h.left.Add(-1) >= 0 {
		panic("as asked")
	}
}

// TestPanicWhileConnecting of a hook or a Dialer is an error, and the next try is not held up by it.
func TestPanicWhileConnecting(t *testing.T) {
	addr := serve(t, &resp.Server{Handler: newStore().handler()})
	for _, protocol := range protocols {
		for _, where := range []string{"hook", "Dialer"} {
			var left atomic.Int64
			left.Store(1)
			o := Options{Addr: addr, Protocol: protocol, ConnectionsMax: 1, Reconnect: soon}
			if where == "hook" {
				o.Hooks = []Hook{panics{left: &left}}
			} else {
				o.Dialer = func(ctx context.Context) (net.Conn, error) {
					if left.Add(-1) >= 0 {
						panic("as asked")
					}
					return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
				}
			}
			c := New(o)
			var lost *ConnError
			if _, err := c.Do(testContext(t), "PING"); !errors.As(err, &lost) || !strings.Contains(err.Error(), "as asked") {
				t.Errorf("%v, %s: %v", protocol, where, err)
			}
			if _, err := c.Do(testContext(t), "PING"); err != nil {
				t.Errorf("%v, %s, the next: %v", protocol, where, err)
			}
			_ = c.Close()
		}
	}
}

// TestRenewingIsTriedForEver: a subscription survives that the new connection breaks too, and that the server is not ready yet; not that it is refused.
func TestRenewingIsTriedForEver(t *testing.T) {
	s, c := newScript(t, Options{Reconnect: soon})
	ctx := testContext(t)
	opened := make(chan error, 1)
	go func() { _, err := c.zero.open(ctx, 1); opened <- err }()
	p := s.accept()
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	_, sub := subscribed(t, p, c, 1000)
	renew := func() uint16 {
		t.Helper()
		p = s.accept()
		p.control(frame.Window)
		return p.expect("SUBSCRIBE", "news").channel
	}
	_ = p.nc.Close()
	renew()
	_ = p.nc.Close() // again, in the middle
	id := renew()
	p.say(id, func(w *frame.ReplyWriter) { w.Error([]byte("LOADING the dataset is in memory soon")) })
	if r := p.control(frame.Close); r.channel != id {
		t.Errorf("CLOSE of channel %d", r.channel)
	}
	id = func() uint16 { p.control(frame.Window); return p.expect("SUBSCRIBE", "news").channel }()
	p.text(id, confirmation)
	if _, err := p.nc.Write(pushed(id, "message", "news", "again")); err != nil {
		t.Fatal(err)
	}
	if _, err := sub.Receive(ctx); err != ErrMessagesLost {
		t.Error(err)
	}
	if m, err := sub.Receive(ctx); err != nil || m.Payload != "again" {
		t.Error(m, err)
	}
	_ = p.nc.Close()
	id = renew()
	p.say(id, func(w *frame.ReplyWriter) { w.Error([]byte("NOPERM not this one")) })
	for {
		_, err := sub.Receive(ctx)
		if err == ErrMessagesLost {
			continue
		}
		var reply *Error
		if !errors.As(err, &reply) || reply.Prefix != "NOPERM" {
			t.Error(err)
		}
		return
	}
}

// TestFollowWaitsForAServerThatIsAway for longer than one command tries.
func TestFollowWaitsForAServerThatIsAway(t *testing.T) {
	s, c := newScript(t, Options{Reconnect: soon})
	ch := newChannel(c, ChannelOptions{})
	ctx, cancel := context.WithCancel(testContext(t))
	ended := make(chan error, 1)
	go func() {
		for _, err := range ch.Follow(ctx, "s", "5-0") {
			ended <- err
			return
		}
		ended <- nil
	}()
	read := []string{"XREAD", "COUNT", fmt.Sprint(entryBatch), "BLOCK", "0", "STREAMS", "s", "5-0"}
	p := s.accept()
	p.expect(read...)
	_ = p.nc.Close()
	for range 3 * DefaultReconnectAttempts {
		nc, err := s.l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_ = nc.Close()
	}
	p = s.accept()
	p.expect(read...)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
