package e2e

// This file owns the tests of the client's iterators against real servers.

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/weft-db/weft/sdk/go/respb"
)

func TestRespbIterators(t *testing.T) {
	servers(t, func(ctx context.Context, t *testing.T, addr string, p respb.Protocol) {
		c := connect(ctx, t, addr, p)
		const n = 250 // more than one reply has
		fill := c.Pipeline()
		for i := range n {
			name := fmt.Sprint(i)
			fill.Set("key:"+name, "v")
			fill.Sadd("set", name)
			fill.Hset("hash", respb.HsetData{Field: name, Value: "v" + name})
			fill.Do("ZADD", "zset", name+".5", name)
			fill.Do("XADD", "stream", name+"-1", "f", name)
		}
		if _, err := fill.Exec(ctx); err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		count := func(what string, want int) {
			t.Helper()
			if len(seen) != want {
				t.Errorf("%s: %d were seen, want %d", what, len(seen), want)
			}
			clear(seen)
		}
		for key, err := range c.EachKey(ctx, respb.ScanOptions{Match: "key:*", Count: 20, Type: "string"}) {
			seen[key] = err == nil
		}
		count("EachKey", n)
		for range c.EachKey(ctx, respb.ScanOptions{Count: 20}) {
			seen["one"] = true
			break
		}
		count("EachKey that is left", 1)
		for member, err := range c.EachMember(ctx, "set", respb.ScanOptions{Count: 20}) {
			seen[member] = err == nil
		}
		count("EachMember", n)
		for f, err := range c.EachField(ctx, "hash", respb.ScanOptions{Match: "1*"}) {
			if err != nil || f.Value != "v"+f.Name || f.Name[0] != '1' {
				t.Error(f, err)
			}
			seen[f.Name] = true
		}
		count("EachField", 111)
		for s, err := range c.EachScored(ctx, "zset", respb.ScanOptions{}) {
			if err != nil || fmt.Sprint(s.Score) != s.Member+".5" {
				t.Error(s, err)
			}
			seen[s.Member] = true
		}
		count("EachScored", n)
		next := 0
		for e, err := range c.EachEntry(ctx, "stream", "-", "+") {
			if err != nil || e.ID != fmt.Sprint(next, "-1") || len(e.Fields) != 1 || e.Fields[0] != (respb.Field{Name: "f", Value: fmt.Sprint(next)}) {
				t.Fatal(e, err)
			}
			next++
		}
		if next != n {
			t.Errorf("%d entries", next)
		}
		for e, err := range c.EachEntry(ctx, "stream", "10", "109") { // a hundred, and then none
			seen[e.ID] = err == nil
		}
		count("EachEntry", 100)
		var reply *respb.Error
		for _, err := range c.EachMember(ctx, "hash", respb.ScanOptions{}) {
			if !errors.As(err, &reply) || reply.Prefix != "WRONGTYPE" {
				t.Error(err)
			}
			seen["error"] = true
		}
		count("an error", 1)

		sub, err := c.Subscribe(ctx, "news")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if _, err := c.Publish(ctx, "news", fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
		got := 0
		for m, err := range sub.Messages(ctx) {
			if err != nil || m.Payload != fmt.Sprint(got) {
				t.Fatal(m, err)
			}
			if got++; got == 3 {
				_ = sub.Close()
			}
		}
		if got != 3 {
			t.Errorf("%d messages", got)
		}
	})
}
