package respb

// This file owns the tests of what bounds a connection: commands on their way, bytes to be written, time, replies, numbers of channels.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/internal/deadline"
	"github.com/weft-db/weft/sdk/go/internal/frame"
	"github.com/weft-db/weft/sdk/go/resp"
)

// TestInFlightMax: one command more than may be on their way waits, until there is room, its context ends, or the connection breaks.
func TestInFlightMax(t *testing.T) {
	ctx := testContext(t)
	p, c := connected(t, Options{InFlightMax: 2, Reconnect: Reconnect{Disabled: true}})
	first, second := goDo(ctx, c.zero, "ECHO", "a"), (<-chan outcome)(nil)
	p.expect("ECHO", "a")
	second = goDo(ctx, c.zero, "ECHO", "b")
	p.expect("ECHO", "b")

	why := errors.New("enough")
	short, cancel := context.WithCancelCause(ctx)
	left := goDo(short, c.zero, "ECHO", "never sent")
	until(t, "waiting", waitsForRoom(c, 2))
	cancel(why)
	if o := <-left; o.err != why {
		t.Error(o.err)
	}
	third := goDo(ctx, c.zero, "ECHO", "c")
	p.text(0, "a")
	(<-first).is(t, "a")
	p.expect("ECHO", "c") // and not what was given up
	fourth := goDo(ctx, c.zero, "ECHO", "d")
	until(t, "waiting", waitsForRoom(c, 2))
	_ = p.nc.Close()
	for _, o := range []<-chan outcome{second, third, fourth} {
		(<-o).lost(t)
	}
}

// TestWriteBytesMax has a server not read: what waits to be written stays bounded, and all of it is sent when it reads again.
func TestWriteBytesMax(t *testing.T) {
	ctx := testContext(t)
	near, far := net.Pipe() // which takes nothing that is not read
	defer far.Close()
	c := New(Options{Protocol: RESPB, WriteBytesMax: 16, Dialer: func(context.Context) (net.Conn, error) { return near, nil }})
	defer c.Close()
	opened := make(chan error, 1)
	go func() { _, err := c.zero.open(ctx, 1); opened <- err }()
	p := greet(t, far)
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	words := []string{"first", "second", "third", "fourth"}
	var got []<-chan outcome
	for i, word := range words {
		got = append(got, goDo(ctx, c.zero, "ECHO", word))
		until(t, "the command", func() bool {
			return locked(c.zero, func(l *link) bool { return l.pending == i+1 || l.room != nil })
		})
	}
	// One is being written, one waits for that, two have to wait for room.
	if pending := 0; locked(c.zero, func(l *link) bool { pending = l.pending; return pending != 2 }) {
		t.Error(pending, "commands were taken")
	}
	for range words {
		r, err := p.read()
		if err != nil {
			t.Fatal(err)
		}
		p.text(0, r.words[1])
	}
	seen := map[string]bool{}
	for _, each := range got {
		o := <-each
		seen[string(o.v.Data)] = true
	}
	for _, word := range words {
		if !seen[word] {
			t.Errorf("no reply to %s", word)
		}
	}
}

// TestDialTimeout has a server that takes connections and says nothing: DialTimeout ends that, not the caller's context.
func TestDialTimeout(t *testing.T) {
	s, c := newScript(t, Options{DialTimeout: 20 * time.Millisecond, Reconnect: Reconnect{Min: time.Millisecond, Attempts: 3}})
	ctx := testContext(t)
	var lost *ConnError
	if _, err := c.Do(ctx, "PING"); !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &lost) {
		t.Error(err)
	}
	if ctx.Err() != nil || s.dials.Load() != 3 {
		t.Error(ctx.Err(), s.dials.Load(), "attempts")
	}
}

// TestRefusedIsFinal: a server that refuses the password is not asked again.
func TestRefusedIsFinal(t *testing.T) {
	server := &resp.Server{Handler: newStore().handler(), Auth: func(*resp.Session, string, string) error { return resp.ErrWrongPass }}
	c := New(Options{Addr: serve(t, server), Username: "ann", Password: "wrong"})
	defer c.Close()
	if _, err := c.Do(testContext(t), "PING"); !errors.Is(err, resp.ErrWrongPass) {
		t.Error(err)
	}
	if n := server.Stats().Accepted; n != 1 {
		t.Error(n, "connections")
	}
}

// TestRefusedChannelsAreForgotten: a channel whose user is refused gives its number back.
func TestRefusedChannelsAreForgotten(t *testing.T) {
	ctx := testContext(t)
	c := dial(t, serve(t, &resp.Server{Handler: newStore().handler(), Auth: func(_ *resp.Session, user, _ string) error {
		if user != "default" {
			return resp.ErrWrongPass
		}
		return nil
	}}), Options{Protocol: RESPB, Password: "right", ChannelsMax: 4})
	for i := range 20 {
		if _, err := c.Channel(ctx, ChannelOptions{Username: "eve", Password: "?"}); !errors.Is(err, resp.ErrWrongPass) {
			t.Fatal(i, err)
		}
		if _, err := c.Do(ctx, "PING"); err != nil { // reads the server's CLOSE as well
			t.Fatal(i, err)
		}
	}
}

