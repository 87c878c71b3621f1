package resp

// This file owns the tests of pushes, of streams, of TLS and of memory.

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/internal/frame"
)

// pubsubServer serves a PubSub's commands.
func pubsubServer(t *testing.T, s *Server) (string, *PubSub) {
	ps := &PubSub{}
	m := echoMux()
	ps.Register(m)
	s.Handler = m
	return startServer(t, s), ps
}

// TestPubSub runs the same conversation in both protocols; in RESP2 pushes were once dropped, so that nothing arrived.
func TestPubSub(t *testing.T) {
	for proto, kind := range map[int]string{2: "*", 3: ">"} {
		t.Run(fmt.Sprint(proto), func(t *testing.T) {
			addr, ps := pubsubServer(t, &Server{StartRESP3: proto == 3})
			sub, pub := dial(t, addr), dial(t, addr)
			sub.send("SUBSCRIBE a b\r\nPSUBSCRIBE n*s\r\n")
			sub.expect(kind + `["subscribe" "a" 1]`)
			sub.expect(kind + `["subscribe" "b" 2]`)
			sub.expect(kind + `["psubscribe" "n*s" 3]`)
			pub.send("PUBLISH a hello\r\nPUBLISH news x\r\nPUBLISH c y\r\nPUBSUB NUMPAT\r\nPUBSUB CHANNELS a*\r\n")
			for _, want := range []string{"1", "1", "0", "1", `*["a"]`} {
				pub.expect(want)
			}
			sub.expect(kind + `["message" "a" "hello"]`)
			sub.expect(kind + `["pmessage" "n*s" "news" "x"]`)
			sub.send("ECHO x\r\nPING\r\n")
			if proto == 2 {
				sub.expect("(error) ERR Can't execute 'echo': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context")
			} else {
				sub.expect(`"x"`)
			}
			sub.expect("PONG")
			sub.send("UNSUBSCRIBE a\r\nPUNSUBSCRIBE\r\nUNSUBSCRIBE b\r\nUNSUBSCRIBE\r\nECHO x\r\n")
			sub.expect(kind + `["unsubscribe" "a" 2]`)
			sub.expect(kind + `["punsubscribe" "n*s" 1]`)
			sub.expect(kind + `["unsubscribe" "b" 0]`)
			sub.expect(kind + `["unsubscribe" (nil) 0]`)
			sub.expect(`"x"`)
			if ps.Subscribers("a")+ps.Patterns() != 0 {
				t.Error("subscriptions are left")
			}
		})
	}
}

// TestPubSubForgetsTheGone: the end of a connection ends its subscriptions.
// TestConfirmationsHoldNobodyUp: a client that subscribes to much and reads nothing keeps no others from publishing, subscribing and leaving.
func TestConfirmationsHoldNobodyUp(t *testing.T) {
	var pubsub PubSub
	m := echoMux()
	pubsub.Register(m)
	addr := startServer(t, &Server{Handler: m, Limits: Limits{OutputBytesMax: 1 << 20}, OnAccept: func(nc net.Conn) error {
		return nc.(*net.TCPConn).SetWriteBuffer(16 << 10)
	}})
	slow := dial(t, addr)
	_ = slow.Conn.(*net.TCPConn).SetReadBuffer(16 << 10)
	const n, size = 4000, 1 << 10
	w := NewWriter(slow.Conn)
	_ = w.WriteArrayHeader(n + 1)
	_ = w.WriteBulkString("SUBSCRIBE")
	for i := range n {
		_ = w.WriteBulkString(fmt.Sprintf("%0*d", size, i))
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	// It has them all before the first confirmation is written, and is stuck in those then.
	for end := time.Now().Add(testWait); pubsub.Subscribers(fmt.Sprintf("%0*d", size, n-1)) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it is not subscribed")
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c := dial(t, addr)
		c.send("SUBSCRIBE other\r\nUNSUBSCRIBE other\r\n")
		c.expect(`*["subscribe" "other" 1]`)
		c.expect(`*["unsubscribe" "other" 0]`)
		pubsub.Publish("other", []byte("message"))
		_ = c.Close()
	}()
	select {
	case <-done:
	case <-time.After(testWait):
		t.Error("others wait for it")
	}
	_ = slow.Close()
}

func TestPubSubForgetsTheGone(t *testing.T) {
	gone := make(chan struct{})
	addr, ps := pubsubServer(t, &Server{OnClose: func(*Session, error) { close(gone) }})
	sub := dial(t, addr)
	sub.send("SUBSCRIBE a\r\n")
	sub.expect(`*["subscribe" "a" 1]`)
	sub.Close()
	<-gone
	if n := ps.Publish("a", nil); n != 0 || len(ps.sessions) != 0 {
		t.Errorf("%d subscribers, %d sessions", n, len(ps.sessions))
	}
}

