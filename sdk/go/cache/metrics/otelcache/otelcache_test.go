package otelcache_test

// This file owns the test of the adapter, with OpenTelemetry's SDK reading what came.

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/metrics/otelcache"
	"github.com/weft-db/weft/sdk/go/cache/transport/memory"
)

func TestCounts(t *testing.T) {
	ctx := context.Background()
	reader := sdk.NewManualReader()
	metrics, err := otelcache.New(sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("test"))
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
	for collected(t, reader)["weft.cache.bytes texts written"] == 0 {
		runtime.Gosched()
	}
	_ = c.Close()
	_, _ = c.Get(ctx, 1)
	got := collected(t, reader)
	for name, want := range map[string]int64{
		"weft.cache.events texts miss": 2, "weft.cache.events texts hit": 1, "weft.cache.events texts load": 2,
		"weft.cache.events texts load_error": 1, "weft.cache.bytes texts written": 11, "weft.cache.bytes texts read": 11,
		"weft.cache.load.duration ok": 1, "weft.cache.load.duration error": 1,
	} {
		if got[name] != want {
			t.Errorf("%s is %d, want %d", name, got[name], want)
		}
	}
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
				got[m.Name+" "+outcome.AsString()] = int64(p.Count)
			}
		}
	}
	return got
}
