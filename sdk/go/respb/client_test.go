package respb

// This file owns the tests of Conn and Channel. Most run over RESPB and over RESP3.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/resp"
)

func both(t *testing.T, f func(t *testing.T, p Protocol)) {
	for name, p := range protocols {
		t.Run(name, func(t *testing.T) { f(t, p) })
	}
}

func TestDo(t *testing.T) {
	both(t, func(t *testing.T, p Protocol) {
		ctx := testContext(t)
		c := dial(t, serve(t, &resp.Server{Handler: newStore().handler()}), Options{Protocol: p})
		if c.Protocol() != p {
			t.Fatal(c.Protocol())
		}
		for _, step := range []struct{ command, want string }{
			{"PING", "PONG"}, {"set k v", "OK"}, {"GET k", `"v"`}, {"GET none", "(nil)"}, {"INCR n", "1"},
			{"HGETALL h", `%["a" "1" "b" "2"]`}, {"SMEMBERS s", `~["x" "y"]`}, {"ZSCORE z m", "1.5"}, {"MGET k none", `*["v" (nil)]`},
			{"GET", "ERR wrong number of arguments for 'get' command"},
		} {
			v, err := c.Do(ctx, strings.Fields(step.command)...)
			got := v.String()
			if err != nil {
				got = err.Error()
			}
			if got != step.want {
				t.Errorf("%s: got %s, want %s", step.command, got, step.want)
			}
		}
		if _, err := c.Do(ctx); err != ErrCommand {
			t.Error(err)
		}
		for _, n := range []int{0, 127, 128, 255, 256, 65535, 65536, 70000, 1 << 20, 5 << 20} {
			if v, err := c.Do(ctx, "BIG", fmt.Sprint(n)); err != nil || len(v.Data) != n {
				t.Error(n, len(v.Data), err)
			}
		}
	})
}

// TestManyGoroutines: thousands of commands from many goroutines on many channels, each of which must get its own reply.
func TestManyGoroutines(t *testing.T) {
	both(t, func(t *testing.T, p Protocol) {
		ctx := testContext(t)
		c := dial(t, serve(t, &resp.Server{Handler: newStore().handler()}), Options{Protocol: p, InFlightMax: 100})
		var all sync.WaitGroup
		for g := range 64 {
			ch := c.zero
			if g%3 == 1 {
				var err error
				if ch, err = c.Channel(ctx); err != nil {
					t.Fatal(err)
				}
			}
			callCtx := context.Background()
			if g%2 == 0 {
				callCtx = ctx
			}
			all.Add(1)
			go func() {
				defer all.Done()
				var v Value
				for i := range 300 {
					word := fmt.Sprintf("%d.%d.%s", g, i, strings.Repeat("w", rand.N(200)))
					if err := ch.DoInto(callCtx, &v, "ECHO", word); err != nil || string(v.Data) != word {
						t.Errorf("got %.40q, %v", v.Data, err)
						return
					}
				}
			}()
		}
		all.Wait()
	})
}

