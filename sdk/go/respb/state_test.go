package respb

// This file owns the tests of what may be shared, and of what a Channel is after a break.

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/weft-db/weft/sdk/go/internal/commands"
	"github.com/weft-db/weft/sdk/go/internal/frame"
	"github.com/weft-db/weft/sdk/go/resp"
)

// TestAConnRefusesWhatOthersShare, by helper's name, by Do and in a pipeline; the same is for a Channel, and a transaction that is one pipeline
// for both.
func TestAConnRefusesWhatOthersShare(t *testing.T) {
	both(t, func(t *testing.T, p Protocol) {
		ctx := testContext(t)
		c, err := Dial(ctx, Options{Addr: serve(t, &resp.Server{Handler: newStore().handler()}), Protocol: p})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ch, err := c.Channel(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"SELECT 5", "select 5", "CLIENT TRACKING ON", "BLPOP l 1", "XREAD BLOCK 5 STREAMS s 0", "MULTI", "EXEC", "HELLO 2", "client reply skip", "RESET"} {
			args := strings.Fields(line)
			var use *UseError
			if _, err := c.Do(ctx, args...); !errors.As(err, &use) {
				t.Errorf("%s: %v", line, err)
			}
			pipe := c.Pipeline()
			pipe.Get("k")
			pipe.Do(args...)
			pipe.Get("k")
			if _, err := pipe.Exec(ctx); !errors.As(err, &use) {
				t.Errorf("%s in a pipeline: %v", line, err)
			}
		}
		for _, line := range []string{"CLIENT REPLY SKIP", "HELLO 2", "RESET", "QUIT", "SYNC"} {
			var use *UseError
			if _, err := ch.Do(ctx, strings.Fields(line)...); !errors.As(err, &use) {
				t.Errorf("%s on a Channel: %v", line, err)
			}
		}
		for _, line := range []string{"PING", "GET k", "CLIENT ID", "XREAD STREAMS s 0", "WAITING", "SELECTED 1"} {
			var use *UseError
			if _, err := c.Do(ctx, strings.Fields(line)...); errors.As(err, &use) {
				t.Errorf("%s: %v", line, err)
			}
		}
		if err := ch.Select(ctx, 2); err != nil {
			t.Error(err)
		}
		tx := c.Pipeline()
		tx.Do("PING")
		if _, err := tx.ExecTx(ctx); err != nil {
			t.Error(err)
		}
		two := c.Pipeline() // two transactions and what is between them
		for _, line := range []string{"MULTI", "PING", "EXEC", "PING", "MULTI", "EXEC"} {
			two.Do(line)
		}
		if values, err := two.Exec(ctx); err != nil || values[3].String() != "PONG" {
			t.Error(values, err)
		}
		sub, err := c.Subscribe(ctx, "news")
		if err != nil {
			t.Fatal(err)
		}
		if sub.ch == c.zero {
			t.Error("it is on channel 0")
		}
		if err := sub.Close(); err != nil {
			t.Error(err)
		}
		if _, err := sub.Receive(ctx); err != ErrClosed {
			t.Error(err)
		}
	})
}

// TestHelpersAreWhereTheyBelong compares the helpers that are generated with what effects say.
func TestHelpersAreWhereTheyBelong(t *testing.T) {
	methods := func(of any) map[string]bool {
		all := map[string]bool{}
		kind := reflect.TypeOf(of)
		for i := range kind.NumMethod() {
			all[strings.ToUpper(kind.Method(i).Name)] = true
		}
		return all
	}
	shared, own := methods(Commands{}), methods(ChannelCommands{})
	known := 0
	for c := range commands.All {
		name := strings.NewReplacer(" ", "", "-", "", ".", "", "_", "").Replace(c.FullName())
		e := effects[c.FullName()]
		if strings.HasSuffix(c.Name, "SUBSCRIBE") && c.Container == "" {
			continue // by hand
		}
		if e != effectNone {
			known++
		}
		if shared[name] && e != effectNone || own[name] && (e == effectNone || e == effectRefused) || e != effectNone && e != effectRefused && !own[name] {
			t.Errorf("%s: effect %d, in Commands %v, in ChannelCommands %v", c.FullName(), e, shared[name], own[name])
		}
		if c.Flags&commands.FlagBlocking != 0 && e != effectHolds && !strings.HasPrefix(c.Name, "XREAD") {
			t.Errorf("%s blocks and may be shared", c.FullName())
		}
	}
	if subscribe := 6; known != len(effects)-subscribe {
		t.Errorf("%d of %d effects are of commands in the table", known, len(effects)-subscribe)
	}
}

