package consumer

// This file owns the use of rueidisgo.

import (
	"testing"

	"github.com/redis/rueidis"

	"github.com/weft-db/weft/sdk/go/cache/transport/rueidisgo"
)

func TestRueidis(t *testing.T) {
	addr, kill := redis(t)
	option := rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true}
	client, err := rueidis.NewClient(option)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	store := rueidisgo.New(client, option)
	use(t, store)
	gone(t, store, kill)
}
