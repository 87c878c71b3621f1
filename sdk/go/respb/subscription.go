package respb

// This file owns subscriptions: the messages of a channel, and their way back after a break.

import (
	"context"
	"errors"
	"sync"

	"github.com/weft-db/weft/sdk/go/internal/deadline"
	"github.com/weft-db/weft/sdk/go/internal/frame"
)

// Message is one message of a subscription.
type Message struct {
	// Channel is what it was published to, Pattern what it matched, if it came through a pattern.
	Channel, Pattern string
	Payload          string
}

// Subscription receives the messages of one Channel. Messages wait until they are received, up to
// ChannelOptions.SubscriptionBytesMax; then the server holds back the rest, and everything else on that Channel with it. So a
// Channel with subscriptions is best used for nothing else. When the server's own limit is passed, it closes the channel.
type Subscription struct {
	ch *Channel

	mu     sync.Mutex
	names  [3]map[string]struct{} // channels, patterns, shard channels
	queue  []queuedMessage
	bytes  int // of queue
	lost   bool
	err    error
	signal chan struct{} // closed when there is something to receive
	space  chan struct{} // RESP3: closed when the reader may go on
}

type queuedMessage struct {
	Message
	lane   *lane
	size   int
	credit int // what it still costs of the window
}

var subscribeWords = [3]string{"SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"}
var unsubscribeWords = [3]string{"UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE"}

// Subscribe subscribes the Channel to channels and returns its Subscription, which is the same for all calls.
func (ch *Channel) Subscribe(ctx context.Context, channels ...string) (*Subscription, error) {
	return ch.subscribe(ctx, 0, channels)
}

// Psubscribe is Subscribe for patterns.
func (ch *Channel) Psubscribe(ctx context.Context, patterns ...string) (*Subscription, error) {
	return ch.subscribe(ctx, 1, patterns)
}

// Ssubscribe is Subscribe for shard channels.
func (ch *Channel) Ssubscribe(ctx context.Context, channels ...string) (*Subscription, error) {
	return ch.subscribe(ctx, 2, channels)
}

func (ch *Channel) subscribe(ctx context.Context, kind int, names []string) (*Subscription, error) {
	if len(names) == 0 {
		return nil, errors.New("respb: nothing to subscribe to")
	}
	ch.watched.Lock()
	s := ch.subs
	if s == nil {
		s = &Subscription{ch: ch, names: [3]map[string]struct{}{{}, {}, {}}}
		ch.subs = s
	}
	ch.watched.Unlock()
	la, err := ch.ready(ctx)
	if err != nil {
		return nil, err
	}
	la.setWindow(ch.window())
	la.pin()
	// Noted first: a break between the two subscribes once more than needed.
	var added []string
	s.mu.Lock()
	for _, name := range names {
		if _, had := s.names[kind][name]; !had {
			s.names[kind][name] = struct{}{}
			added = append(added, name)
		}
	}
	s.mu.Unlock()
	c, err := exchange(ctx, ch, append([]string{subscribeWords[kind]}, names...))
	if err == nil {
		err = c.one[0].Err()
		c.free()
	}
	if err != nil {
		s.forget(kind, added)
		return nil, err
	}
	return s, nil
}

func (ch *Channel) window() int {
	if n := ch.opts.SubscriptionBytesMax; n > 0 {
		return n
	}
	return DefaultSubscriptionBytesMax
}

// setWindow puts the lane under credit, once.
func (la *lane) setWindow(n int) {
	l := la.link
	if !l.binary {
		return
	}
	l.mu.Lock()
	first := la.window == 0
	la.window = n
	l.mu.Unlock()
	if first {
		l.control(la.id, frame.Window, frame.Control{More: uint32(min(int64(n), 1<<31))})
	}
}

// Close closes the Channel that is subscribed. Receive gives what has come, and then ErrClosed.
func (s *Subscription) Close() error { return s.ch.Close() }

func (s *Subscription) forget(kind int, names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		delete(s.names[kind], name)
	}
}

// Unsubscribe ends subscriptions to channels.
func (s *Subscription) Unsubscribe(ctx context.Context, channels ...string) error {
	return s.unsubscribe(ctx, 0, channels)
}

// Punsubscribe ends subscriptions to patterns.
func (s *Subscription) Punsubscribe(ctx context.Context, patterns ...string) error {
	return s.unsubscribe(ctx, 1, patterns)
}

// Sunsubscribe ends subscriptions to shard channels.
func (s *Subscription) Sunsubscribe(ctx context.Context, channels ...string) error {
	return s.unsubscribe(ctx, 2, channels)
}

func (s *Subscription) unsubscribe(ctx context.Context, kind int, names []string) error {
	if len(names) == 0 {
		return errors.New("respb: nothing to unsubscribe from")
	}
	s.forget(kind, names)
	c, err := exchange(ctx, s.ch, append([]string{unsubscribeWords[kind]}, names...))
	if err == nil {
		err = c.one[0].Err()
		c.free()
	}
	return err
}

// resubscribe subscribes a new lane to what the channel was subscribed to.
func (ch *Channel) resubscribe(ctx context.Context, la *lane) error {
	ch.watched.Lock()
	s := ch.subs
	ch.watched.Unlock()
	if s == nil {
		return nil
	}
	var wanted [3][]string
	s.mu.Lock()
	for kind := range s.names {
		for name := range s.names[kind] {
			wanted[kind] = append(wanted[kind], name)
		}
	}
	s.mu.Unlock()
	for kind, names := range wanted {
		if len(names) == 0 {
			continue
		}
		la.setWindow(ch.window())
		la.pin()
		c := newCall()
		if err, _ := exchangeOn(ctx, la, c, append([]string{subscribeWords[kind]}, names...)); err != nil {
			return err
		}
		err := c.one[0].Err()
		c.free()
		if err != nil {
			return err
		}
	}
	return nil
}

