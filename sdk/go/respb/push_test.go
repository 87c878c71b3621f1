package respb

// This file owns the tests of pushes: credit, subscriptions that nobody reads, and changes that are told while a reply is on its way.

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/weft-db/weft/sdk/go/internal/frame"
	"github.com/weft-db/weft/sdk/go/resp"
)

// confirmation is the reply to SUBSCRIBE, and confirmationBytes what it costs of the window.
const (
	confirmation      = "subscribed"
	confirmationBytes = 4 + len(confirmation)
)

// subscribed subscribes a channel of its own with a window to "news".
func subscribed(t *testing.T, p *peer, c *Conn, window int) (*Channel, *Subscription) {
	t.Helper()
	ctx := testContext(t)
	ch, err := c.Channel(ctx, ChannelOptions{SubscriptionBytesMax: window})
	if err != nil {
		t.Fatal(err)
	}
	var sub *Subscription
	failed := make(chan error, 1)
	go func() {
		var err error
		sub, err = ch.Subscribe(ctx, "news")
		failed <- err
	}()
	if r := p.control(frame.Window); r.channel != ch.ID() || int(r.control.More) != window {
		t.Fatalf("the window of channel %d is %d", r.channel, r.control.More)
	}
	p.expect("SUBSCRIBE", "news")
	p.text(ch.ID(), confirmation)
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	return ch, sub
}

// creditor sends messages as a server does: while there is credit.
type creditor struct {
	p       *peer
	channel uint16
	credit  int
	frames  [][]byte // of all messages
	sent    int      // of frames
}

// message adds a message, in slices if it is to be cut.
func (s *creditor) message(payload string, cut int) {
	whole := pushed(s.channel, "message", "news", payload)
	if cut == 0 {
		s.frames = append(s.frames, whole)
		return
	}
	for len(whole) > 0 {
		n := min(cut, len(whole))
		s.frames = append(s.frames, frame.AppendControl(nil, s.channel, frame.Fragment, frame.Control{Last: n == len(whole), Slice: whole[:n]}))
		whole = whole[n:]
	}
}

// send sends what the credit allows, taking what the client gives meanwhile until it has answered a command. It returns how many frames have
// been sent then.
func (s *creditor) send(t *testing.T, ch *Channel) int {
	t.Helper()
	for more := true; more; { // a client that has seen all frames has given back for all of them
		more = false
		for ; s.credit > 0 && s.sent < len(s.frames); more = true {
			f := s.frames[s.sent]
			if _, err := s.p.nc.Write(f); err != nil {
				t.Fatal(err)
			}
			s.sent++
			s.credit -= len(f)
		}
		// Its reader comes to this reply behind the frames, and its next command behind what it gives back for them.
		for _, word := range []string{"seen?", "given?"} {
			got := goDo(testContext(t), ch.conn.zero, "ECHO", word)
			for {
				r, err := s.p.read()
				if err != nil {
					t.Fatal(err)
				}
				if r.opcode != frame.Window {
					break
				}
				s.credit += int(r.control.More)
				more = true
			}
			s.p.text(0, word)
			(<-got).is(t, word)
		}
	}
	return s.sent
}