// TestAChannelComesBack with what commands have made of it.
func TestAChannelComesBack(t *testing.T) {
	s, c := newScript(t, Options{Reconnect: soon})
	ch := newChannel(c, ChannelOptions{DB: 1})
	ok := func(w *frame.ReplyWriter) { w.Simple([]byte("OK")) }
	ctx := testContext(t)
	got := goDo(ctx, ch, "SELECT", "5")
	p := s.accept()
	p.expect("SELECT", "1")
	p.say(1, ok)
	p.expect("SELECT", "5")
	p.say(1, ok)
	(<-got).is(t, "OK")
	for _, line := range []string{"CLIENT SETNAME me", "CLIENT NO-EVICT on", "CLIENT NO-EVICT off", "AUTH u p", "READONLY", "READWRITE", "CLIENT TRACKING ON BCAST"} {
		got := goDo(ctx, ch, strings.Fields(line)...)
		p.expect(strings.Fields(line)...)
		p.say(1, ok)
		(<-got).is(t, "OK")
	}
	got = goDo(ctx, ch, "SELECT", "6") // refused: the channel stays in 5
	p.expect("SELECT", "6")
	p.say(1, func(w *frame.ReplyWriter) { w.Error([]byte("ERR no")) })
	<-got
	_ = p.nc.Close()
	until(t, "the break", func() bool { return ch.lane.Load() == nil })
	got = goDo(ctx, ch, "PING")
	p = s.accept()
	for _, line := range []string{"AUTH u p", "SELECT 5", "CLIENT SETNAME me", "CLIENT TRACKING ON BCAST", "CLIENT NO-EVICT off", "READWRITE"} {
		p.expect(strings.Fields(line)...)
		p.say(1, ok)
	}
	p.expect("PING")
	p.text(1, "PONG")
	(<-got).is(t, "PONG")
}

// TestALostTransactionIsNotGoneOnWith: what was watched is not watched any more, so the first command after a break says so, once; a command
// that broke off has said it already and is not sent again.
func TestALostTransactionIsNotGoneOnWith(t *testing.T) {
	ok := func(w *frame.ReplyWriter) { w.Simple([]byte("OK")) }
	for _, each := range []struct {
		name     string
		done     []string
		inFlight bool
		lost     bool
	}{
		{"WATCH", []string{"WATCH k"}, false, true},
		{"MULTI", []string{"MULTI"}, false, true},
		{"in flight", []string{"WATCH k"}, true, false},
		{"UNWATCH", []string{"WATCH k", "UNWATCH"}, false, false},
		{"EXEC", []string{"WATCH k", "MULTI", "EXEC"}, false, false},
		{"DISCARD", []string{"MULTI", "DISCARD"}, false, false},
	} {
		t.Run(each.name, func(t *testing.T) {
			ctx := testContext(t)
			s, c := newScript(t, Options{Reconnect: soon})
			ch := newChannel(c, ChannelOptions{})
			opened := make(chan error, 1)
			go func() { _, err := ch.open(ctx, 1); opened <- err }()
			p := s.accept()
			if err := <-opened; err != nil {
				t.Fatal(err)
			}
			for _, line := range each.done {
				got := goDo(ctx, ch, strings.Fields(line)...)
				p.expect(strings.Fields(line)...)
				p.say(1, ok)
				(<-got).is(t, "OK")
			}
			if each.inFlight {
				got := goDo(ctx, ch, "GET", "k")
				p.expect("GET", "k")
				_ = p.nc.Close()
				(<-got).lost(t)
			} else {
				_ = p.nc.Close()
				(<-goDo(ctx, c.zero, "PING")).lost(t) // somebody notices
			}
			until(t, "the break", func() bool { return ch.lane.Load() == nil })
			accepted := make(chan *peer, 1)
			go func() { accepted <- s.accept() }()
			if each.lost {
				if _, err := ch.Do(ctx, "EXEC"); err != ErrStateLost {
					t.Errorf("got %v, want ErrStateLost", err)
				}
			}
			got := goDo(ctx, ch, "GET", "k")
			p = <-accepted
			p.expect("GET", "k")
			p.text(1, "v")
			(<-got).is(t, "v")
		})
	}
}

