package resp

// This file owns the tests of middleware.

import (
	"fmt"
	"io"
	"slices"
	"testing"
)

// TestChain: the first middleware is outermost, one may answer instead, and what the Mux streams is streamed behind any number of them.
func TestChain(t *testing.T) {
	var order []string
	trace := func(name string) Middleware {
		return func(next Handler) Handler {
			return HandlerFunc(func(s *Session, r *Request) error {
				order = append(order, name)
				if r.String(0) == "DENIED" {
					return &Error{"NOPERM", "not today"}
				}
				return next.ServeCommand(s, r)
			})
		}
	}
	m := echoMux()
	m.StreamBytes = 4
	m.HandleStream("STORE", 2, func(s *Session, r *Request) error {
		if r.Body() == nil {
			return s.WriteBulkString("whole " + r.String(1))
		}
		b, err := io.ReadAll(r.Body())
		if err != nil {
			return err
		}
		return s.WriteBulkString(fmt.Sprintf("streamed %s", b))
	})
	c := dial(t, startServer(t, &Server{Handler: Chain(Chain(m, trace("inner")), trace("first"), trace("second"))}))
	for _, each := range [][2]string{
		{"*2\r\n$5\r\nSTORE\r\n$3\r\nabc\r\n", `"whole abc"`}, {"*2\r\n$5\r\nSTORE\r\n$4\r\nabcd\r\n", `"streamed abcd"`},
		{"DENIED\r\n", "(error) NOPERM not today"}, {"PING\r\n", "PONG"},
	} {
		order = nil
		c.send(each[0])
		c.expect(each[1])
		want := []string{"first", "second", "inner"}
		if each[0] == "DENIED\r\n" {
			want = want[:1]
		}
		if !slices.Equal(order, want) {
			t.Errorf("%q went through %q, want %q", each[0], order, want)
		}
	}
	if _, ok := Chain(HandlerFunc(func(s *Session, r *Request) error { return nil }), trace("")).(Streamer); ok {
		t.Error("a chain streams what its handler does not")
	}
}
