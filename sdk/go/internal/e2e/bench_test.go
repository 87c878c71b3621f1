package e2e

// This file owns the comparison of clients: respb, go-redis and rueidis against one server, GET and SET of 64 bytes with 1, 64 and 1,000
// goroutines.
//
// The server is another process: the one at WEFT_ADDR if that is set, else examples/kv, built and started here.

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/weft-db/weft/sdk/go/respb"
)

// kvAddr returns the address of the server under load.
func kvAddr(t testing.TB) string {
	t.Helper()
	if addr := os.Getenv("WEFT_ADDR"); addr != "" {
		return addr
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	bin := filepath.Join(t.TempDir(), "kv")
	if out, err := exec.Command("go", "build", "-o", bin, "github.com/weft-db/weft/sdk/go/examples/kv").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(bin, "-addr", addr)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for until := time.Now().Add(testWait); ; time.Sleep(10 * time.Millisecond) {
		nc, err := net.Dial("tcp", addr)
		if err == nil {
			_ = nc.Close()
			return addr
		}
		if time.Now().After(until) {
			t.Fatal(err)
		}
	}
}

// kvClient is what all three do.
type kvClient interface {
	get(ctx context.Context, key string) (string, error)
	set(ctx context.Context, key, value string) error
	close()
}

type respbClient struct{ c *respb.Conn }

func (c respbClient) get(ctx context.Context, key string) (string, error) { return c.c.Get(ctx, key) }
func (c respbClient) set(ctx context.Context, key, value string) error {
	_, err := c.c.Set(ctx, key, value)
	return err
}
func (c respbClient) close() { _ = c.c.Close() }

type goRedisClient struct{ c *redis.Client }

func (c goRedisClient) get(ctx context.Context, key string) (string, error) {
	return c.c.Get(ctx, key).Result()
}
func (c goRedisClient) set(ctx context.Context, key, value string) error {
	return c.c.Set(ctx, key, value, 0).Err()
}
func (c goRedisClient) close() { _ = c.c.Close() }

type rueidisClient struct{ c rueidis.Client }

func (c rueidisClient) get(ctx context.Context, key string) (string, error) {
	return c.c.Do(ctx, c.c.B().Get().Key(key).Build()).ToString()
}
func (c rueidisClient) set(ctx context.Context, key, value string) error {
	return c.c.Do(ctx, c.c.B().Set().Key(key).Value(value).Build()).Error()
}
func (c rueidisClient) close() { c.c.Close() }

// clients makes each client as its users would: with its defaults.
var clients = []struct {
	name string
	make func(addr string) (kvClient, error)
}{
	{"go-redis", func(addr string) (kvClient, error) {
		return goRedisClient{redis.NewClient(&redis.Options{Addr: addr})}, nil
	}},
	{"rueidis", func(addr string) (kvClient, error) {
		c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true, ForceSingleClient: true})
		return rueidisClient{c}, err
	}},
	{"respb", func(addr string) (kvClient, error) {
		c, err := respb.Dial(context.Background(), respb.Options{Addr: addr, Protocol: respb.RESPB})
		return respbClient{c}, err
	}},
	{"respb-RESP3", func(addr string) (kvClient, error) {
		c, err := respb.Dial(context.Background(), respb.Options{Addr: addr, Protocol: respb.RESP3})
		return respbClient{c}, err
	}},
}

// BenchmarkClients has the client as part of the name, for benchstat -col /client. "in time" is with contexts that have a deadline, one
// for each goroutine, as a server's requests have; the clients' own timeouts are on in all.
func BenchmarkClients(b *testing.B) {
	addr := kvAddr(b)
	value := strings.Repeat("v", 64)
	for _, op := range []string{"GET", "SET", "GET in time", "SET in time"} {
		for _, goroutines := range []int{1, 64, 1000} {
			name, inTime := strings.CutSuffix(op, " in time")
			if inTime && goroutines != 1000 {
				continue
			}
			for _, cl := range clients {
				b.Run(fmt.Sprintf("%s/goroutines=%d/client=%s", op, goroutines, cl.name), func(b *testing.B) {
					c, err := cl.make(addr)
					if err != nil {
						b.Fatal(err)
					}
					defer c.close()
					ctx := context.Background()
					own := slices.Repeat([]context.Context{ctx}, goroutines)
					for i := range own {
						if inTime {
							var cancel context.CancelFunc
							own[i], cancel = context.WithTimeout(ctx, testWait)
							defer cancel()
						}
					}
					keys := make([]string, 1000)
					for i := range keys {
						keys[i] = fmt.Sprintf("key:%06d", i)
						if err := c.set(ctx, keys[i], value); err != nil {
							b.Fatal(err)
						}
					}
					load(b, goroutines, func(worker, i int) error {
						if name == "SET" {
							return c.set(own[worker], keys[i%len(keys)], value)
						}
						got, err := c.get(own[worker], keys[i%len(keys)])
						if err == nil && got != value {
							err = fmt.Errorf("got %q", got)
						}
						return err
					})
				})
			}
		}
	}
}

// load has n goroutines share b.N operations.
func load(b *testing.B, n int, op func(worker, i int) error) {
	b.ReportAllocs()
	b.ResetTimer()
	var next atomic.Int64
	var all sync.WaitGroup
	for worker := range n {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := int(next.Add(1)); i <= b.N; i = int(next.Add(1)) {
				if err := op(worker, i); err != nil {
					b.Error(err)
					return
				}
			}
		}()
	}
	all.Wait()
}