// TestNumbersInUseAreSkipped has the numbers of channels start anew while some are in use.
func TestNumbersInUseAreSkipped(t *testing.T) {
	ctx := testContext(t)
	c := dial(t, serve(t, &resp.Server{Handler: newStore().handler()}), Options{Protocol: RESPB})
	a, err := c.Channel(ctx)
	if err != nil {
		t.Fatal(err)
	}
	locked(a, func(l *link) bool { l.nextID = a.ID(); return true })
	b, err := c.Channel(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if a.ID() == b.ID() || a.ID() == 0 || b.ID() == 0 {
		t.Error("both have the number", a.ID(), b.ID())
	}
	locked(a, func(l *link) bool { l.nextID = 0; return true }) // behind 65535
	if d, err := c.Channel(ctx); err != nil || d.ID() == 0 {
		t.Error("a channel has the number of the connection", err)
	}
}

// TestLimitsAreExact: what just fits a limit of the server is sent, one byte more is not; and of a pipeline of which a command does not fit,
// nothing is sent.
func TestLimitsAreExact(t *testing.T) {
	ctx := testContext(t)
	const most = 3000
	c := dial(t, serve(t, &resp.Server{Handler: newStore().handler(), Limits: resp.Limits{CommandBytesMax: most, ArgBytesMax: 1000}}),
		Options{Protocol: RESPB})
	var limit *LimitError
	passthrough := func(size int) error {
		p := c.Pipeline()
		p.Passthrough([]byte("*1\r\n$" + strings.Repeat("1", size-5)))
		_, err := p.Exec(ctx)
		return err
	}
	if err := passthrough(most - passthroughHead + 1); !errors.As(err, &limit) || limit.Limit != "frame_bytes" || limit.Got != most+1 {
		t.Error(err)
	}
	if _, err := c.Do(ctx, "ECHO", strings.Repeat("x", 1001)); !errors.As(err, &limit) || limit.Limit != "argument_bytes" || limit.Got != 1001 {
		t.Error(err)
	}
	for _, lend := range []bool{false, true} {
		p := c.Pipeline()
		p.Do("ECHO", "not to be sent")
		big := strings.Repeat("x", 1001)
		if lend {
			p.Lend([]byte("ECHO"), []byte(big))
		} else {
			p.Do("ECHO", big)
		}
		if _, err := p.Exec(ctx); !errors.As(err, &limit) {
			t.Error(err)
		}
		if v, err := c.Do(ctx, "ECHO", "next"); err != nil || string(v.Data) != "next" {
			t.Error(v.String(), err)
		}
	}
	if v, err := c.Do(ctx, "ECHO", strings.Repeat("x", 1000)); err != nil || len(v.Data) != 1000 {
		t.Error(len(v.Data), err)
	}
}

// TestReplyBytesMax bounds a reply that comes in slices.
func TestReplyBytesMax(t *testing.T) {
	ctx := testContext(t)
	p, c := connected(t, Options{ReplyBytesMax: 1000, Reconnect: Reconnect{Disabled: true}})
	got := goDo(ctx, c.zero, "BIG")
	p.expect("BIG")
	for range 3 {
		slice := frame.AppendControl(nil, 0, frame.Fragment, frame.Control{Slice: make([]byte, 400)})
		if _, err := p.nc.Write(slice); err != nil {
			break // it may have gone already
		}
	}
	(<-got).lost(t)
}

// TestEndsOfWaiting has a server not answer: both ends of the contexts that cost no timer are heeded, and so is what follows them.
func TestEndsOfWaiting(t *testing.T) {
	ctx := testContext(t)
	p, c := connected(t, Options{})
	why := errors.New("enough")
	parent, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	long := deadline.New(parent, time.Now().Add(testWait))
	defer long.End()
	got := goDo(long, c.zero, "ECHO", "a")
	p.expect("ECHO", "a")
	cancel(why)
	if o := <-got; o.err == nil || o.err != context.Cause(long) {
		t.Error(o.err)
	}
	if r := p.control(frame.Cancel); r.control.Sequence != 0 {
		t.Error(r.control.Sequence)
	}
	short := deadline.New(ctx, time.Now().Add(20*time.Millisecond))
	defer short.End()
	got = goDo(short, c.zero, "ECHO", "b")
	p.expect("ECHO", "b")
	if o := <-got; !errors.Is(o.err, context.DeadlineExceeded) {
		t.Error(o.err)
	}
	p.control(frame.Cancel)
	got = goDo(ctx, c.zero, "ECHO", "c")
	p.expect("ECHO", "c")
	p.text(0, "a", "b", "c") // the late replies are nobody's
	(<-got).is(t, "c")
}

// TestWhoIsTooLateHasAnError: a call has a timer of its own, which may be before that of its context. Whose time is over has no reply, though his
// context does not say so yet.
func TestWhoIsTooLateHasAnError(t *testing.T) {
	ctx := testContext(t)
	p, c := connected(t, Options{InFlightMax: 10_000})
	go func() { _, _ = io.Copy(io.Discard, p.nc) }() // ends with the connection
	var all sync.WaitGroup
	for range 16 {
		all.Add(1)
		go func() {
			defer all.Done()
			pipe := c.Pipeline()
			for range 50 {
				short := deadline.New(ctx, time.Now().Add(time.Millisecond))
				short.Done() // it gets its timer
				if _, err := c.Do(short, "PING"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a command: %v", err)
				}
				short.End()
				short = deadline.New(ctx, time.Now().Add(time.Millisecond))
				short.Done()
				pipe.Reset()
				pipe.Do("PING")
				if _, err := pipe.Exec(short); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a pipeline: %v", err)
				}
				short.End()
			}
		}()
	}
	all.Wait()
}

