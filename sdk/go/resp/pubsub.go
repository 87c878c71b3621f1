package resp

// This file owns subscriptions and the delivery of messages.

import "sync"

// DefaultSubscriptionsMax is the channels and patterns one session may be subscribed to.
const DefaultSubscriptionsMax = 1 << 16

// PubSub keeps who is subscribed to what and delivers messages. Its zero value is ready. Any goroutine may publish; Subscribe and its like
// belong to the handler of the session concerned.
//
// Deliveries never wait for a client, and every subscriber of a channel sees its messages in the same order. A session leaves
// when its connection ends or its client sends RESET.
type PubSub struct {
	// SubscriptionsMax bounds the subscriptions of one session, zero meaning DefaultSubscriptionsMax.
	SubscriptionsMax int

	mu       sync.Mutex
	channels map[string]map[*Session]struct{}
	patterns map[string]map[*Session]struct{}
	sessions map[*Session]*subscriber
}

// subscriber is what one session is subscribed to; PubSub.mu guards it.
type subscriber struct{ channels, patterns map[string]struct{} }

func (p *PubSub) setup() {
	if p.channels == nil {
		p.channels = map[string]map[*Session]struct{}{}
		p.patterns = map[string]map[*Session]struct{}{}
		p.sessions = map[*Session]*subscriber{}
	}
}

// errSubscriptions refuses one subscription too many.
var errSubscriptions = &Error{"ERR", "too many subscriptions on this connection; unsubscribe from some first"}

// Subscribe subscribes s to channels and writes one confirmation for each, which is the reply to SUBSCRIBE.
func (p *PubSub) Subscribe(s *Session, channels ...string) error {
	return p.subscribe(s, "subscribe", channels, false)
}

// PSubscribe is Subscribe for patterns.
func (p *PubSub) PSubscribe(s *Session, patterns ...string) error {
	return p.subscribe(s, "psubscribe", patterns, true)
}

// Unsubscribe ends subscriptions and writes one confirmation for each. Without channels it ends all of them.
func (p *PubSub) Unsubscribe(s *Session, channels ...string) error {
	return p.unsubscribe(s, "unsubscribe", channels, false)
}

// PUnsubscribe is Unsubscribe for patterns.
func (p *PubSub) PUnsubscribe(s *Session, patterns ...string) error {
	return p.unsubscribe(s, "punsubscribe", patterns, true)
}

func (p *PubSub) subscribe(s *Session, kind string, names []string, pattern bool) error {
	limit := p.SubscriptionsMax
	if limit <= 0 {
		limit = DefaultSubscriptionsMax
	}
	if s.subscriptions+len(names) > limit {
		return errSubscriptions
	}
	counts := p.add(s, names, pattern)
	return confirmAll(s, kind, names, counts)
}

// add subscribes s and returns how many subscriptions it has with each name. Nothing is written meanwhile: a client that does not read would hold up
// all others.
func (p *PubSub) add(s *Session, names []string, pattern bool) (counts []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setup()
	sub := p.sessions[s]
	if sub == nil {
		sub = &subscriber{map[string]struct{}{}, map[string]struct{}{}}
		p.sessions[s] = sub
		s.leave(p)
	}
	for _, name := range names {
		mine, all := sub.in(p, pattern)
		if _, had := mine[name]; !had {
			mine[name] = struct{}{}
			if all[name] == nil {
				all[name] = map[*Session]struct{}{}
			}
			all[name][s] = struct{}{}
			s.subscriptions++
		}
		counts = append(counts, s.subscriptions)
	}
	return counts
}

// in returns the maps that a channel or a pattern stands in.
func (sub *subscriber) in(p *PubSub, pattern bool) (mine map[string]struct{}, all map[string]map[*Session]struct{}) {
	if pattern {
		return sub.patterns, p.patterns
	}
	return sub.channels, p.channels
}

// confirmAll writes a confirmation for each name: RESPB has one reply for all of them, in RESP each is a push of its own.
func confirmAll(s *Session, kind string, names []string, counts []int) error {
	if s.rb != nil {
		_ = s.WriteArrayHeader(len(names))
	}
	for i, name := range names {
		if err := confirm(s, kind, name, false, counts[i]); err != nil {
			return err
		}
	}
	return nil
}

