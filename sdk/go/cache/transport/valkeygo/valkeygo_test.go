package valkeygo_test

// This file owns the test of the transport with servers.

import (
	"testing"

	"github.com/valkey-io/valkey-go"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/transport/transporttest"
	"github.com/weft-db/weft/sdk/go/cache/transport/valkeygo"
)

func TestServers(t *testing.T) {
	transporttest.RunServers(t, func(t *testing.T, addrs []string, cluster bool) cache.Transport {
		option := valkey.ClientOption{InitAddress: addrs, DisableCache: true, ForceSingleClient: !cluster}
		client, err := valkey.NewClient(option)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		return valkeygo.New(client, option)
	})
}
