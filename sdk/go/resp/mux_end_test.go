package resp

// Owns: tests of how RESPB connections of a server end: TLS, idle ones, half-closed ones. Does not own: the rest.

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/internal/frame"
)

// TestRESPBOverTLS: a connection that is no plain socket, where reading and writing go another way.
func TestRESPBOverTLS(t *testing.T) {
	gate := make(chan string)
	addr := startServer(t, &Server{Handler: muxMux(gate), TLSConfig: &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}}})
	nc, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(testWait))
	c := &muxClient{t: t, Conn: nc, dec: frame.NewReplyDecoder(frame.DefaultLimits)}
	c.send("1 BLPOP a 0", "1 PING", "2 BIG 300000", "2 ECHO x")
	c.expect("2 xxxxxxxx…300000", "2 x")
	gate <- "go"
	c.expect("1 a go", "1 PONG")
	c.send("3 BLPOP b 0")
	c.control(3, frame.Cancel, frame.Control{Sequence: 0})
	c.expect("3 -CANCELLED the client cancelled the command")
	c.send("0 QUIT")
	c.expect("0 OK", "0 GOAWAY 0 ")
	c.expectEnd()
}

// TestRESPBIdleConnectionEnds: the idle timeout is that of the connection.
func TestRESPBIdleConnectionEnds(t *testing.T) {
	addr := startServer(t, &Server{Handler: muxMux(nil), IdleTimeout: 50 * time.Millisecond})
	ping, _ := frame.AppendRequest(nil, 1, []string{"PING"}, frame.Fold)
	for range idleTries {
		c := dialMux(t, addr)
		_, _ = c.Conn.Write(ping)
		got, err := c.next()
		if err == nil && got != "1 PONG" {
			t.Fatal(got)
		}
		if err == nil {
			c.expectEnd()
			return
		}
		c.Close()
	}
	t.Error("a connection that is used ends before it is idle")
}

// TestRESPBHalfClose: what was sent before the client shut its side down is answered.
func TestRESPBHalfClose(t *testing.T) {
	c := dialMux(t, startServer(t, &Server{Handler: muxMux(nil)}))
	c.send("1 PING", "2 PING", "1 BLPOP a 0")
	_ = c.Conn.(*net.TCPConn).CloseWrite()
	c.expect("1 PONG", "2 PONG")
	for {
		if _, err := c.next(); err != nil {
			break // what waits ends with the connection
		}
	}
}

// TestWireErrorIsTheLastFrame: GOAWAY comes behind everything else, however the stream was cut.
func TestWireErrorIsTheLastFrame(t *testing.T) {
	const wrong = "\xff\x04\x00\x00\x00\x00\x00+\x00\x08ERR Protocol error: unknown opcode 0x3030"
	addr := startServer(t, &Server{Handler: echoMux(), RESPB: RESPBDetect})
	for request, want := range map[string]string{
		"\x03\x00\x00\x05\x30\x30\x00\x05": "\x83\x04\x00\x05PONG" + wrong,
		"\x03\x00\x00\x00\x30\x30\x00\x05": "\x83\x04\x00\x00PONG" + wrong,
		// QUIT closes its channel.
		"\x03\x04\x00\x05\x30\x30\x00\x05": "\x80\x00\x00\x05\xff\x01\x00\x05\x00\x00\x00\x00" + wrong,
	} {
		for _, cut := range []int{8, 4, 3} {
			nc, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			for rest := request; rest != ""; {
				n := min(cut, len(rest))
				if _, err := io.WriteString(nc, rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if got, err := io.ReadAll(nc); err != nil || string(got) != want {
				t.Errorf("%q: %q, %v; want %q", request, got, err, want)
			}
			_ = nc.Close()
		}
	}
}

// TestKilledChannelAnswersWhatItRuns: what has run is answered before CLOSE, whatever credit is left and in slices; what runs is
// waited for; what waits, or gives up, has no answer.
func TestKilledChannelAnswersWhatItRuns(t *testing.T) {
	m := muxMux(nil)
	sessions, gate := make(chan *Session, 1), make(chan string)
	m.HandleFunc("RUN", 1, func(s *Session, r *Request) error {
		_ = r.Context() // others go on
		sessions <- s
		return s.WriteBulkString(<-gate)
	})
	c := dialMux(t, startServer(t, &Server{Handler: m}))
	c.control(1, frame.Window, frame.Control{More: 0})
	c.send("1 BIG 100", "1 RUN", "1 PING", "2 PING")
	c.expect("2 PONG")
	_ = (<-sessions).Close()
	c.send("1 PING", "2 PING")
	c.expect("2 PONG")
	gate <- "ran"
	c.expect("1 xxxxxxxx…100", "1 ran", "1 CLOSE 4 killed")
	c.control(1, frame.Close, frame.Control{})
	m.HandleFunc("GIVEUP", 1, func(s *Session, r *Request) error {
		ctx := r.Context()
		sessions <- s
		<-ctx.Done()
		return context.Cause(ctx)
	})
	c.send("1 PING", "1 GIVEUP", "1 PING")
	c.expect("1 PONG")
	_ = (<-sessions).Close()
	c.expect("1 CLOSE 4 killed")
}