// TestAnAbandonedTransactionIsNotGoneOnWith: whether a MULTI ran whose context ended before its answer nobody knows. What comes behind it on the
// Channel is not part of it.
func TestAnAbandonedTransactionIsNotGoneOnWith(t *testing.T) {
	ctx := testContext(t)
	for name, protocol := range protocols {
		for _, piped := range []bool{false, true} {
			m := resp.NewMux()
			begun, let := make(chan struct{}, 1), make(chan struct{})
			var mu sync.Mutex
			open := map[*resp.Session]bool{}
			m.HandleFunc("MULTI", 1, func(s *resp.Session, r *resp.Request) error {
				waits := r.Context()
				begun <- struct{}{}
				select {
				case <-let:
				case <-waits.Done():
				}
				mu.Lock()
				open[s] = true
				mu.Unlock()
				return s.WriteStatusString("OK")
			})
			m.HandleFunc("TELL", 1, func(s *resp.Session, r *resp.Request) error {
				mu.Lock()
				defer mu.Unlock()
				if open[s] {
					return s.WriteStatusString("QUEUED")
				}
				return s.WriteStatusString("PLAIN")
			})
			c := dial(t, serve(t, &resp.Server{Handler: m}), Options{Protocol: protocol, Reconnect: soon})
			ch, err := c.Channel(ctx)
			if err != nil {
				t.Fatal(err)
			}
			short, cancel := context.WithCancel(ctx)
			go func() { <-begun; cancel() }()
			if piped {
				p := ch.Pipeline()
				p.Do("MULTI")
				_, err = p.Exec(short)
			} else {
				_, err = ch.Do(short, "MULTI")
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatal(name, err)
			}
			close(let)
			if v, err := ch.Do(ctx, "TELL"); err != nil || string(v.Data) != "PLAIN" {
				t.Errorf("%s, piped %v: %q, %v", name, piped, v.Data, err)
			}
		}
	}
}

// TestEffectOf tells commands by name and length, whatever their case.
func TestEffectOf(t *testing.T) {
	for line, want := range map[string]effect{
		"GET k": 0, "get": 0, "SELECT 1": effectKept, "sElEcT 1": effectKept, "CLIENT": 0, "CLIENT LIST": 0, "client no-evict on": effectKept,
		"MULTI": effectWatch, "HELLO": effectNone, "HELLO 3": effectRefused, "XREAD STREAMS s 0": 0, "XREAD BLOCK 0 STREAMS s 0": effectHolds,
		"xreadgroup GROUP g c block 5 STREAMS s >": effectHolds, strings.Repeat("x", 100): 0, "CLIENT " + strings.Repeat("x", 100): 0, "@": 0,
	} {
		if got := effectOf(strings.Fields(line)); got != want {
			t.Errorf("%s: %d, want %d", line, got, want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { effectOf([]string{"client", "tracking", "on"}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
