package consumer

// This file owns the use of goredis.

import (
	"testing"

	upstream "github.com/redis/go-redis/v9"

	"github.com/weft-db/weft/sdk/go/cache/transport/goredis"
)

func TestGoRedis(t *testing.T) {
	addr, kill := redis(t)
	client := upstream.NewClient(&upstream.Options{Addr: addr, ContextTimeoutEnabled: true, ReadTimeout: wait})
	defer client.Close()
	store := goredis.New(client)
	use(t, store)
	gone(t, store, kill)
}
