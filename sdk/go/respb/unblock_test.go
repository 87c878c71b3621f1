package respb

// This file owns the tests of taking back what blocks over RESP3, where CLIENT UNBLOCK has to do it.

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/weft-db/weft/sdk/go/resp"
)

// TestCancelOverRESP3: a command that blocks is ended by CLIENT UNBLOCK.
func TestCancelOverRESP3(t *testing.T) {
	unblocked := make(chan string, 1)
	m := resp.NewMux()
	m.HandleFunc("BLPOP", -3, func(s *resp.Session, r *resp.Request) error {
		<-unblocked
		return s.WriteNull()
	})
	m.HandleFunc("PING", 1, func(s *resp.Session, r *resp.Request) error { return s.WriteStatusString("PONG") })
	m.HandleFunc("CLIENT", -2, func(s *resp.Session, r *resp.Request) error {
		if strings.EqualFold(r.String(1), "UNBLOCK") {
			unblocked <- r.String(2)
		}
		return s.WriteInt(1)
	})
	ctx := testContext(t)
	c := dial(t, serve(t, &resp.Server{Handler: m}), Options{Protocol: RESP3})
	short, cancel := context.WithCancel(ctx)
	got := make(chan error, 1)
	go func() {
		_, err := c.Do(short, "BLPOP", "k", "0")
		got <- err
	}()
	waitPending(t, c.zero, 1)
	cancel()
	if err := <-got; err != context.Canceled {
		t.Error(err)
	}
	if v, err := c.Do(ctx, "PING"); err != nil || v.String() != "PONG" {
		t.Error(v.String(), err)
	}
}

// TestUnblockMeetsNothingElse: over RESP3, CLIENT UNBLOCK is for one command; when that has ended by itself meanwhile, the one behind it does
// not begin to wait before UNBLOCK has passed.
func TestUnblockMeetsNothingElse(t *testing.T) {
	ctx := testContext(t)
	var events []string // written by one command at a time
	reply, release := make(chan bool), make(chan bool)
	m := resp.NewMux()
	m.HandleFunc("BLPOP", 3, func(s *resp.Session, r *resp.Request) error {
		events = append(events, r.String(1))
		if r.String(1) == "a" {
			<-reply
		}
		return s.WriteNull()
	})
	m.HandleFunc("CLIENT", -2, func(s *resp.Session, r *resp.Request) error {
		events = append(events, "UNBLOCK")
		return s.WriteInt(0)
	})
	addr := serve(t, &resp.Server{Handler: m})
	dials := 0
	c := dial(t, addr, Options{Protocol: RESP3, Dialer: func(ctx context.Context) (net.Conn, error) {
		if dials++; dials == 2 {
			<-release
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	}})
	a, cancel := context.WithCancel(ctx)
	got := goDo(a, c.zero, "BLPOP", "a", "0")
	waitPending(t, c.zero, 1)
	cancel()
	if o := <-got; o.err != context.Canceled {
		t.Error(o.err)
	}
	reply <- true
	got = goDo(ctx, c.zero, "BLPOP", "b", "0")
	until(t, "BLPOP b", func() bool {
		return locked(c.zero, func(l *link) bool { return l.room != nil || l.zero.seq > 1 })
	})
	close(release)
	if o := <-got; o.err != nil {
		t.Error(o.err)
	}
	if want := []string{"a", "UNBLOCK", "b"}; !slices.Equal(events, want) {
		t.Errorf("the server got %q, want %q", events, want)
	}
}
