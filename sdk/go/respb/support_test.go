package respb

// This file owns the servers that the tests talk to.

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/resp"
)

// testWait bounds everything a test waits for; it is never a pause.
const testWait = 240 * time.Second

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testWait)
	t.Cleanup(cancel)
	return ctx
}

// store is a small server with what the tests need of Redis: strings, lists with BLPOP, MULTI, subscriptions, tracking.
type store struct {
	mu      sync.Mutex
	values  map[string]string
	lists   map[string][]string
	pushed  chan struct{} // closed and replaced when a list has grown
	tracked map[*resp.Session]map[string]bool
	pubsub  resp.PubSub
}

// state is a session's own.
type state struct {
	db    int
	multi bool
	queue [][]string
}

func stateOf(s *resp.Session) *state {
	if s.Data == nil {
		s.Data = &state{}
	}
	return s.Data.(*state)
}

func newStore() *store {
	return &store{values: map[string]string{}, lists: map[string][]string{}, pushed: make(chan struct{}),
		tracked: map[*resp.Session]map[string]bool{}}
}

func (st *store) mux() *resp.Mux {
	m := resp.NewMux()
	m.HandleFunc("PING", -1, func(s *resp.Session, r *resp.Request) error { return s.WriteStatusString("PONG") })
	m.HandleFunc("ECHO", 2, func(s *resp.Session, r *resp.Request) error { return s.WriteBulkBytes(r.Arg(1)) })
	m.HandleFunc("SELECT", 2, func(s *resp.Session, r *resp.Request) error {
		n, err := r.Int(1)
		if err != nil {
			return err
		}
		stateOf(s).db = int(n)
		return s.WriteOK()
	})
	m.HandleFunc("SET", -3, st.set)
	m.HandleFunc("GET", 2, st.get)
	m.HandleFunc("INCR", 2, func(s *resp.Session, r *resp.Request) error {
		st.mu.Lock()
		defer st.mu.Unlock()
		var n int64
		_, _ = fmt.Sscan(st.values[st.key(s, r.Arg(1))], &n)
		st.values[st.key(s, r.Arg(1))] = fmt.Sprint(n + 1)
		return s.WriteInt64(n + 1)
	})
	m.HandleFunc("HGETALL", 2, func(s *resp.Session, r *resp.Request) error {
		return s.WriteMapString([]string{"a", "1", "b", "2"})
	})
	m.HandleFunc("SMEMBERS", 2, func(s *resp.Session, r *resp.Request) error { return s.WriteSetString([]string{"x", "y"}) })
	m.HandleFunc("ZSCORE", 3, func(s *resp.Session, r *resp.Request) error { return s.WriteFloat(1.5) })
	m.HandleFunc("MGET", -2, func(s *resp.Session, r *resp.Request) error {
		_ = s.WriteArrayHeader(r.Len() - 1)
		for _, key := range r.Args()[1:] {
			st.mu.Lock()
			v, ok := st.values[st.key(s, key)]
			st.mu.Unlock()
			if ok {
				_ = s.WriteBulkString(v)
			} else {
				_ = s.WriteNull()
			}
		}
		return nil
	})
	m.HandleFunc("BIG", 2, func(s *resp.Session, r *resp.Request) error {
		n, err := r.Int(1)
		if err != nil {
			return err
		}
		return s.WriteBulkBytes(bytes.Repeat([]byte("x"), int(n)))
	})
	m.HandleFunc("LPUSH", -3, func(s *resp.Session, r *resp.Request) error {
		st.mu.Lock()
		defer st.mu.Unlock()
		key := st.key(s, r.Arg(1))
		for _, v := range r.Args()[2:] {
			st.lists[key] = append(st.lists[key], string(v))
		}
		close(st.pushed)
		st.pushed = make(chan struct{})
		return s.WriteInt(len(st.lists[key]))
	})
	m.HandleFunc("BLPOP", -3, st.blpop)
	m.HandleFunc("MULTI", 1, func(s *resp.Session, r *resp.Request) error {
		stateOf(s).multi = true
		return s.WriteOK()
	})
	m.HandleFunc("EXEC", 1, func(s *resp.Session, r *resp.Request) error {
		queue := stateOf(s).queue
		stateOf(s).multi, stateOf(s).queue = false, nil
		_ = s.WriteArrayHeader(len(queue))
		for _, args := range queue {
			_ = s.WriteBulkString(strings.Join(args, " "))
		}
		return nil
	})
	m.HandleFunc("WHO", 1, func(s *resp.Session, r *resp.Request) error {
		return s.WriteArrayString([]string{s.User(), s.Name(), fmt.Sprint(stateOf(s).db)})
	})
	m.HandleFunc("KILLME", 1, func(s *resp.Session, r *resp.Request) error { return s.Close() })
	m.HandleFunc("CLIENT", -2, st.client)
	st.pubsub.Register(m)
	return m
}

