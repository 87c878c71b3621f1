package e2e

// This file owns the tests beside a Redis that has no HELLO, as those before 6: what a Conn finds out by itself.

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/respb"
)

func TestRedisWithoutHello(t *testing.T) {
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed; Debian has it in redis-server")
	}
	ctx, cancel := context.WithTimeout(context.Background(), testWait)
	defer cancel()
	addr := startServer(t, bin, "--save", "", "--appendonly", "no", "--rename-command", "HELLO", "", "--requirepass", "secret")
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
	if _, err := respb.Dial(ctx, respb.Options{Addr: addr}); err == nil {
		t.Error("without a password it connects")
	}
}
