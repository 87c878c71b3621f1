package resp

// This file owns Server: its settings, accepting and shutting down.

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-db/weft/sdk/go/internal/frame"
)

// Defaults of [Server].
const (
	// DefaultConnsMax is how many connections are served at once (Redis: maxclients).
	DefaultConnsMax = 10_000
	// DefaultWriteTimeout is how long a client may take no byte at all while some wait for it.
	DefaultWriteTimeout = 60 * time.Second
	// DefaultHandshakeTimeout is how long a TLS handshake may take.
	DefaultHandshakeTimeout = 10 * time.Second
)

// Server serves RESP on any number of listeners. Set the fields before the first Serve and leave them alone afterwards; the zero value
// of each is usable, except that Handler must be set. A Server whose Shutdown or Close was called cannot be used again.
//
// Each connection has one goroutine, which reads, calls the Handler and writes; the package document says when there are more. Replies are sent when no further whole command
// is waiting, so a pipeline costs one write. A connection that waits for its client holds no buffer.
//
// The same Handler serves RESPB connections; see RESPBMode. Each of a connection's channels is a [Session] of its own. Their
// commands run on the connection's one goroutine, in the order in which they come, until a handler calls [Request.Context] because it
// is going to wait: then another goroutine goes on with the other channels.
type Server struct {
	// Handler answers commands; usually a [*Mux].
	Handler Handler
	// Limits bounds each connection. Passing one ends the connection with an error that names it.
	Limits Limits
	// ConnsMax bounds the connections at a time, zero meaning DefaultConnsMax. One more gets an error and is closed.
	ConnsMax int
	// TLSConfig makes Serve and ServeConn speak TLS; [TLSFiles] has one whose certificate can be read anew.
	TLSConfig *tls.Config
	// TrustedProxies are the addresses of proxies whose connections begin with a PROXY header, version 1 or 2, in front of TLS too: it says who
	// the client is, which [Session.RemoteAddr] then tells. A connection from there without one is closed, and nobody else's header is taken.
	// Empty means that there are none.
	TrustedProxies []netip.Prefix
	// TrustUnixProxies says the same of all connections over Unix sockets: they have no address, and who may connect is up to the file's mode.
	TrustUnixProxies bool

	// ReadTimeout bounds the time from a command's first byte to its last; zero: none.
	ReadTimeout time.Duration
	// IdleTimeout bounds the time a client may send nothing between commands; zero: none.
	IdleTimeout time.Duration
	// WriteTimeout bounds the time a client may take no byte while some wait for it. Zero means DefaultWriteTimeout, below zero none.
	WriteTimeout time.Duration

	// Auth checks what AUTH and HELLO AUTH give; user is "default" where the client names none. If it is set, clients must
	// authenticate before anything else, and the limits for strangers apply until then. An [*Error] it returns is sent; any other
	// error is sent as [ErrWrongPass].
	Auth func(s *Session, user, password string) error
	// Name and Version are what HELLO tells, "weft" and "7.4.0" by default, as weft serve says it: clients compare the version with Redis's.
	Name, Version string
	// HandshakeByHandler has HELLO, AUTH, QUIT and RESET go to Handler like all other commands. Auth is then not asked and
	// clients count as authenticated.
	HandshakeByHandler bool
	// RESPB says how connections come to speak RESPB. Its zero value lets a first byte that only RESPB has, or HELLO, choose.
	RESPB RESPBMode
	// StartRESP3 has sessions start with RESP3. Without it they start with RESP2, as clients expect, until HELLO 3.
	StartRESP3 bool

	// OnAccept sees each connection first, on the accepting goroutine. An error refuses it; an [*Error] is told to the client.
	OnAccept func(conn net.Conn) error
	// OnOpen sees each session before its first command, OnClose after its last with the reason: nil if the client or Shutdown ended
	// it between commands.
	OnOpen  func(s *Session)
	OnClose func(s *Session, reason error)
	// OnCommand is told each command that Handler served, how long it took and what it returned, or [ErrErrorReply] if it wrote an error itself.
	// Time is only measured if it is set. [CommandMetrics] counts them.
	OnCommand func(s *Session, r *Request, took time.Duration, err error)
	// Logger gets what nobody else hears of: panics of handlers, failing accepts. nil means slog.Default().
	Logger *slog.Logger

	limits   Limits
	frames   [2]frame.Limits // limits as RESPB has them: for anybody, for strangers
	once     sync.Once
	mu       sync.Mutex
	conns    map[*serverConn]struct{}
	listener map[net.Listener]struct{}
	serving  sync.WaitGroup
	draining chan struct{} // closed by Shutdown and Close
	ids      atomic.Int64
	counts   counters
}