func TestChannelsAreIsolated(t *testing.T) {
	both(t, func(t *testing.T, p Protocol) {
		ctx := testContext(t)
		c := dial(t, serve(t, &resp.Server{Handler: newStore().handler(), Auth: func(s *resp.Session, user, password string) error {
			if password != "of "+user {
				return resp.ErrWrongPass
			}
			return nil
		}}), Options{Protocol: p, Username: "ann", Password: "of ann", Name: "main", DB: 2})
		a, err := c.Channel(ctx, ChannelOptions{Username: "bob", Password: "of bob", Name: "side", DB: 5})
		if err != nil {
			t.Fatal(err)
		}
		plain, err := c.Channel(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for ch, want := range map[*Channel]string{c.zero: `*["ann" "main" "2"]`, a: `*["bob" "side" "5"]`, plain: `*["ann" "" "0"]`} {
			if v, err := ch.Do(ctx, "WHO"); err != nil || v.String() != want {
				t.Errorf("got %s, %v, want %s", v.String(), err, want)
			}
		}
		if _, err := c.Channel(ctx, ChannelOptions{Username: "eve", Password: "?"}); !errors.Is(err, resp.ErrWrongPass) {
			t.Error(err)
		}
		// A transaction on one does not swallow another's commands.
		if _, err := a.Do(ctx, "MULTI"); err != nil {
			t.Fatal(err)
		}
		if v, err := plain.Do(ctx, "PING"); err != nil || v.String() != "PONG" {
			t.Error(v.String(), err)
		}
		if v, err := a.Do(ctx, "PING"); err != nil || v.String() != "QUEUED" {
			t.Error(v.String(), err)
		}
		if v, err := a.Do(ctx, "EXEC"); err != nil || v.String() != `*["PING"]` {
			t.Error(v.String(), err)
		}
		tx := plain.Pipeline()
		tx.Do("SET", "k", "v")
		r := tx.Do("GET", "k")
		if _, err := r.Get(); err != ErrNotExecuted {
			t.Error(err)
		}
		if values, err := tx.ExecTx(ctx); err != nil || len(values) != 2 {
			t.Error(values, err)
		}
		if v, err := r.Get(); err != nil || string(v.Data) != "GET k" {
			t.Error(v, err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if _, err := a.Do(ctx, "PING"); err != ErrClosed {
			t.Error(err)
		}
		if v, err := plain.Do(ctx, "PING"); err != nil || v.String() != "PONG" {
			t.Error(v.String(), err)
		}
	})
}

func TestPipeline(t *testing.T) {
	both(t, func(t *testing.T, p Protocol) {
		ctx := testContext(t)
		c := dial(t, serve(t, &resp.Server{Handler: newStore().handler()}), Options{Protocol: p})
		pipe := c.Pipeline()
		const n = 5000
		for i := range n {
			pipe.Do("ECHO", fmt.Sprint(i))
		}
		values, err := pipe.Exec(ctx)
		if err != nil || len(values) != n {
			t.Fatal(len(values), err)
		}
		for i := range values {
			if string(values[i].Data) != fmt.Sprint(i) {
				t.Fatal(i, values[i].String())
			}
		}
		pipe.Reset()
		bad := pipe.Do("GET")
		good := pipe.Do("PING")
		if _, err := pipe.Exec(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := bad.Get(); err == nil {
			t.Error("an error reply was lost")
		}
		if v, err := good.Get(); err != nil || string(v.Data) != "PONG" {
			t.Error(v, err)
		}
	})
}

// TestCancellation: the caller goes on at once, the server gives the command up, and replies stay in step.
func TestCancellation(t *testing.T) {
	st := newStore()
	ctx := testContext(t)
	c := dial(t, serve(t, &resp.Server{Handler: st.handler()}), Options{Protocol: RESPB})
	ch, err := c.Channel(ctx)
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("enough")
	short, cancel := context.WithCancelCause(ctx)
	got := make(chan error, 2)
	for range 2 { // one blocks, one waits behind it
		go func() {
			_, err := ch.Do(short, "BLPOP", "list", "0")
			got <- err
		}()
	}
	waitPending(t, ch, 2)
	cancel(why)
	for range 2 {
		if err := <-got; err != why {
			t.Error(err)
		}
	}
	// Had the server not given up, this would wait for ever, and the element would be gone.
	if v, err := ch.Do(ctx, "PING"); err != nil || v.String() != "PONG" {
		t.Fatal(v.String(), err)
	}
	if _, err := ch.Do(ctx, "LPUSH", "list", "x"); err != nil {
		t.Fatal(err)
	}
	if v, err := ch.Do(ctx, "BLPOP", "list", "0"); err != nil || v.String() != `*["list" "x"]` {
		t.Error(v.String(), err)
	}
	if _, err := ch.Do(short, "PING"); err != why {
		t.Error(err)
	}
}

// waitPending waits until n commands of the channel's connection await replies.
func waitPending(t *testing.T, ch *Channel, n int) {
	t.Helper()
	for until := time.Now().Add(testWait); time.Now().Before(until); time.Sleep(time.Millisecond) {
		l := ch.lane.Load().link
		l.mu.Lock()
		pending := l.pending
		sent := len(l.out) == 0
		l.mu.Unlock()
		if pending == n && sent {
			return
		}
	}
	t.Fatal("the commands are not on their way")
}

// TestBlockingHoldsBackOnlyItsChannel with both protocols.
func TestBlockingHoldsBackOnlyItsChannel(t *testing.T) {
	both(t, func(t *testing.T, p Protocol) {
		ctx := testContext(t)
		c := dial(t, serve(t, &resp.Server{Handler: newStore().handler()}), Options{Protocol: p})
		got := make(chan string, 10)
		for i := range 10 {
			ch, err := c.Channel(ctx)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				v, err := ch.Do(ctx, "BLPOP", fmt.Sprint("list", i), "0")
				got <- fmt.Sprint(v.String(), err)
			}()
		}
		for i := range 10 {
			if _, err := c.Do(ctx, "LPUSH", fmt.Sprint("list", i), "x"); err != nil {
				t.Fatal(err)
			}
		}
		for range 10 {
			if text := <-got; !strings.HasSuffix(text, `"x"]<nil>`) {
				t.Error(text)
			}
		}
	})
}

// TestReconnect: what only reads is sent again, the rest fails and says so, and channels come back as they were.
func TestReconnect(t *testing.T) {
	both(t, func(t *testing.T, p Protocol) {
		ctx := testContext(t)
		st := newStore()
		server := &resp.Server{Handler: st.handler()}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := l.Addr().String()
		serveOn(t, server, l)
		c := dial(t, addr, Options{Protocol: p, DB: 3, Name: "main", Reconnect: Reconnect{Attempts: 10_000, Max: 20 * time.Millisecond}})
		ch, err := c.Channel(ctx, ChannelOptions{DB: 7, Name: "side"})
		if err != nil {
			t.Fatal(err)
		}
		if err := setK(ctx, c); err != nil {
			t.Fatal(err)
		}
		waiting := make(chan error, 1)
		blocked, err := c.Channel(ctx)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := blocked.Do(context.Background(), "BLPOP", "none", "0")
			waiting <- err
		}()
		waitPending(t, blocked, 1)
		_ = server.Close()
		var lost *ConnError
		var reply *Error
		if err := <-waiting; !errors.As(err, &lost) && !errors.As(err, &reply) {
			t.Error(err)
		}
		l2, err := net.Listen("tcp", addr)
		if err != nil {
			t.Skip("the port was taken meanwhile: ", err)
		}
		serveOn(t, &resp.Server{Handler: st.handler()}, l2)
		if v, err := c.Do(ctx, "GET", "k"); err != nil || v.String() != `"v"` {
			t.Error(v.String(), err)
		}
		if v, err := ch.Do(ctx, "WHO"); err != nil && !errors.As(err, &lost) {
			t.Error(v.String(), err)
		}
		for who, want := range map[*Channel]string{c.zero: `"main" "3"]`, ch: `"side" "7"]`} {
			if v, err := who.Do(ctx, "WHO"); err != nil || !strings.HasSuffix(v.String(), want) {
				t.Errorf("%s, %v, want %s", v.String(), err, want)
			}
		}
	})
}

// setK sets k in the database that the tests of reconnecting use.
func setK(ctx context.Context, c *Conn) error {
	_, err := c.Do(ctx, "SET", "k", "v")
	return err
}

func TestReconnectDisabled(t *testing.T) {
	ctx := testContext(t)
	c := dial(t, serve(t, &resp.Server{Handler: newStore().handler()}), Options{Protocol: RESPB, Reconnect: Reconnect{Disabled: true}})
	_, _ = c.Do(ctx, "KILLME")
	var lost *ConnError
	for range 2 {
		if _, err := c.Do(ctx, "GET", "k"); !errors.As(err, &lost) {
			t.Error(err)
		}
	}
}

// TestServerClosesChannel: the commands fail with the reason, others do not notice, and the channel begins anew.
func TestServerClosesChannel(t *testing.T) {
	ctx := testContext(t)
	c := dial(t, serve(t, &resp.Server{Handler: newStore().handler()}), Options{Protocol: RESPB})
	ch, err := c.Channel(ctx, ChannelOptions{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	var closed *CloseError
	if _, err := ch.Do(ctx, "KILLME"); !errors.As(err, &closed) || closed.Code != 4 {
		t.Fatal(err)
	}
	if _, err := c.Do(ctx, "PING"); err != nil {
		t.Error(err)
	}
	if v, err := ch.Do(ctx, "WHO"); err != nil || v.String() != `*["default" "x" "0"]` {
		t.Error(v.String(), err)
	}
}

// TestFallback: a server without RESPB is spoken to in RESP3, unless RESPB is demanded.
func TestFallback(t *testing.T) {
	ctx := testContext(t)
	addr := serve(t, &resp.Server{Handler: newStore().handler(), RESPB: resp.RESPBOff})
	c := dial(t, addr, Options{})
	if c.Protocol() != RESP3 {
		t.Error(c.Protocol())
	}
	ch, err := c.Channel(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := ch.Do(ctx, "PING"); err != nil || v.String() != "PONG" {
		t.Error(v.String(), err)
	}
	if _, err := Dial(ctx, Options{Addr: addr, Protocol: RESPB}); err == nil {
		t.Error("RESPB was demanded and RESP3 accepted")
	}
	if d := dial(t, serve(t, &resp.Server{Handler: newStore().handler()}), Options{}); d.Protocol() != RESPB {
		t.Error(d.Protocol())
	}
}

// TestLimitsOfTheServer: what the server would refuse is not sent.
func TestLimitsOfTheServer(t *testing.T) {
	ctx := testContext(t)
	c := dial(t, serve(t, &resp.Server{Handler: newStore().handler(), Limits: resp.Limits{ArgBytesMax: 1000, ArgsMax: 10,
		CommandBytesMax: 3000, ChannelsMax: 3}}), Options{Protocol: RESPB})
	big := strings.Repeat("x", 1001)
	for limit, args := range map[string][]string{
		"argument_bytes": {"SET", "k", big}, "arguments": strings.Fields(strings.Repeat("a ", 11)),
		"frame_bytes": {"MSET", "a", big[1:], "b", big[1:], "c", big[1:]},
	} {
		var err *LimitError
		if _, got := c.Do(ctx, args...); !errors.As(got, &err) || err.Limit != limit {
			t.Errorf("%s: %v", limit, got)
		}
	}
	for i := range 3 {
		_, err := c.Channel(ctx)
		if i < 2 && err != nil || i == 2 && err != ErrChannels {
			t.Error(i, err)
		}
	}
	if v, err := c.Do(ctx, "SET", "k", big[1:]); err != nil {
		t.Error(v.String(), err)
	}
}

// TestChannelNumbersComeBack: a number is used again once both sides have closed.
func TestChannelNumbersComeBack(t *testing.T) {
	ctx := testContext(t)
	server := &resp.Server{Handler: newStore().handler()}
	c := dial(t, serve(t, server), Options{Protocol: RESPB, ChannelsMax: 8})
	for i := range 100 {
		ch, err := c.Channel(ctx)
		if err != nil {
			t.Fatal(i, err)
		}
		if _, err := ch.Do(ctx, "PING"); err != nil {
			t.Fatal(i, err)
		}
		_ = ch.Close()
		if _, err := c.Do(ctx, "PING"); err != nil { // reads the server's CLOSE as well
			t.Fatal(i, err)
		}
	}
}

func TestSubscription(t *testing.T) {
	both(t, func(t *testing.T, p Protocol) {
		ctx := testContext(t)
		st := newStore()
		c := dial(t, serve(t, &resp.Server{Handler: st.handler()}), Options{Protocol: p})
		ch, err := c.Channel(ctx, ChannelOptions{SubscriptionBytesMax: 4096})
		if err != nil {
			t.Fatal(err)
		}
		sub, err := ch.Subscribe(ctx, "a", "b")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ch.Psubscribe(ctx, "x*"); err != nil {
			t.Fatal(err)
		}
		const n = 2000 // far more than the window holds
		go func() {
			for i := range n {
				st.pubsub.Publish("b", []byte(fmt.Sprint(i)))
			}
			st.pubsub.Publish("xyz", []byte("end"))
		}()
		for i := range n {
			m, err := sub.Receive(ctx)
			if err != nil || m.Channel != "b" || m.Payload != fmt.Sprint(i) {
				t.Fatal(i, m, err)
			}
		}
		if m, err := sub.Receive(ctx); err != nil || m.Pattern != "x*" || m.Channel != "xyz" {
			t.Fatal(m, err)
		}
		if err := sub.Unsubscribe(ctx, "a", "b"); err != nil {
			t.Error(err)
		}
		_ = ch.Close()
		if _, err := sub.Receive(ctx); err != ErrClosed {
			t.Error(err)
		}
	})
}

// TestSubscriptionSurvivesABreak: the subscription is renewed without anybody calling, and the gap is told.
func TestSubscriptionSurvivesABreak(t *testing.T) {
	both(t, func(t *testing.T, p Protocol) {
		ctx := testContext(t)
		st := newStore()
		c := dial(t, serve(t, &resp.Server{Handler: st.handler()}), Options{Protocol: p})
		ch, err := c.Channel(ctx)
		if err != nil {
			t.Fatal(err)
		}
		sub, err := ch.Subscribe(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		_ = ch.lane.Load().link.wire.nc.Close()
		if _, err := sub.Receive(ctx); err != ErrMessagesLost {
			t.Fatal(err)
		}
		// The server may count the broken connection as a subscriber for a while.
		received := make(chan struct{})
		go func() {
			for st.pubsub.Publish("a", []byte("again")); ; st.pubsub.Publish("a", []byte("again")) {
				select {
				case <-received:
					return
				case <-time.After(time.Millisecond):
				}
			}
		}()
		defer close(received)
		if m, err := sub.Receive(ctx); err != nil || m.Payload != "again" {
			t.Error(m, err)
		}
	})
}

func TestCache(t *testing.T) {
	both(t, func(t *testing.T, p Protocol) {
		ctx := testContext(t)
		c := dial(t, serve(t, &resp.Server{Handler: newStore().handler()}), Options{Protocol: p})
		cache, err := c.Cache(ctx, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cache.Get(ctx, "k"); err != ErrNil {
			t.Error(err)
		}
		for i := range 50 {
			want := fmt.Sprint(i)
			if _, err := c.Do(ctx, "SET", "k", want); err != nil {
				t.Fatal(err)
			}
			for got := ""; got != want; {
				if got, err = cache.Get(ctx, "k"); err != nil && err != ErrNil {
					t.Fatal(err)
				}
			}
			before := cache.Stats().Misses
			if got, err := cache.Get(ctx, "k"); err != nil || got != want || cache.Stats().Misses != before {
				t.Fatal(got, err, cache.Stats())
			}
		}
		for i := range 100 {
			_, _ = cache.Get(ctx, fmt.Sprint("key", i))
		}
		if s := cache.Stats(); s.Bytes > 1000 || s.Evictions == 0 || s.Invalidations == 0 {
			t.Errorf("%+v", s)
		}
		if _, err := cache.Do(ctx, "SET", "k", "v"); err != errNotCacheable {
			t.Error(err)
		}
		_ = cache.ch.lane.Load().link.wire.nc.Close()
		for s := cache.Stats(); s.Keys > 0; s = cache.Stats() {
			if ctx.Err() != nil {
				t.Fatal("a broken connection leaves what it cached")
			}
			time.Sleep(time.Millisecond)
		}
		if got, err := cache.Get(ctx, "k"); err != nil || got != "49" {
			t.Error(got, err)
		}
	})
}

// TestCloseEndsEverything: no call waits for ever.
func TestCloseEndsEverything(t *testing.T) {
	both(t, func(t *testing.T, p Protocol) {
		ctx := testContext(t)
		c := dial(t, serve(t, &resp.Server{Handler: newStore().handler()}), Options{Protocol: p})
		got := make(chan error, 20)
		for i := range 20 {
			args := []string{"BLPOP", "k", "0"}
			if i > 0 { // they wait behind it
				args = []string{"GET", "k"}
			}
			go func() {
				_, err := c.Do(context.Background(), args...)
				got <- err
			}()
			waitPending(t, c.zero, i+1)
		}
		_ = c.Close()
		for range 20 {
			if err := <-got; err != ErrClosed {
				t.Error(err)
			}
		}
		if _, err := c.Do(ctx, "PING"); err != ErrClosed {
			t.Error(err)
		}
		if _, err := c.Channel(ctx); err != ErrClosed {
			t.Error(err)
		}
	})
}

// TestLentPipeline sends arguments that are lent, mixed with others, into values that are used again.
func TestLentPipeline(t *testing.T) {
	for name, p := range protocols {
		t.Run(name, func(t *testing.T) {
			ctx := testContext(t)
			c := dial(t, serve(t, &resp.Server{Handler: newStore().handler()}), Options{Protocol: p})
			pipe := c.Pipeline()
			var values []Value
			for round := range 3 {
				pipe.Reset()
				want := fmt.Sprint("value ", round)
				first := pipe.Set("a", want)
				pipe.LendMany([][]byte{[]byte("SET"), []byte("b"), []byte(want + want)}, [][]byte{[]byte("GET"), []byte("a")})
				last := pipe.Lend([]byte("GET"), []byte("b"))
				none := pipe.Get("nothing")
				var err error
				if values, err = pipe.ExecInto(ctx, values); err != nil {
					t.Fatal(err)
				}
				if len(values) != 5 || string(values[2].Data) != want {
					t.Error(values)
				}
				if got, err := first.Get(); err != nil || got != "OK" {
					t.Error(got, err)
				}
				if got, err := none.Get(); err != ErrNil {
					t.Error(got, err)
				}
				if got, err := last.Get(); err != nil || string(got.Data) != want+want {
					t.Error(got, err)
				}
			}
			pipe.Reset()
			pipe.Lend([]byte("GET"), []byte("a"))
			pipe.Passthrough([]byte("*2\r\n$3\r\nGET\r\n$1\r\nb\r\n"))
			tx, err := pipe.ExecTx(ctx)
			if err != nil || len(tx) != 2 || string(tx[0].Data) != "GET a" || string(tx[1].Data) != "GET b" {
				t.Error(tx, err)
			}
		})
	}
}

// TestPassthrough: a command that is RESP already is sent as it is, between others.
func TestPassthrough(t *testing.T) {
	for name, protocol := range protocols {
		t.Run(name, func(t *testing.T) {
			addr := serve(t, &resp.Server{Handler: newStore().mux(), RESPB: resp.RESPBDetect})
			c := dial(t, addr, Options{Protocol: protocol})
			p := c.Pipeline()
			p.Do("SET", "k", "v")
			got := p.Passthrough([]byte("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"))
			missing := p.Passthrough([]byte("*1\r\n$7\r\nNOTHERE\r\n"))
			p.Do("ECHO", "x")
			values, err := p.Exec(testContext(t))
			if err != nil || len(values) != 4 || string(values[3].Data) != "x" {
				t.Fatal(values, err)
			}
			if v, err := got.Get(); err != nil || string(v.Data) != "v" {
				t.Fatal(v, err)
			}
			var reply *Error
			if _, err := missing.Get(); !errors.As(err, &reply) {
				t.Fatal(err)
			}
			p.Reset()
			p.Passthrough([]byte("PING\r\n"))
			if _, err := p.Exec(testContext(t)); !errors.Is(err, ErrCommand) {
				t.Fatal(err)
			}
		})
	}
}
