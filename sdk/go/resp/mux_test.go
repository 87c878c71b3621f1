package resp

// This file owns the tests of RESPB on a Server: the scenarios of conformance/scenarios that concern a server, and what RESP and RESPB
// share.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/internal/frame"
)

// muxClient is a plain socket that speaks RESPB.
type muxClient struct {
	t testing.TB
	net.Conn
	dec    *frame.ReplyDecoder
	buf    []byte
	values []frame.Value
}

func dialMux(t testing.TB, addr string) *muxClient {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(testWait))
	return &muxClient{t: t, Conn: nc, dec: frame.NewReplyDecoder(frame.DefaultLimits)}
}

func (c *muxClient) write(b []byte) {
	c.t.Helper()
	if _, err := c.Conn.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

// send sends commands, each "channel words".
func (c *muxClient) send(commands ...string) {
	c.t.Helper()
	var wire []byte
	for _, command := range commands {
		words := strings.Fields(command)
		var channel uint16
		_, _ = fmt.Sscan(words[0], &channel)
		wire, _ = frame.AppendRequest(wire, channel, words[1:], frame.Fold)
	}
	c.write(wire)
}

func (c *muxClient) control(channel, opcode uint16, k frame.Control) {
	c.t.Helper()
	c.write(frame.AppendControl(nil, channel, opcode, k))
}

// next reads one frame and shows it.
func (c *muxClient) next() (string, error) {
	for {
		f, values, err := c.dec.Decode(c.buf, c.values[:0])
		if err == nil {
			text := showFrame(f, values, c.buf)
			c.buf = c.buf[f.Len:]
			return text, nil
		}
		if err != frame.ErrIncomplete {
			return "", err
		}
		c.values = values
		part := make([]byte, 4096)
		n, err := c.Conn.Read(part)
		if n == 0 {
			return "", err
		}
		c.buf = append(c.buf, part[:n]...)
		c.dec = frame.NewReplyDecoder(frame.DefaultLimits)
	}
}

func showFrame(f frame.ReplyFrame, values []frame.Value, in []byte) string {
	switch {
	case f.Opcode == frame.Close:
		return fmt.Sprintf("%d CLOSE %d %s", f.Channel, f.Control.Code, f.Control.Reason)
	case f.Opcode == frame.GoAway:
		return fmt.Sprintf("%d GOAWAY %d %s", f.Channel, f.Control.Code, f.Control.Reason)
	case f.Opcode == frame.Fragment:
		return fmt.Sprintf("%d FRAGMENT %t %d", f.Channel, f.Control.Last, len(f.Control.Slice))
	}
	text := fmt.Sprint(f.Channel)
	for _, v := range values {
		switch v.Type {
		case frame.OK:
			text += " OK"
		case frame.Simple, frame.Bulk, frame.BigNumber, frame.Verbatim:
			text += " " + short(string(v.Bytes(in)))
		case frame.Error:
			text += " -" + string(v.Bytes(in))
		case frame.Integer:
			text += fmt.Sprint(" :", v.Int())
		case frame.Float:
			text += fmt.Sprint(" ,", v.Float())
		case frame.Bool:
			text += fmt.Sprint(" ", v.Bool())
		case frame.Null:
			text += " null"
		default:
			text += fmt.Sprintf(" %c%d", "????*???%~>???|"[v.Type], v.Count)
		}
	}
	return text
}

func short(s string) string {
	if len(s) > 40 {
		return fmt.Sprintf("%s…%d", s[:8], len(s))
	}
	return s
}

func (c *muxClient) expect(want ...string) {
	c.t.Helper()
	for _, w := range want {
		got, err := c.next()
		if err != nil {
			c.t.Fatalf("want %q, got error %v", w, err)
		}
		if got != w {
			c.t.Fatalf("got %q, want %q", got, w)
		}
	}
}

func (c *muxClient) expectEnd() {
	c.t.Helper()
	if got, err := c.next(); !errors.Is(err, io.EOF) {
		c.t.Fatalf("got %q, %v instead of the end", got, err)
	}
}

// muxMux answers what these tests call; gate lets WAITFOR go on.
func muxMux(gate chan string) *Mux {
	m := echoMux()
	var mu sync.Mutex
	values := map[string]string{}
	m.HandleFunc("SET", -3, func(s *Session, r *Request) error {
		mu.Lock()
		values[r.String(1)] = r.String(2)
		mu.Unlock()
		return s.WriteOK()
	})
	m.HandleFunc("GET", 2, func(s *Session, r *Request) error {
		mu.Lock()
		v, ok := values[r.String(1)]
		mu.Unlock()
		if !ok {
			return s.WriteNull()
		}
		return s.WriteBulkString(v)
	})
	m.HandleFunc("BIG", 2, func(s *Session, r *Request) error {
		n, err := r.Int(1)
		if err != nil {
			return err
		}
		return s.WriteBulkBytes(bytes.Repeat([]byte("x"), int(n)))
	})
	m.HandleFunc("WHO", 1, func(s *Session, r *Request) error {
		_ = s.WriteArrayHeader(2)
		_ = s.WriteInt(int(s.Channel()))
		return s.WriteBulkString(s.User())
	})
	m.HandleFunc("BLPOP", -3, func(s *Session, r *Request) error {
		ctx := r.Context()
		select {
		case word := <-gate:
			return s.WriteBulkString(r.String(1) + " " + word)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	m.HandleFunc("LEAVE", 1, func(s *Session, r *Request) error {
		s.CloseAfterReply()
		return s.WriteOK()
	})
	m.HandleFunc("TWICE", 1, func(s *Session, r *Request) error {
		_ = s.WriteOK()
		return s.WriteOK()
	})
	m.HandleFunc("HALF", 1, func(s *Session, r *Request) error {
		_ = s.WriteArrayHeader(2)
		return s.WriteOK()
	})
	m.HandleFunc("PANIC", 1, func(s *Session, r *Request) error { panic("on purpose") })
	return m
}

func TestRESPBAnswers(t *testing.T) {
	m := muxMux(nil)
	m.HandleFunc("ALL", 1, func(s *Session, r *Request) error {
		return s.WriteBuffered(func() error {
			_ = s.WriteArrayHeader(13)
			_ = s.WriteStatusString("a\r\nb")
			_ = s.WriteBool(true)
			_ = s.WriteFloat32(0.1)
			_ = s.WriteNullArray()
			_ = s.WriteUint64(1<<64 - 1)
			_ = s.WriteVerbatimString("txt", "text")
			_ = s.WriteMapString([]string{"k", "v"})
			_ = s.WriteSetString([]string{"m"})
			_ = s.WriteRaw([]byte("*2\r\n:7\r\n#f\r\n"))
			_ = s.WriteStream(strings.NewReader("streamed"))
			_ = s.WriteBulkFrom(strings.NewReader("from"), 4)
			_ = s.WriteAttributeString([]string{"a", "1"})
			_ = s.WriteInt(5)
			return s.WriteBlobErrorString("two\nlines")
		})
	})
	m.HandleFunc("SHORT", 1, func(s *Session, r *Request) error { return s.WriteBulkFrom(strings.NewReader("x"), 4) })
	c := dialMux(t, startServer(t, &Server{Handler: m}))
	for _, step := range []struct{ send, want string }{
		{"0 PING", "0 PONG"},
		{"0 SET k v", "0 OK"},
		{"0 get k", "0 v"},
		{"0 GET none", "0 null"},
		{"7 GET k", "7 v"},
		{"7 ECHO hello", "7 hello"},
		{"7 ECHO", "7 -ERR wrong number of arguments for 'echo' command"},
		{"9 NOSUCH x", "9 -ERR unknown command 'NOSUCH', with args beginning with: 'x' "},
		{"9 LPUSH l x", "9 -ERR unknown command 'LPUSH', with args beginning with: 'l' 'x' "},
		{"9 BIG 3", "9 xxx"},
		{"9 BIG x", "9 -ERR value is not an integer or out of range"},
		{"9 TWICE", "9 -ERR internal error: the handler wrote 2 replies"},
		{"9 HALF", "9 -ERR internal error: the handler wrote less than it announced"},
		{"9 SHORT", "9 -ERR resp: a value of 4 bytes ended 3 bytes early: unexpected EOF"},
		{"9 ALL", "9 *13 a  b true ,0.1 null 18446744073709551615 text %1 k v ~1 m *2 :7 false streamed from |1 a 1 :5 -ERR two\nlines"},
		{"9 HELLO 3 SETNAME me CAPS 3", "9 %8 server weft version 7.4.0 proto :3 id :3 mode standalone role master modules *0 respb %5 version :1 profiles *5 " +
			"channels typed flow cancel passthrough table %3 name weft version :1 hash " + frame.TableHash + " capabilities :1 limits %10 " +
			"channels :65536 unauthenticated_channels :16 queue_bytes :1048576 output_bytes :67108864 frame_bytes :1073741824 arguments :1048576 " +
			"argument_bytes :536870912 nesting :128 elements :4294967295 fragment_bytes :65536"},
		{"9 HELLO 2", "9 -NOPROTO unsupported protocol version"},
		{"9 RESET", "9 RESET"},
		{"9 WHO", "9 *2 :9 default"},
	} {
		c.send(step.send)
		c.expect(step.want)
	}
	c.write(frame.AppendPassthrough(nil, 5, []byte("*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n")))
	c.expect("5 hi")
	c.send("0 QUIT", "0 PING")
	c.expect("0 OK", "0 GOAWAY 0 ")
	c.expectEnd()
}

// TestRESPBPipelineCut: replies do not depend on how the requests were cut, and those of a channel keep their order.
func TestRESPBPipelineCut(t *testing.T) {
	const n = 5000
	addr := startServer(t, &Server{Handler: muxMux(nil)})
	var wire []byte
	for i := range n {
		wire, _ = frame.AppendRequest(wire, uint16(i%3), []string{"ECHO", fmt.Sprint(i)}, frame.Fold)
	}
	for _, size := range []int{1, 7, 4096, len(wire)} {
		c := dialMux(t, addr)
		sent := make(chan error, 1)
		go func() {
			w := wire
			if size == 1 {
				w = w[:5000]
			}
			for len(w) > 0 {
				part := w[:min(size, len(w))]
				if _, err := c.Conn.Write(part); err != nil {
					sent <- err
					return
				}
				w = w[len(part):]
			}
			sent <- nil
		}()
		total := n
		if size == 1 {
			total = 300
		}
		for i := range total {
			c.expect(fmt.Sprintf("%d %d", i%3, i))
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
}

// S1, S2, S11 and the first frame.
func TestRESPBUnknownFrames(t *testing.T) {
	addr := startServer(t, &Server{Handler: muxMux(nil)})
	c := dialMux(t, addr)
	c.write([]byte{0xF0, 0x55, 0, 3, 0, 0, 0, 2, 'h', 'i', 0xFF, 0x55, 0, 3, 0, 0, 0, 1, 'x'})
	c.send("3 PING")
	c.expect("3 -ERR unknown frame 0xF055", "3 PONG")
	c.send("4 PING", "4 BIG 100000")
	c.write([]byte{0x07, 0xFE, 0, 4})
	c.expect("4 PONG", "4 xxxxxxxx…100000", "0 GOAWAY 8 ERR Protocol error: unknown opcode 0x07FE")
	c.expectEnd()

	c = dialMux(t, addr)
	c.write(make([]byte, 64))
	c.expect("0 GOAWAY 8 ERR Protocol error: a connection may not begin with a command on an empty key")
	c.expectEnd()

	c = dialMux(t, addr)
	c.send("0 PING")
	c.write([]byte{0, 0, 0, 0, 0, 0})
	c.expect("0 PONG", "0 null")
}

// S6 and CLOSE of channel 0.
func TestRESPBClose(t *testing.T) {
	var mu sync.Mutex
	var ended []string
	server := &Server{Handler: muxMux(nil), OnClose: func(s *Session, err error) {
		mu.Lock()
		ended = append(ended, fmt.Sprint(s.ID(), err))
		mu.Unlock()
	}}
	c := dialMux(t, startServer(t, server))
	c.control(5, frame.Close, frame.Control{}) // of an idle channel: ignored
	c.send("5 WHO")
	c.expect("5 *2 :5 default")
	c.control(5, frame.Close, frame.Control{})
	c.send("5 WHO", "6 LEAVE", "6 WHO")
	c.expect("5 CLOSE 0 ", "5 *2 :5 default", "6 OK", "6 CLOSE 0 ")
	c.control(6, frame.Close, frame.Control{})
	c.send("6 WHO")
	c.expect("6 *2 :6 default")
	c.control(0, frame.Close, frame.Control{})
	c.expect("0 CLOSE 0 ")
	c.send("0 WHO")
	c.expect("0 *2 :0 default")
	// Each session ends by itself, behind its CLOSE, and is counted until then.
	for deadline := time.Now().Add(time.Minute); server.Stats().Channels != 3 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if got := server.Stats(); got.Channels != 3 || got.RESPB != 1 {
		t.Errorf("%+v", got)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		mu.Lock()
		all := len(ended) >= 3
		mu.Unlock()
		if all {
			break
		}
	}
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(ended)
	if fmt.Sprintf("%q", ended) != `["1 <nil>" "2 <nil>" "4 <nil>"]` {
		t.Errorf("ended %q", ended)
	}
}

// S10: credit holds one channel back, and only that.
func TestRESPBWindow(t *testing.T) {
	c := dialMux(t, startServer(t, &Server{Handler: muxMux(nil), Limits: Limits{OutputBytesMax: 4096}}))
	c.control(1, frame.Window, frame.Control{More: 10})
	c.send("1 BIG 100", "1 PING", "2 PING")
	c.expect("1 xxxxxxxx…100", "2 PONG") // begun while the credit was above zero
	c.control(1, frame.Window, frame.Control{More: 94})
	c.send("2 PING")
	c.expect("2 PONG")
	c.control(1, frame.Window, frame.Control{More: 1})
	c.expect("1 PONG")
	c.send("1 BIG 3000", "1 BIG 3000", "1 SET ran yes")
	c.expect("1 xxxxxxxx…3000", "1 xxxxxxxx…3000", "1 CLOSE 2 the output limit was exceeded") // what has run is answered
	c.send("2 GET ran")
	c.expect("2 null")
	c.send("2 PING")
	c.expect("2 PONG")
	c.control(1, frame.Close, frame.Control{})
	c.send("1 BIG 5000", "1 PING")
	c.expect("1 -ERR the reply is larger than what a channel may be owed: ask for less at once (OutputBytesMax)",
		"1 CLOSE 2 the output limit was exceeded")
}

// S9: a large reply goes in slices, and others get through between them.
func TestRESPBFragments(t *testing.T) {
	c := dialMux(t, startServer(t, &Server{Handler: muxMux(nil)}))
	c.send("0 HELLO 3 CAPS 1")
	if _, err := c.next(); err != nil {
		t.Fatal(err)
	}
	const size = 24 << 20 // more than sockets hold
	c.send(fmt.Sprint("1 BIG ", size), "2 PING")
	got, before := 0, 0
	for done := false; !done; {
		text, err := c.next()
		if err != nil {
			t.Fatal(err)
		}
		var last bool
		var n int
		if _, err := fmt.Sscanf(text, "1 FRAGMENT %t %d", &last, &n); err == nil {
			got += n
			done = last
			continue
		}
		if text != "2 PONG" {
			t.Fatal(text)
		}
		before = got
	}
	if got != size+8 || before == 0 && got == 0 || before >= size {
		t.Errorf("%d bytes in slices, the other channel after %d", got, before)
	}
}

// TestRESPBSlowReader: a client that does not read loses the channel, behind what has run on it, not the connection.
func TestRESPBSlowReader(t *testing.T) {
	c := dialMux(t, startServer(t, &Server{Handler: muxMux(nil), Limits: Limits{OutputBytesMax: 16 << 20}}))
	var wire []byte
	const n = 64
	for range n {
		wire, _ = frame.AppendRequest(wire, 1, []string{"BIG", "1000000"}, frame.Fold)
	}
	wire, _ = frame.AppendRequest(wire, 2, []string{"PING"}, frame.Fold)
	c.write(wire)
	replies, sawClose, sawPong := 0, false, false
	for !sawClose || !sawPong {
		text, err := c.next()
		if err != nil {
			t.Fatal(replies, sawClose, sawPong, err)
		}
		switch {
		case text == "2 PONG":
			sawPong = true
		case strings.HasPrefix(text, "1 CLOSE 2"):
			sawClose = true
		case sawClose:
			t.Fatal(text, "behind CLOSE")
		default:
			replies++
		}
	}
	if replies == n {
		t.Error("64 MB waited for one channel whose limit is 16")
	}
}

func TestRESPBPubSub(t *testing.T) {
	m := muxMux(nil)
	ps := &PubSub{}
	ps.Register(m)
	c := dialMux(t, startServer(t, &Server{Handler: m}))
	c.send("258 SUBSCRIBE a b", "258 PUBLISH a one", "3 PSUBSCRIBE *", "3 PUBLISH b two", "258 PING", "258 UNSUBSCRIBE", "258 UNSUBSCRIBE")
	want := map[string]bool{}
	var order []string
	for range 10 {
		text, err := c.next()
		if err != nil {
			t.Fatal(err)
		}
		want[text] = true
		order = append(order, text)
	}
	for _, text := range []string{"258 *2 *3 subscribe a :1 *3 subscribe b :2", "258 :1", "258 >3 message a one", "3 *1 *3 psubscribe * :1", "3 :2",
		"258 >3 message b two", "3 >4 pmessage * b two", "258 PONG", "258 *1 *3 unsubscribe null :0"} {
		if !want[text] {
			t.Errorf("%q is missing in %q", text, order)
		}
	}
}

// TestRESPBAfterHello: a RESP connection becomes a RESPB connection and stays the same session.
func TestRESPBAfterHello(t *testing.T) {
	m := muxMux(nil)
	ps := &PubSub{}
	ps.Register(m)
	addr := startServer(t, &Server{Handler: m, RESPB: RESPBHello, Auth: func(s *Session, user, password string) error {
		if password != "secret" {
			return ErrWrongPass
		}
		return nil
	}})
	nc := dial(t, addr)
	nc.send("HELLO 3 PROTO respb\r\n")
	nc.expect("(error) NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
	nc.send("HELLO 3 AUTH ann secret\r\nSUBSCRIBE news\r\nHELLO 2 PROTO respb\r\nHELLO 3 PROTO other\r\n")
	var v Value
	for range 2 {
		if err := nc.r.Read(&v); err != nil {
			t.Fatal(err)
		}
	}
	nc.expect("(error) NOPROTO unsupported protocol version")
	nc.expect("(error) NOPROTO unsupported protocol version")
	nc.send("HELLO 3 PROTO respb CAPS 1\r\n")
	if err := nc.r.Read(&v); err != nil || v.Kind != Map || len(v.Elems) != 16 {
		t.Fatal(v.String(), err)
	}
	c := &muxClient{t: t, Conn: nc.Conn, dec: frame.NewReplyDecoder(frame.DefaultLimits)}
	c.send("0 WHO", "1 WHO", "0 PUBLISH news hi")
	c.expect("0 *2 :0 ann", "1 *2 :1 ann", "0 :1", "0 >3 message news hi")
	c.send("1 RESET", "1 WHO", "1 AUTH bob secret", "1 WHO", "2 WHO")
	c.expect("1 RESET", "1 -NOAUTH Authentication required.", "1 OK", "1 *2 :1 bob", "2 *2 :2 ann")

	// The first byte does not lead to RESPB here.
	raw := dialMux(t, addr)
	raw.send("0 PING")
	raw.write([]byte("\r\n"))
	part := make([]byte, 16)
	if n, err := raw.Read(part); err != nil || part[0] != '-' {
		t.Errorf("%q %v", part[:n], err)
	}
}

func TestRESPBUnauthenticated(t *testing.T) {
	addr := startServer(t, &Server{Handler: muxMux(nil), Auth: func(*Session, string, string) error { return nil }})
	c := dialMux(t, addr)
	for i := range 17 {
		c.send(fmt.Sprint(i, " PING"))
	}
	c.send("16 PING") // one CLOSE, whatever is under way
	for i := range 16 {
		c.expect(fmt.Sprint(i, " -NOAUTH Authentication required."))
	}
	c.expect("16 CLOSE 5 too many channels")
	c.control(16, frame.Close, frame.Control{})
	c.send("0 AUTH x", "16 PING", "17 PING")
	c.expect("0 OK", "16 PONG", "17 PONG")
	c = dialMux(t, addr)
	c.send("0 MGET" + strings.Repeat(" k", DefaultUnauthArgsMax))
	c.expect("0 GOAWAY 8 ERR Protocol error: unauthenticated multibulk length")
	c.expectEnd()
}

func TestRESPBPanicClosesTheChannel(t *testing.T) {
	c := dialMux(t, startServer(t, &Server{Handler: muxMux(nil), Logger: quietLogger()}))
	c.send("1 PANIC", "1 PING")
	c.expect("1 -ERR internal error", "1 CLOSE 256 internal error")
	c.send("2 PING")
	c.expect("2 PONG")
	c.send("0 PANIC")
	c.expect("0 -ERR internal error")
	c.expectEnd()
}

// TestRESPBKill: Session.Close ends a channel from any goroutine, and its hooks run though a publisher's lock is held.
func TestRESPBKill(t *testing.T) {
	m := muxMux(nil)
	sessions := make(chan *Session, 4)
	m.HandleFunc("SHOW", 1, func(s *Session, r *Request) error {
		sessions <- s
		return s.WriteOK()
	})
	c := dialMux(t, startServer(t, &Server{Handler: m}))
	c.send("3 SHOW", "0 SHOW")
	c.expect("3 OK", "0 OK")
	s := <-sessions
	ended := make(chan struct{})
	s.OnClose(func() { close(ended) })
	_ = s.Close()
	c.expect("3 CLOSE 4 killed")
	<-ended
	if err := s.Push(func(w *Writer) error { return w.WritePushString([]string{"x"}) }); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	_ = (<-sessions).Close()
	c.expectEnd()
}

// TestRESPBShutdown: what was received is answered, and open channels learn why they are closed.
func TestRESPBShutdown(t *testing.T) {
	s := &Server{Handler: muxMux(make(chan string))}
	c := dialMux(t, startServer(t, s))
	c.send("1 BLPOP a 0", "1 PING", "2 PING")
	c.expect("2 PONG")
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(context.Background()) }()
	<-s.Draining()
	c.expect("1 -ERR server is shutting down", "1 PONG", "0 GOAWAY 6 the server shuts down")
	c.expectEnd()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestRESPBManyPublishers: pushes of a channel come in the order in which they were published, whatever else goes on.
func TestRESPBManyPublishers(t *testing.T) {
	m := muxMux(nil)
	ps := &PubSub{}
	ps.Register(m)
	c := dialMux(t, startServer(t, &Server{Handler: m}))
	c.send("1 SUBSCRIBE a")
	c.expect("1 *1 *3 subscribe a :1")
	const n = 2000
	go func() {
		for i := range n {
			ps.Publish("a", []byte(fmt.Sprint(i)))
		}
	}()
	var wire []byte
	for range n {
		wire, _ = frame.AppendRequest(wire, 1, []string{"PING"}, frame.Fold)
	}
	c.write(wire)
	replies, messages := 0, 0
	for replies < n || messages < n {
		text, err := c.next()
		if err != nil {
			t.Fatal(err)
		}
		if text == "1 PONG" {
			replies++
			continue
		}
		if text != fmt.Sprintf("1 >3 message a %d", messages) {
			t.Fatal(text, messages)
		}
		messages++
	}
}

func TestRESPBOff(t *testing.T) {
	c := dial(t, startServer(t, &Server{Handler: echoMux(), RESPB: RESPBOff}))
	c.send("HELLO 3 PROTO respb\r\n")
	c.expect("(error) ERR Syntax error in HELLO option 'PROTO'")
}

// TestContextOverRESP: a command that waits lets the replies before it go.
func TestContextOverRESP(t *testing.T) {
	gate := make(chan string)
	c := dial(t, startServer(t, &Server{Handler: muxMux(gate)}))
	c.send("PING\r\nBLPOP a 0\r\nPING\r\n")
	c.expect("PONG")
	gate <- "go"
	c.expect(`"a go"`)
	c.expect("PONG")
}
