package respb

// This file owns the tests of connections that break: what is sent again, what is not, and that everybody hears of it.

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/internal/frame"
	"github.com/weft-db/weft/sdk/go/resp"
)

var soon = Reconnect{Min: time.Millisecond, Max: time.Millisecond}

// TestSentAgain: what only reads is sent again over a new connection, and nothing else; with NoRetry not even that.
func TestSentAgain(t *testing.T) {
	for _, each := range []struct {
		name    string
		words   []string
		noRetry bool
		again   bool
	}{
		{"reads", []string{"GET", "k"}, false, true},
		{"writes", []string{"SET", "k", "v"}, false, false},
		{"blocks", []string{"XREAD", "BLOCK", "0", "STREAMS", "s", "$"}, false, false},
		{"unknown", []string{"NOSUCHCOMMAND", "k"}, false, false},
		{"NoRetry", []string{"GET", "k"}, true, false},
	} {
		t.Run(each.name, func(t *testing.T) {
			ctx := testContext(t)
			s, c := newScript(t, Options{NoRetry: each.noRetry, Reconnect: soon})
			got := goDo(ctx, c.zero, each.words...)
			p := s.accept()
			p.expect(each.words...)
			_ = p.nc.Close()
			if each.again {
				p = s.accept()
				p.expect(each.words...)
				p.text(0, "found")
				(<-got).is(t, "found")
				return
			}
			(<-got).lost(t)
			got = goDo(ctx, c.zero, "PING") // the next is the first on its connection
			p = s.accept()
			p.expect("PING")
			p.text(0, "PONG")
			(<-got).is(t, "PONG")
		})
	}
}

// TestPipelineIsNotSentAgain: a pipeline that broke off may have taken effect, even if it only reads.
func TestPipelineIsNotSentAgain(t *testing.T) {
	ctx := testContext(t)
	s, c := newScript(t, Options{Reconnect: soon})
	ended := make(chan error, 1)
	go func() {
		pipe := c.Pipeline()
		pipe.Get("a")
		pipe.Get("b")
		_, err := pipe.Exec(ctx)
		ended <- err
	}()
	p := s.accept()
	p.expect("GET", "a")
	p.expect("GET", "b")
	p.text(0, "only the first")
	_ = p.nc.Close()
	var lost *ConnError
	if err := <-ended; !errors.As(err, &lost) {
		t.Error(err)
	}
	got := goDo(ctx, c.zero, "PING")
	p = s.accept()
	p.expect("PING")
	p.text(0, "PONG")
	(<-got).is(t, "PONG")
}

// TestAskedAfterTheEnd: who asks when the connection has ended is told why it did, that nothing was sent, and that nobody connects again.
func TestAskedAfterTheEnd(t *testing.T) {
	p, c := connected(t, Options{Reconnect: Reconnect{Disabled: true}})
	first := goDo(testContext(t), c.zero, "PING")
	p.expect("PING")
	if _, err := p.nc.Write(frame.AppendControl(nil, 0, frame.GoAway, frame.Control{Code: 6})); err != nil {
		t.Fatal(err)
	}
	_ = p.nc.(*net.TCPConn).CloseWrite()
	if o := <-first; !errors.As(o.err, new(*GoAwayError)) {
		t.Fatal(o.err)
	}
	until(t, "the end", func() bool { return c.zero.lane.Load() == nil })
	_, err := c.Do(testContext(t), "PING")
	var lost *ConnError
	if !errors.As(err, &lost) || !lost.Dialing || !errors.As(err, new(*GoAwayError)) || !strings.Contains(err.Error(), "Options.Reconnect is disabled") {
		t.Error(err)
	}
}

