package resp

// This file owns the tests of Server.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/internal/frame"
)

func TestServerAnswers(t *testing.T) {
	m := echoMux()
	m.HandleFunc("FAIL", 1, func(s *Session, r *Request) error {
		_ = s.WriteArrayHeader(3) // taken back
		return ErrWrongType
	})
	m.HandleFunc("PLAIN", 1, func(s *Session, r *Request) error { return io.ErrNoProgress })
	m.HandleFunc("ADD", 3, func(s *Session, r *Request) error {
		a, err := r.Int(1)
		if err != nil {
			return err
		}
		b, err := r.Float(2)
		if err != nil {
			return err
		}
		return s.WriteFloat(float64(a) + b)
	})
	m.HandleFunc("A-COMMAND-WITH-A-LONG-NAME", -2, func(s *Session, r *Request) error { return s.WriteInt(r.Len()) })
	c := dial(t, startServer(t, &Server{Handler: m}))
	for _, step := range []struct{ send, want string }{
		{"PING\r\n", "PONG"},
		{"*1\r\n$4\r\npInG\r\n", "PONG"},
		{"echo hello\r\n", `"hello"`},
		{"ECHO\r\n", "(error) ERR wrong number of arguments for 'echo' command"},
		{"FAIL\r\n", "(error) WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"PLAIN\r\n", "(error) ERR multiple Read calls return no data or error"},
		{"ADD 1 2.5\r\n", `"3.5"`},
		{"ADD x 2.5\r\n", "(error) ERR value is not an integer or out of range"},
		{"ADD 1 x\r\n", "(error) ERR value is not a valid float"},
		{"a-command-WITH-a-long-NAME x\r\n", "2"},
		{"a-command-WITH-a-long-NAMES x\r\n", "(error) ERR unknown command 'a-command-WITH-a-long-NAMES', with args beginning with: 'x' "},
		{"NO such thing\r\n", "(error) ERR unknown command 'NO', with args beginning with: 'such' 'thing' "},
		{"HELLO 4\r\n", "(error) NOPROTO unsupported protocol version"},
		{"HELLO x\r\n", "(error) ERR Protocol version is not an integer or out of range"},
		{"HELLO 3 SETNAME\r\n", "(error) ERR Syntax error in HELLO option 'SETNAME'"},
		{"HELLO 2 SETNAME me\r\n", `*["server" "weft" "version" "7.4.0" "proto" 2 "id" 1 "mode" "standalone" "role" "master" "modules" *[]]`},
		{"HELLO 3\r\n", `%["server" "weft" "version" "7.4.0" "proto" 3 "id" 1 "mode" "standalone" "role" "master" "modules" *[]]`},
		{"ADD 1 2.5\r\n", "3.5"},
		{"AUTH x\r\n", "(error) ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"},
		{"RESET\r\n", "RESET"},
		{"ADD 1 2.5\r\n", `"3.5"`},
		{"QUIT\r\nPING\r\n", "OK"},
	} {
		c.send(step.send)
		c.expect(step.want)
	}
	c.expectEnd()
}

func TestServerPipeline(t *testing.T) {
	const n = 20000
	c := dial(t, startServer(t, &Server{Handler: echoMux()}))
	sent := make(chan error, 1)
	go func() {
		var wire bytes.Buffer
		for i := range n {
			word := fmt.Sprint(i)
			fmt.Fprintf(&wire, "*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n", len(word), word)
		}
		_, err := c.Conn.Write(wire.Bytes())
		sent <- err
	}()
	for i := range n {
		c.expect(fmt.Sprintf("%q", fmt.Sprint(i)))
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}

// TestServerTakesPipelineBeforeAnyReplyIsRead: a client that sends all before it reads any must not wait for itself.
func TestServerTakesPipelineBeforeAnyReplyIsRead(t *testing.T) {
	const n, size = 4000, 4096
	c := dial(t, startServer(t, &Server{Handler: echoMux()}))
	word := strings.Repeat("x", size)
	c.send(strings.Repeat(fmt.Sprintf("*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n", size, word), n))
	for range n {
		c.expect(`"` + word + `"`)
	}
}

// TestSlowReaderIsCut: a client that never reads is not read from, and cut when it has taken nothing for too long.
func TestSlowReaderIsCut(t *testing.T) {
	reason := make(chan error, 1)
	c := dial(t, startServer(t, &Server{
		Handler: echoMux(), Limits: Limits{OutputBytesMax: 1 << 20}, WriteTimeout: 50 * time.Millisecond,
		OnClose: func(s *Session, err error) { reason <- err },
	}))
	request := []byte(strings.Repeat(fmt.Sprintf("*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n", 4096, strings.Repeat("x", 4096)), 64))
	for {
		if _, err := c.Conn.Write(request); err != nil {
			break // cut
		}
	}
	if err := <-reason; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("closed because of %v", err)
	}
}

// TestSlowReaderIsHeldBack: a client that reads late gets everything, however much it has asked for before: replies of up to the limit, and
// many times the limit altogether.
func TestSlowReaderIsHeldBack(t *testing.T) {
	const limit = 1 << 20
	addr := startServer(t, &Server{Handler: echoMux(), Limits: Limits{OutputBytesMax: limit}, OnAccept: func(nc net.Conn) error {
		return nc.(*net.TCPConn).SetWriteBuffer(128 << 10)
	}})
	for _, size := range []int{1 << 10, limit - 100} {
		c := dial(t, addr)
		_ = c.Conn.(*net.TCPConn).SetReadBuffer(128 << 10)
		word := strings.Repeat("x", size)
		n := 32 * limit / size
		wire := bytes.Repeat([]byte(fmt.Sprintf("*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n", size, word)), n)
		// Until the server takes no more.
		for len(wire) > 0 {
			_ = c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
			put, err := c.Conn.Write(wire)
			if wire = wire[put:]; errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				t.Fatalf("%d bytes each: %v", size, err)
			}
		}
		_ = c.SetWriteDeadline(time.Now().Add(testWait))
		sent := make(chan error, 1)
		go func() { _, err := c.Conn.Write(wire); sent <- err }()
		for range n {
			c.expect(`"` + word + `"`)
		}
		if err := <-sent; err != nil {
			t.Error(err)
		}
	}
}

