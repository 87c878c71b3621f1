package consumer

// This file owns the use of compress.

import (
	"testing"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/compress"
	"github.com/weft-db/weft/sdk/go/cache/transport/memory"
)

func TestCompress(t *testing.T) {
	use(t, &memory.Store{}, func(o *cache.Options[int, user]) { o.Compressor, o.CompressMin = compress.S2{}, 1 })
}
