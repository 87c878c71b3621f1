package goredis_test

// This file owns what hooks of a client see of batches, whose commands are used again.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/transport/goredis"
)

// keeper answers batches itself, and keeps their commands and what their text was.
type keeper struct {
	fail  map[string]error // by key
	kept  []redis.Cmder
	texts []string
}

func (k *keeper) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (k *keeper) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (k *keeper) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, all []redis.Cmder) error {
		for _, c := range all {
			text, _, _ := strings.Cut(c.String(), ":") // the reply
			k.kept, k.texts = append(k.kept, c), append(k.texts, text)
			key := fmt.Sprint(c.Args()[1])
			if err := k.fail[key]; err != nil {
				c.SetErr(err)
			} else if get, ok := c.(*redis.StringCmd); ok {
				get.SetVal("value of " + key)
			}
		}
		return nil
	}
}

// hooked is a client that never connects.
func hooked(t *testing.T) (*redis.Client, *keeper) {
	client := redis.NewClient(&redis.Options{Addr: "none:1", Dialer: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("there is no server")
	}})
	t.Cleanup(func() { _ = client.Close() })
	k := &keeper{fail: map[string]error{}}
	client.AddHook(k)
	return client, k
}

// batchOf has n reads between writes with and without a time to live.
func batchOf(n int, name string) []cache.Op {
	ops := []cache.Op{{Kind: cache.OpSet, Key: []byte("set" + name), Value: []byte("v"), TTL: 1500 * time.Millisecond},
		{Kind: cache.OpSet, Key: []byte("keep" + name), Value: []byte("v")}}
	for i := range n {
		ops = append(ops, cache.Op{Kind: cache.OpGet, Key: fmt.Appendf(nil, "%s%d", name, i)})
	}
	return append(ops, cache.Op{Kind: cache.OpSet, Key: []byte("last" + name), Value: []byte(name), TTL: time.Hour})
}

func textsOf(n int, name string) []string {
	want := []string{"set set" + name + " v px 1500", "set keep" + name + " v"}
	for i := range n {
		want = append(want, fmt.Sprintf("get %s%d", name, i))
	}
	return append(want, "set last"+name+" "+name+" px 3600000")
}

// TestBatchesOfAllSizes goes through batches that need more commands than the one before, and fewer; what failed once must not fail again, and
// nobody gets what another has read.
func TestBatchesOfAllSizes(t *testing.T) {
	client, k := hooked(t)
	tr := goredis.New(client)
	broken := errors.New("broken")
	for round, n := range []int{1, 40, 3, 0, 2000, 7} {
		name := fmt.Sprint("r", round, "-")
		if round%2 == 1 {
			k.fail[name+"1"] = broken
			k.fail["last"+name] = broken
		}
		k.texts = nil
		ops := batchOf(n, name)
		tr.Do(context.Background(), ops)
		for i, want := range textsOf(n, name) {
			if got := k.texts[i]; got != want {
				t.Fatalf("round %d: the hook saw %q, want %q", round, got, want)
			}
			op := &ops[i]
			fails := k.fail[string(op.Key)]
			if !errors.Is(op.Err, fails) || op.Found != (fails == nil) {
				t.Fatalf("round %d: %q: %v, found %v", round, op.Key, op.Err, op.Found)
			}
			if op.Kind == cache.OpGet && fails == nil && string(op.Value) != "value of "+string(op.Key) {
				t.Fatalf("round %d: %q is %q", round, op.Key, op.Value)
			}
		}
	}
}

// TestKeepCommands has a hook find its commands as they were.
func TestKeepCommands(t *testing.T) {
	client, k := hooked(t)
	tr := goredis.New(client, goredis.KeepCommands())
	var want []string
	for round := range 5 {
		name := fmt.Sprint("r", round, "-")
		tr.Do(context.Background(), batchOf(3, name))
		want = append(want, textsOf(3, name)...)
	}
	for i, c := range k.kept {
		got, _, _ := strings.Cut(c.String(), ":") // the reply
		if got != want[i] {
			t.Errorf("%d: %q, want %q", i, got, want[i])
		}
		if get, ok := c.(*redis.StringCmd); ok && get.Val() != "value of "+want[i][len("get "):] {
			t.Errorf("%d: %q", i, get.Val())
		}
	}
}
