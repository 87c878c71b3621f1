package promcache_test

// This file owns the test of the adapter, with a registry reading what came.

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/metrics/promcache"
	"github.com/weft-db/weft/sdk/go/cache/transport/memory"
)

func TestCounts(t *testing.T) {
	ctx := context.Background()
	registry := prometheus.NewPedanticRegistry()
	metrics, err := promcache.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	c, err := cache.New(&memory.Store{}, cache.RawString{}, cache.Options[int, string]{Prefix: "p", TTL: time.Minute,
		Observer: metrics.Cache("texts")})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = c.GetOrLoad(ctx, 1, func(context.Context, int) (string, error) { return "value", nil })
	_, _ = c.GetOrLoad(ctx, 2, func(context.Context, int) (string, error) { return "", errors.New("failed") })
	// The value is stored behind the caller's back, and Close ends what is under way.
	for gathered(t, registry)["weft_cache_bytes_total texts written"] == 0 {
		runtime.Gosched()
	}
	_ = c.Close()
	_, _ = c.Get(ctx, 1)
	got := gathered(t, registry)
	for name, want := range map[string]float64{
		"weft_cache_events_total texts miss": 2, "weft_cache_events_total texts hit": 1, "weft_cache_events_total texts load": 2,
		"weft_cache_events_total texts load_error": 1, "weft_cache_bytes_total texts written": 11, "weft_cache_bytes_total texts read": 11,
		"weft_cache_load_seconds texts ok": 1, "weft_cache_load_seconds texts error": 1,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	if _, err := promcache.New(registry); err == nil {
		t.Error("registered twice")
	}
}

// gathered is what a registry has, by name and labels: sums, and of histograms how many samples.
func gathered(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			if m.GetHistogram() != nil {
				got[name] = float64(m.GetHistogram().GetSampleCount())
				continue
			}
			got[name] = m.GetCounter().GetValue()
		}
	}
	return got
}