// TestMessagesThatNobodyReads: whether messages come whole or in slices, what waits for the subscriber is bounded by the window and one
// message, and all of it comes when it reads.
func TestMessagesThatNobodyReads(t *testing.T) {
	const window, size, messages = 10_000, 3000, 30
	for name, cut := range map[string]int{"whole": 0, "sliced": 500, "slices larger than the window": 20_000} {
		t.Run(name, func(t *testing.T) {
			payload := size
			if cut > window {
				payload = 15_000
			}
			p, c := connected(t, Options{})
			ch, sub := subscribed(t, p, c, window)
			s := &creditor{p: p, channel: ch.ID(), credit: window - confirmationBytes}
			for i := range messages {
				s.message(fmt.Sprintf("%d:%s", i, strings.Repeat("x", payload)), cut)
			}
			if s.send(t, ch) == len(s.frames) {
				t.Error("the server could send everything to a client that reads nothing")
			}
			sub.mu.Lock()
			bytes := sub.bytes
			sub.mu.Unlock()
			if bytes == 0 || bytes > window+2*(payload+100) {
				t.Errorf("%d bytes wait, with a window of %d", bytes, window)
			}
			for i := range messages {
				s.send(t, ch)
				m, err := sub.Receive(testContext(t))
				if err != nil || !strings.HasPrefix(m.Payload, fmt.Sprint(i, ":")) || len(m.Payload) < payload {
					t.Fatal(i, m.Payload[:min(20, len(m.Payload))], err)
				}
			}
			// All credit comes back: what is not given yet is less than half.
			s.send(t, ch)
			l := ch.lane.Load().link
			l.mu.Lock()
			owed := ch.lane.Load().owed
			l.mu.Unlock()
			if s.credit+owed != window {
				t.Errorf("%d of the window were given back and %d are owed, of %d", s.credit, owed, window)
			}
		})
	}
}

// TestCreditOfOtherPushes: what is no message costs credit too, and it comes back.
func TestCreditOfOtherPushes(t *testing.T) {
	p, c := connected(t, Options{})
	ch, _ := subscribed(t, p, c, 1000)
	s := &creditor{p: p, channel: ch.ID(), credit: 1000 - confirmationBytes}
	for range 50 {
		s.frames = append(s.frames, pushed(ch.ID(), "something", strings.Repeat("x", 100)))
	}
	if n := s.send(t, ch); n != len(s.frames) {
		t.Errorf("%d of %d pushes could be sent", n, len(s.frames))
	}
	cached := &Cache{ch: ch, keys: map[string]*cachedKey{}}
	ch.watched.Lock()
	ch.cache = cached
	ch.watched.Unlock()
	for range 50 {
		w := frame.ReplyWriter{Channel: ch.ID()}
		w.Open(frame.Push, 2)
		w.Bulk([]byte("invalidate"))
		w.Open(frame.Array, 1)
		w.Bulk([]byte(strings.Repeat("k", 100)))
		s.frames = append(s.frames, w.Out)
	}
	if n := s.send(t, ch); n != len(s.frames) {
		t.Errorf("%d of %d invalidations could be sent", n, len(s.frames))
	}
}

// TestMessagesThatNobodyReadsOverRESP3: the reader waits, and with it the server.
func TestMessagesThatNobodyReadsOverRESP3(t *testing.T) {
	const window, size, messages = 4000, 1000, 200
	ctx := testContext(t)
	near, far := net.Pipe()
	defer far.Close()
	c := New(Options{Protocol: RESP3, Dialer: func(context.Context) (net.Conn, error) { return near, nil }})
	defer c.Close()
	go func() { // ends with the connection
		r := resp.NewClientConn(far)
		w := resp.NewWriter(far)
		for {
			args, err := r.Next()
			if err != nil {
				return
			}
			if strings.EqualFold(string(args[0]), "HELLO") {
				_ = w.WriteMapHeader(0)
				_ = w.Flush()
				continue
			}
			_ = w.WritePushHeader(3)
			_ = w.WriteBulkString("subscribe")
			_ = w.WriteBulkString("news")
			_ = w.WriteInt(1)
			for range messages {
				_ = w.WritePushString([]string{"message", "news", strings.Repeat("x", size)})
			}
			_ = w.Flush()
		}
	}()
	if _, err := c.zero.open(ctx, 1); err != nil {
		t.Fatal(err)
	}
	c.zero.opts.SubscriptionBytesMax = window
	sub, err := own(c).zero.Subscribe(ctx, "news")
	if err != nil {
		t.Fatal(err)
	}
	bytes := 0
	until(t, "the reader's pause", func() bool {
		sub.mu.Lock()
		defer sub.mu.Unlock()
		bytes = sub.bytes
		return sub.space != nil || bytes >= messages*size
	})
	if bytes > window+size+len("news") {
		t.Errorf("%d bytes wait, with a window of %d", bytes, window)
	}
	for i := range messages {
		if m, err := sub.Receive(ctx); err != nil || len(m.Payload) != size {
			t.Fatal(i, err)
		}
	}
	// A reader that waits does not outlive its connection.
	_ = c.Close()
	if _, err := sub.Receive(ctx); err != ErrClosed {
		t.Error(err)
	}
}

