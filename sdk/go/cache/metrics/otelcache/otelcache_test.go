package otelcache_test

// This file owns the test of the adapter, with OpenTelemetry's SDK reading what came.

import (
	"context"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weft-db/weft/sdk/go/cache/metrics/metricstest"
	"github.com/weft-db/weft/sdk/go/cache/metrics/otelcache"
)

func TestCounts(t *testing.T) {
	reader := sdk.NewManualReader()
	metrics, err := otelcache.New(sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("test"))
	if err != nil {
		t.Fatal(err)
	}
	names := metricstest.Names{Events: "weft.cache.events", Bytes: "weft.cache.bytes", Load: "weft.cache.load.duration"}
	metricstest.Run(t, metrics.Cache("texts"), names, func() map[string]int64 { return collected(t, reader) })
}

// collected is what a reader has, by name and attributes: sums, and of histograms how many samples.
func collected(t *testing.T, reader *sdk.ManualReader) map[string]int64 {
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, m := range all.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				name, _ := p.Attributes.Value("cache")
				event, ok := p.Attributes.Value("event")
				if !ok {
					event, _ = p.Attributes.Value("direction")
				}
				got[m.Name+" "+name.AsString()+" "+event.AsString()] = p.Value
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				outcome, _ := p.Attributes.Value("outcome")
				name, _ := p.Attributes.Value("cache")
				got[m.Name+" "+name.AsString()+" "+outcome.AsString()] = int64(p.Count)
			}
		}
	}
	return got
}