// TestRepliesDoNotMix: buffers come from a pool; once, one was given back twice and a client got another's replies.
func TestRepliesDoNotMix(t *testing.T) {
	addr := startServer(t, &Server{Handler: echoMux()})
	var all sync.WaitGroup
	for id := range 16 {
		all.Add(1)
		go func() {
			defer all.Done()
			for round := range 8 {
				c := dial(t, addr)
				word := strings.Repeat(fmt.Sprintf("<%d.%d>", id, round), 1+id*40)
				request := fmt.Sprintf("*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n", len(word), word)
				c.send(strings.Repeat(request, 50))
				if round%2 == 1 {
					c.Close() // leave in the middle
					continue
				}
				var v Value
				for range 50 {
					if err := c.r.Read(&v); err != nil || string(v.Data) != word {
						t.Errorf("client %d got %.60q, %v", id, v.Data, err)
						return
					}
				}
				c.Close()
			}
		}()
	}
	all.Wait()
}

// TestBlockIsReleasedOnce: giving back twice is not possible, because the field that held the block is the only way to it.
func TestBlockIsReleasedOnce(t *testing.T) {
	var a, b, c *block
	takeBlock(&a)
	releaseBlock(&a)
	releaseBlock(&a)
	takeBlock(&b)
	takeBlock(&c)
	if a != nil || b == c {
		t.Error("a block has two owners")
	}
}

