package resp

// Owns: tests of how RESPB connections of a server end: TLS, idle ones, half-closed ones. Does not own: the rest.

import (
	"crypto/tls"
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
	c.expect("0 OK")
	c.expectEnd()
}

// TestRESPBIdleConnectionEnds: the idle timeout is that of the connection.
func TestRESPBIdleConnectionEnds(t *testing.T) {
	c := dialMux(t, startServer(t, &Server{Handler: muxMux(nil), IdleTimeout: 50 * time.Millisecond}))
	c.send("1 PING")
	c.expect("1 PONG")
	c.expectEnd()
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