// TestSlowSubscriberIsCut: publishing goes on past a subscriber that does not read, which is cut at its limit.
func TestSlowSubscriberIsCut(t *testing.T) {
	reason := make(chan error, 1)
	addr, ps := pubsubServer(t, &Server{
		Limits:  Limits{OutputBytesMax: 1 << 20},
		OnClose: func(_ *Session, err error) { reason <- err },
	})
	sub := dial(t, addr)
	sub.send("SUBSCRIBE a\r\n")
	sub.expect(`*["subscribe" "a" 1]`)
	message := bytes.Repeat([]byte("m"), 64<<10)
	for ps.Publish("a", message) > 0 {
	}
	var limit *LimitError
	if err := <-reason; !errors.As(err, &limit) || limit.Limit != "OutputBytesMax" {
		t.Error(err)
	}
}

// TestPushesKeepOrder: many goroutines push while replies are written; each one's pushes stay in order and no value is torn.
func TestPushesKeepOrder(t *testing.T) {
	sessions := make(chan *Session, 1)
	addr := startServer(t, &Server{Handler: echoMux(), StartRESP3: true, OnOpen: func(s *Session) { sessions <- s }})
	c := dial(t, addr)
	s := <-sessions
	const pushers, each = 4, 500
	var all sync.WaitGroup
	for id := range pushers {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := range each {
				err := s.Push(func(w *Writer) error {
					_ = w.WritePushHeader(2)
					_ = w.WriteInt(id)
					return w.WriteInt(i)
				})
				if err != nil {
					t.Error(err)
				}
			}
		}()
	}
	c.send(strings.Repeat("PING\r\n", each))
	var next [pushers]int64
	var v Value
	for pongs, pushes := 0, 0; pongs < each || pushes < pushers*each; {
		if err := c.r.Read(&v); err != nil {
			t.Fatal(err)
		}
		if v.Kind != Push {
			pongs++
			continue
		}
		pushes++
		if id := v.Elems[0].Int; v.Elems[1].Int != next[id] {
			t.Fatalf("push %s out of order, want %d", v.String(), next[id])
		}
		next[v.Elems[0].Int]++
	}
	all.Wait()
}

// TestPushDuringCommand: what is pushed while a command is answered comes after its reply.
func TestPushDuringCommand(t *testing.T) {
	m := NewMux()
	m.HandleFunc("X", 1, func(s *Session, r *Request) error {
		if err := s.Push(func(w *Writer) error { return w.WritePushString([]string{"late"}) }); err != nil {
			return err
		}
		if err := s.WriteBulkString("reply"); err != nil {
			return err
		}
		return s.Flush()
	})
	c := dial(t, startServer(t, &Server{Handler: m}))
	c.send("X\r\n")
	c.expect(`"reply"`)
	c.expect(`*["late"]`)
}

// TestReaderAndWriterGoroutines is for the race detector: one goroutine reads, another writes, a third closes.
func TestReaderAndWriterGoroutines(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := dial(t, l.Addr().String())
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	conn := NewClientConn(nc)
	const n = 5000
	go func() { _, _ = io.WriteString(c.Conn, strings.Repeat("*1\r\n$4\r\nPING\r\n", n)) }()
	work := make(chan string, 64)
	var both sync.WaitGroup
	both.Add(2)
	go func() {
		defer both.Done()
		defer close(work)
		for {
			args, err := conn.Next()
			if err != nil {
				return
			}
			work <- string(args[0])
		}
	}()
	go func() {
		defer both.Done()
		for word := range work {
			_ = conn.WriteBulkString(word)
		}
		if conn.WriteOK() == nil {
			t.Error("a write after Close succeeded")
		}
	}()
	for range n {
		c.expect(`"PING"`)
	}
	_ = conn.Close()
	both.Wait()
}

// TestReadDeadlineCanBeResumed: a command that is cut by a timeout is not lost.
func TestReadDeadlineCanBeResumed(t *testing.T) {
	server, peer := net.Pipe()
	defer peer.Close()
	conn := NewClientConn(server)
	defer conn.Close()
	late := make(chan struct{})
	go func() { // ends with the reads below
		_, _ = io.WriteString(peer, "*2\r\n$4\r\nECHO\r\n$5\r\nhe")
		<-late
		_, _ = io.WriteString(peer, "llo\r\n")
	}()
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Millisecond))
	var timeout net.Error
	if _, err := conn.Next(); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Time{})
	close(late)
	if args, err := conn.Next(); err != nil || string(args[1]) != "hello" {
		t.Fatal(args, err)
	}
}