func TestAuth(t *testing.T) {
	addr := startServer(t, &Server{Handler: echoMux(), Auth: func(s *Session, user, password string) error {
		switch {
		case user == "locked":
			return &Error{"LOCKED", "try tomorrow"}
		case password != "secret":
			return io.EOF
		}
		return nil
	}})
	c := dial(t, addr)
	for _, step := range []struct{ send, want string }{
		{"PING\r\n", "(error) NOAUTH Authentication required."},
		{"HELLO 3\r\n", "(error) NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"},
		{"AUTH wrong\r\n", "(error) WRONGPASS invalid username-password pair or user is disabled."},
		{"AUTH locked secret\r\n", "(error) LOCKED try tomorrow"},
		{"AUTH\r\n", "(error) ERR wrong number of arguments for 'auth' command"},
		{"AUTH secret\r\nPING\r\n", "OK"},
		{"", "PONG"},
		{"RESET\r\nPING\r\n", "RESET"},
		{"", "(error) NOAUTH Authentication required."},
	} {
		c.send(step.send)
		c.expect(step.want)
	}
	c = dial(t, addr)
	c.send("HELLO 3 AUTH me secret SETNAME x\r\nPING\r\n")
	c.expect(`%["server" "weft" "version" "7.4.0" "proto" 3 "id" 2 "mode" "standalone" "role" "master" "modules" *[]]`)
	c.expect("PONG")
	c = dial(t, addr)
	c.send("*17\r\n")
	c.expect("(error) ERR Protocol error: unauthenticated multibulk length: UnauthArgsMax is 16, got 17; raise it if that is meant")
	c.expectEnd()
}

func TestHandshakeByHandler(t *testing.T) {
	m := echoMux()
	m.HandleFunc("HELLO", -1, func(s *Session, r *Request) error { return s.WriteInt(1) })
	c := dial(t, startServer(t, &Server{Handler: m, HandshakeByHandler: true, StartRESP3: true}))
	c.send("HELLO 3\r\n")
	c.expect("1")
	c.send("QUIT\r\n")
	c.expect("(error) ERR unknown command 'QUIT', with args beginning with: ")
}

// TestProtocolErrorIsTold: the error arrives although more of what caused it is on the way.
func TestProtocolErrorIsTold(t *testing.T) {
	s := &Server{Handler: echoMux()}
	c := dial(t, startServer(t, s))
	c.send("PING\r\n*1\r\n:oops\r\n" + strings.Repeat("x", 100000))
	c.expect("PONG")
	c.expect("(error) ERR Protocol error: expected '$', got ':'")
	c.expectEnd()
	if n := s.Stats().ProtocolErrors; n != 1 {
		t.Errorf("%d protocol errors were counted", n)
	}
}

// TestHalfClose: a client that ends its side right behind its request still gets the reply, and then the end.
func TestHalfClose(t *testing.T) {
	addr := startServer(t, &Server{Handler: echoMux()})
	for range 200 {
		c := dial(t, addr)
		c.send("PING\r\n")
		_ = c.Conn.(*net.TCPConn).CloseWrite()
		c.expect("PONG")
		c.expectEnd()
		c.Close()
	}
}

func TestIdleTimeout(t *testing.T) {
	reason := make(chan error, 1)
	addr := startServer(t, &Server{Handler: echoMux(), IdleTimeout: 20 * time.Millisecond, OnClose: func(_ *Session, err error) { reason <- err }})
	for range idleTries {
		c := dial(t, addr)
		_, _ = io.WriteString(c.Conn, "PING\r\n")
		var v Value
		used := c.r.Read(&v) == nil
		if used && v.String() != "PONG" {
			t.Fatal(v.String())
		}
		c.expectEnd()
		if err := <-reason; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
		c.Close()
		if used {
			return
		}
	}
	t.Error("a connection that is used ends before it is idle")
}

// TestReadTimeout: a command that drips in is cut although bytes keep coming, while commands that are whole keep a connection open.
func TestReadTimeout(t *testing.T) {
	reason := make(chan error, 1)
	addr := startServer(t, &Server{Handler: echoMux(), ReadTimeout: 50 * time.Millisecond, OnClose: func(_ *Session, err error) { reason <- err }})
	c := dial(t, addr)
	c.send("PING\r\n*1\r\n$1000\r\n")
	c.expect("PONG")
	for {
		if _, err := c.Conn.Write([]byte("x")); err != nil {
			break
		}
		select {
		case err := <-reason:
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error(err)
			}
			return
		case <-time.After(time.Millisecond):
		}
	}
}

