package resp

// This file owns Session, a logical client as handlers see it.

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/weft-db/weft/sdk/go/internal/frame"
)

// Session is one logical client: who it is, what it speaks, and the [Writer] that its replies go to. A RESP connection has exactly
// one, a RESPB connection one for each channel.
//
// A [Handler] has the session for itself while it serves a command: its methods and the Writer's belong to that call. Only ID,
// Push, Close, Context and the addresses may be used from other goroutines and at other times.
type Session struct {
	Writer

	// Data is the handler's own, for instance a transaction in progress. It is touched by nobody else.
	Data any

	id     int64
	server *Server
	link   link

	user    string
	name    string
	authed  bool
	who     atomic.Pointer[string] // user, for other channels of the connection
	closing bool                   // the connection ends when the batch has been answered

	subscriptions int           // channels and patterns; kept by PubSub
	pubsubs       []*PubSub     // which have any of them
	speaks        atomic.Uint32 // what pushes from other goroutines are encoded for

	mu      sync.Mutex
	onClose []func()
	closed  bool
	ctx     context.Context
	cancel  context.CancelCauseFunc
	cause   error // why ctx has ended, or will have when it is made
}

// link is what a session needs of the connection it is on.
type link interface {
	// push sends what was encoded for a protocol, or returns errSpeaks if the session has begun to speak another.
	push(speaks uint32, encoded []byte) error
	kill(err error)
	// watched is told that somebody has the session's context.
	watched()
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}

// ID returns the number of the session, which no other session of the server has or had.
func (s *Session) ID() int64 { return s.id }

// Server returns the server that the session belongs to.
func (s *Session) Server() *Server { return s.server }

// User returns the name the client authenticated with, "" before that, and "default" where no password is asked for.
func (s *Session) User() string { return s.user }

// Authenticated reports whether the client may run commands.
func (s *Session) Authenticated() bool { return s.authed }

// Authenticate makes the session user's, for handlers that check passwords themselves; an empty user ends the authentication.
func (s *Session) Authenticate(user string) {
	s.user, s.authed = user, user != ""
	s.who.Store(&user)
}

// Name returns what the client called itself with HELLO SETNAME.
func (s *Session) Name() string { return s.name }

// SetName sets what Name returns, for servers that have CLIENT SETNAME.
func (s *Session) SetName(name string) { s.name = name }

// Proto returns the protocol version the client asked for: 2 or 3.
func (s *Session) Proto() int {
	if s.RESP2Compat() {
		return 2
	}
	return 3
}

// SetProto sets the protocol of this session's replies and pushes, as HELLO does. v is 2 or 3.
func (s *Session) SetProto(v int) { s.SetRESP2Compat(v == 2) }

// SetRESP2Compat is SetProto by the name that [Writer] has for it.
func (s *Session) SetRESP2Compat(on bool) {
	s.Writer.SetRESP2Compat(on)
	switch {
	case s.rb != nil: // RESPB knows no other
	case on:
		s.speaks.Store(speaksRESP2)
	default:
		s.speaks.Store(speaksRESP3)
	}
}

// RESPB reports whether the session is a channel of a RESPB connection.
func (s *Session) RESPB() bool { return s.rb != nil }

// Channel returns the number of the session's RESPB channel, and 0 over RESP.
func (s *Session) Channel() uint16 {
	if s.rb == nil {
		return 0
	}
	return s.rb.Channel
}

// LocalAddr returns the server's end of the connection.
func (s *Session) LocalAddr() net.Addr { return s.link.LocalAddr() }

// RemoteAddr returns the client's end of the connection.
func (s *Session) RemoteAddr() net.Addr { return s.link.RemoteAddr() }

// CloseAfterReply ends the connection, or the session's RESPB channel, when what was written has been sent. Commands behind this one
// in the pipeline are dropped. RESPB's channel 0 ends its connection.
func (s *Session) CloseAfterReply() { s.closing = true }

// Close cuts the connection at once, from any goroutine; of a RESPB connection only the session's channel, unless that is channel 0.
func (s *Session) Close() error {
	s.link.kill(net.ErrClosed)
	return nil
}

// Push sends values that answer no request, such as an invalidation: one push in RESP3, an array in RESP2. fn gets a Writer of its own,
// already in the session's protocol, and should write one whole value, normally with WritePushHeader. Any goroutine may call it. It
// never waits for the client: a session in the middle of its replies sends the push after them, and one that does not read is cut
// at Limits.OutputBytesMax.
func (s *Session) Push(fn func(w *Writer) error) error {
	for {
		speaks := s.speaks.Load()
		encoded, err := encode(speaks, fn)
		if err != nil {
			return err
		}
		if err = s.link.push(speaks, encoded); err != errSpeaks {
			return err
		}
	}
}

// errSpeaks says that a session has changed its protocol since something was encoded for it, which happens at most once to RESPB.
var errSpeaks = errors.New("resp: encoded for another protocol")

// encode returns what fn writes; for RESPB with channel 0, for the link to put in the right one.
func encode(speaks uint32, fn func(w *Writer) error) ([]byte, error) {
	w := Writer{sink: ioSink{}, more: &never, max: DefaultOutputBytesMax, hold: 1, resp2: speaks == speaksRESP2}
	if speaks == speaksRESPB {
		w.rb = new(frame.ReplyWriter)
	}
	w.buf = make([]byte, 0, 128)
	w.settle()
	if err := fn(&w); err != nil {
		releaseBlock(&w.block)
		return nil, err
	}
	encoded := w.buf
	if w.block != nil {
		encoded = append([]byte(nil), w.buf...)
		releaseBlock(&w.block)
	}
	return encoded, nil
}

// Context returns a context that ends with the session: when its client is gone ([ErrClientGone] is the cause), when it is closed, and when
// the server cuts it. That is seen while a handler runs as well, as long as the process has a descriptor for it. Over RESPB a handler calls [Request.Context] before it waits.
func (s *Session) Context() context.Context {
	s.mu.Lock()
	ctx := s.ctx
	if ctx == nil {
		ctx, s.cancel = context.WithCancelCause(context.Background())
		s.ctx = ctx
		if s.cause != nil {
			s.cancel(s.cause)
		}
	}
	s.mu.Unlock()
	s.link.watched()
	return ctx
}

// cancelContext ends the context.
func (s *Session) cancelContext(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause == nil {
		s.cause = cause
	}
	if s.cancel != nil {
		s.cancel(cause)
	}
}

// OnClose has fn called when the connection has ended, on the session's goroutine; at once if it already has.
func (s *Session) OnClose(fn func()) {
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.onClose = append(s.onClose, fn)
	}
	s.mu.Unlock()
	if closed {
		fn()
	}
}

// end runs what waits for the end of the connection.
func (s *Session) end() {
	s.mu.Lock()
	s.closed = true
	hooks := s.onClose
	s.onClose = nil
	s.mu.Unlock()
	s.cancelContext(net.ErrClosed)
	for i := len(hooks) - 1; i >= 0; i-- {
		s.server.guard("Session.OnClose", s.link.RemoteAddr(), hooks[i])
	}
}