// TestPipelineIsCancelledWhole: the server hears of each command that nobody waits for any more.
func TestPipelineIsCancelledWhole(t *testing.T) {
	p, c := connected(t, Options{})
	ctx, cancel := context.WithCancel(testContext(t))
	ended := make(chan error, 1)
	go func() {
		pipe := c.Pipeline()
		for _, word := range []string{"a", "b", "c"} {
			pipe.Do("ECHO", word)
		}
		_, err := pipe.Exec(ctx)
		ended <- err
	}()
	for _, word := range []string{"a", "b", "c"} {
		p.expect("ECHO", word)
	}
	cancel()
	if err := <-ended; err != context.Canceled {
		t.Error(err)
	}
	for i := range uint32(3) {
		if r := p.control(frame.Cancel); r.control.Sequence != i {
			t.Error("cancelled", r.control.Sequence, "want", i)
		}
	}
}

// TestALargePipelineIsSentInParts: of one pipeline no more is on its way than of many callers, and all of it is answered; a transaction
// is not taken apart.
func TestALargePipelineIsSentInParts(t *testing.T) {
	const most, n = 64, 10*64 + 5
	var highest atomic.Int64
	m := newStore().mux()
	m.HandleFunc("COUNT", 2, func(s *resp.Session, r *resp.Request) error {
		return s.WriteBulkBytes(r.Arg(1))
	})
	addr := serve(t, &resp.Server{Handler: m})
	both(t, func(t *testing.T, proto Protocol) {
		highest.Store(0)
		c := dial(t, addr, Options{Protocol: proto, InFlightMax: most})
		stop := make(chan struct{})
		watched := make(chan struct{})
		go func() { // looks at what is on its way
			defer close(watched)
			for {
				select {
				case <-stop:
					return
				default:
				}
				locked(c.zero, func(l *link) bool { highest.Store(max(highest.Load(), int64(l.pending))); return true })
				runtime.Gosched()
			}
		}()
		p := c.Pipeline()
		for i := range n {
			p.Do("COUNT", fmt.Sprint(i))
		}
		values, err := p.Exec(testContext(t))
		close(stop)
		<-watched
		if err != nil || len(values) != n {
			t.Fatal(len(values), err)
		}
		for i := range values {
			if string(values[i].Data) != fmt.Sprint(i) {
				t.Fatalf("reply %d is %s", i, values[i].String())
			}
		}
		if h := highest.Load(); h > most {
			t.Errorf("%d were on their way, at most %d may", h, most)
		}
	})
	s, c := newScript(t, Options{InFlightMax: 2})
	p := c.Pipeline()
	for range 5 {
		p.Do("PING")
	}
	ended := make(chan error, 1)
	go func() { _, err := p.ExecTx(testContext(t)); ended <- err }()
	peer := s.accept()
	peer.expect("MULTI")
	for range 5 {
		peer.expect("PING")
	}
	peer.expect("EXEC") // before anything was answered
	_ = peer.nc.Close()
	if err := <-ended; err == nil {
		t.Error("the transaction was executed")
	}
}

// TestALargePipelineEndsWithItsContext in all its parts.
func TestALargePipelineEndsWithItsContext(t *testing.T) {
	peer, c := connected(t, Options{InFlightMax: 4})
	ctx, cancel := context.WithCancel(testContext(t))
	p := c.Pipeline()
	for i := range 10 {
		p.Do("ECHO", fmt.Sprint(i))
	}
	ended := make(chan error, 1)
	go func() { _, err := p.Exec(ctx); ended <- err }()
	for i := range 4 {
		peer.expect("ECHO", fmt.Sprint(i))
	}
	peer.text(0, "0", "1")
	peer.expect("ECHO", "4")
	cancel()
	if err := <-ended; err != context.Canceled {
		t.Error(err)
	}
}
