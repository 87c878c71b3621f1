package respb

// This file owns the tests of hooks: what they are told, in which order, with which context, and that they cost nothing where there is none.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/weft-db/weft/sdk/go/resp"
)

type hookKey struct{}

// teller notes what it is told.
type teller struct {
	name  string
	mu    sync.Mutex
	lines []string
}

func (h *teller) add(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, h.name+" "+fmt.Sprintf(format, args...))
}

func (h *teller) Before(ctx context.Context, op *Operation) context.Context {
	h.add("before %s of %v", op.Name, ctx.Value(hookKey{}))
	return context.WithValue(ctx, hookKey{}, h.name)
}

func (h *teller) After(ctx context.Context, op *Operation) {
	var each []string
	for name, key := range op.Commands() {
		each = append(each, name+"/"+key)
	}
	h.add("after %s of %v: key %q, len %d, bytes %d, %v, db %d, errors %d, %v, %v", op.Name, ctx.Value(hookKey{}), op.Key, op.Len, op.Bytes,
		op.Protocol, op.DB, op.ErrorReplies, op.Err, each)
	if op.Took <= 0 || op.Began.IsZero() || op.Addr == "" || op.Network != "tcp" {
		h.add("wrong times or place: %+v", *op)
	}
}

func (h *teller) Dialed(_ context.Context, d *Dialed) {
	h.add("dialed %v %v", d.Connected.Protocol, d.Err != nil)
}

func TestHooks(t *testing.T) {
	for name, protocol := range protocols {
		t.Run(name, func(t *testing.T) {
			addr := serve(t, &resp.Server{Handler: newStore().handler()})
			a := &teller{name: "a"}
			b := &teller{name: "b"}
			c := dial(t, addr, Options{Protocol: protocol, DB: 3, Hooks: []Hook{a, b}})
			ctx := context.WithValue(testContext(t), hookKey{}, "caller")
			_, _ = c.Get(ctx, "k")
			_ = c.DoBytes(ctx, new(Value), []byte("nonsense"), []byte("x"))
			p := c.Pipeline()
			p.Get("one")
			p.Passthrough([]byte("*2\r\n$3\r\nget\r\n$3\r\ntwo\r\n"))
			_, _ = p.Exec(ctx)
			tx := c.Pipeline()
			tx.Lend([]byte("SET"), []byte("x"), []byte("1"))
			tx.Get("y")
			_, _ = tx.ExecTx(ctx)
			ended, cancel := context.WithCancelCause(ctx)
			cancel(errors.New("enough"))
			_, _ = c.ClientList(ended)

			want := []string{
				fmt.Sprintf("a dialed %v false", protocol),
				"a before GET of caller",
				fmt.Sprintf(`a after GET of a: key "k", len 1, bytes 4, %v, db 3, errors 0, <nil>, [GET/k]`, protocol),
				"a before UNKNOWN of caller",
				fmt.Sprintf(`a after UNKNOWN of a: key "", len 1, bytes 9, %v, db 3, errors 1, ERR unknown command 'nonsense', with args beginning with: 'x' , [UNKNOWN/]`, protocol),
				"a before PIPELINE GET of caller",
				fmt.Sprintf(`a after PIPELINE GET of a: key "", len 2, bytes 12, %v, db 3, errors 0, <nil>, [GET/one GET/two]`, protocol),
				"a before MULTI of caller",
				fmt.Sprintf(`a after MULTI of a: key "", len 2, bytes 9, %v, db 3, errors 0, <nil>, [SET/x GET/y]`, protocol),
				"a before CLIENT LIST of caller",
				fmt.Sprintf(`a after CLIENT LIST of a: key "", len 1, bytes 10, %v, db 3, errors 0, enough, [CLIENT LIST/]`, protocol),
			}
			if !slices.Equal(a.lines, want) {
				t.Errorf("told:\n%s\nwant:\n%s", join(a.lines), join(want))
			}
			// The second hook gets the first one's context, and its own back.
			if len(b.lines) != len(want) || b.lines[1] != "b before GET of a" || b.lines[2][:len("b after GET of b")] != "b after GET of b" {
				t.Errorf("the second hook was told:\n%s", join(b.lines))
			}
		})
	}
}

func join(lines []string) (text string) {
	for _, line := range lines {
		text += line + "\n"
	}
	return text
}

// TestHookIsToldFailedDial: what could not be connected is told too, with the attempt's error.
func TestHookIsToldFailedDial(t *testing.T) {
	h := &teller{name: "h"}
	_, err := Dial(testContext(t), Options{Network: "unix", Addr: "/nowhere", Hooks: []Hook{h}, Reconnect: Reconnect{Disabled: true}})
	if want := []string{"h dialed Auto true"}; err == nil || !slices.Equal(h.lines, want) {
		t.Errorf("%v; told %v, want %v", err, h.lines, want)
	}
}

// TestHookGivesTheContext: the context of Before is the call's.
func TestHookGivesTheContext(t *testing.T) {
	addr := serve(t, &resp.Server{Handler: newStore().handler()})
	stop := errors.New("not today")
	c := dial(t, addr, Options{Hooks: []Hook{stopping{err: stop}}})
	if _, err := c.Get(testContext(t), "k"); !errors.Is(err, stop) {
		t.Errorf("Get: %v, want %v", err, stop)
	}
	p := c.Pipeline()
	p.Get("k")
	if _, err := p.Exec(testContext(t)); !errors.Is(err, stop) {
		t.Errorf("Exec: %v, want %v", err, stop)
	}
}

type stopping struct {
	NoHook
	err error
}

func (s stopping) Before(ctx context.Context, _ *Operation) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	cancel(s.err)
	return ctx
}

// quietServer answers GET, in this process and without an allocation.
func quietServer() *resp.Server {
	m := resp.NewMux()
	m.HandleFunc("GET", 2, func(s *resp.Session, r *resp.Request) error { return s.WriteBulkString("v") })
	return &resp.Server{Handler: m}
}

// TestNoHookNoAllocation: with no hook set a command allocates what its helper needs and nothing else, so what hooks are told does not make
// arguments escape.
func TestNoHookNoAllocation(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for name, protocol := range protocols {
		t.Run(name, func(t *testing.T) {
			c := dial(t, serve(t, quietServer()), Options{Protocol: protocol, PollMax: -1})
			ctx := context.Background()
			var v Value
			get, key := []byte("GET"), []byte("k")
			for what, fn := range map[string]func() error{
				"DoInto":  func() error { return c.DoInto(ctx, &v, "GET", "k") },
				"DoBytes": func() error { return c.DoBytes(ctx, &v, get, key) },
				"Get":     func() error { _, err := c.Get(ctx, "k"); return err }, // a string of one byte is the runtime's own
			} {
				got := testing.AllocsPerRun(500, func() {
					if err := fn(); err != nil {
						t.Fatal(err)
					}
				})
				if got >= 1 {
					t.Errorf("%s allocates %v times", what, got)
				}
			}
		})
	}
}
