package respb

// This file owns the bounds of time on a link: replies that do not come, bytes that are not taken, a server that is silent. It owns no
// call's context; those end by themselves.

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"github.com/weft-db/weft/sdk/go/resp"
)

// watch looks at a link a few times in each timeout, for as long as something is awaited. It counts its own looks instead of asking for the
// time: a call costs a store, no timer of its own, and a process that was suspended blames nobody for it.
//
// Of each lane it is only the oldest call that is late: those behind it wait for it, not for the server. Its clock begins when it is sent
// or when the reply before it came, whichever is later, and stands still while one large request or reply is on its way.
type watch struct {
	tick  time.Duration // 0: nothing is bounded
	timer *time.Timer
	armed bool

	now    int64 // looks so far
	heard  int64 // when bytes last came
	asked  int64 // when PING was sent that nothing came after, 0: none is
	probe  *lane // where it was sent
	stuck  int64 // looks in a row at which the same write had not got on
	nudged bool  // the read deadline was set to wake the reader

	// As of the last look.
	got, sent, writes, handled int64
}

// looks is how often a timeout is looked at while it runs: it ends at most two of them late.
const looks = 8

// tickMin bounds how often a link is looked at, whatever the timeouts are.
const tickMin = time.Millisecond

// startWatch begins to look. The link is not in use yet.
func (l *link) startWatch() {
	o, w := &l.conn.opts, &l.watch
	for _, d := range [...]time.Duration{o.ReadTimeout, o.WriteTimeout, o.PingInterval} {
		if d > 0 && (w.tick == 0 || d/looks < w.tick) {
			w.tick = max(d/looks, tickMin)
		}
	}
	if w.tick > 0 {
		w.timer = time.AfterFunc(w.tick, l.look)
		w.armed = true
	}
}

// arm has the link looked at from now on. l.mu is held.
func (l *link) arm() {
	w := &l.watch
	w.armed = true
	w.heard = w.now
	w.timer.Reset(w.tick)
}

// after is how many looks a timeout is: never too few.
func (w *watch) after(timeout time.Duration) int64 { return int64((timeout+w.tick-1)/w.tick) + 1 }

// look is called by the timer.
func (l *link) look() {
	o, w := &l.conn.opts, &l.watch
	l.mu.Lock()
	if l.err != nil {
		l.mu.Unlock()
		return
	}
	w.now++
	moving, stuck := l.moved()
	var late []*call
	switch {
	case stuck && o.WriteTimeout > 0 && w.stuck >= w.after(o.WriteTimeout):
		l.mu.Unlock()
		l.fail(&TimeoutError{"the server has taken no byte", "WriteTimeout", o.WriteTimeout})
		return
	case l.silent(moving):
		l.mu.Unlock()
		l.fail(&TimeoutError{"the server is silent, PING included", "PingInterval and ReadTimeout", max(o.PingInterval, 0) + max(o.ReadTimeout, 0)})
		return
	case o.ReadTimeout > 0:
		l.eachLane(func(la *lane) {
			if la != w.probe {
				late = la.late(late, moving)
			}
		})
	}
	if len(late) > 0 && !l.binary {
		l.mu.Unlock()
		// What has not come may still come: nothing else can be told apart from it.
		l.fail(&TimeoutError{"no reply has come", "ReadTimeout", o.ReadTimeout})
		return
	}
	write, read := l.ping()
	w.armed = l.pending > 0 || l.pins > 0 || l.writing
	if w.armed {
		w.timer.Reset(w.tick)
	}
	l.mu.Unlock()
	if read {
		l.giveReading()
	}
	if write {
		l.flush(true)
	}
	l.giveUp(late)
}

