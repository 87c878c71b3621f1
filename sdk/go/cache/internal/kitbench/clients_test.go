package kitbench

// This file owns the clients that are compared, and the server that they talk to.

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/internal/servers"
	"github.com/weft-db/weft/sdk/go/cache/transport/goredis"
	"github.com/weft-db/weft/sdk/go/cache/transport/rueidisgo"
	"github.com/weft-db/weft/sdk/go/cache/transport/weft"
	"github.com/weft-db/weft/sdk/go/respb"
)

// alone is the WEFT_ADDR of no server: clients talk to a map in their own process, so that what is timed is their own work and the kit's. It
// has strings only, and no RESPB.
const alone = "alone"

// clients are connected to one server.
type clients struct {
	redis   *redis.Client
	rueidis rueidis.Client
	respb   *respb.Conn // nil with alone
	kits    []namedTransport
}

// namedTransport is how the kit talks through a client.
type namedTransport struct {
	client    string
	transport cache.Transport
}

// connect connects the clients to the server of WEFT_ADDR, or to a redis-server that it starts. They are closed with b.
func connect(b testing.TB) *clients {
	addr := os.Getenv("WEFT_ADDR")
	if addr == "" {
		s := servers.Redis(b)
		if s == nil {
			b.Skip("WEFT_ADDR is not set and redis-server is not installed")
		}
		addr = s.Addrs[0]
	}
	ofRedis := &redis.Options{Addr: addr}
	option := rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true, ForceSingleClient: true}
	if addr == alone {
		store := &instantStore{values: map[string][]byte{}}
		ofRedis.Dialer = func(context.Context, string, string) (net.Conn, error) { return store.dial(), nil }
		option.InitAddress[0] = "alone:1"
		option.DialCtxFn = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return store.dial(), nil }
	}
	c := &clients{redis: redis.NewClient(ofRedis)}
	b.Cleanup(func() { _ = c.redis.Close() })
	var err error
	if c.rueidis, err = rueidis.NewClient(option); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.rueidis.Close)
	c.kits = []namedTransport{{"go-redis", goredis.New(c.redis)}, {"rueidis", rueidisgo.New(c.rueidis, option)}}
	if addr == alone {
		return c
	}
	options := respb.Options{Addr: addr}
	if c.respb, err = respb.Dial(context.Background(), options); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.respb.Close() })
	c.kits = append(c.kits, namedTransport{"respb", weft.New(c.respb, options)})
	return c
}
