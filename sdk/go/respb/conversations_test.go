package respb

// This file owns how channels and connections end as this client sees it: the conversations of conformance/clients, whose README says how they
// are held.

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/weft-db/weft/sdk/go/internal/frame"
	"github.com/weft-db/weft/sdk/go/internal/vectors"
)

type conversation struct {
	ID    string
	Steps [][]string
}

func TestConversations(t *testing.T) {
	var file struct{ Conversations []conversation }
	switch err := vectors.Read("conformance/clients/conversations.json", &file); {
	case errors.Is(err, os.ErrNotExist):
		t.Skip("conformance/clients is not part of the module: ", err)
	case err != nil:
		t.Fatal(err)
	}
	if len(file.Conversations) != 18 {
		t.Errorf("%d conversations", len(file.Conversations))
	}
	for _, c := range file.Conversations {
		if !t.Run(c.ID, c.hold) {
			return // each would wait as long
		}
	}
}

// asked is a request, and what it came to.
type asked struct {
	channel string
	got     <-chan outcome
}

// hold plays the server's side and the client's user in turns.
func (c *conversation) hold(t *testing.T) {
	ctx := testContext(t)
	p, conn := connected(t, Options{Reconnect: Reconnect{Disabled: true}})
	channels, numbers := map[string]*Channel{"0": conn.zero}, map[string]uint16{"0": 0}
	requests := map[string]asked{}
	channel := func(name string) *Channel {
		if channels[name] == nil {
			ch, err := conn.Channel(ctx)
			if err != nil {
				t.Fatal(err)
			}
			channels[name] = ch
		}
		return channels[name]
	}
	ends := false
	for _, step := range c.Steps {
		switch what, name := step[0], step[len(step)-1]; what {
		case "asks":
			requests[step[2]] = asked{step[1], goDo(ctx, channel(step[1]), "PING")}
			r := p.expect("PING")
			if number, known := numbers[step[1]]; known && number != r.channel {
				t.Fatalf("%v on channel %d, which is %d", step, r.channel, number)
			}
			numbers[step[1]] = r.channel
		case "asks in vain":
			requests[step[2]] = asked{step[1], goDo(ctx, channel(step[1]), "PING")}
		case "closes":
			if err := channel(name).Close(); err != nil {
				t.Fatal(err)
			}
			fallthrough
		case "gets close":
			if r := p.control(frame.Close); r.channel != numbers[name] {
				t.Fatalf("%v: CLOSE on channel %d", step, r.channel)
			}
		case "closes unused":
			if err := channel(name).Close(); err != nil {
				t.Fatal(err)
			}
		case "server":
			p.sends(step[1], numbers)
		case "answered":
			(<-requests[name].got).is(t, "PONG")
		case "did not run", "may have run":
			o := <-requests[name].got
			var closed *CloseError
			var away *GoAwayError
			ran := !errors.As(o.err, &closed) && !errors.As(o.err, &away)
			if o.err == nil || ran != (what == "may have run") {
				t.Fatalf("%v: %q, %v", step, o.v.Data, o.err)
			}
		case "ends":
			_ = p.nc.(*net.TCPConn).CloseWrite()
			ends = true
		case "resets":
			_ = p.nc.(*net.TCPConn).SetLinger(0)
			_ = p.nc.Close()
		default:
			t.Fatal(step)
		}
	}
	if ends {
		if r, err := p.read(); err != io.EOF {
			t.Fatalf("the client sends %v, %v", r, err)
		}
	}
}

// sends sends the bytes of a step, with the numbers that channels have.
func (p *peer) sends(text string, numbers map[string]uint16) {
	p.t.Helper()
	text = strings.ReplaceAll(text, " ", "")
	for name, number := range numbers {
		text = strings.ReplaceAll(text, "{"+name+"}", fmt.Sprintf("%04x", number))
	}
	wire, err := hex.DecodeString(text)
	if err == nil {
		_, err = p.nc.Write(wire)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// TestGoAwayMovesOn: behind GOAWAY what is asked goes over another connection, while the old one still answers.
func TestGoAwayMovesOn(t *testing.T) {
	ctx := testContext(t)
	s, c := newScript(t, Options{Reconnect: soon})
	first := goDo(ctx, c.zero, "PING")
	old := s.accept()
	old.expect("PING")
	old.text(0, "PONG")
	(<-first).is(t, "PONG")
	late := goDo(ctx, c.zero, "ECHO", "late")
	old.expect("ECHO", "late")
	goAway := frame.AppendControl(nil, 0, frame.GoAway, frame.Control{Code: 6})
	if _, err := old.nc.Write(goAway); err != nil {
		t.Fatal(err)
	}
	until(t, "GOAWAY", func() bool { return locked(c.zero, func(l *link) bool { return l.away != nil }) })
	next := goDo(ctx, c.zero, "PING")
	p := s.accept()
	p.expect("PING")
	old.text(0, "late")
	(<-late).is(t, "late")
	_ = old.nc.(*net.TCPConn).CloseWrite()
	if r, err := old.read(); err != io.EOF {
		t.Errorf("the client sends %v, %v", r, err)
	}
	p.text(0, "PONG")
	(<-next).is(t, "PONG")
	again := goDo(ctx, c.zero, "PING")
	p.expect("PING")
	p.text(0, "PONG")
	(<-again).is(t, "PONG")
}

// TestUnusedChannelsLeaveNothing: a channel on which nothing was sent has no CLOSE that would be answered, and its place is free at once.
func TestUnusedChannelsLeaveNothing(t *testing.T) {
	_, conn := connected(t, Options{ChannelsMax: 3})
	for range 5 {
		var both [2]*Channel
		for i := range both {
			ch, err := conn.Channel(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			both[i] = ch
		}
		for _, ch := range both {
			if err := ch.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestRefusedAtOnce is scenario S18: a server that does not want a connection says so in a line of RESP, whatever the client speaks.
func TestRefusedAtOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // ends with the listener
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = nc.Write([]byte("-ERR max number of clients reached\r\n"))
			_ = nc.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, nc)
			_ = nc.Close()
		}
	}()
	for _, p := range []Protocol{Auto, RESPB} {
		c, err := Dial(testContext(t), Options{Addr: l.Addr().String(), Protocol: p})
		if err == nil {
			_ = c.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "max number of clients reached") {
			t.Errorf("protocol %v: %v", p, err)
		}
	}
}
