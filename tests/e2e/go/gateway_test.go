// Owns: clients in Go through a gateway: go-redis as a client that knows clusters and as one that does not, rueidis, which caches. Does not
// own: the gateway, which tests/e2e/run starts with WEFT_GATEWAY.
package e2e

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

func gatewayPort(t *testing.T) string {
	t.Helper()
	port := os.Getenv("WEFT_PORT")
	if port == "" || os.Getenv("WEFT_GATEWAY") == "" {
		t.Skip("WEFT_GATEWAY says of no gateway that there is one: tests/e2e/run starts it")
	}
	return port
}

func TestGatewayGoRedis(t *testing.T) {
	port := gatewayPort(t)
	ctx := context.Background()
	plain := options(port, 3)
	clients := map[string]redis.UniversalClient{"plain": redis.NewClient(plain)}
	if os.Getenv("WEFT_GATEWAY") == "cluster" {
		clients["cluster"] = redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{plain.Addr}, MaxRedirects: -1, DialTimeout: waitMax,
			ReadTimeout: waitMax, WriteTimeout: waitMax, PoolTimeout: waitMax})
	}
	for kind, client := range clients {
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(kind, err)
			}
		}
		pipe := client.Pipeline()
		for at := range 500 {
			pipe.Set(ctx, fmt.Sprint(kind, at), at, 0)
		}
		_, err := pipe.Exec(ctx)
		must(err)
		for at := range 500 {
			got, err := client.Get(ctx, fmt.Sprint(kind, at)).Int()
			must(err)
			if got != at {
				t.Fatal(kind, at, got)
			}
		}
		tx := client.TxPipeline()
		first, second := tx.Incr(ctx, "{"+kind+"}n"), tx.Incr(ctx, "{"+kind+"}n")
		_, err = tx.Exec(ctx)
		must(err)
		if second.Val() != first.Val()+1 {
			t.Fatal(kind, first.Val(), second.Val())
		}
		must(client.Watch(ctx, func(tx *redis.Tx) error {
			_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error { return pipe.Set(ctx, kind+"w", 1, 0).Err() })
			return err
		}, kind+"w"))
		script := redis.NewScript("return redis.call('INCRBY', KEYS[1], ARGV[1])")
		for at := range 20 {
			got, err := script.Run(ctx, client, []string{fmt.Sprint(kind, "s", at)}, at).Int()
			must(err)
			if got != at {
				t.Fatal(kind, at, got)
			}
		}
		popped := make(chan []string)
		go func() { popped <- client.BLPop(ctx, waitMax, kind+"list").Val() }()
		must(client.RPush(ctx, kind+"list", "x").Err())
		if got := <-popped; len(got) != 2 || got[1] != "x" {
			t.Fatal(kind, got)
		}
		must(client.Close())
	}
}

// TestGatewayRueidis turns CLIENT TRACKING on by itself: what it keeps is not used when it has changed.
func TestGatewayRueidis(t *testing.T) {
	port := gatewayPort(t)
	ctx := context.Background()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:" + port}, ForceSingleClient: true,
		ConnWriteTimeout: waitMax})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	writer := redis.NewClient(options(port, 3))
	defer func() { _ = writer.Close() }()
	read := func(key string) (string, bool) {
		t.Helper()
		reply := client.DoCache(ctx, client.B().Get().Key(key).Cache(), time.Hour)
		text, err := reply.ToString()
		if err != nil {
			t.Fatal(err)
		}
		return text, reply.IsCacheHit()
	}
	hits := 0
	for at := range 50 {
		key, value := fmt.Sprint("rueidis", at%7), strconv.Itoa(at)
		if err := writer.Set(ctx, key, value, 0).Err(); err != nil {
			t.Fatal(err)
		}
		// It is told soon; what it has kept until then is older.
		deadline := time.Now().Add(waitMax)
		for {
			text, _ := read(key)
			if text == value {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s is %s and was read as %s", key, value, text)
			}
		}
		if _, hit := read(key); hit {
			hits++
		}
	}
	if hits < 40 {
		t.Fatalf("%d of 50 reads were answered from what was kept", hits)
	}
}
