package rueidisgo_test

// This file owns the test of the transport with servers.

import (
	"testing"

	"github.com/redis/rueidis"

	"github.com/weft-db/weft/sdk/go/cache"
	transport "github.com/weft-db/weft/sdk/go/cache/transport/rueidisgo"
	"github.com/weft-db/weft/sdk/go/cache/transport/transporttest"
)

func TestServers(t *testing.T) {
	transporttest.RunServers(t, func(t *testing.T, addrs []string, cluster bool) cache.Transport {
		option := rueidis.ClientOption{InitAddress: addrs, DisableCache: true, ForceSingleClient: !cluster}
		client, err := rueidis.NewClient(option)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		return transport.New(client, option)
	})
}