// confirm writes what tells a client of its subscription and of how many it has.
func confirm(s *Session, kind, name string, null bool, count int) error {
	if s.rb != nil {
		_ = s.WriteArrayHeader(3)
	} else {
		_ = s.WritePushHeader(3)
	}
	_ = s.WriteBulkString(kind)
	if null {
		_ = s.WriteNull()
	} else {
		_ = s.WriteBulkString(name)
	}
	return s.WriteInt(count)
}

func (p *PubSub) unsubscribe(s *Session, kind string, names []string, pattern bool) error {
	names, counts := p.take(s, names, pattern)
	if len(names) == 0 {
		if s.rb != nil {
			_ = s.WriteArrayHeader(1)
		}
		return confirm(s, kind, "", true, s.subscriptions)
	}
	return confirmAll(s, kind, names, counts)
}

// take ends subscriptions of s, all of a kind without names, as add begins them.
func (p *PubSub) take(s *Session, names []string, pattern bool) (_ []string, counts []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	sub := p.sessions[s]
	if len(names) == 0 && sub != nil {
		mine, _ := sub.in(p, pattern)
		for name := range mine {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if sub != nil {
			p.remove(s, sub, name, pattern)
		}
		counts = append(counts, s.subscriptions)
	}
	return names, counts
}

func (p *PubSub) remove(s *Session, sub *subscriber, name string, pattern bool) {
	mine, all := sub.in(p, pattern)
	if _, had := mine[name]; !had {
		return
	}
	delete(mine, name)
	delete(all[name], s)
	if len(all[name]) == 0 {
		delete(all, name)
	}
	s.subscriptions--
}

// drop ends everything that s is subscribed to.
func (p *PubSub) drop(s *Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	sub := p.sessions[s]
	if sub == nil {
		return
	}
	for name := range sub.channels {
		p.remove(s, sub, name, false)
	}
	for name := range sub.patterns {
		p.remove(s, sub, name, true)
	}
	delete(p.sessions, s)
}

// Publish sends message to everyone subscribed to channel or to a pattern that matches it, and returns how many times it was delivered.
// The message is encoded once per protocol version, not per subscriber, and is not kept.
func (p *PubSub) Publish(channel string, message []byte) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := deliver(p.channels[channel], []string{"message", channel}, message)
	for pattern, sessions := range p.patterns {
		if matchGlob(pattern, channel) {
			n += deliver(sessions, []string{"pmessage", pattern, channel}, message)
		}
	}
	return n
}

// deliver pushes head and message to sessions. One that is being cut does not count.
func deliver(sessions map[*Session]struct{}, head []string, message []byte) (n int) {
	var encodings [3][]byte
	for s := range sessions {
	again:
		version := s.speaks.Load()
		if encodings[version] == nil {
			encodings[version], _ = encode(version, func(w *Writer) error {
				_ = w.WritePushHeader(len(head) + 1)
				for _, part := range head {
					_ = w.WriteBulkString(part)
				}
				return w.WriteBulkBytes(message)
			})
		}
		switch s.link.push(version, encodings[version]) {
		case nil:
			n++
		case errSpeaks:
			goto again
		}
	}
	return n
}

// Channels returns the channels that match pattern, all for "", and have subscribers.
func (p *PubSub) Channels(pattern string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for name := range p.channels {
		if pattern == "" || matchGlob(pattern, name) {
			names = append(names, name)
		}
	}
	return names
}

// Subscribers returns how many sessions are subscribed to channel itself.
func (p *PubSub) Subscribers(channel string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.channels[channel])
}

// Patterns returns how many patterns have subscribers.
func (p *PubSub) Patterns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.patterns)
}

