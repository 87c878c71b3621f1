package e2e

// This file owns the tests with go-redis as the client.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// TestGoRedis runs one body under both protocols.
func TestGoRedis(t *testing.T) {
	for _, proto := range []int{2, 3} {
		t.Run(fmt.Sprint("RESP", proto), func(t *testing.T) {
			host, port := start(t)
			ctx, cancel := context.WithTimeout(context.Background(), testWait)
			defer cancel()
			options := &redis.Options{Addr: host + ":" + port, Password: "secret", Protocol: proto, ClientName: "e2e",
				DialTimeout: testWait, ReadTimeout: testWait, WriteTimeout: testWait}
			c := redis.NewClient(options)
			defer c.Close()
			talk(ctx, t, c)
			subscribe(ctx, t, c)

			options.Password = "wrong"
			other := redis.NewClient(options)
			defer other.Close()
			if err := other.Ping(ctx).Err(); err == nil || !strings.HasPrefix(err.Error(), "WRONGPASS") {
				t.Errorf("a wrong password: %v", err)
			}
		})
	}
}

func talk(ctx context.Context, t *testing.T, c *redis.Client) {
	big := strings.Repeat("0123456789", 1<<17)
	if err := errors.Join(c.Ping(ctx).Err(), c.Set(ctx, "k", "v", 0).Err(), c.Set(ctx, "big", big, 0).Err()); err != nil {
		t.Fatal(err)
	}
	if v, err := c.Get(ctx, "k").Result(); err != nil || v != "v" {
		t.Error(v, err)
	}
	if v, err := c.Get(ctx, "big").Result(); err != nil || v != big {
		t.Error(len(v), err)
	}
	if _, err := c.Get(ctx, "none").Result(); err != redis.Nil {
		t.Error(err)
	}
	if m, err := c.HGetAll(ctx, "h").Result(); err != nil || len(m) != 2 || m["b"] != "2" {
		t.Error(m, err)
	}
	if s, err := c.SMembers(ctx, "s").Result(); err != nil || len(s) != 2 {
		t.Error(s, err)
	}
	if f, err := c.ZScore(ctx, "z", "m").Result(); err != nil || f != 1.5 {
		t.Error(f, err)
	}
	if err := c.LPush(ctx, "k", 1).Err(); err == nil || !strings.HasPrefix(err.Error(), "WRONGTYPE ") {
		t.Error(err)
	}
	const n = 10000
	cmds, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range n {
			p.StrLen(ctx, strings.Repeat("x", i%100))
		}
		return nil
	})
	if err != nil || len(cmds) != n {
		t.Fatal(len(cmds), err)
	}
	for i, cmd := range cmds {
		if got := cmd.(*redis.IntCmd).Val(); got != int64(i%100) {
			t.Fatalf("reply %d is %d", i, got)
		}
	}
}

func subscribe(ctx context.Context, t *testing.T, c *redis.Client) {
	sub := c.Subscribe(ctx, "news")
	defer sub.Close()
	if _, err := sub.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Publish(ctx, "news", "hello").Result(); err != nil || n != 1 {
		t.Error(n, err)
	}
	if m, err := sub.ReceiveMessage(ctx); err != nil || m.Payload != "hello" {
		t.Error(m, err)
	}
	if err := sub.Ping(ctx); err != nil {
		t.Error(err)
	}
}
