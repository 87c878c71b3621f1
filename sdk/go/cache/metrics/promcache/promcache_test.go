package promcache_test

// This file owns the test of the adapter, with a registry reading what came.

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-db/weft/sdk/go/cache/metrics/metricstest"
	"github.com/weft-db/weft/sdk/go/cache/metrics/promcache"
)

func TestCounts(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	metrics, err := promcache.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	names := metricstest.Names{Events: "weft_cache_events_total", Bytes: "weft_cache_bytes_total", Load: "weft_cache_load_seconds"}
	metricstest.Run(t, metrics.Cache("texts"), names, func() map[string]int64 { return gathered(t, registry) })
	if _, err := promcache.New(registry); err == nil {
		t.Error("registered twice")
	}
}

// gathered is what a registry has, by name and labels: sums, and of histograms how many samples.
func gathered(t *testing.T, registry *prometheus.Registry) map[string]int64 {
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			if m.GetHistogram() != nil {
				got[name] = int64(m.GetHistogram().GetSampleCount())
				continue
			}
			got[name] = int64(m.GetCounter().GetValue())
		}
	}
	return got
}
