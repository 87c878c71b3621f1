package track

// This file owns the tests of listening to a server that a test says.

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/resp"
)

// testWait bounds everything that a test waits for; it is never a pause.
const testWait = 240 * time.Second

// told is what a tracker has told, in its order.
type told struct {
	mu     sync.Mutex
	events []string
}

func (o *told) add(event string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, event)
}

func (o *told) listen() cache.TrackEvents {
	return cache.TrackEvents{
		Invalidate: func(key []byte) { o.add("key " + string(key)) },
		Flush:      func() { o.add("flush") },
		Live: func(live bool) {
			if live {
				o.add("live")
			} else {
				o.add("dead")
			}
		},
	}
}

// until waits for everything to have been told.
func (o *told) until(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for end := time.Now().Add(testWait); time.Now().Before(end); time.Sleep(time.Millisecond) {
		o.mu.Lock()
		got = slices.Clone(o.events)
		o.mu.Unlock()
		if slices.Equal(got, want) {
			return
		}
		if len(got) > len(want) {
			break
		}
	}
	t.Fatalf("told %q, want %q", got, want)
}

// serve serves CLIENT TRACKING, and hands out the sessions that have asked for it. Where refusal is set that is the answer.
func serve(t *testing.T, refusal error) (n Node, tracked <-chan *resp.Session) {
	t.Helper()
	sessions := make(chan *resp.Session, 16)
	m := resp.NewMux()
	m.HandleFunc("PING", 1, func(s *resp.Session, _ *resp.Request) error { return s.WriteStatusString("PONG") })
	m.HandleFunc("CLIENT", -2, func(s *resp.Session, r *resp.Request) error {
		if refusal != nil {
			return refusal
		}
		if r.Len() != 6 || r.String(1) != "TRACKING" || r.String(3) != "BCAST" || r.String(5) != "user:" {
			return resp.Errorf("ERR", "asked in another way")
		}
		sessions <- s
		return s.WriteOK()
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &resp.Server{Handler: m, Logger: slog.New(slog.DiscardHandler)}
	go func() { _ = server.Serve(l) }() // ends with Close
	t.Cleanup(func() { _ = server.Close() })
	return Node{Addr: l.Addr().String()}, sessions
}

// invalidate tells a session of keys, or of everything.
func invalidate(t *testing.T, s *resp.Session, keys ...string) {
	t.Helper()
	err := s.Push(func(w *resp.Writer) error {
		_ = w.WritePushHeader(2)
		_ = w.WriteBulkString("invalidate")
		if keys == nil {
			return w.WriteNull()
		}
		return w.WriteArrayString(keys)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTells: keys, everything, and that nothing may be believed while a connection is gone.
func TestTells(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), testWait)
	defer cancel()
	n, tracked := serve(t, nil)
	var o told
	if err := Start(ctx, "user:", o.listen(), Nodes(n)); err != nil {
		t.Fatal(err)
	}
	want := []string{"live"}
	o.until(t, want...)
	s := <-tracked
	invalidate(t, s, "user:1", "user:2")
	want = append(want, "key user:1", "key user:2")
	o.until(t, want...)
	invalidate(t, s)
	want = append(want, "flush")
	o.until(t, want...)
	_ = s.Close()
	s = <-tracked // it has connected again
	want = append(want, "dead", "live")
	o.until(t, want...)
	invalidate(t, s, "user:3")
	o.until(t, append(want, "key user:3")...)
}

// TestTwoNodes: while one of them is not heard nothing may be believed.
func TestTwoNodes(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), testWait)
	defer cancel()
	a, ofA := serve(t, nil)
	b, ofB := serve(t, nil)
	var o told
	if err := Start(ctx, "user:", o.listen(), Nodes(a, b)); err != nil {
		t.Fatal(err)
	}
	o.until(t, "live")
	<-ofA
	_ = (<-ofB).Close()
	o.until(t, "live", "dead", "live")
}

// TestRefusals tells a server that has no tracking from one that has it, but not now.
func TestRefusals(t *testing.T) {
	for text, none := range map[string]bool{
		"ERR unknown subcommand 'TRACKING'": true, "NOPERM no permission": true, "LOADING the dataset is being loaded": false,
		"MISCONF out of disk": false,
	} {
		var e resp.Error
		e.Prefix, e.Message, _ = strings.Cut(text, " ")
		n, _ := serve(t, &e)
		var o told
		err := Start(context.Background(), "user:", o.listen(), Nodes(n))
		if err == nil || errors.Is(err, cache.ErrNoTracking) != none {
			t.Errorf("%s: %v", text, err)
		}
		o.until(t)
	}
	gone := errors.New("gone")
	n := Node{Dialer: func(context.Context) (net.Conn, error) { return nil, gone }}
	if err := Start(context.Background(), "user:", (&told{}).listen(), Nodes(n)); !errors.Is(err, gone) {
		t.Error(err)
	}
}
