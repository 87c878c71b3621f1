package consumer

// This file owns the use of valkeygo.

import (
	"testing"

	"github.com/valkey-io/valkey-go"

	"github.com/weft-db/weft/sdk/go/cache/transport/valkeygo"
)

func TestValkeyGo(t *testing.T) {
	addr, kill := redis(t)
	option := valkey.ClientOption{InitAddress: []string{addr}, DisableCache: true}
	client, err := valkey.NewClient(option)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	store := valkeygo.New(client, option)
	use(t, store)
	gone(t, store, kill)
}
