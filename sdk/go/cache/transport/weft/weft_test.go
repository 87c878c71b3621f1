package weft_test

// This file owns the test of the transport with servers: over RESPB with weft serve, over RESP3 with redis-server.

import (
	"context"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/internal/servers"
	"github.com/weft-db/weft/sdk/go/cache/transport/transporttest"
	"github.com/weft-db/weft/sdk/go/cache/transport/weft"
	"github.com/weft-db/weft/sdk/go/respb"
)

func open(t *testing.T, addr string, p respb.Protocol) cache.Transport {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	tr, err := weft.Dial(ctx, respb.Options{Addr: addr, Protocol: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.Close() })
	return tr
}

func TestServers(t *testing.T) {
	if s := servers.Redis(t); s != nil {
		t.Run("redis", func(t *testing.T) { transporttest.Run(t, open(t, s.Addrs[0], respb.Auto)) })
		t.Run("trouble", func(t *testing.T) { transporttest.Trouble(t, s, open(t, s.Addrs[0], respb.Auto)) })
	}
	if s := servers.Weft(t); s != nil {
		t.Run("weft RESPB", func(t *testing.T) { transporttest.Run(t, open(t, s.Addrs[0], respb.RESPB)) })
		t.Run("weft RESP3", func(t *testing.T) { transporttest.Run(t, open(t, s.Addrs[0], respb.RESP3)) })
		t.Run("trouble with weft", func(t *testing.T) { transporttest.Trouble(t, s, open(t, s.Addrs[0], respb.RESPB)) })
	}
}