// TestUnsubscribedStaysSo: what was given up is not subscribed to again after a break.
func TestUnsubscribedStaysSo(t *testing.T) {
	ctx := testContext(t)
	s, c := newScript(t, Options{Reconnect: soon})
	done := make(chan error, 1)
	var sub *Subscription
	go func() {
		var err error
		sub, err = c.zero.Subscribe(ctx, "a", "b")
		if err == nil {
			err = sub.Unsubscribe(ctx, "a")
		}
		done <- err
	}()
	p := s.accept()
	p.control(frame.Window)
	p.expect("SUBSCRIBE", "a", "b")
	p.text(0, "subscribed")
	p.expect("UNSUBSCRIBE", "a")
	p.text(0, "unsubscribed")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	_ = p.nc.Close()
	p = s.accept()
	p.control(frame.Window)
	p.expect("SUBSCRIBE", "b")
	p.text(0, "subscribed")
	if _, err := sub.Receive(ctx); err != ErrMessagesLost {
		t.Error(err)
	}
}

// TestNobodyReadsForClosedChannels: a channel that expects pushes has the connection read all the time, and no longer than it is there.
func TestNobodyReadsForClosedChannels(t *testing.T) {
	ctx := testContext(t)
	p, c := connected(t, Options{})
	pins := func() (n int) { locked(c.zero, func(l *link) bool { n = l.pins; return true }); return n }
	ch, _ := subscribed(t, p, c, 1000)
	if pins() != 1 {
		t.Error(pins(), "channels expect pushes")
	}
	_ = ch.Close()
	if pins() != 0 {
		t.Error("a closed channel expects pushes")
	}
	p.control(frame.Close)
	other, err := c.Channel(ctx, ChannelOptions{OnPush: func(*Value) {}})
	if err != nil || pins() != 1 {
		t.Fatal(pins(), err)
	}
	got := goDo(ctx, other, "BLPOP", "l", "0")
	p.expect("BLPOP", "l", "0")
	if _, err := p.nc.Write(frame.AppendControl(nil, other.ID(), frame.Close, frame.Control{Code: 4})); err != nil {
		t.Fatal(err)
	}
	if o := <-got; o.err == nil {
		t.Error("the server has closed the channel")
	}
	if pins() != 0 {
		t.Error("a channel that the server has closed expects pushes")
	}
}

// TestOnPush is told without anybody calling.
func TestOnPush(t *testing.T) {
	told := make(chan string, 1)
	p, _ := connected(t, Options{OnPush: func(v *Value) { told <- v.String() }})
	if _, err := p.nc.Write(pushed(0, "hello", "there")); err != nil {
		t.Fatal(err)
	}
	if got := <-told; got != `>["hello" "there"]` {
		t.Error(got)
	}
}

// caching opens a cache over a connection that a test says, and returns what reads k through it.
func caching(t *testing.T) (p *peer, cache *Cache, get func() <-chan outcome) {
	t.Helper()
	p, c := connected(t, Options{Reconnect: Reconnect{Disabled: true}})
	ctx := testContext(t)
	opened := make(chan error, 1)
	go func() {
		var err error
		cache, err = c.Cache(ctx, 0)
		opened <- err
	}()
	r := p.expect("CLIENT", "TRACKING", "ON")
	p.text(r.channel, "OK")
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	return p, cache, func() <-chan outcome {
		got := make(chan outcome, 1)
		go func() {
			v, err := cache.Do(ctx, "GET", "k")
			got <- outcome{v, err}
		}()
		return got
	}
}