// TestGoAway: behind GOAWAY replies still come, and what has none at a clean end did not run; in the midst of a frame nobody knows.
func TestGoAway(t *testing.T) {
	for name, half := range map[string]string{"clean": "", "in a frame": "\x82\x05\x00", "in slices": "\xff\x10\x00\x00\x00\x00\x00\x02\x00\x80"} {
		t.Run(name, func(t *testing.T) {
			ctx := testContext(t)
			s, c := newScript(t, Options{Reconnect: soon})
			first := goDo(ctx, c.zero, "INCR", "a")
			p := s.accept()
			p.expect("INCR", "a")
			second := goDo(ctx, c.zero, "INCR", "b")
			p.expect("INCR", "b")
			goAway := frame.AppendControl(nil, 7, frame.GoAway, frame.Control{Code: 6, Reason: []byte("the server shuts down")})
			if _, err := p.nc.Write(goAway); err != nil {
				t.Fatal(err)
			}
			p.text(0, "1")
			(<-first).is(t, "1")
			if _, err := p.nc.Write([]byte(half)); err != nil {
				t.Fatal(err)
			}
			_ = p.nc.(*net.TCPConn).CloseWrite()
			var lost *ConnError
			var away *GoAwayError
			err := (<-second).err
			if !errors.As(err, &lost) || errors.As(err, &away) != (half == "") {
				t.Error(err)
			}
			if away != nil && (away.Code != 6 || away.Reason != "the server shuts down") {
				t.Error(away)
			}
		})
	}
}

// mute is a connection that lets nothing be written once it is broken, and of which reading goes on.
type mute struct {
	net.Conn
	broken atomic.Bool
}

func (m *mute) Write(b []byte) (int, error) {
	if m.broken.Load() {
		return 0, errors.New("the cable is cut")
	}
	return m.Conn.Write(b)
}

// TestWriteFails: who could not be sent hears of it, and does not wait for a reply.
func TestWriteFails(t *testing.T) {
	addr := serve(t, &resp.Server{Handler: newStore().handler()})
	both(t, func(t *testing.T, p Protocol) {
		ctx := testContext(t)
		m := &mute{}
		c := dial(t, addr, Options{Protocol: p, Reconnect: Reconnect{Disabled: true}, Dialer: func(ctx context.Context) (nc net.Conn, err error) {
			m.Conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", addr)
			return m, err
		}})
		if _, err := c.Do(ctx, "PING"); err != nil {
			t.Fatal(err)
		}
		m.broken.Store(true)
		for range 2 {
			(<-goDo(ctx, c.zero, "PING")).lost(t)
		}
	})
}

// TestLargeRequest is more than a socket takes at once.
func TestLargeRequest(t *testing.T) {
	both(t, func(t *testing.T, p Protocol) {
		c := dial(t, serve(t, &resp.Server{Handler: newStore().handler()}), Options{Protocol: p})
		want := strings.Repeat("0123456789abcdef", 1<<19) // 8 MiB
		if v, err := c.Do(testContext(t), "ECHO", want); err != nil || string(v.Data) != want {
			t.Error(len(v.Data), err)
		}
	})
}

// TestServerBreaksTheRules: bytes that are no reply, and replies that answer nothing, end the connection, and who waits on any channel hears of
// it.
func TestServerBreaksTheRules(t *testing.T) {
	for name, bytes := range map[string][]byte{
		"no frame":      {0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0},
		"no reply":      frame.AppendArgv(nil, 0, []string{"PING"}), // what only clients send
		"one too many":  nil,
		"half a reply":  frame.AppendControl(nil, 0, frame.Fragment, frame.Control{Last: true, Slice: []byte{0x80}}),
		"for a channel": nil,
	} {
		t.Run(name, func(t *testing.T) {
			ctx := testContext(t)
			p, c := connected(t, Options{Reconnect: Reconnect{Disabled: true}})
			ch, err := c.Channel(ctx)
			if err != nil {
				t.Fatal(err)
			}
			onZero, onOther := goDo(ctx, c.zero, "ECHO", "a"), (<-chan outcome)(nil)
			p.expect("ECHO", "a")
			onOther = goDo(ctx, ch, "ECHO", "b")
			p.expect("ECHO", "b")
			switch name {
			case "one too many":
				p.text(0, "a", "nobody's")
				<-onZero
			case "for a channel":
				p.text(ch.ID(), "b", "nobody's")
				<-onOther
			default:
				_, _ = p.nc.Write(bytes)
			}
			if name != "one too many" {
				(<-onZero).lost(t)
			}
			if name != "for a channel" {
				(<-onOther).lost(t)
			}
			if _, err := c.Do(ctx, "PING"); err == nil {
				t.Error("the connection goes on")
			}
		})
	}
}

