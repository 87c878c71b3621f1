package respb

// This file owns the tests beside a server that has no HELLO, as Redis before 6: what speaks RESP2 is served all the same.

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/weft-db/weft/sdk/go/resp"
)

// withoutHello serves s to clients that it answers HELLO as Redis 5 does. Everything else is handed on as it is.
func withoutHello(t *testing.T, s *resp.Server) (addr string) {
	t.Helper()
	behind := serve(t, s)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", behind)
			if err != nil {
				t.Error(err)
				return
			}
			go func() { // ends when the server closes
				_, _ = io.Copy(client, server)
				_ = client.Close()
			}()
			go func() { // ends when the client closes
				defer server.Close()
				r := resp.NewReader(client)
				var v Value
				for r.Read(&v) == nil {
					var args [][]byte
					for i := range v.Elems {
						args = append(args, v.Elems[i].Data)
					}
					if bytes.EqualFold(args[0], []byte("HELLO")) {
						// The client waits for this before it sends anything else, so it meets no other reply.
						_, _ = client.Write([]byte("-ERR unknown command `HELLO`, with args beginning with: \r\n"))
						continue
					}
					if _, err := server.Write(appendRESP(nil, args)); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

func TestServerWithoutHello(t *testing.T) {
	ctx := testContext(t)
	connected := make(chan Connected, 1)
	addr := withoutHello(t, &resp.Server{Handler: newStore().handler()})
	c := dial(t, addr, Options{OnConnect: func(made Connected) { connected <- made }})
	if made := <-connected; made.Protocol != RESP2 || made.FellBack == nil || c.Protocol() != RESP2 {
		t.Errorf("connected by %v, because of %v; Protocol is %v", made.Protocol, made.FellBack, c.Protocol())
	}
	if _, err := c.Set(ctx, "k", "v"); err != nil {
		t.Fatal(err)
	}
	if v, err := c.Get(ctx, "k"); v != "v" || err != nil {
		t.Errorf("Get: %q, %v", v, err)
	}
	if _, err := c.Get(ctx, "none"); !errors.Is(err, ErrNil) {
		t.Errorf("Get of nothing: %v", err)
	}
	if m, err := c.Hgetall(ctx, "h"); len(m) != 2 || m["b"] != "2" || err != nil {
		t.Errorf("Hgetall: %v, %v", m, err)
	}
	if s, err := c.Smembers(ctx, "s"); !slices.Equal(s, []string{"x", "y"}) || err != nil {
		t.Errorf("Smembers: %v, %v", s, err)
	}
	if f, err := c.Zscore(ctx, "z", "m"); f != 1.5 || err != nil {
		t.Errorf("Zscore: %v, %v", f, err)
	}

	t.Run("subscription", func(t *testing.T) {
		s, err := c.Subscribe(ctx, "news")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.ch.Psubscribe(ctx, "n*"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Publish(ctx, "news", "hello"); err != nil {
			t.Fatal(err)
		}
		var got []Message
		for range 2 {
			m, err := s.Receive(ctx)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, m)
		}
		if got[0].Payload != "hello" || got[1].Payload != "hello" || got[0].Pattern+got[1].Pattern != "n*" {
			t.Errorf("received %+v", got)
		}
		if err := s.Unsubscribe(ctx, "news"); err != nil {
			t.Error(err)
		}
		_ = s.Close()
	})
	t.Run("transaction", func(t *testing.T) {
		p := c.Pipeline()
		p.Do("SET", "a", "1")
		p.Do("GET", "a")
		values, err := p.ExecTx(ctx)
		if err != nil || len(values) != 2 || string(values[1].Data) != "GET a" {
			t.Errorf("%v, %v", values, err)
		}
	})
	t.Run("blocking", func(t *testing.T) {
		ch, err := c.Channel(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer ch.Close()
		got := make(chan error, 1)
		go func() {
			_, err := ch.Do(ctx, "BLPOP", "list", "0")
			got <- err
		}()
		waitPending(t, ch, 1)
		if _, err := c.Do(ctx, "LPUSH", "list", "x"); err != nil {
			t.Error(err)
		}
		if err := <-got; err != nil {
			t.Error(err)
		}
	})
	t.Run("cache", func(t *testing.T) {
		var use *UseError
		if _, err := c.Cache(ctx, 0); !errors.As(err, &use) || !strings.Contains(err.Error(), "RESP2") {
			t.Errorf("Cache: %v", err)
		}
	})
}

// TestRESP2Only: what is asked for, RESP3 or RESPB, is not quietly less, and RESP2 sends no HELLO.
func TestRESP2Only(t *testing.T) {
	ctx := testContext(t)
	addr := withoutHello(t, &resp.Server{Handler: newStore().handler()})
	for _, protocol := range []Protocol{RESPB, RESP3} {
		_, err := Dial(ctx, Options{Addr: addr, Protocol: protocol})
		if err == nil || !strings.Contains(err.Error(), "does not speak "+protocol.String()) {
			t.Errorf("%v: %v", protocol, err)
		}
	}
	m := newStore().mux()
	hello := false
	addr = serve(t, &resp.Server{Handler: resp.HandlerFunc(func(s *resp.Session, r *resp.Request) error {
		hello = hello || strings.EqualFold(string(r.Name()), "HELLO")
		return m.ServeCommand(s, r)
	})})
	c := dial(t, addr, Options{Protocol: RESP2})
	if v, err := c.Do(ctx, "PING"); err != nil || v.String() != "PONG" || c.Protocol() != RESP2 || hello {
		t.Errorf("%v, %v, %v, HELLO came: %v", v.String(), err, c.Protocol(), hello)
	}
}

// TestAuthenticationWithoutHello: AUTH takes its place, with a user only if one is named.
func TestAuthenticationWithoutHello(t *testing.T) {
	ctx := testContext(t)
	users := map[string]string{"default": "secret", "alice": "wonder"}
	addr := withoutHello(t, &resp.Server{Handler: newStore().handler(), Auth: func(_ *resp.Session, user, password string) error {
		if users[user] != password {
			return &resp.Error{Prefix: "WRONGPASS", Message: "invalid"}
		}
		return nil
	}})
	for _, each := range []struct{ user, password, want string }{{"", "secret", "default"}, {"default", "secret", "default"}, {"alice", "wonder", "alice"}} {
		c := dial(t, addr, Options{Username: each.user, Password: each.password})
		who, err := c.Do(ctx, "WHO")
		if err != nil || len(who.Elems) == 0 || string(who.Elems[0].Data) != each.want {
			t.Errorf("%+v: %v, %v", each, who.String(), err)
		}
	}
	var reply *Error
	if _, err := Dial(ctx, Options{Addr: addr, Password: "wrong"}); !errors.As(err, &reply) || reply.Prefix != "WRONGPASS" {
		t.Errorf("a wrong password: %v", err)
	}
	if _, err := Dial(ctx, Options{Addr: addr}); !errors.As(err, &reply) || reply.Prefix != "NOAUTH" {
		t.Errorf("no password: %v", err)
	}
}

// TestLift: the flat pairs of RESP2 become those of RESP3, and nothing else does.
func TestLift(t *testing.T) {
	flat := func(words ...string) Value {
		v := Value{Kind: resp.Array}
		for _, w := range words {
			v.Elems = append(v.Elems, Value{Kind: resp.Bulk, Data: []byte(w)})
		}
		return v
	}
	for _, each := range []struct {
		command string
		want    []Scored
	}{
		{"ZRANGE k 0 -1 WITHSCORES", []Scored{{"a", 1}, {"b", 2.5}}},
		{"zrevrangebyscore k +inf -inf withscores limit 0 2", []Scored{{"a", 1}, {"b", 2.5}}},
		{"ZPOPMIN k 2", []Scored{{"a", 1}, {"b", 2.5}}},
		{"ZPOPMAX k", []Scored{{"a", 1}, {"b", 2.5}}},
		{"ZRANGE k 0 -1", []Scored{{Member: "a"}, {Member: "1"}, {Member: "b"}, {Member: "2.5"}}},
		{"LRANGE WITHSCORES 0 -1", []Scored{{Member: "a"}, {Member: "1"}, {Member: "b"}, {Member: "2.5"}}},
	} {
		v := flat("a", "1", "b", "2.5")
		lift(strings.Fields(each.command), &v)
		if got, err := asScored(&v); !slices.Equal(got, each.want) || err != nil {
			t.Errorf("%s: %v, %v", each.command, got, err)
		}
	}
	v := flat("f", "1", "g", "2")
	lift([]string{"HRANDFIELD", "k", "2", "WITHVALUES"}, &v)
	if len(v.Elems) != 2 || v.Elems[1].Kind != resp.Array || v.Elems[1].Elems[1].Kind != resp.Bulk {
		t.Errorf("HRANDFIELD: %v", v.String())
	}
}
