package goredis_test

// This file owns the test of the transport with servers.

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/transport/goredis"
	"github.com/weft-db/weft/sdk/go/cache/transport/transporttest"
)

func TestServers(t *testing.T) {
	transporttest.RunServers(t, func(t *testing.T, addrs []string, cluster bool) cache.Transport {
		// The contexts bound what is waited for. What is sent again when the client has lost patience would be done twice.
		options := &redis.UniversalOptions{Addrs: addrs, ContextTimeoutEnabled: true,
			DialTimeout: time.Minute, ReadTimeout: 4 * time.Minute, WriteTimeout: 4 * time.Minute, MaxRetries: 1}
		client := redis.NewUniversalClient(options) // several addresses are a cluster
		if (len(addrs) > 1) != cluster {
			t.Fatal(addrs, cluster)
		}
		t.Cleanup(func() { _ = client.Close() })
		return goredis.New(client)
	})
}
