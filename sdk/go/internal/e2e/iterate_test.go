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
		if p == respb.RESPB || p == respb.RESP3 { // Redis has NOVALUES from 7.4 on
			for name, err := range c.EachFieldName(ctx, "hash", respb.ScanOptions{Count: 20}) {
				seen[name] = err == nil
			}
			count("EachFieldName", n)
		}
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

// TestRespbStreamsThatGrow: entries come in order and once, over a connection that breaks too.
func TestRespbStreamsThatGrow(t *testing.T) {
	servers(t, func(ctx context.Context, t *testing.T, addr string, p respb.Protocol) {
		c := connect(ctx, t, addr, p)
		add := func(from, to int) {
			t.Helper()
			fill := c.Pipeline()
			for i := from; i < to; i++ {
				fill.Do("XADD", "s", fmt.Sprint(i+1, "-0"), "f", fmt.Sprint(i))
			}
			if _, err := fill.Exec(ctx); err != nil {
				t.Error(err)
			}
		}
		channel := func() (*respb.Channel, int64) {
			t.Helper()
			ch, err := c.Channel(ctx)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { ch.Close() })
			id, err := ch.ClientId(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return ch, id
		}
		// breaks has the connection of a client that waits in XREAD killed: over RESPB its channel only.
		breaks := func(id int64) {
			if n, err := c.ClientKill(ctx, "ID", fmt.Sprint(id)); err != nil || n != 1 {
				t.Error("CLIENT KILL", n, err)
			}
		}
		const n = 250
		add(0, n)
		back := n
		for e, err := range c.EachEntryBack(ctx, "s", "+", "-") {
			if err != nil || e.ID != fmt.Sprint(back, "-0") {
				t.Fatal(e, err)
			}
			back--
		}
		if back != 0 {
			t.Errorf("%d entries were left", back)
		}

		ch, id := channel()
		next := 0
		ended, end := context.WithCancel(ctx)
		for e, err := range ch.Follow(ended, "s", "0") {
			if err != nil || e.ID != fmt.Sprint(next+1, "-0") {
				t.Fatal(e, err)
			}
			switch next++; next {
			case n:
				go func() {
					breaks(id)
					add(n, n+1)
				}()
			case n + 1:
				end()
			}
		}
		if next != n+1 {
			t.Errorf("%d entries were followed", next)
		}
		end()

		if err := c.XgroupCreate(ctx, "s", "g", "0"); err != nil {
			t.Fatal(err)
		}
		ch, _ = channel()
		for e, err := range ch.Consume(ctx, "s", "g", "me") { // and is not acknowledged
			if err != nil || e.ID != "1-0" {
				t.Error(e, err)
			}
			break
		}
		ch, _ = channel()
		next = 0
		ended, end = context.WithCancel(ctx)
		for e, err := range ch.Consume(ended, "s", "g", "me") {
			if err != nil || e.ID != fmt.Sprint(next+1, "-0") {
				t.Fatal(e, err)
			}
			if next++; next > 10 {
				if _, err := c.Xack(ctx, "s", "g", e.ID); err != nil {
					t.Error(err)
				}
			}
			if next == n+1 {
				end()
			}
		}
		if next != n+1 {
			t.Errorf("%d entries were consumed", next)
		}
		end()
		taken := 0
		for e, err := range c.EachAbandoned(ctx, "s", "g", "other", 0) {
			if taken++; err != nil || e.ID != fmt.Sprint(taken, "-0") {
				t.Fatal(e, err)
			}
		}
		if taken != 10 {
			t.Errorf("%d entries were taken over, want 10", taken)
		}
		for range ch.Consume(ctx, "none", "g", "me") {
			taken++ // the error
		}
		if taken != 11 {
			t.Error("a group that does not exist is no error")
		}
	})
}