// RESPBMode is how connections may come to speak RESPB.
type RESPBMode int

const (
	// RESPBDetect takes a connection for RESPB by its first byte, or when HELLO asks for it.
	RESPBDetect RESPBMode = iota
	// RESPBHello is RESPBDetect without the first byte.
	RESPBHello
	// RESPBOff serves RESP only.
	RESPBOff
)

// ErrServerClosed is returned by Serve after Shutdown or Close.
var ErrServerClosed = errors.New("resp: the server is closed")

// setup fills in what the fields left open.
func (s *Server) setup() {
	s.once.Do(func() {
		s.limits = s.Limits.withDefaults()
		s.frames = s.limits.frames()
		s.conns = map[*serverConn]struct{}{}
		s.listener = map[net.Listener]struct{}{}
		s.draining = make(chan struct{})
		if s.ConnsMax <= 0 {
			s.ConnsMax = DefaultConnsMax
		}
		if s.WriteTimeout == 0 {
			s.WriteTimeout = DefaultWriteTimeout
		}
		if s.Name == "" {
			s.Name = "weft"
		}
		if s.Version == "" {
			s.Version = "7.4.0"
		}
		if s.Logger == nil {
			s.Logger = slog.Default()
		}
	})
}

// ListenAndServe listens on a TCP address such as ":6379" and serves it; see Serve.
func (s *Server) ListenAndServe(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	return s.Serve(l)
}

// Serve accepts connections from l and serves them until l fails or the server is closed; then it closes l. It always returns an
// error, ErrServerClosed after Shutdown or Close. Connections go on when it returns.
func (s *Server) Serve(l net.Listener) error {
	s.setup()
	if s.Handler == nil {
		return errors.New("resp: Server.Handler is not set")
	}
	if !s.track(l) {
		_ = l.Close()
		return ErrServerClosed
	}
	defer s.untrack(l)
	for pause := time.Duration(0); ; {
		nc, err := l.Accept()
		if err == nil {
			pause = 0
			s.accepted(nc)
			continue
		}
		select {
		case <-s.draining:
			return ErrServerClosed
		default:
		}
		var ne net.Error
		if errors.Is(err, net.ErrClosed) || !errors.As(err, &ne) {
			return err
		}
		// Out of descriptors, most likely. Those in use will be given back; spinning would not help them.
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		s.Logger.Warn("resp: accept failed, trying again", "error", err, "pause", pause)
		select {
		case <-time.After(pause):
		case <-s.draining:
			return ErrServerClosed
		}
	}
}

// accepted starts the goroutine of a new connection.
func (s *Server) accepted(nc net.Conn) {
	if s.OnAccept != nil {
		if err := s.OnAccept(nc); err != nil {
			s.refuse(nc, err)
			return
		}
	}
	c := s.newConn(nc)
	if err := s.admit(c); err != nil {
		s.refuse(nc, err)
		return
	}
	go c.serve() // owned: serving counts it
}

// ServeConn serves one connection that was accepted elsewhere and returns when it has ended.
func (s *Server) ServeConn(nc net.Conn) error {
	s.setup()
	if s.Handler == nil {
		return errors.New("resp: Server.Handler is not set")
	}
	c := s.newConn(nc)
	if err := s.admit(c); err != nil {
		s.refuse(nc, err)
		return err
	}
	return c.serve()
}