func TestShutdown(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	m := echoMux()
	m.HandleFunc("SLOW", 1, func(s *Session, r *Request) error {
		close(entered)
		<-leave
		return s.WriteOK()
	})
	s := &Server{Handler: m}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	idle, busy := dial(t, l.Addr().String()), dial(t, l.Addr().String())
	idle.send("PING\r\n")
	idle.expect("PONG")
	busy.send("SLOW\r\nPING\r\n")
	<-entered
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(context.Background()) }()
	idle.expectEnd()
	if err := <-served; err != ErrServerClosed {
		t.Error(err)
	}
	select {
	case err := <-done:
		t.Error("Shutdown did not wait:", err)
	default:
	}
	close(leave)
	busy.expect("OK")
	busy.expect("PONG")
	busy.expectEnd()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := s.Stats().Connections; n != 0 {
		t.Errorf("%d connections are left", n)
	}
	if err := s.Serve(l); err != ErrServerClosed {
		t.Error(err)
	}
}

// TestShutdownGivesUp: a handler that waits for the end of its context is cut when Shutdown's own ends.
func TestShutdownGivesUp(t *testing.T) {
	entered := make(chan struct{})
	s := &Server{Handler: HandlerFunc(func(s *Session, r *Request) error {
		close(entered)
		<-s.Server().Draining()
		return s.WriteOK()
	})}
	server, peer := net.Pipe() // nobody reads the reply
	defer peer.Close()
	ended := make(chan error, 1)
	go func() { ended <- s.ServeConn(server) }()
	go func() { _, _ = io.WriteString(peer, "X\r\n") }()
	<-entered
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	<-ended
}

func TestHooksAndStats(t *testing.T) {
	var mu sync.Mutex
	var events []string
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, fmt.Sprintf(format, args...))
	}
	closed := make(chan struct{})
	s := &Server{
		Handler: echoMux(), ConnsMax: 1,
		OnAccept: func(net.Conn) error { note("accept"); return nil },
		OnOpen: func(s *Session) {
			note("open %d", s.ID())
			s.OnClose(func() { note("left") })
		},
		OnCommand: func(s *Session, r *Request, _ time.Duration, err error) { note("%s %v", r.Name(), err) },
		OnClose: func(s *Session, err error) {
			note("close %v", err)
			if s.Context().Err() == nil {
				note("context goes on")
			}
			close(closed)
		},
	}
	addr := startServer(t, s)
	c := dial(t, addr)
	c.send("PING\r\nECHO\r\n")
	c.expect("PONG")
	c.expect("(error) ERR wrong number of arguments for 'echo' command")
	over := dial(t, addr)
	over.expect("(error) ERR max number of clients reached")
	over.expectEnd()
	c.Close()
	<-closed
	want := "accept,open 1,PING <nil>,ECHO ERR wrong number of arguments for 'echo' command,accept,left,close <nil>"
	mu.Lock()
	if got := strings.Join(events, ","); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	mu.Unlock()
	stats := s.Stats()
	if stats.Accepted != 1 || stats.Refused != 1 || stats.Commands != 2 || stats.BytesIn != 12 || stats.BytesOut == 0 {
		t.Errorf("%+v", stats)
	}
}

// TestOnAcceptRefuses: an Error is told to the client, another is not, and neither connection is served or counted as such.
func TestOnAcceptRefuses(t *testing.T) {
	refusals := make(chan error, 2)
	opened := make(chan struct{}, 1)
	s := &Server{Handler: echoMux(), OnAccept: func(net.Conn) error { return <-refusals }, OnOpen: func(*Session) { opened <- struct{}{} }}
	addr := startServer(t, s)
	refusals <- &Error{"DENIED", "not from there"}
	c := dial(t, addr)
	c.expect("(error) DENIED not from there")
	c.expectEnd()
	refusals <- io.ErrNoProgress
	dial(t, addr).expectEnd()
	if n := s.Stats(); n.Refused != 2 || n.Accepted != 0 || n.Connections != 0 || len(opened) != 0 {
		t.Errorf("%+v, %d sessions", n, len(opened))
	}
}