// broken is called when the channel's lane has ended: a goroutine opens it again, because nobody else may come to do it.
func (s *Subscription) broken(err error) {
	c := s.ch.conn
	s.mu.Lock()
	subscribed := false
	for _, names := range s.names {
		subscribed = subscribed || len(names) > 0
	}
	s.lost = s.lost || subscribed
	if s.space != nil {
		close(s.space)
		s.space = nil
	}
	s.mu.Unlock()
	c.mu.Lock()
	closed := c.closed || s.ch.closed.Load() || errors.Is(err, ErrClosed)
	if !closed && subscribed && !c.opts.Reconnect.Disabled {
		c.wg.Add(1)
		go func() { // ends when the channel is open again or the Conn is closed
			defer c.wg.Done()
			for failures := 0; ; failures++ {
				_, err := s.ch.open(c.ctx, 0)
				if err == nil {
					s.wakeUp()
					return
				}
				if !passes(err) || sleep(c.ctx, c.opts.Reconnect.pause(failures)) != nil {
					s.end(err)
					return
				}
			}
		}()
	} else {
		closed = true
	}
	c.mu.Unlock()
	if closed && subscribed {
		s.end(err)
	}
}

// end makes Receive fail once the queue is empty.
func (s *Subscription) end(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	s.mu.Unlock()
	s.wakeUp()
}

func (s *Subscription) wakeUp() {
	s.mu.Lock()
	if s.signal != nil {
		close(s.signal)
		s.signal = nil
	}
	s.mu.Unlock()
}

// Receive returns the next message. After the connection was renewed it returns ErrMessagesLost once.
func (s *Subscription) Receive(ctx context.Context) (Message, error) {
	for {
		s.mu.Lock()
		switch {
		case len(s.queue) > 0:
			return s.pop(), nil
		case s.lost && s.err == nil:
			s.lost = false
			s.mu.Unlock()
			return Message{}, ErrMessagesLost
		case s.err != nil:
			s.mu.Unlock()
			return Message{}, s.err
		}
		if s.signal == nil {
			s.signal = make(chan struct{})
		}
		signal := s.signal
		s.mu.Unlock()
		select {
		case <-signal:
		case <-ctx.Done():
			return Message{}, deadline.Cause(ctx)
		}
	}
}

// pop takes the first message and gives its bytes back as credit. s.mu is held, and let go of.
func (s *Subscription) pop() Message {
	m := s.queue[0]
	s.queue[0] = queuedMessage{}
	s.queue = s.queue[1:]
	if len(s.queue) == 0 {
		s.queue = nil
	}
	s.bytes -= m.size
	if s.space != nil && s.bytes < s.ch.window() {
		close(s.space)
		s.space = nil
	}
	s.mu.Unlock()
	m.lane.returnCredit(m.credit)
	return m.Message
}

// pushed handles a push on the reader's goroutine. n is what it cost of the window.
func (ch *Channel) pushed(la *lane, v *Value, n int) {
	ch.watched.Lock()
	s, cache := ch.subs, ch.cache
	ch.watched.Unlock()
	kind := ""
	if len(v.Elems) > 0 {
		kind = string(v.Elems[0].Data)
	}
	var m Message
	text := func(i int) string { return string(v.Elems[i].Data) }
	switch {
	case s != nil && (kind == "message" || kind == "smessage") && len(v.Elems) == 3:
		m.Channel, m.Payload = text(1), text(2)
	case s != nil && kind == "pmessage" && len(v.Elems) == 4:
		m.Pattern, m.Channel, m.Payload = text(1), text(2), text(3)
	case cache != nil && kind == "invalidate" && len(v.Elems) == 2:
		cache.invalidate(&v.Elems[1])
		la.returnCredit(n)
		return
	default:
		la.returnCredit(n)
		if ch.opts.OnPush != nil {
			ch.opts.OnPush(v)
		}
		return
	}
	s.put(queuedMessage{m, la, len(m.Channel) + len(m.Payload) + len(m.Pattern), n}, la)
}

func (la *lane) returnCredit(n int) {
	if n == 0 {
		return
	}
	la.link.mu.Lock()
	if la.window > 0 {
		la.consumed(n)
	}
	la.link.mu.Unlock()
}

// put queues a message. Over RESP3 there is no credit: the reader waits, and with it the server.
func (s *Subscription) put(m queuedMessage, la *lane) {
	s.mu.Lock()
	s.queue = append(s.queue, m)
	s.bytes += m.size
	for !la.link.binary && s.bytes > s.ch.window() && s.err == nil {
		if s.signal != nil {
			close(s.signal)
			s.signal = nil
		}
		if s.space == nil {
			s.space = make(chan struct{})
		}
		space := s.space
		s.mu.Unlock()
		la.link.holdReader(true) // nothing comes since nothing is read, and not since the server is gone
		select {
		case <-space:
		case <-la.link.dead:
			return
		}
		la.link.holdReader(false)
		s.mu.Lock()
	}
	s.mu.Unlock()
	s.wakeUp()
}
