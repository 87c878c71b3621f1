package respb

// This file owns the tests of the bounds of time: a server that takes nothing, answers nothing, or is gone without a word.

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/internal/commands"
	"github.com/weft-db/weft/sdk/go/internal/frame"
	"github.com/weft-db/weft/sdk/go/resp"
)

// short is a timeout that is meant to pass; fair is one within which something has to come, on a machine that stalls.
const (
	short = 40 * time.Millisecond
	fair  = 2 * time.Second
)

// timedOut checks that a call ended by a timeout of the options, with its connection or without.
func (o outcome) timedOut(t *testing.T, option string, withConn bool) {
	t.Helper()
	var late *TimeoutError
	var lost *ConnError
	if !errors.As(o.err, &late) || late.Option != option || errors.As(o.err, &lost) != withConn {
		t.Errorf("got %q, %v, want a TimeoutError of %s", o.v.Data, o.err, option)
	}
	if !errors.Is(o.err, os.ErrDeadlineExceeded) {
		t.Error("it is no os.ErrDeadlineExceeded")
	}
}

// TestACallerReturnsByItsContext: a request that the server does not take holds nobody beyond its context, over a socket and over what is
// none, and a small one behind it neither. Once its deadline was over before the write had begun, on a machine with much to do, and nothing was seen.
func TestACallerReturnsByItsContext(t *testing.T) {
	for name, wrap := range map[string]func(nc net.Conn) net.Conn{
		"socket": func(nc net.Conn) net.Conn { return nc }, "wrapped": func(nc net.Conn) net.Conn { return struct{ net.Conn }{nc} },
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			c := New(Options{Protocol: RESPB, WriteTimeout: -1, ReadTimeout: -1, PingInterval: -1, Dialer: func(ctx context.Context) (net.Conn, error) {
				nc, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
				return wrap(nc), err
			}})
			defer c.Close()
			failed := make(chan error, 1)
			go func() { _, err := c.zero.open(testContext(t), 1); failed <- err }()
			nc, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			greet(t, nc) // and then nothing is read
			if err := <-failed; err != nil {
				t.Fatal(err)
			}
			// By its context: one that ends in the middle of the write, and one behind it that has not begun to be written.
			for _, size := range []int{64 << 20, 10} {
				ctx, cancel := context.WithCancel(context.Background())
				got := goDo(ctx, c.zero, "SET", "k", strings.Repeat("x", size))
				until(t, "the write", func() bool {
					return locked(c.zero, func(l *link) bool { return l.writing && (len(l.out) > 0) == (size == 10) })
				})
				cancel()
				select {
				case o := <-got:
					if !errors.Is(o.err, context.Canceled) {
						t.Errorf("%d bytes: %v", size, o.err)
					}
				case <-time.After(testWait):
					t.Fatalf("%d bytes: the caller did not return", size)
				}
			}
		})
	}
}

// TestWriteTimeout: a server that takes nothing breaks the connection, and a caller without a context hears of it.
func TestWriteTimeout(t *testing.T) {
	_, c := connected(t, Options{WriteTimeout: short, ReadTimeout: -1, PingInterval: -1, Reconnect: Reconnect{Disabled: true}})
	(<-goDo(context.Background(), c.zero, "SET", "k", strings.Repeat("x", 64<<20))).timedOut(t, "WriteTimeout", true)
}

// TestReadTimeout: a reply that does not come is given up without a context; over RESPB the connection and the channel go on, and the reply
// finds nobody when it comes.
func TestReadTimeout(t *testing.T) {
	t.Parallel()
	p, c := connected(t, Options{ReadTimeout: fair, PingInterval: -1})
	got := goDo(context.Background(), c.zero, "GET", "a") // it reads for itself
	p.expect("GET", "a")
	(<-got).timedOut(t, "ReadTimeout", false)
	if k := p.control(frame.Cancel); k.control.Sequence != 0 {
		t.Errorf("CANCEL of %d", k.control.Sequence)
	}
	got = goDo(testContext(t), c.zero, "GET", "b")
	p.expect("GET", "b")
	p.text(0, "late", "found")
	(<-got).is(t, "found")

	// Several on one channel, and a pipeline: all of them end, though only the first is waited for by the server.
	var all []<-chan outcome
	for range 3 {
		all = append(all, goDo(context.Background(), c.zero, "GET", "c"))
	}
	ended := make(chan error, 1)
	go func() {
		pipe := c.Pipeline()
		pipe.Get("d")
		pipe.Get("e")
		_, err := pipe.Exec(context.Background())
		ended <- err
	}()
	for _, one := range all {
		(<-one).timedOut(t, "ReadTimeout", false)
	}
	outcome{err: <-ended}.timedOut(t, "ReadTimeout", false)
}

