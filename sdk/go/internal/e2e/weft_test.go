package e2e

// This file owns the tests of respb against a real server: weft serve, and redis-server, which has no RESPB.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/respb"
)

// startServer starts a server as a child and returns its address. A port that was free may be taken by the time the server has it: then it
// ends, and another is tried.
func startServer(t testing.TB, bin string, args ...string) string {
	t.Helper()
	for range 4 {
		if addr, err := tryServer(t, bin, args...); err == nil {
			return addr
		}
	}
	addr, err := tryServer(t, bin, args...)
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

func tryServer(t testing.TB, bin string, args ...string) (string, error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	_, port, _ := net.SplitHostPort(addr)
	cmd := exec.Command(bin, append(args, "--port", port, "--bind", "127.0.0.1")...)
	cmd.Dir = t.TempDir()
	log, err := os.Create(filepath.Join(cmd.Dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = log.Close()
	})
	for until := time.Now().Add(testWait); ; {
		nc, err := net.Dial("tcp", addr)
		if err == nil {
			_ = nc.Close()
			return addr, nil
		}
		select {
		case <-ended:
		case <-time.After(10 * time.Millisecond):
			if time.Now().Before(until) {
				continue
			}
		}
		out, _ := os.ReadFile(log.Name())
		return "", fmt.Errorf("%s does not listen: %w\n%s", bin, err, out)
	}
}

// servers calls f with each server and protocol that there is.
func servers(t *testing.T, f func(ctx context.Context, t *testing.T, addr string, p respb.Protocol)) {
	sub := func(name, addr string, p respb.Protocol) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), testWait)
			defer cancel()
			f(ctx, t, addr, p)
		})
	}
	if bin := os.Getenv("WEFT_BIN"); bin != "" {
		addr := startServer(t, bin, "serve")
		sub("weft RESPB", addr, respb.RESPB)
		sub("weft RESP3", addr, respb.RESP3)
	} else {
		t.Log("WEFT_BIN is not set: not against weft serve")
	}
	if bin, err := exec.LookPath("redis-server"); err == nil {
		sub("redis", startServer(t, bin, "--save", "", "--appendonly", "no"), respb.Auto)
		sub("redis RESP2", startServer(t, bin, "--save", "", "--appendonly", "no", "--rename-command", "HELLO", ""), respb.RESP2)
	} else {
		t.Log("redis-server is not installed; Debian has it in redis-server")
	}
}

