package respb

// This file owns the tests of connecting late, and of a server that lets callers wait while they connect.

import (
	"context"
	"errors"
	"net"
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