func (st *store) key(s *resp.Session, key []byte) string {
	return fmt.Sprint(stateOf(s).db, "/") + string(key)
}

// ServeCommand queues what comes inside MULTI.
func (st *store) handler() resp.Handler {
	m := st.mux()
	return resp.HandlerFunc(func(s *resp.Session, r *resp.Request) error {
		if stateOf(s).multi && !strings.EqualFold(string(r.Name()), "EXEC") {
			var args []string
			for _, a := range r.Args() {
				args = append(args, string(a))
			}
			stateOf(s).queue = append(stateOf(s).queue, args)
			return s.WriteStatusString("QUEUED")
		}
		return m.ServeCommand(s, r)
	})
}

func (st *store) set(s *resp.Session, r *resp.Request) error {
	st.mu.Lock()
	st.values[st.key(s, r.Arg(1))] = r.String(2)
	var tell []*resp.Session
	for session, keys := range st.tracked {
		if keys[r.String(1)] {
			delete(keys, r.String(1))
			tell = append(tell, session)
		}
	}
	st.mu.Unlock()
	key := r.String(1)
	for _, session := range tell {
		_ = session.Push(func(w *resp.Writer) error {
			_ = w.WritePushHeader(2)
			_ = w.WriteBulkString("invalidate")
			return w.WriteArrayString([]string{key})
		})
	}
	return s.WriteOK()
}

func (st *store) get(s *resp.Session, r *resp.Request) error {
	st.mu.Lock()
	v, ok := st.values[st.key(s, r.Arg(1))]
	if keys := st.tracked[s]; keys != nil {
		keys[r.String(1)] = true
	}
	st.mu.Unlock()
	if !ok {
		return s.WriteNull()
	}
	return s.WriteBulkString(v)
}

func (st *store) blpop(s *resp.Session, r *resp.Request) error {
	ctx := r.Context()
	key := st.key(s, r.Arg(1))
	for {
		st.mu.Lock()
		if list := st.lists[key]; len(list) > 0 {
			st.lists[key] = list[1:]
			st.mu.Unlock()
			return s.WriteArrayString([]string{r.String(1), list[0]})
		}
		pushed := st.pushed
		st.mu.Unlock()
		select {
		case <-pushed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.Server().Draining():
			return resp.ErrShuttingDown
		}
	}
}

func (st *store) client(s *resp.Session, r *resp.Request) error {
	switch sub := strings.ToUpper(r.String(1)); sub {
	case "SETNAME":
		s.SetName(r.String(2))
	case "TRACKING":
		st.mu.Lock()
		st.tracked[s] = map[string]bool{}
		st.mu.Unlock()
		s.OnClose(func() {
			st.mu.Lock()
			delete(st.tracked, s)
			st.mu.Unlock()
		})
	case "ID":
		return s.WriteInt64(s.ID())
	}
	return s.WriteOK()
}

// serve serves s on an ephemeral port and shuts it down with the test.
func serve(t testing.TB, s *resp.Server) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, s, l)
	return l.Addr().String()
}

func serveOn(t testing.TB, s *resp.Server, l net.Listener) {
	s.Logger = slog.New(slog.DiscardHandler)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testWait)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		<-done
	})
}

// protocols are those that a test runs under.
var protocols = map[string]Protocol{"RESPB": RESPB, "RESP3": RESP3}

// patient has a Conn wait as long as the test does, where the test says nothing about it.
func patient(opts *Options) {
	for _, timeout := range []*time.Duration{&opts.ReadTimeout, &opts.WriteTimeout, &opts.PingInterval} {
		if *timeout == 0 {
			*timeout = testWait
		}
	}
}

// own makes channel 0 the test's own: it may block there.
func own(c *Conn) *Conn {
	c.zero.shared = false
	return c
}

func dial(t testing.TB, addr string, opts Options) *Conn {
	t.Helper()
	opts.Addr = addr
	patient(&opts)
	c, err := Dial(testContext(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return own(c)
}