// Register adds SUBSCRIBE, UNSUBSCRIBE, PSUBSCRIBE, PUNSUBSCRIBE, PUBLISH and PUBSUB to m.
func (p *PubSub) Register(m *Mux) {
	for name, f := range map[string]func(*Session, ...string) error{
		"SUBSCRIBE": p.Subscribe, "PSUBSCRIBE": p.PSubscribe, "UNSUBSCRIBE": p.Unsubscribe, "PUNSUBSCRIBE": p.PUnsubscribe,
	} {
		arity := -1
		if name == "SUBSCRIBE" || name == "PSUBSCRIBE" {
			arity = -2
		}
		m.HandleFunc(name, arity, func(s *Session, r *Request) error {
			names := make([]string, 0, r.Len()-1)
			for _, a := range r.Args()[1:] {
				names = append(names, string(a))
			}
			return f(s, names...)
		})
	}
	m.HandleFunc("PUBLISH", 3, func(s *Session, r *Request) error {
		return s.WriteInt(p.Publish(r.String(1), r.Arg(2)))
	})
	m.HandleFunc("PUBSUB", -2, p.introspect)
}

// introspect answers PUBSUB.
func (p *PubSub) introspect(s *Session, r *Request) error {
	args := r.Args()[2:]
	switch sub := r.Arg(1); {
	case equalFold(sub, "CHANNELS") && len(args) <= 1:
		pattern := ""
		if len(args) == 1 {
			pattern = string(args[0])
		}
		return s.WriteArrayString(p.Channels(pattern))
	case equalFold(sub, "NUMSUB"):
		_ = s.WriteMapHeader(len(args))
		for _, a := range args {
			_ = s.WriteBulkBytes(a)
			_ = s.WriteInt(p.Subscribers(string(a)))
		}
		return nil
	case equalFold(sub, "NUMPAT") && len(args) == 0:
		return s.WriteInt(p.Patterns())
	}
	return Errorf("ERR", "unknown subcommand or wrong number of arguments for '%s'. Try PUBSUB CHANNELS, NUMSUB or NUMPAT.", lower(r.Arg(1)))
}

// leave notes that s has subscriptions at p.
func (s *Session) leave(p *PubSub) {
	for _, known := range s.pubsubs {
		if known == p {
			return
		}
	}
	s.pubsubs = append(s.pubsubs, p)
	s.OnClose(func() { p.drop(s) })
}

// dropSubscriptions ends all subscriptions of s.
func (s *Session) dropSubscriptions() {
	for _, p := range s.pubsubs {
		p.drop(s)
	}
}

// matchGlob reports whether name matches pattern in Redis's syntax: * ? [a-c] [^x] and backslash. Only the last star is tried
// again, so a hostile pattern costs at most the product of the lengths.
func matchGlob(pattern, name string) bool {
	p, n := 0, 0
	star, mark := -1, 0
	for n < len(name) {
		if p < len(pattern) && pattern[p] == '*' {
			star, mark = p, n
			p++
			continue
		}
		if p < len(pattern) {
			if size, ok := matchOne(pattern[p:], name[n]); ok {
				p += size
				n++
				continue
			}
		}
		if star < 0 {
			return false
		}
		mark++
		p, n = star+1, mark
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// matchOne matches c with the first element of pattern, which is not a star, and returns the element's length.
func matchOne(pattern string, c byte) (size int, ok bool) {
	switch {
	case pattern[0] == '?':
		return 1, true
	case pattern[0] == '[':
		return matchClass(pattern, c)
	case pattern[0] == '\\' && len(pattern) > 1:
		return 2, pattern[1] == c
	}
	return 1, pattern[0] == c
}

// matchClass matches c with a class such as [^a-z_]; one without an end goes to the pattern's end.
func matchClass(pattern string, c byte) (size int, ok bool) {
	i := 1
	not := i < len(pattern) && pattern[i] == '^'
	if not {
		i++
	}
	for i < len(pattern) && pattern[i] != ']' {
		low := pattern[i]
		if low == '\\' && i+1 < len(pattern) {
			i++
			low = pattern[i]
		}
		high := low
		if i+2 < len(pattern) && pattern[i+1] == '-' {
			high = pattern[i+2]
			i += 2
		}
		if low > high {
			low, high = high, low
		}
		ok = ok || low <= c && c <= high
		i++
	}
	return min(i+1, len(pattern)), ok != not
}