// TestReadsOnly says which commands may be sent twice.
func TestReadsOnly(t *testing.T) {
	for line, want := range map[string]bool{
		"GET k": true, "get k": true, "MGET a b": true, "XRANGE s - +": true, "SET k v": false, "INCR k": false, "XREAD STREAMS s $": false,
		"BLPOP l 0": false, "NOSUCHCOMMAND": false, strings.Repeat("G", 33): false,
	} {
		if got := readsOnly(strings.Fields(line)); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

// TestRepliesAreTheCallers: what a call has returned does not change with later ones.
func TestRepliesAreTheCallers(t *testing.T) {
	both(t, func(t *testing.T, p Protocol) {
		ctx := testContext(t)
		c := dial(t, serve(t, &resp.Server{Handler: newStore().handler()}), Options{Protocol: p})
		var kept []Value
		for _, word := range []string{"aaaa", "bbbb", "cccc"} {
			v, err := c.Do(ctx, "ECHO", word)
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, v)
		}
		pipe := c.Pipeline()
		var values []Value
		for _, word := range []string{"dddd", "eeee"} {
			pipe.Reset()
			r := pipe.Do("ECHO", word)
			var err error
			if values, err = pipe.ExecInto(ctx, values); err != nil {
				t.Fatal(err)
			}
			v, err := r.Get()
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, v)
		}
		for i, want := range []string{"aaaa", "bbbb", "cccc", "dddd", "eeee"} {
			if string(kept[i].Data) != want {
				t.Errorf("%d: %q, want %q", i, kept[i].Data, want)
			}
		}
	})
}

// TestACallForgets: nothing of one call is seen by the next that has its memory.
func TestACallForgets(t *testing.T) {
	c := newCall()
	c.leads, c.extra, c.confirms, c.got, c.err = true, 1, 3, 1, ErrClosed
	c.one[0] = Value{Kind: resp.Array, Data: make([]byte, 10, keepBytes+1)}
	c.values = make([]Value, 3)
	c.free()
	if c.leads || c.extra != 0 || c.confirms != 0 || c.got != 0 || c.err != nil || c.values != nil || c.lane != nil || c.next != nil {
		t.Errorf("kept: %+v", c)
	}
	if cap(c.one[0].Data) > keepBytes {
		t.Error("a large buffer is kept")
	}
}

// TestTransactionsThatFail: one whose watched key was changed, and one with a command that was refused.
func TestTransactionsThatFail(t *testing.T) {
	both(t, func(t *testing.T, p Protocol) {
		ctx := testContext(t)
		refused := resp.Errorf("ERR", "no such thing")
		m := resp.NewMux()
		m.HandleFunc("MULTI", 1, func(s *resp.Session, _ *resp.Request) error { return s.WriteOK() })
		m.HandleFunc("GET", 2, func(s *resp.Session, r *resp.Request) error {
			if r.String(1) == "bad" {
				s.Data = true
				return refused
			}
			return s.WriteStatusString("QUEUED")
		})
		m.HandleFunc("EXEC", 1, func(s *resp.Session, _ *resp.Request) error {
			if s.Data != nil {
				s.Data = nil
				return resp.Errorf("EXECABORT", "discarded")
			}
			return s.WriteNullArray()
		})
		c := dial(t, serve(t, &resp.Server{Handler: m}), Options{Protocol: p})
		pipe := c.Pipeline()
		r := pipe.Get("k")
		if _, err := pipe.ExecTx(ctx); err != ErrTxAborted {
			t.Error(err)
		}
		if _, err := r.Get(); err != ErrTxAborted {
			t.Error(err)
		}
		pipe.Reset()
		r = pipe.Get("k")
		pipe.Get("bad")
		if _, err := r.Get(); err != ErrNotExecuted {
			t.Error(err)
		}
		var reply *Error
		if _, err := pipe.ExecTx(ctx); !errors.As(err, &reply) || reply.Prefix != "ERR" {
			t.Error(err)
		}
		pipe.Reset()
		if r = pipe.Get("k"); pipe.Len() != 1 {
			t.Error(pipe.Len())
		}
		if _, err := r.Get(); err != ErrNotExecuted {
			t.Error("the outcome of before Reset:", err)
		}
	})
}