// TestTimeoutsAreOnByDefault, and off where that is asked for.
func TestTimeoutsAreOnByDefault(t *testing.T) {
	for _, off := range []time.Duration{0, -1} {
		c := New(Options{ReadTimeout: off, WriteTimeout: off, PingInterval: off})
		defer c.Close()
		got := [...]time.Duration{c.opts.ReadTimeout, c.opts.WriteTimeout, c.opts.PingInterval}
		want := [...]time.Duration{DefaultReadTimeout, DefaultWriteTimeout, DefaultPingInterval}
		if off < 0 {
			want = [...]time.Duration{off, off, off}
		}
		if got != want || slices.Min(want[:]) == 0 {
			t.Errorf("%v: %v, want %v", off, got, want)
		}
	}
}

// TestReadTimeoutOverRESP3 closes the connection: what comes next on it would be another's.
func TestReadTimeoutOverRESP3(t *testing.T) {
	m := newStore().mux()
	m.HandleFunc("HANG", 1, func(s *resp.Session, r *resp.Request) error {
		<-s.Server().Draining()
		return s.WriteOK()
	})
	c := dial(t, serve(t, &resp.Server{Handler: m}), Options{Protocol: RESP3, ReadTimeout: short})
	(<-goDo(context.Background(), c.zero, "HANG")).timedOut(t, "ReadTimeout", true)
	until(t, "the end of the connection", func() bool { return c.zero.lane.Load() == nil })
}

// TestAbandonedCallsFindOutASilentServer: over RESP3 a connection whose server is gone is closed though every caller leaves by its own context
// before any timeout of the options.
func TestAbandonedCallsFindOutASilentServer(t *testing.T) {
	m := newStore().mux()
	m.HandleFunc("HANG", 1, func(s *resp.Session, r *resp.Request) error {
		<-s.Server().Draining()
		return s.WriteOK()
	})
	c := dial(t, serve(t, &resp.Server{Handler: m}), Options{Protocol: RESP3, ReadTimeout: fair, PingInterval: short})
	for range 3 {
		ctx, cancel := context.WithCancel(testContext(t))
		got := goDo(ctx, c.zero, "HANG")
		until(t, "the command", func() bool {
			la := c.zero.lane.Load()
			return la == nil || locked(c.zero, func(l *link) bool { return l.pending > 0 })
		})
		cancel()
		<-got
	}
	until(t, "the end of the connection", func() bool { return c.zero.lane.Load() == nil })
}

// TestBlockingCommandsHaveTheirOwnTime: what a command says it will wait comes on top, and one that waits for ever is not late.
func TestBlockingCommandsHaveTheirOwnTime(t *testing.T) {
	p, c := connected(t, Options{ReadTimeout: short, PingInterval: -1})
	looked := func(n int64) func() bool {
		return func() bool { return locked(c.zero, func(l *link) bool { return l.watch.now >= n }) }
	}
	forever := goDo(context.Background(), c.zero, "BLPOP", "l", "0")
	p.expect("BLPOP", "l", "0")
	until(t, "three timeouts", looked(3*looks))
	p.text(0, "forever")
	(<-forever).is(t, "forever")
	bounded := goDo(context.Background(), c.zero, "XREAD", "BLOCK", "120", "STREAMS", "s", "$")
	p.expect("XREAD", "BLOCK", "120", "STREAMS", "s", "$")
	begun := time.Now()
	(<-bounded).timedOut(t, "ReadTimeout", false)
	if took := time.Since(begun); took < 120*time.Millisecond {
		t.Errorf("given up after %v", took)
	}
}

// TestBlocksFor knows every command of the table that blocks.
func TestBlocksFor(t *testing.T) {
	for want, lines := range map[time.Duration][]string{
		0:  {"GET k", "BLPOP k x", "BLPOP k -1", "XREAD STREAMS s $", "XREAD STREAMS BLOCK 100", "BITCOUNT k 0 5", "WAIT", "EXISTS a b 5"},
		-1: {"BLPOP k 0", "blmpop 0 1 k LEFT", "XREAD BLOCK 0 STREAMS s $", "WAIT 1 0", "BLPOP k inf"},
		1500 * time.Millisecond: {"BLPOP k j 1.50", "BRPOP k 1.5", "BLMOVE a b LEFT LEFT 1.5", "BRPOPLPUSH a b 1.5", "BZPOPMIN z 1.5", "bzpopmax z 1.5",
			"BLMPOP 1.5 1 k LEFT", "BZMPOP 1.5 1 z MIN", "XREAD COUNT 1 BLOCK 1500 STREAMS s $", "XREADGROUP GROUP g c block 1500 STREAMS s >",
			"WAIT 1 1500", "WAITAOF 1 0 1500"},
	} {
		for _, line := range lines {
			args := strings.Fields(line)
			if got := blocksFor(args); got != want {
				t.Errorf("%s: %v, want %v", line, got, want)
			}
			if got := blocksFor(decodeCommand(appendRESP(nil, args))); got != want || string(nameOf(appendRESP(nil, args))) != args[0] {
				t.Errorf("%s, encoded: %v, want %v", line, got, want)
			}
		}
	}
	for c := range commands.All {
		if c.Flags&commands.FlagBlocking == 0 {
			continue
		}
		args := strings.Fields(c.FullName() + " 1 0 0")
		if strings.HasPrefix(c.Name, "XREAD") {
			args = []string{c.Name, "BLOCK", "0", "STREAMS", "s", "$"}
		} else if strings.HasSuffix(c.Name, "MPOP") {
			args = []string{c.Name, "0", "1", "k"}
		}
		if blocksFor(args) != -1 {
			t.Errorf("%s blocks, and blocksFor does not know it", c.FullName())
		}
	}
}

