package resp

// Owns: which user a new channel begins with, and its waiting for a login on channel 0 that came before its first frame and is not
// answered yet (spec section 8.2). Does not own: logging in.

import "net"

// heir is what a channel has to do with the inheritance of users. It is guarded by out.mu.
type heir struct {
	// Of channel 0: the number of its last AUTH, HELLO or RESET that runs or waits apart from the reader, if there was one since it
	// was last idle, and the channels that wait for such a one.
	login   uint32
	logged  bool
	waiting []*channel
	// Of a channel that waits: for which one. Its frames queue until then, as behind a command that runs.
	waits bool
	after uint32
}

// isLogin reports whether a command may say who uses channel 0 and the channels that open after it. EXEC runs what MULTI has queued.
func isLogin(name []byte) bool {
	return equalFold(name, "AUTH") || equalFold(name, "HELLO") || equalFold(name, "RESET") || equalFold(name, "EXEC")
}

// noteLogin is told of a command of channel 0 that is not answered by the reader. out.mu is held.
func (ch *channel) noteLogin(seq uint32, name []byte) {
	if ch.id == 0 && isLogin(name) {
		ch.heir.login, ch.heir.logged = seq, true
	}
}

// begin has a channel that has just been opened take the user of channel 0, at once or when a login that came before has been answered.
func (m *muxConn) begin(ch *channel) {
	zero := m.zero
	m.c.out.mu.Lock()
	// Serial numbers: what is not behind the command that runs is still to come.
	if ch != zero && zero != nil && zero.busy && zero.heir.logged && int32(zero.heir.login-zero.running) >= 0 {
		zero.heir.waiting = append(zero.heir.waiting, ch)
		ch.busy, ch.heir.waits, ch.heir.after = true, true, zero.heir.login
		ch.settle()
		m.apart++ // the goroutine that will run what queues
		m.c.out.mu.Unlock()
		return
	}
	m.c.out.mu.Unlock()
	if ch != zero && zero != nil {
		ch.inherit(zero.sess.who.Load())
	} else {
		ch.inherit(nil)
	}
}

// inherit makes the session that of a user, if channel 0 had one, and tells of it.
func (ch *channel) inherit(who *string) {
	if who != nil {
		ch.sess.Authenticate(*who)
	}
	if s := ch.m.c.server; s.OnOpen != nil && !s.guard("OnOpen", ch.m.c.remote, func() { s.OnOpen(ch.sess) }) {
		go func() { _ = ch.sess.Close() }() // who inherits may hold what Close takes
	}
}

// admit lets those go on that wait for the command of channel 0 that has just been answered, or for one before it; all of them when
// nothing runs apart from the reader any more. out.mu is held, and nothing runs on channel 0.
func (ch *channel) admit(all bool) {
	h := &ch.heir
	rest := h.waiting[:0]
	for _, next := range h.waiting {
		if !all && int32(next.heir.after-ch.running) > 0 {
			rest = append(rest, next)
			continue
		}
		next.heir.waits = false
		if ch.m.stopping == net.ErrClosed {
			next.queue, next.queued = nil, 0
		}
		who := ch.sess.who.Load() // not later: channel 0 goes on
		go next.goOn(who)         // apart counts it
	}
	clear(h.waiting[len(rest):])
	h.waiting = rest
	if all {
		h.waiting, h.logged = nil, false
	}
}

// goOn runs what has queued on a channel that waited for its user.
func (ch *channel) goOn(who *string) {
	ch.inherit(who)
	r := newMuxReader(ch.m)
	r.ch, r.away = ch, true
	r.finishAway()
}