func connect(ctx context.Context, t *testing.T, addr string, p respb.Protocol) *respb.Conn {
	t.Helper()
	c, err := respb.Dial(ctx, respb.Options{Addr: addr, Protocol: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.Flushall(ctx); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRespbCommands(t *testing.T) {
	servers(t, func(ctx context.Context, t *testing.T, addr string, p respb.Protocol) {
		c := connect(ctx, t, addr, p)
		if p == respb.Auto && c.Protocol() != respb.RESP3 || p != respb.Auto && c.Protocol() != p {
			t.Error(c.Protocol())
		}
		big := strings.Repeat("0123456789abcdef", 1<<16)
		check := func(name string, got any, err error, want any) {
			t.Helper()
			if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: got %.200v, %v, want %.200v", name, got, err, want)
			}
		}
		s, err := c.Set(ctx, "k", "v", respb.SetEx(100*time.Second))
		check("SET", s, err, "OK")
		s, err = c.Get(ctx, "k")
		check("GET", s, err, "v")
		_, err = c.Set(ctx, "k", "w", respb.SetNx())
		if err != respb.ErrNil {
			t.Error("SET NX", err)
		}
		left, err := c.Ttl(ctx, "k")
		if err != nil || left < 90*time.Second || left > 100*time.Second {
			t.Error("TTL", left, err)
		}
		s, err = c.Set(ctx, "big", big)
		check("SET big", s, err, "OK")
		s, err = c.Get(ctx, "big")
		check("GET big", len(s), err, len(big))
		n, err := c.Incrby(ctx, "n", 41)
		check("INCRBY", n, err, 41)
		f, err := c.Incrbyfloat(ctx, "f", 0.1)
		check("INCRBYFLOAT", f, err, 0.1)
		n, err = c.Hset(ctx, "h", respb.HsetData{Field: "a", Value: "1"}, respb.HsetData{Field: "b", Value: "2"})
		check("HSET", n, err, 2)
		m, err := c.Hgetall(ctx, "h")
		check("HGETALL", m, err, "map[a:1 b:2]")
		n, err = c.Rpush(ctx, "l", "x", "y", "z")
		check("RPUSH", n, err, 3)
		list, err := c.Lrange(ctx, "l", 0, -1)
		check("LRANGE", list, err, "[x y z]")
		_, err = c.Lpush(ctx, "k", "x")
		var reply *respb.Error
		if !errors.As(err, &reply) || reply.Prefix != "WRONGTYPE" {
			t.Error("LPUSH", err)
		}
		_, err = c.Zadd(ctx, "z", []respb.ZaddData{{Score: 1.5, Member: "one"}, {Score: 2, Member: "two"}}, respb.ZaddCh())
		check("ZADD", nil, err, nil)
		f, err = c.Zscore(ctx, "z", "one")
		check("ZSCORE", f, err, 1.5)
		n, err = c.Sadd(ctx, "s", "a", "b")
		check("SADD", n, err, 2)
		b, err := c.Sismember(ctx, "s", "a")
		check("SISMEMBER", b, err, true)
		all, err := c.Mget(ctx, "k", "none")
		if err != nil || len(all) != 2 || *all[0] != "v" || all[1] != nil {
			t.Error("MGET", all, err)
		}
		id, err := c.Xadd(ctx, "x", "1-1", []respb.XaddData{{Field: "f", Value: "v"}})
		_ = id
		if err != nil {
			t.Error("XADD", err)
		}
	})
}

// TestRespbPipelines from many goroutines, each of which must get its own replies.
func TestRespbPipelines(t *testing.T) {
	servers(t, func(ctx context.Context, t *testing.T, addr string, p respb.Protocol) {
		c := connect(ctx, t, addr, p)
		var all sync.WaitGroup
		for g := range 32 {
			ch, err := c.Channel(ctx)
			if err != nil {
				t.Fatal(err)
			}
			all.Add(1)
			go func() {
				defer all.Done()
				defer ch.Close()
				for i := range 50 {
					key := fmt.Sprint(g, ":", i)
					if _, err := ch.Set(ctx, key, key); err != nil {
						t.Error(err)
						return
					}
					pipe := c.Pipeline() // of the shared channel 0
					get, n := pipe.Get(key), pipe.Incr("count")
					if _, err := pipe.Exec(ctx); err != nil {
						t.Error(err)
						return
					}
					if got, err := get.Get(); err != nil || got != key {
						t.Error(got, err)
					}
					if _, err := n.Get(); err != nil {
						t.Error(err)
					}
				}
			}()
		}
		all.Wait()
		if n, err := c.Get(ctx, "count"); err != nil || n != "1600" {
			t.Error(n, err)
		}
	})
}

func TestRespbChannels(t *testing.T) {
	servers(t, func(ctx context.Context, t *testing.T, addr string, p respb.Protocol) {
		c := connect(ctx, t, addr, p)
		a, err := c.Channel(ctx, respb.ChannelOptions{DB: 3, Name: "a"})
		if err != nil {
			t.Fatal(err)
		}
		b, err := c.Channel(ctx)
		if err != nil {
			t.Fatal(err)
		}
		// Databases and names are the channel's own.
		if _, err := a.Set(ctx, "k", "in 3"); err != nil {
			t.Error(err)
		}
		if _, err := b.Get(ctx, "k"); err != respb.ErrNil {
			t.Error(err)
		}
		if name, err := a.ClientGetname(ctx); err != nil || name != "a" {
			t.Error(name, err)
		}
		// So are transactions and watched keys.
		if err := b.Watch(ctx, "w"); err != nil {
			t.Error(err)
		}
		if _, err := c.Set(ctx, "w", "1"); err != nil {
			t.Error(err)
		}
		tx := b.Pipeline()
		tx.Set("w", "2")
		if _, err := tx.ExecTx(ctx); err != respb.ErrTxAborted {
			t.Error(err)
		}
		if values, err := tx.ExecTx(ctx); err != nil || len(values) != 1 {
			t.Error(values, err)
		}
	})
}

func TestRespbBlockingAndCancel(t *testing.T) {
	servers(t, func(ctx context.Context, t *testing.T, addr string, p respb.Protocol) {
		c := connect(ctx, t, addr, p)
		got := make(chan error, 50)
		for i := range 50 {
			ch, err := c.Channel(ctx)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				defer ch.Close()
				v, err := ch.Blpop(ctx, []string{fmt.Sprint("list", i)}, testWait)
				if err == nil && (len(v) != 2 || v[1] != "x") {
					err = fmt.Errorf("got %q", v)
				}
				got <- err
			}()
		}
		for i := range 50 {
			if _, err := c.Rpush(ctx, fmt.Sprint("list", i), "x"); err != nil {
				t.Fatal(err)
			}
		}
		for range 50 {
			if err := <-got; err != nil {
				t.Error(err)
			}
		}
		// Taken back: the server gives the command up, and nothing that is pushed later is lost.
		ch, err := c.Channel(ctx)
		if err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		if _, err := ch.Blpop(short, []string{"never"}, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if _, err := ch.Ping(ctx); err != nil { // answered behind what was taken back
			t.Fatal(err)
		}
		if _, err := c.Rpush(ctx, "never", "x"); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Llen(ctx, "never"); err != nil || n != 1 {
			t.Error(n, err)
		}
	})
}

func TestRespbSubscriptions(t *testing.T) {
	servers(t, func(ctx context.Context, t *testing.T, addr string, p respb.Protocol) {
		c := connect(ctx, t, addr, p)
		ch, err := c.Channel(ctx, respb.ChannelOptions{SubscriptionBytesMax: 1 << 14})
		if err != nil {
			t.Fatal(err)
		}
		sub, err := ch.Subscribe(ctx, "news")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ch.Psubscribe(ctx, "p*"); err != nil {
			t.Fatal(err)
		}
		const n = 2000
		pipe := c.Pipeline()
		for i := range n {
			pipe.Publish("news", fmt.Sprint(i))
		}
		pipe.Publish("pattern", "end")
		if _, err := pipe.Exec(ctx); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			m, err := sub.Receive(ctx)
			if err != nil || m.Payload != fmt.Sprint(i) {
				t.Fatal(i, m, err)
			}
		}
		if m, err := sub.Receive(ctx); err != nil || m.Pattern != "p*" || m.Channel != "pattern" {
			t.Error(m, err)
		}
		if err := sub.Unsubscribe(ctx, "news"); err != nil {
			t.Error(err)
		}
	})
}

func TestRespbCache(t *testing.T) {
	servers(t, func(ctx context.Context, t *testing.T, addr string, p respb.Protocol) {
		c := connect(ctx, t, addr, p)
		cache, err := c.Cache(ctx, 0)
		if p == respb.RESP2 { // it has no pushes
			if err == nil {
				t.Error("a cache was opened")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			want := fmt.Sprint(i)
			if _, err := c.Set(ctx, "k", want); err != nil {
				t.Fatal(err)
			}
			for got := ""; got != want; {
				if got, err = cache.Get(ctx, "k"); err != nil && err != respb.ErrNil {
					t.Fatal(err)
				}
			}
			before := cache.Stats().Misses
			if got, err := cache.Get(ctx, "k"); err != nil || got != want || cache.Stats().Misses != before {
				t.Fatal(got, err, cache.Stats())
			}
		}
	})
}

// TestRespbTenThousandChannels runs the example against weft serve.
func TestRespbTenThousandChannels(t *testing.T) {
	bin := os.Getenv("WEFT_BIN")
	if bin == "" {
		t.Skip("WEFT_BIN is not set")
	}
	example := filepath.Join(t.TempDir(), "channels")
	if out, err := exec.Command("go", "build", "-o", example, "github.com/weft-db/weft/sdk/go/examples/channels").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(example, "-addr", startServer(t, bin, "serve")).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "10000 were woken") {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