// failing is a listener whose first accepts fail.
type failing struct {
	net.Listener
	failures chan error
}

func (f failing) Accept() (net.Conn, error) {
	select {
	case err := <-f.failures:
		return nil, err
	default:
		return f.Listener.Accept()
	}
}

// TestAcceptFails: a server that is out of descriptors goes on when there are some again, and one whose listener is broken says so.
func TestAcceptFails(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := failing{l, make(chan error, 2)}
	for range cap(f.failures) {
		f.failures <- &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	var log bytes.Buffer
	s := &Server{Handler: echoMux(), Logger: slog.New(slog.NewTextHandler(&log, nil))}
	served := make(chan error, 1)
	go func() { served <- s.Serve(f) }()
	c := dial(t, l.Addr().String())
	c.send("PING\r\n")
	c.expect("PONG")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != ErrServerClosed {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "accept failed, trying again"); n != cap(f.failures) {
		t.Errorf("%d failures in the log:\n%s", n, log.String())
	}
	if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	f = failing{l, make(chan error, 1)}
	f.failures <- io.ErrUnexpectedEOF
	if err := (&Server{Handler: echoMux(), Logger: quietLogger()}).Serve(f); err != io.ErrUnexpectedEOF {
		t.Error(err)
	}
}

// TestPanicEndsOneConnection and no more than that.
func TestPanicEndsOneConnection(t *testing.T) {
	m := echoMux()
	m.HandleFunc("PANIC", 1, func(s *Session, r *Request) error { panic("as asked") })
	var log bytes.Buffer
	ended := make(chan struct{}, 2)
	addr := startServer(t, &Server{
		Handler: m, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		OnClose: func(*Session, error) { ended <- struct{}{} },
	})
	good, bad := dial(t, addr), dial(t, addr)
	bad.send("PANIC\r\n")
	bad.expectEnd()
	<-ended // orders the log before its reading
	good.send("PING\r\n")
	good.expect("PONG")
	if !strings.Contains(log.String(), "as asked") {
		t.Error("the panic was not logged")
	}
}

// TestPanicsOfHooks end the connection they are about, or nothing if that has ended, over RESP and RESPB, and are logged.
func TestPanicsOfHooks(t *testing.T) {
	ping, _ := frame.AppendRequest(nil, 0, []string{"PING"}, frame.Exact)
	for name, set := range map[string]func(s *Server){
		"OnOpen":          func(s *Server) { s.OnOpen = func(*Session) { panic("as asked") } },
		"OnClose":         func(s *Server) { s.OnClose = func(*Session, error) { panic("as asked") } },
		"Session.OnClose": func(s *Server) { s.OnOpen = func(each *Session) { each.OnClose(func() { panic("as asked") }) } },
	} {
		for _, wire := range []string{"PING\r\n", string(ping)} {
			logged := make(chan string, 10)
			s := &Server{Handler: echoMux(), Logger: slog.New(slog.NewTextHandler(lines(logged), nil))}
			set(s)
			c := dial(t, startServer(t, s))
			c.send(wire)
			_ = c.Conn.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, c.Conn)
			if line := <-logged; !strings.Contains(line, "as asked") {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}

// lines is a writer that sends each write.
type lines chan string

func (l lines) Write(b []byte) (int, error) { l <- string(b); return len(b), nil }

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Skip("no unix sockets here:", err)
	}
	s := &Server{Handler: echoMux()}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	nc, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	c := &client{t, nc, NewReader(nc)}
	c.send("PING\r\n")
	c.expect("PONG")
	_ = s.Shutdown(context.Background())
	<-served
}