// TestCacheWhileAsking: a change that is told while a reply is on its way may be newer than it. The reply is given, and not kept.
func TestCacheWhileAsking(t *testing.T) {
	for name, key := range map[string]string{"the key": "k", "everything": ""} {
		t.Run(name, func(t *testing.T) {
			p, cache, get := caching(t)
			id := cache.ch.ID()
			got := get()
			p.expect("GET", "k")
			p.invalidate(id, key)
			p.text(id, "old")
			(<-got).is(t, "old")
			got = get()
			p.expect("GET", "k") // it was not kept
			p.text(id, "new")
			(<-got).is(t, "new")
			(<-get()).is(t, "new") // and that was
			p.invalidate(id, key)
			heard := goDo(testContext(t), cache.ch.conn.zero, "ECHO", "heard")
			p.expect("ECHO", "heard")
			p.text(0, "heard")
			(<-heard).is(t, "heard")
			got = get()
			p.expect("GET", "k")
			p.text(id, "newer")
			(<-got).is(t, "newer")
			if s := cache.Stats(); s.Hits != 1 || s.Misses != 3 || s.Keys != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestCacheAsksTwice has two ask for the same key, and a change be told between their replies.
func TestCacheAsksTwice(t *testing.T) {
	p, cache, get := caching(t)
	id := cache.ch.ID()
	first := get()
	p.expect("GET", "k")
	second := get()
	p.expect("GET", "k")
	p.text(id, "old")
	old := <-first
	old.is(t, "old")
	p.invalidate(id, "k")
	p.text(id, "new")
	(<-second).is(t, "new")
	third := get()
	p.expect("GET", "k")
	p.text(id, "newest")
	(<-third).is(t, "newest")
	if s := cache.Stats(); s.Keys != 1 || s.Bytes <= 0 {
		t.Errorf("%+v", s)
	}
}

// TestCacheForgetsFailures: nothing is left of a command that failed.
func TestCacheForgetsFailures(t *testing.T) {
	p, cache, get := caching(t)
	got := get()
	p.expect("GET", "k")
	p.say(cache.ch.ID(), func(w *frame.ReplyWriter) { w.Error([]byte("WRONGTYPE no string")) })
	if o := <-got; o.err == nil {
		t.Error("no error")
	}
	if s := cache.Stats(); s.Keys != 0 || s.Bytes != 0 {
		t.Errorf("%+v", s)
	}
}

// TestCacheOrderIsBounded: keys that are never kept do not pile up.
func TestCacheOrderIsBounded(t *testing.T) {
	ctx := testContext(t)
	m := resp.NewMux()
	m.HandleFunc("CLIENT", -2, func(s *resp.Session, _ *resp.Request) error { return s.WriteOK() })
	m.HandleFunc("GET", 2, func(s *resp.Session, _ *resp.Request) error { return resp.Errorf("WRONGTYPE", "no string") })
	c := dial(t, serve(t, &resp.Server{Handler: m}), Options{Protocol: RESPB})
	cache, err := c.Cache(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		if _, err := cache.Get(ctx, fmt.Sprint("k", i)); err == nil {
			t.Fatal("no error")
		}
	}
	if len(cache.order) > 100 || len(cache.keys) != 0 {
		t.Error(len(cache.order), "places of", len(cache.keys), "keys")
	}
}

// TestSubscribingAgainFails: a name that was subscribed before stays so when a later call for it fails.
func TestSubscribingAgainFails(t *testing.T) {
	p, c := connected(t, Options{})
	ch, sub := subscribed(t, p, c, 1000)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := ch.Subscribe(over, "news", "more"); err != context.Canceled {
		t.Error(err)
	}
	sub.mu.Lock()
	defer sub.mu.Unlock()
	_, news := sub.names[0]["news"]
	_, more := sub.names[0]["more"]
	if !news || more {
		t.Error("subscribed to news:", news, "and to more:", more)
	}
}