// TestStreamsThroughServer sends a large value in and out without either side holding it.
func TestStreamsThroughServer(t *testing.T) {
	const size = 32 << 20
	m := echoMux()
	m.HandleStream("PUT", 3, func(s *Session, r *Request) error {
		if r.Body() == nil {
			return s.WriteInt(len(r.Arg(2)))
		}
		n, err := io.Copy(io.Discard, r.Body())
		if err != nil {
			return err
		}
		return s.WriteInt64(n)
	})
	m.HandleStream("SKIP", 2, func(s *Session, r *Request) error { return s.WriteInt(r.BodyLen()) })
	m.HandleFunc("FETCH", 1, func(s *Session, r *Request) error {
		return s.WriteBulkFrom(io.LimitReader(zeros{}, size), size)
	})
	c := dial(t, startServer(t, &Server{Handler: m, Limits: Limits{ArgBytesMax: 2 << 20, OutputBytesMax: 1 << 20}}))
	go func() {
		_, _ = fmt.Fprintf(c.Conn, "PUT k v\r\n*3\r\n$3\r\nPUT\r\n$1\r\nk\r\n$%d\r\n", size)
		_, _ = io.CopyN(c.Conn, zeros{}, size)
		_, _ = fmt.Fprintf(c.Conn, "\r\nPING\r\n*2\r\n$4\r\nSKIP\r\n$%d\r\n", size)
		_, _ = io.CopyN(c.Conn, zeros{}, size)
		_, _ = fmt.Fprintf(c.Conn, "\r\nPING\r\nFETCH\r\n*2\r\n$4\r\nECHO\r\n$3000000\r\n")
	}()
	for _, want := range []string{"1", fmt.Sprint(size), "PONG", fmt.Sprint(size), "PONG"} {
		c.expect(want)
	}
	var v Value
	if err := c.r.Read(&v); err != nil || len(v.Data) != size {
		t.Fatal(len(v.Data), err)
	}
	if err := c.r.Read(&v); err != nil || !strings.Contains(v.String(), "ArgBytesMax") {
		t.Fatal(v.String(), err)
	}
}

func TestTLS(t *testing.T) {
	certificate := selfSigned(t)
	addr := startServer(t, &Server{Handler: echoMux(), TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}}})
	nc, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	c := &client{t, nc, NewReader(nc)}
	word := strings.Repeat("x", 100000)
	const n = 20
	c.send(strings.Repeat(fmt.Sprintf("PING\r\n*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n", len(word), word), n))
	for range n {
		c.expect("PONG")
		c.expect(`"` + word + `"`)
	}
	c.send("QUIT\r\n")
	c.expect("OK")
	c.expectEnd()
	idle, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { idle.Close() }) // Shutdown wakes it
}

func selfSigned(t *testing.T) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// idleBytesMax is what an idle connection may cost in heap and stack, the connection's own objects in the net package included.
const idleBytesMax = 8 << 10

// TestIdleConnectionIsSmall measures connections that were busy and now wait. Those of the first wire stay open while the second is
// measured, so that neither is given, or charged with, what closing others frees.
func TestIdleConnectionIsSmall(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector adds to every allocation")
	}
	ping, _ := frame.AppendRequest(nil, 0, []string{"PING"}, frame.Exact)
	for _, wire := range []struct{ name, request, answer string }{
		{"RESP", "PING\r\n", "+PONG\r\n"},
		{"RESPB", string(ping), "\x83\x04\x00\x00PONG"},
	} {
		heap, stack := idleConnection(t, wire.request, wire.answer)
		t.Logf("an idle %s connection costs %d bytes of heap, the client's end included, and %d of stack", wire.name, heap, stack)
		if each := heap + stack; each > idleBytesMax {
			t.Errorf("an idle %s connection costs %d bytes, more than %d", wire.name, each, idleBytesMax)
		}
	}
}

// idleConnection returns what each of many connections adds.
func idleConnection(t *testing.T, request, answer string) (heap, stack int64) {
	const n = 500
	addr := startServer(t, &Server{Handler: echoMux()})
	conns := make([]net.Conn, 0, n)
	t.Cleanup(func() {
		for _, nc := range conns {
			_ = nc.Close()
		}
	})
	batch, reply := []byte(strings.Repeat(request, 200)), make([]byte, len(answer)*200)
	heapBefore, stackBefore := heapAndStack()
	for range n {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Skip("not enough descriptors for this test: ", err)
		}
		conns = append(conns, nc)
		_, _ = nc.Write(batch)
		if _, err := io.ReadFull(nc, reply); err != nil || !strings.HasPrefix(string(reply), answer) {
			t.Fatalf("%q, %v", reply[:len(answer)], err)
		}
	}
	heap, stack = heapAndStack()
	return (heap - heapBefore) / n, (stack - stackBefore) / n
}

func heapAndStack() (heap, stack int64) {
	var m runtime.MemStats
	for range 3 { // twice empties the pools, and stacks shrink one step at a time
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), int64(m.StackInuse)
}

func TestMatchGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"", "", true}, {"a", "a", true}, {"a", "b", false}, {"*", "", true}, {"*", "abc", true}, {"a*c", "abbc", true},
		{"a*c", "ab", false}, {"a?c", "abc", true}, {"a?c", "ac", false}, {"[a-c]x", "bx", true}, {"[^a-c]x", "bx", false},
		{"[c-a]", "b", true}, {`\*`, "*", true}, {`\*`, "a", false}, {`[\]]`, "]", true}, {"[ab", "b", true}, {"h*llo*w", "hello new", true},
		{"a**b", "ab", true}, {"[", "[", false}, {`\`, `\`, true},
		{strings.Repeat("*a", 50) + "b", strings.Repeat("a", 5000), false},
	} {
		if got := matchGlob(c.pattern, c.name); got != c.want {
			t.Errorf("%q and %.20q: %v", c.pattern, c.name, got)
		}
	}
}
