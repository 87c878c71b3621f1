// Package consumer is a program outside of this repository that uses the Go modules as they are published: scripts/go-consumer gives it a
// go.mod and gets them. What it knows of them is what is documented.
package consumer

// This file owns what each transport is tried with.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/transport/memory"
	"github.com/weft-db/weft/sdk/go/resp"
)

// wait bounds everything that a test waits for; it is never a pause.
const wait = 4 * time.Minute

type user struct {
	ID   int
	Name string
}

// redis starts redis-server on a free port, or skips the test where it is not installed.
func redis(t *testing.T) (addr string, kill func()) {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed; Debian has it in redis-server")
	}
	for range 5 { // a port that was free may be taken by the time the server has it
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr = l.Addr().String()
		_ = l.Close()
		cmd := exec.Command(path, "--port", addr[strings.LastIndex(addr, ":")+1:], "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir())
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			_ = cmd.Wait()
			close(ended)
		}()
		kill = func() {
			_ = cmd.Process.Kill()
			<-ended
		}
		t.Cleanup(kill)
		if listens(t, addr, ended) {
			return addr, kill
		}
	}
	t.Fatal("redis-server does not start")
	return "", nil
}

// listens waits until a server answers, and reports false when it ends instead.
func listens(t *testing.T, addr string, ended chan struct{}) bool {
	t.Helper()
	for end := time.Now().Add(wait); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		select {
		case <-ended:
			return false
		default:
		}
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			continue
		}
		defer nc.Close()
		if _, err := nc.Write([]byte("PING\r\n")); err != nil {
			continue
		}
		var v resp.Value
		if err := resp.NewReader(nc).Read(&v); err == nil && string(v.Data) == "PONG" {
			return true
		}
	}
	t.Fatal("redis-server does not answer")
	return false
}

// use goes through a cache's calls.
func use(t *testing.T, store cache.Transport, change ...func(o *cache.Options[int, user])) *cache.Cache[int, user] {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	t.Cleanup(cancel)
	o := cache.Options[int, user]{Prefix: "user", TTL: time.Hour, SoftTTL: time.Minute, NegativeTTL: time.Minute, StoreTimeout: wait, LeaseTTL: wait}
	for _, f := range change {
		f(&o)
	}
	users, err := cache.New(store, cache.JSON[user]{}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = users.Close() })
	items, keys := make([]cache.Item[int, user], 300), make([]int, 300)
	for i := range items {
		keys[i], items[i] = i, cache.Item[int, user]{Key: i, Value: user{i, fmt.Sprint(i)}}
	}
	for range 20 { // of reads that are found whole MGET is made
		if err := users.SetMany(ctx, items); err != nil {
			t.Fatal(err)
		}
		for i, r := range users.GetMany(ctx, keys) {
			if r.Err != nil || r.Value != items[i].Value {
				t.Fatal(i, r)
			}
		}
	}
	v, err := users.GetOrLoad(ctx, 1000, func(_ context.Context, key int) (user, error) { return user{key, "loaded"}, nil })
	if err != nil || v.Name != "loaded" {
		t.Error(v, err)
	}
	until(t, "the value", func() bool { v, err := users.Get(ctx, 1000); return err == nil && v.Name == "loaded" })
	_, err = users.GetOrLoad(ctx, 1001, func(_ context.Context, key int) (user, error) { return user{}, users.Delete(ctx, key) })
	if err != nil {
		t.Error(err)
	}
	until(t, "what was deleted not to be stored", func() bool { s := users.Stats(); return s.Of(cache.EventFillDropped) == 1 })
	if err := users.DeleteMany(ctx, keys); err != nil {
		t.Error(err)
	}
	if _, err := users.Get(ctx, 1); !errors.Is(err, cache.ErrMiss) {
		t.Error(err)
	}
	s := users.Stats()
	if s.Of(cache.EventStoreError) != 0 {
		t.Error(s.Of(cache.EventStoreError), "errors of the store")
	}
	return users
}

// gone has the store be gone: who has a loader gets the values all the same.
func gone(t *testing.T, store cache.Transport, kill func()) {
	t.Helper()
	kill()
	users, err := cache.New(store, cache.JSON[user]{}, cache.Options[int, user]{Prefix: "user", TTL: time.Hour, StoreTimeout: time.Second,
		WaitMax: wait, LoadTimeout: wait})
	if err != nil {
		t.Fatal(err)
	}
	defer users.Close()
	ctx, cancel := context.WithTimeout(context.Background(), wait/2)
	defer cancel()
	results := users.GetOrLoadMany(ctx, []int{1, 2}, func(context.Context, []int) (map[int]user, error) {
		return map[int]user{1: {1, "loaded"}, 2: {2, "loaded"}}, nil
	})
	if err := results.Err(); err != nil || results[1].Value.Name != "loaded" {
		t.Error(results)
	}
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(wait); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what, "did not happen")
		}
	}
}

func TestMemory(t *testing.T) { use(t, &memory.Store{}) }
