package consumer

// This file owns the use of promcache.

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/metrics/promcache"
	"github.com/weft-db/weft/sdk/go/cache/transport/memory"
)

func TestPrometheus(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics, err := promcache.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	use(t, &memory.Store{}, func(o *cache.Options[int, user]) { o.Observer = metrics.Cache("users") })
	if families, err := registry.Gather(); err != nil || len(families) == 0 {
		t.Error(families, err)
	}
}