// TestOneLargeReplyIsNotLate: a reply that comes slowly, but comes, is waited for.
func TestOneLargeReplyIsNotLate(t *testing.T) {
	t.Parallel()
	p, c := connected(t, Options{ReadTimeout: fair, PingInterval: -1})
	got := goDo(context.Background(), c.zero, "GET", "big")
	p.expect("GET", "big")
	w := frame.ReplyWriter{}
	w.Bulk([]byte(strings.Repeat("x", 300)))
	for i := range w.Out {
		seen := int64(0)
		locked(c.zero, func(l *link) bool { seen = l.watch.now; return true })
		if _, err := p.nc.Write(w.Out[i : i+1]); err != nil {
			t.Fatal(err)
		}
		if i%25 == 0 {
			until(t, "a look", func() bool { return locked(c.zero, func(l *link) bool { return l.watch.now > seen }) })
		}
	}
	(<-got).is(t, strings.Repeat("x", 300))
}

// TestASilentServerIsAsked: PING on a channel of its own, and what is answered keeps the connection; a silent partition ends it, and everything
// a cache has kept with it.
func TestASilentServerIsAsked(t *testing.T) {
	t.Parallel()
	p, c := connected(t, Options{ReadTimeout: fair, PingInterval: short, Reconnect: soon})
	opened := make(chan *Cache, 1)
	go func() {
		cache, err := c.Cache(testContext(t), 0)
		if err != nil {
			t.Error(err)
		}
		opened <- cache
	}()
	p.expect("CLIENT", "TRACKING", "ON")
	p.say(1, func(w *frame.ReplyWriter) { w.Simple([]byte("OK")) })
	cache := <-opened
	if cache == nil {
		return
	}
	defer cache.Close()
	got := make(chan outcome, 1)
	go func() { v, err := cache.Do(testContext(t), "GET", "k"); got <- outcome{v, err} }()
	p.expect("GET", "k")
	p.text(1, "v")
	(<-got).is(t, "v")
	for range 3 {
		if r := p.expect("PING"); r.channel < 2 {
			t.Errorf("PING on channel %d", r.channel)
		} else {
			p.text(r.channel, "PONG")
		}
	}
	if _, err := cache.Do(testContext(t), "GET", "k"); err != nil || cache.Stats().Hits != 1 {
		t.Error("the value was not kept while the server answered", err)
	}
	// From here on nothing comes.
	until(t, "forgetting", func() bool { return cache.Stats().Keys == 0 })
	until(t, "the end of the connection", func() bool { return c.zero.lane.Load() == nil })
}

// TestASilentServerWhileBlocked: a command that waits for ever ends with a server that is gone.
func TestASilentServerWhileBlocked(t *testing.T) {
	p, c := connected(t, Options{ReadTimeout: short, PingInterval: short, Reconnect: Reconnect{Disabled: true}})
	got := goDo(context.Background(), c.zero, "BLPOP", "l", "0")
	p.expect("BLPOP", "l", "0")
	(<-got).timedOut(t, "PingInterval and ReadTimeout", true)
}

// TestNothingIsAskedWhenNothingIsExpected: an idle connection costs neither a timer nor a PING.
func TestNothingIsAskedWhenNothingIsExpected(t *testing.T) {
	p, c := connected(t, Options{ReadTimeout: short, PingInterval: short})
	got := goDo(testContext(t), c.zero, "GET", "a")
	p.expect("GET", "a")
	p.text(0, "v")
	(<-got).is(t, "v")
	until(t, "rest", func() bool { return locked(c.zero, func(l *link) bool { return !l.watch.armed }) })
}

// TestAHeldReaderIsNoSilentServer: over RESP3 who receives more slowly than the timeouts gets every message all the same.
func TestAHeldReaderIsNoSilentServer(t *testing.T) {
	const n = 50
	ctx := testContext(t)
	st := newStore()
	c := dial(t, serve(t, &resp.Server{Handler: st.handler()}), Options{Protocol: RESP3, ReadTimeout: short, PingInterval: short})
	ch, err := c.Channel(ctx, ChannelOptions{SubscriptionBytesMax: 100})
	if err != nil {
		t.Fatal(err)
	}
	sub, err := ch.Subscribe(ctx, "news")
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		st.pubsub.Publish("news", []byte(strings.Repeat("x", 50)))
	}
	until(t, "the reader's waiting", func() bool { return locked(ch, func(l *link) bool { return l.held }) })
	began := int64(0)
	locked(ch, func(l *link) bool { began = l.watch.now; return true })
	until(t, "several timeouts", func() bool { return locked(ch, func(l *link) bool { return l.watch.now > began+5*looks }) })
	for i := range n {
		if _, err := sub.Receive(ctx); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
	}
}
