package respb

// This file owns the tests of pipelines beside other callers: what they may not do to a Conn, and what they leave behind.

import (
	"errors"
	"runtime"
	"testing"

	"github.com/weft-db/weft/sdk/go/resp"
)

// TestCommandsWithoutArguments are refused by Exec, whatever is behind them, and nothing is sent.
func TestCommandsWithoutArguments(t *testing.T) {
	both(t, func(t *testing.T, protocol Protocol) {
		ctx := testContext(t)
		c := dial(t, serve(t, &resp.Server{Handler: newStore().handler()}), Options{Protocol: protocol})
		for name, add := range map[string]func(p *Pipeline){
			"Do":       func(p *Pipeline) { p.Do() },
			"Lend":     func(p *Pipeline) { p.Lend() },
			"behind":   func(p *Pipeline) { p.Do(); p.Do(string(appendRESP(nil, []string{"SET", "k", "v"}))) },
			"in front": func(p *Pipeline) { p.Lend([]byte("SET"), []byte("k"), []byte("v")); p.Do() },
		} {
			p := c.Pipeline()
			add(p)
			if _, err := p.Exec(ctx); err != ErrCommand {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := p.ExecTx(ctx); err != ErrCommand {
				t.Errorf("%s in a transaction: %v", name, err)
			}
		}
		if _, err := c.Get(ctx, "k"); err != ErrNil {
			t.Errorf("something was sent: %v", err)
		}
	})
}

// TestPassthroughIsNoWayAround: what is RESP already is refused where the same command is, is done again after a break, and leaves no connection
// changed for another.
func TestPassthroughIsNoWayAround(t *testing.T) {
	ctx := testContext(t)
	pass := func(ch *Channel, words ...string) error {
		p := ch.Pipeline()
		p.Passthrough(appendRESP(nil, words))
		_, err := p.Exec(ctx)
		return err
	}
	both(t, func(t *testing.T, protocol Protocol) {
		c := dial(t, serve(t, &resp.Server{Handler: newStore().handler()}), Options{Protocol: protocol})
		c.zero.shared = true
		ch, err := c.Channel(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var use *UseError
		for _, words := range [][]string{{"SELECT", "5"}, {"client", "reply", "skip"}, {"MULTI"}, {"BLPOP", "l", "1"}} {
			if err := pass(c.zero, words...); !errors.As(err, &use) {
				t.Errorf("%q on a Conn: %v", words, err)
			}
		}
		if err := pass(ch, "HELLO", "2"); !errors.As(err, &use) {
			t.Errorf("HELLO on a Channel: %v", err)
		}
		if err := pass(c.zero, "PING"); err != nil {
			t.Error(err)
		}
		if err := pass(ch, "SELECT", "5"); err != nil || ch.opts.DB != 5 || !ch.changed.Load() {
			t.Errorf("%v; database %d is kept, changed: %v", err, ch.opts.DB, ch.changed.Load())
		}
		if err := pass(ch, "MULTI"); err != nil || ch.tx.Load() == nil {
			t.Errorf("%v; a transaction: %v", err, ch.tx.Load() != nil)
		}
	})
}

// TestATransactionOfOnePipelineIsNoState: while its replies are looked at, others on a Conn are not told that a transaction is lost.
func TestATransactionOfOnePipelineIsNoState(t *testing.T) {
	const n = 20_000
	_, c := connected(t, Options{})
	for name, ch := range map[string]*Channel{"Conn": c.zero, "Channel": newChannel(c, ChannelOptions{})} {
		ch.shared = name == "Conn"
		p := ch.Pipeline()
		p.Do("MULTI")
		for range n {
			p.Do("GET", "k")
		}
		p.Do("EXEC")
		p.values = make([]Value, n+2)
		for i := range p.values {
			p.values[i].Kind = resp.Status
		}
		noted := make(chan struct{})
		go func() { defer close(noted); p.note(c.zero.lane.Load()) }()
		for seen := false; ; runtime.Gosched() {
			if ch.tx.Load() != nil && !seen {
				seen = true
				t.Errorf("%s: in a transaction", name)
			}
			select {
			case <-noted:
			default:
				continue
			}
			break
		}
	}
}

// TestClosedCacheServesNothing: nobody tells it of changes any more.
func TestClosedCacheServesNothing(t *testing.T) {
	for name, end := range map[string]func(cache *Cache) error{
		"Close": (*Cache).Close, "its Channel's Close": func(cache *Cache) error { return cache.Channel().Close() },
	} {
		p, cache, get := caching(t)
		got := get()
		p.expect("GET", "k")
		p.text(cache.ch.ID(), "old")
		(<-got).is(t, "old")
		if err := end(cache); err != nil {
			t.Error(name, err)
		}
		if v, err := cache.Do(testContext(t), "GET", "k"); err != ErrClosed {
			t.Errorf("%s: %s, %v", name, v.String(), err)
		}
	}
}

// TestCacheCountsAReplyOnce, however many have missed it at the same time; and a key that comes back is the youngest again.
func TestCacheCountsAReplyOnce(t *testing.T) {
	p, cache, get := caching(t)
	id := cache.ch.ID()
	var all []<-chan outcome
	for range 3 {
		all = append(all, get())
		p.expect("GET", "k")
	}
	p.text(id, "v", "v", "v")
	var want int
	for _, each := range all {
		o := <-each
		o.is(t, "v")
		want = len("GET\x00k") + sizeOf(&o.v)
	}
	if s := cache.Stats(); s.Bytes > want+16 || s.Keys != 1 { // memory of a reply is rounded up
		t.Errorf("%d bytes of %d keys, want %d", s.Bytes, s.Keys, want)
	}
	ask := func(key string) {
		got := make(chan outcome, 1)
		go func() { v, err := cache.Do(testContext(t), "GET", key); got <- outcome{v, err} }()
		p.expect("GET", key)
		p.text(id, key)
		(<-got).is(t, key)
	}
	ask("other")
	p.invalidate(id, "k")
	until(t, "the invalidation", func() bool { return cache.Stats().Keys == 1 })
	ask("k")
	cache.mu.Lock()
	cache.bytesMax = cache.bytes - 1
	cache.evict()
	_, k := cache.keys["k"]
	_, other := cache.keys["other"]
	cache.mu.Unlock()
	if !k || other {
		t.Errorf("k is there: %v, the older one: %v", k, other)
	}
}
