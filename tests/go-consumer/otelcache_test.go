package consumer

// This file owns the use of otelcache.

import (
	"testing"

	"go.opentelemetry.io/otel"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/metrics/otelcache"
	"github.com/weft-db/weft/sdk/go/cache/transport/memory"
)

func TestOpenTelemetry(t *testing.T) {
	metrics, err := otelcache.New(otel.Meter("consumer"))
	if err != nil {
		t.Fatal(err)
	}
	use(t, &memory.Store{}, func(o *cache.Options[int, user]) { o.Observer = metrics.Cache("users") })
}
