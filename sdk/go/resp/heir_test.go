package resp

// Owns: tests of which user a new channel begins with (spec section 8.2).

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weft-db/weft/sdk/go/internal/frame"
)

// loginServer knows users whose password is their name. Commands that wait do so until something comes through gate.
func loginServer(gate chan string) *Server {
	return &Server{Handler: muxMux(gate), Auth: func(_ *Session, user, password string) error {
		if user != password {
			return ErrWrongPass
		}
		return nil
	}}
}

// A channel has the user of the last login on channel 0 before its first frame, also when that login waits behind a command that blocks;
// until it is answered, the channel's frames wait, and no other channel's.
func TestRESPBNewChannelWaitsForLogin(t *testing.T) {
	for login, want := range map[string]string{
		"AUTH ben ben":                 "ben",
		"HELLO 3 PROTO respb AUTH c c": "c",
		"AUTH ben wrong":               "ann", // nothing has changed
	} {
		gate := make(chan string)
		c := dialMux(t, startServer(t, loginServer(gate)))
		c.send("0 AUTH ann ann", "1 PING")
		c.expect("0 OK", "1 PONG")
		// 5 comes before the login is queued, 6 and 7 behind it.
		c.send("0 BLPOP a 0", "5 WHO", "0 "+login, "0 PING", "6 WHO", "7 PING", "6 ECHO x", "1 WHO")
		c.expect("5 *2 :5 ann", "1 *2 :1 ann")
		gate <- "go"
		var got []string
		for range 6 {
			text, err := c.next()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, text)
		}
		of := func(channel string) (replies []string) {
			for _, text := range got {
				if strings.HasPrefix(text, channel+" ") {
					replies = append(replies, text)
				}
			}
			return replies
		}
		if who := of("6"); len(who) != 2 || who[0] != "6 *2 :6 "+want || who[1] != "6 x" {
			t.Errorf("%s: %q", login, got)
		}
		if zero := of("0"); len(zero) != 3 || zero[0] != "0 a go" || zero[2] != "0 PONG" {
			t.Errorf("%s: %q", login, got)
		}
		if len(of("7")) != 1 {
			t.Errorf("%s: %q", login, got)
		}
	}
}

// RESET ends the login, and of two logins the one counts that was the last before the frame.
func TestRESPBNewChannelWaitsForItsLogin(t *testing.T) {
	gate := make(chan string)
	c := dialMux(t, startServer(t, loginServer(gate)))
	c.send("0 AUTH ann ann", "1 PING")
	c.expect("0 OK", "1 PONG")
	c.send("0 BLPOP a 0", "0 AUTH ben ben", "3 WHO", "0 RESET", "4 WHO", "0 AUTH cid cid", "5 WHO", "1 PING")
	c.expect("1 PONG")
	gate <- "go"
	want := []string{"0 a go", "0 OK", "3 *2 :3 ben", "0 RESET", "4 -NOAUTH Authentication required.", "0 OK", "5 *2 :5 cid"}
	var got []string
	for range want {
		text, err := c.next()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, text)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// What waits for a login is bounded as every queue is, can be cancelled, and ends with its channel and with the connection.
func TestRESPBWaitingForLoginEnds(t *testing.T) {
	gate := make(chan string)
	s := loginServer(gate)
	s.Limits.QueueBytesMax = 64
	var mu sync.Mutex
	opened, closed := 0, 0
	s.OnOpen = func(*Session) { mu.Lock(); opened++; mu.Unlock() }
	s.OnClose = func(*Session, error) { mu.Lock(); closed++; mu.Unlock() }
	c := dialMux(t, startServer(t, s))
	c.send("0 AUTH ann ann", "1 PING")
	c.expect("0 OK", "1 PONG")
	c.send("0 BLPOP a 0", "0 AUTH ben ben", "2 ECHO "+strings.Repeat("w", 80), "3 WHO", "4 WHO", "4 PING", "1 PING")
	c.expect("1 PONG", "2 CLOSE 1 the queue is full")
	c.control(3, frame.Close, frame.Control{})
	c.expect("3 CLOSE 0 ")
	c.control(4, frame.Cancel, frame.Control{Sequence: 0})
	c.send("1 PING")
	c.expect("1 PONG") // the CANCEL has been read
	gate <- "go"
	c.expect("0 a go", "0 OK", "4 -CANCELLED the client cancelled the command", "4 PONG")
	c.send("0 BLPOP a 0", "0 AUTH cid cid", "5 WHO", "1 PING")
	c.expect("1 PONG")
	c.Close()
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if opened != closed || opened < 5 {
		t.Errorf("%d opened, %d closed", opened, closed)
	}
}

// Shutdown answers what has been received, what waits for a login too, and says GOAWAY to who is idle.
func TestRESPBShutdownWhileWaitingForLogin(t *testing.T) {
	s := loginServer(make(chan string))
	addr := startServer(t, s)
	c, idle := dialMux(t, addr), dialMux(t, addr)
	idle.send("0 AUTH ann ann", "3 PING")
	idle.expect("0 OK", "3 PONG")
	c.send("0 AUTH ann ann", "1 PING")
	c.expect("0 OK", "1 PONG")
	c.send("0 BLPOP a 0", "0 AUTH ben ben", "6 WHO", "1 PING")
	c.expect("1 PONG")
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(context.Background()) }()
	idle.expect("0 GOAWAY 6 the server shuts down")
	idle.expectEnd()
	c.expect("0 -ERR server is shutting down", "0 OK", "6 *2 :6 ben", "0 GOAWAY 6 the server shuts down")
	c.expectEnd()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
