package e2e

// This file owns the tests beside a Redis that has no HELLO, as those before 6: what a Conn finds out by itself.

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/respb"
)

func TestRedisWithoutHello(t *testing.T) {
	if bin, err := exec.LookPath("redis-server"); err != nil {
		t.Log("redis-server is not installed; Debian has it in redis-server")
	} else {
		t.Run("HELLO renamed", func(t *testing.T) { withoutHello(t, bin, "--rename-command", "HELLO", "") })
	}
	t.Run("Redis 5", func(t *testing.T) {
		bin := os.Getenv("REDIS_5_BIN")
		if bin == "" {
			t.Skip("REDIS_5_BIN is not set; scripts/redis-5 builds one, and scripts/go-e2e takes it from there")
		}
		withoutHello(t, bin)
	})
}

func withoutHello(t *testing.T, bin string, args ...string) {
	ctx, cancel := context.WithTimeout(context.Background(), testWait)
	defer cancel()
	addr := startServer(t, bin, append(args, "--save", "", "--appendonly", "no", "--requirepass", "secret")...)
	told := make(chan respb.Connected, 16)
	c, err := respb.Dial(ctx, respb.Options{Addr: addr, Password: "secret", OnConnect: func(made respb.Connected) { told <- made }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if made := <-told; made.Protocol != respb.RESP2 || made.FellBack == nil {
		t.Errorf("connected by %v, because of %v", made.Protocol, made.FellBack)
	}
	if _, err := c.Set(ctx, "k", "v"); err != nil {
		t.Error(err)
	}
	// What blocks is ended with its context, by CLIENT UNBLOCK.
	ch, err := c.Channel(ctx)
	if err != nil {
		t.Fatal(err)
	}
	short, stop := context.WithTimeout(ctx, 10*time.Millisecond)
	defer stop()
	if _, err := ch.Blpop(short, []string{"none"}, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Blpop: %v", err)
	}
	if v, err := ch.Get(ctx, "k"); v != "v" || err != nil {
		t.Errorf("behind it: %q, %v", v, err)
	}
	// What has a shape in RESP3 has it here too.
	if _, err := c.Hset(ctx, "h", respb.HsetData{Field: "f", Value: "v"}); err != nil {
		t.Error(err)
	}
	if fields, err := c.Hgetall(ctx, "h"); len(fields) != 1 || fields["f"] != "v" || err != nil {
		t.Errorf("Hgetall: %v, %v", fields, err)
	}
	seen := 0
	for key, err := range c.EachKey(ctx, respb.ScanOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		t.Log("SCAN has", key)
		seen++
	}
	if seen != 2 {
		t.Errorf("SCAN has %d keys, want 2", seen)
	}
	sub, err := c.Subscribe(ctx, "news")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if n, err := c.Publish(ctx, "news", "first"); n != 1 || err != nil {
		t.Errorf("PUBLISH: %d, %v", n, err)
	}
	for m, err := range sub.Messages(ctx) {
		if err != nil || m.Payload != "first" {
			t.Errorf("%q, %v", m.Payload, err)
		}
		break
	}
	if _, err := respb.Dial(ctx, respb.Options{Addr: addr}); err == nil {
		t.Error("without a password it connects")
	}
}