// errConnsMax is what Redis says to one client too many.
var errConnsMax = &Error{"ERR", "max number of clients reached"}

// admit counts c in.
func (s *Server) admit(c *serverConn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.draining:
		return ErrServerClosed
	default:
	}
	if len(s.conns) >= s.ConnsMax {
		return errConnsMax
	}
	s.conns[c] = struct{}{}
	s.serving.Add(1)
	s.counts.accepted.Add(1)
	return nil
}

// refuse closes a connection that is not served. It never waits for the client; an error line fits any socket's buffer.
func (s *Server) refuse(nc net.Conn, reason error) {
	s.counts.refused.Add(1)
	var e *Error
	if errors.As(reason, &e) && s.TLSConfig == nil {
		line, _ := encode(speaksRESP2, func(w *Writer) error { return w.WriteError(e) })
		_ = nc.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = nc.Write(line)
	}
	_ = nc.Close()
}

func (s *Server) track(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.draining:
		return false
	default:
	}
	s.listener[l] = struct{}{}
	return true
}

func (s *Server) untrack(l net.Listener) {
	s.mu.Lock()
	delete(s.listener, l)
	s.mu.Unlock()
	_ = l.Close()
}

// Draining returns a channel that is closed when Shutdown or Close was called. A handler that waits for something should stop
// waiting then.
func (s *Server) Draining() <-chan struct{} {
	s.setup()
	return s.draining
}

// Shutdown closes the listeners and idle connections, lets every other finish the commands it has received, and waits for that. A handler
// that waits for its [Request.Context] is told with [ErrShuttingDown]. If ctx ends first, the rest is cut, which ends every
// [Session.Context] too, and ctx's error returned at once, whatever handlers do.
func (s *Server) Shutdown(ctx context.Context) error {
	for _, c := range s.stopAccepting() {
		c.drain()
	}
	done := make(chan struct{})
	go func() { // ends with the last connection, at the latest when Close below has cut them
		s.serving.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		_ = s.Close()
		return ctx.Err()
	}
}

// Close closes the listeners and cuts all connections. It does not wait for their handlers.
func (s *Server) Close() error {
	for _, c := range s.stopAccepting() {
		c.kill(ErrServerClosed)
	}
	return nil
}

// stopAccepting closes the listeners and returns the connections there are.
func (s *Server) stopAccepting() []*serverConn {
	s.setup()
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.draining:
	default:
		close(s.draining)
	}
	for l := range s.listener {
		_ = l.Close()
	}
	conns := make([]*serverConn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	return conns
}

// counters are what Stats reads. A connection adds to them once per batch, not per command.
type counters struct {
	accepted, refused, closed, commands, bytesIn, bytesOut, protocol, limit, channels, binary atomic.Int64
}

// Stats is what a server has done so far. Numbers of a connection are added when it has answered a batch of commands.
type Stats struct {
	Connections    int   // open now
	RESPB          int   // of which speak RESPB
	Channels       int   // RESPB channels open now, channels 0 included
	Accepted       int64 // served, since the start
	Refused        int64 // by OnAccept, ConnsMax or shutdown
	Commands       int64
	BytesIn        int64
	BytesOut       int64
	ProtocolErrors int64 // connections ended because they did not speak RESP
	LimitErrors    int64 // connections ended because they passed one of Limits
}

// Stats returns the counters. It is cheap enough to be scraped every second.
func (s *Server) Stats() Stats {
	c := &s.counts
	closed, accepted := c.closed.Load(), c.accepted.Load()
	return Stats{
		Connections: int(accepted - closed), RESPB: int(c.binary.Load()), Channels: int(c.channels.Load()), Accepted: accepted, Refused: c.refused.Load(),
		Commands: c.commands.Load(), BytesIn: c.bytesIn.Load(), BytesOut: c.bytesOut.Load(),
		ProtocolErrors: c.protocol.Load(), LimitErrors: c.limit.Load(),
	}
}