// moved compares what has left and come with the last look: whether one request or reply is on its way that takes longer than that, and
// whether a write has not got on. l.mu is held.
func (l *link) moved() (moving, stuck bool) {
	w := &l.watch
	got, sent := l.wire.got.Load(), l.wire.sent.Load()
	if l.writing && l.writes == w.writes {
		moving, stuck = sent != w.sent, sent == w.sent
	}
	if got != w.got {
		w.heard, w.asked = w.now, 0
		moving = moving || l.handled == w.handled
	}
	if l.held {
		moving, w.asked = true, 0
	}
	if moving {
		w.heard = w.now
	}
	w.stuck++
	if !stuck {
		w.stuck = 0
	}
	w.got, w.sent, w.writes, w.handled = got, sent, l.writes, l.handled
	return moving, stuck
}

// holdReader notes that the reader waits for room in a subscription.
func (l *link) holdReader(held bool) {
	l.mu.Lock()
	l.held = held
	l.mu.Unlock()
}

// late takes the calls that have waited too long out of the lane, and appends them to dst. link.mu is held.
func (la *lane) late(dst []*call, moving bool) []*call {
	l := la.link
	w := &l.watch
	if moving {
		la.since = w.now
	}
	for at := &la.first; *at != nil; at = &(*at).next {
		c := *at
		switch c.state.Load() {
		case callAbandoned: // what is behind it waits for the server
			if l.binary {
				continue
			}
			// Nothing behind it is answered before it: a server that is gone is found out by it, however short the callers' contexts are.
			if c.given == 0 {
				c.given = w.now
			}
			if w.now-max(la.since, c.given) < w.after(l.conn.opts.ReadTimeout) {
				continue
			}
			return append(dst, c)
		case callDone:
			return dst
		}
		if c.extra < 0 || w.now-max(la.since, c.at) < w.after(l.conn.opts.ReadTimeout+c.extra) {
			return dst // what is behind it waits for it
		}
		dst = append(dst, c)
		if !l.binary {
			return dst
		}
		*at = c.standIn()
		if la.last == c {
			la.last = *at
		}
	}
	return dst
}

// standIn returns a call that takes the replies of c, for nobody, when c is taken out of its lane.
func (c *call) standIn() *call {
	d := newCall()
	d.state.Store(callAbandoned)
	d.next, d.lane, d.first, d.got = c.next, c.lane, c.first, c.got
	if len(c.values) > 1 {
		d.values = c.values
	}
	c.next = nil
	return d
}

// giveUp fails calls that were taken out of their lanes, and takes their commands back.
func (l *link) giveUp(late []*call) {
	if len(late) == 0 {
		return
	}
	timeout := l.conn.opts.ReadTimeout
	for _, c := range late {
		la, first, n, extra := c.lane, c.first, len(c.values), c.extra
		c.finish(&TimeoutError{"no reply has come", "ReadTimeout", timeout + extra})
		l.takeBack(la, first, n, false)
	}
	// One of them may be the reader, asleep.
	l.mu.Lock()
	if l.reading && !l.watch.nudged && l.err == nil {
		l.watch.nudged = true
		_ = l.wire.nc.SetReadDeadline(time.Unix(1, 0))
	}
	l.mu.Unlock()
}

// nudged reports whether a read has ended because giveUp woke the reader, who then goes on.
func (l *link) nudged(err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.watch.nudged || !os.IsTimeout(err) {
		return false
	}
	l.watch.nudged = false
	_ = l.wire.nc.SetReadDeadline(time.Time{})
	return true
}

// silent reports whether nothing has come for too long, though the server was asked. l.mu is held.
func (l *link) silent(moving bool) bool {
	w := &l.watch
	if w.asked == 0 || moving {
		return false
	}
	patience := l.conn.opts.ReadTimeout
	if patience <= 0 {
		patience = l.conn.opts.PingInterval
	}
	return w.now-w.asked >= w.after(patience)
}

