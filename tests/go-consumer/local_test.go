package consumer

// This file owns the use of local.

import (
	"testing"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/local"
	"github.com/weft-db/weft/sdk/go/cache/transport/memory"
)

func TestLocal(t *testing.T) {
	near, err := local.New(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	use(t, &memory.Store{}, func(o *cache.Options[int, user]) { o.Local = near })
}
