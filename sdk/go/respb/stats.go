package respb

// This file owns what a Conn tells about itself: its connections and how much went over them.

import "net"

// Connected is a connection that was made; see Options.OnConnect.
type Connected struct {
	Addr     net.Addr
	Protocol Protocol
	// FellBack is why the server was not spoken to in RESPB, or not even in RESP3, though Options.Protocol allowed it: its reply to HELLO.
	FellBack error
}

// Stats is what a Conn has done so far, and holds.
type Stats struct {
	Connections int   // open now: one over RESPB, one for each Channel over RESP3
	Channels    int   // open now, channel 0 included
	Pending     int   // commands that wait for their replies
	Connects    int64 // connections made, Breaks of which were lost
	Breaks      int64
	Replies     int64 // replies that came; pushes do not count
	BytesIn     int64
	BytesOut    int64
}

// Stats returns the counters. It is cheap enough to be scraped every second.
func (c *Conn) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.past
	for l := range c.links {
		l.addTo(&s)
		l.mu.Lock()
		s.Connections++
		s.Pending += l.pending
		l.eachLane(func(la *lane) {
			if la != l.watch.probe {
				s.Channels++
			}
		})
		l.mu.Unlock()
	}
	return s
}

// addTo adds what has gone over the link.
func (l *link) addTo(s *Stats) {
	l.mu.Lock()
	s.Replies += l.replies
	l.mu.Unlock()
	s.BytesIn += l.wire.got.Load()
	s.BytesOut += l.wire.sent.Load()
}

// broke counts a connection that has broken, and tells it.
func (c *Conn) broke(err error) {
	c.mu.Lock()
	c.past.Breaks++
	c.mu.Unlock()
	if c.opts.OnBreak != nil {
		go c.opts.OnBreak(err) // it may call the client
	}
}

func (l *link) protocol() Protocol {
	switch {
	case l.binary:
		return RESPB
	case l.resp2:
		return RESP2
	}
	return RESP3
}
