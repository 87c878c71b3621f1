package resp

// This file owns the tests of RESPB commands that wait: queues behind them, CANCEL, and ends while they wait.

import (
	"context"
	"strings"
	"testing"

	"github.com/weft-db/weft/sdk/go/internal/frame"
)

// S5, S7, S8: a channel that blocks holds back only itself, its queue is bounded, and CANCEL ends what blocks or waits.
func TestRESPBBlocking(t *testing.T) {
	gate := make(chan string)
	c := dialMux(t, startServer(t, &Server{Handler: muxMux(gate), Limits: Limits{QueueBytesMax: 64}}))
	c.send("1 PING", "1 BLPOP a 0", "1 ECHO x", "1 ECHO y", "2 ECHO z")
	c.expect("1 PONG", "2 z")
	gate <- "go"
	c.expect("1 a go", "1 x", "1 y")
	c.send("1 PING")
	c.expect("1 PONG")

	c.send("1 BLPOP b 0", "1 ECHO 1", "1 ECHO 2") // 5, 6, 7
	c.control(1, frame.Cancel, frame.Control{Sequence: 6})
	c.control(1, frame.Cancel, frame.Control{Sequence: 4})
	c.control(9, frame.Cancel, frame.Control{Sequence: 0})
	c.control(1, frame.Cancel, frame.Control{Sequence: 5})
	c.expect("1 -CANCELLED the client cancelled the command", "1 -CANCELLED the client cancelled the command", "1 2")

	c.send("3 BLPOP c 0", "3 ECHO "+strings.Repeat("w", 80), "3 ECHO x")
	c.expect("3 CLOSE 1 the queue is full")
	c.send("2 ECHO still")
	c.expect("2 still")
	c.control(3, frame.Close, frame.Control{})
	c.send("3 PING")
	c.expect("3 PONG")

	// Blocked twice over, with the connection handed on each time; then the connection goes, and all of it ends.
	c.send("4 BLPOP d 0", "5 BLPOP e 0", "6 ECHO x")
	c.expect("6 x")
	c.control(5, frame.Close, frame.Control{})
	c.send("5 ECHO new")
	c.expect("5 CLOSE 0 ", "5 new")
}

// A CANCEL right behind its command finds it, however the goroutines of the connection come to run.
func TestRESPBCancelAtOnce(t *testing.T) {
	c := dialMux(t, startServer(t, &Server{Handler: muxMux(make(chan string))}))
	for seq := range uint32(2000) {
		wire, _ := frame.AppendRequest(nil, 1, []string{"BLPOP", "a", "0"}, frame.Fold)
		c.write(frame.AppendControl(wire, 1, frame.Cancel, frame.Control{Sequence: seq}))
		c.expect("1 -CANCELLED the client cancelled the command")
	}
}

// A CANCEL reaches a command that was queued and runs, but does not wait yet; not one that comes after it.
func TestRESPBCancelBeforeWaiting(t *testing.T) {
	gate, begun, goOn := make(chan string), make(chan bool), make(chan bool)
	mux := muxMux(gate)
	mux.HandleFunc("LATE", 1, func(s *Session, r *Request) error {
		select {
		case begun <- true:
			<-goOn
		case <-t.Context().Done(): // the test has failed
		}
		<-r.Context().Done()
		return context.Cause(r.Context())
	})
	c := dialMux(t, startServer(t, &Server{Handler: mux}))
	c.send("1 BLPOP a 0", "1 LATE", "1 LATE", "1 BLPOP b 0", "2 PING")
	c.expect("2 PONG") // they are queued
	gate <- "go"
	c.expect("1 a go")
	for seq := range uint32(2) {
		<-begun
		c.control(1, frame.Cancel, frame.Control{Sequence: seq + 1})
		c.send("2 PING")
		c.expect("2 PONG") // the CANCEL has been read
		goOn <- true
		c.expect("1 -CANCELLED the client cancelled the command")
	}
	gate <- "last"
	c.expect("1 b last")
}

// TestRESPBConnectionEndsWhileBlocked: the context ends with the connection, and Shutdown finds nothing left.
func TestRESPBConnectionEndsWhileBlocked(t *testing.T) {
	c := dialMux(t, startServer(t, &Server{Handler: muxMux(make(chan string))}))
	c.send("1 BLPOP a 0", "2 BLPOP a 0", "0 BLPOP a 0", "3 PING")
	c.expect("3 PONG")
	c.Close()
}