// ping asks a server that has been silent whether it is there, while something is expected of it. Over RESPB the question has a channel of its
// own, so that nothing holds it up; over RESP3 it is only asked when nothing else is. l.mu is held.
func (l *link) ping() (write, read bool) {
	w := &l.watch
	interval := l.conn.opts.PingInterval
	if interval <= 0 || w.asked != 0 || l.pending == 0 && l.pins == 0 || w.now-w.heard < w.after(interval) {
		return false, false
	}
	la := l.zero
	if l.binary {
		if w.probe == nil || w.probe.err != nil {
			var err error
			if w.probe, err = l.addLocked(l.conn.probe); err != nil {
				w.probe = nil
				return false, false // all channels are in use: nothing can be asked
			}
		}
		la = w.probe
	}
	if la == nil || la.err != nil || !l.binary && (l.pending > 0 || la.ch.tx.Load() != nil) { // it would become part of a transaction
		return false, false
	}
	var err error
	from := len(l.out)
	if l.out, err = appendCommand(l, l.out, la.id, pingWords); err != nil {
		l.out = l.out[:from]
		return false, false
	}
	w.asked = w.now
	c := newCall()
	c.state.Store(callAbandoned) // any answer will do, and nobody waits for it
	return l.begin(la, c, 1)
}

var pingWords = []string{"PING"}

// blocksFor returns how long a command may wait on the server, by the timeout it names itself: 0 if it does not wait, less than 0 if
// for ever.
func blocksFor[T string | []byte](args []T) time.Duration {
	if len(args) < 3 || len(args[0]) < len("WAIT") || !mayBlock(args[0]) {
		return 0
	}
	at, unit := 0, time.Second
	switch last := len(args) - 1; {
	case isWord(args[0], "BLPOP"), isWord(args[0], "BRPOP"), isWord(args[0], "BLMOVE"), isWord(args[0], "BRPOPLPUSH"),
		isWord(args[0], "BZPOPMIN"), isWord(args[0], "BZPOPMAX"):
		at = last
	case isWord(args[0], "BLMPOP"), isWord(args[0], "BZMPOP"):
		at = 1
	case isWord(args[0], "WAIT"), isWord(args[0], "WAITAOF"):
		at, unit = last, time.Millisecond
	case isWord(args[0], "XREAD"), isWord(args[0], "XREADGROUP"):
		for i := 1; i < last && !isWord(args[i], "STREAMS"); i++ {
			if isWord(args[i], "BLOCK") {
				at, unit = i+1, time.Millisecond
				break
			}
		}
	}
	if at == 0 {
		return 0
	}
	n, err := strconv.ParseFloat(string(args[at]), 64)
	switch {
	case err != nil || !(n >= 0):
		return 0 // the server will say so
	case n == 0 || n > foreverSeconds:
		return -1
	}
	return max(time.Duration(n*float64(unit)), 1)
}

// nameOf returns the name of a command that is RESP already, empty if it is none.
func nameOf(command []byte) []byte {
	_, rest, _ := bytes.Cut(command, []byte("\r\n"))
	_, rest, _ = bytes.Cut(rest, []byte("\r\n"))
	name, _, found := bytes.Cut(rest[:min(len(rest), 64)], []byte("\r\n"))
	if !found {
		return nil
	}
	return name
}

// decodeCommand returns the arguments of a command that is RESP already; none if it cannot be read, which the server will say.
func decodeCommand(command []byte) [][]byte {
	var v Value
	if resp.NewReader(bytes.NewReader(command)).Read(&v) != nil {
		return nil
	}
	args := make([][]byte, len(v.Elems))
	for i := range args {
		args[i] = v.Elems[i].Data
	}
	return args
}

// mayBlock reports whether a command whose name begins so may block.
func mayBlock[T string | []byte](name T) bool {
	if len(name) == 0 {
		return false
	}
	first := name[0] | 0x20
	return first == 'b' || first == 'w' || first == 'x'
}

// foreverSeconds is where a command's timeout is as good as none, in any unit.
const foreverSeconds = 1 << 32

// isWord compares an argument with a word in capitals, in any case.
func isWord[T string | []byte](arg T, word string) bool {
	if len(arg) != len(word) {
		return false
	}
	for i := range len(word) {
		c := arg[i]
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
}