// TestPointers tells null from the empty string.
func TestPointers(t *testing.T) {
	v := Value{Kind: resp.Array, Elems: []Value{{Kind: resp.Bulk, Data: []byte("v")}, {Kind: resp.Null}, {Kind: resp.Bulk}}}
	all, err := asPointers(&v)
	if err != nil || len(all) != 3 || all[0] == nil || *all[0] != "v" || all[1] != nil || all[2] == nil || *all[2] != "" {
		t.Error(all, err)
	}
	v.Elems[1] = Value{Kind: resp.ErrorLine, Data: []byte("ERR broken")}
	var reply *Error
	if _, err := asPointers(&v); !errors.As(err, &reply) {
		t.Error(err)
	}
	texts, err := asStrings(&Value{Kind: resp.Array, Elems: []Value{{Kind: resp.Null}, {Kind: resp.Integer, Int: 5}}})
	if err != nil || !slices.Equal(texts, []string{"", "5"}) {
		t.Error(texts, err)
	}
}

// TestReplyBeforeTheEnd has a reply and what breaks the rules come together: whoever reads for itself gets its reply.
func TestReplyBeforeTheEnd(t *testing.T) {
	for name, ctx := range map[string]context.Context{"reads itself": context.Background(), "may give up": testContext(t)} {
		t.Run(name, func(t *testing.T) {
			p, c := connected(t, Options{Reconnect: Reconnect{Disabled: true}})
			got := goDo(ctx, c.zero, "ECHO", "a")
			p.expect("ECHO", "a")
			p.text(0, "a", "nobody's") // one write, and so one read
			select {
			case o := <-got:
				o.is(t, "a")
			case <-time.After(testWait):
				t.Fatal("who has its reply waits for ever")
			}
			until(t, "the end of the connection", func() bool { return c.zero.lane.Load() == nil })
		})
	}
}

// TestBrokenLinksAreForgotten, also those that only channels have used.
func TestBrokenLinksAreForgotten(t *testing.T) {
	ctx := testContext(t)
	c := dial(t, serve(t, &resp.Server{Handler: newStore().handler()}), Options{Protocol: RESPB, Reconnect: soon})
	ch, err := c.Channel(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		l := ch.lane.Load().link
		l.fail(errors.New("broken by the test"))
		if _, err := ch.Do(ctx, "PING"); err != nil {
			t.Fatal(err)
		}
		c.mu.Lock()
		n, there := len(c.links), c.shared == ch.lane.Load().link
		c.mu.Unlock()
		if n != 1 || !there {
			t.Error(n, "links are known, the channel's among them:", there)
		}
	}
}

// TestCloseWhileChannelsEnd: a connection is closed while the server's answers to CLOSE still come in for its channels: both take
// lanes out, and under the race detector neither does it behind the other's back.
func TestCloseWhileChannelsEnd(t *testing.T) {
	ctx := testContext(t)
	addr := serve(t, &resp.Server{Handler: newStore().handler()})
	for range 40 {
		c, err := Dial(ctx, Options{Addr: addr, Protocol: RESPB})
		if err != nil {
			t.Fatal(err)
		}
		var channels []*Channel
		for range 100 {
			ch, err := c.Channel(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := ch.Do(ctx, "PING"); err != nil {
				t.Fatal(err)
			}
			channels = append(channels, ch)
		}
		// This call is the reader while the channels end.
		waits := goDo(ctx, channels[0], "BLPOP", "nobody pushes", "0")
		for _, ch := range channels[1:] {
			_ = ch.Close()
		}
		_ = c.Close()
		if got := <-waits; !errors.Is(got.err, ErrClosed) {
			t.Fatalf("the call that waited got %v", got.err)
		}
	}
}
