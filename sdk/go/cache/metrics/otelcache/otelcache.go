// Package otelcache gives what a cache counts to OpenTelemetry.
//
//	metrics, err := otelcache.New(provider.Meter("app"))
//	users, err := cache.New(store, codec, cache.Options[int64, User]{..., Observer: metrics.Cache("users")})
//
// The instruments are weft.cache.events (attributes cache and event), weft.cache.bytes (cache, direction) and weft.cache.load.duration in
// seconds (cache, outcome: ok or error).
package otelcache

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/weft-db/weft/sdk/go/cache"
)

// Metrics are the instruments of all caches.
type Metrics struct {
	events, bytes metric.Int64Counter
	loads         metric.Float64Histogram
}

// New makes the instruments.
func New(meter metric.Meter) (*Metrics, error) {
	m := &Metrics{}
	var err error
	if m.events, err = meter.Int64Counter("weft.cache.events", metric.WithDescription("What happened to keys of the cache"),
		metric.WithUnit("{key}")); err != nil {
		return nil, err
	}
	if m.bytes, err = meter.Int64Counter("weft.cache.bytes", metric.WithDescription("Bytes of values from and to the store"),
		metric.WithUnit("By")); err != nil {
		return nil, err
	}
	m.loads, err = meter.Float64Histogram("weft.cache.load.duration", metric.WithDescription("How long calls of loaders took"),
		metric.WithUnit("s"))
	return m, err
}

// Cache returns the Observer of the cache with a name.
func (m *Metrics) Cache(name string) cache.Observer {
	o := &observer{m: m}
	set := func(key, value string) []metric.AddOption {
		return []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(attribute.String("cache", name), attribute.String(key, value)))}
	}
	for _, e := range cache.Events() {
		o.counters = append(o.counters, counter{m.events, set("event", e.String())})
	}
	o.counters[cache.EventBytesRead] = counter{m.bytes, set("direction", "read")}
	o.counters[cache.EventBytesWritten] = counter{m.bytes, set("direction", "written")}
	for i, outcome := range []string{"ok", "error"} {
		o.outcomes[i] = []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attribute.String("cache", name),
			attribute.String("outcome", outcome)))}
	}
	return o
}

type counter struct {
	to      metric.Int64Counter
	options []metric.AddOption
}

type observer struct {
	m        *Metrics
	counters []counter
	outcomes [2][]metric.RecordOption
}

// Count counts an event.
func (o *observer) Count(e cache.Event, n int) {
	if int(e) < len(o.counters) {
		c := &o.counters[e]
		c.to.Add(context.Background(), int64(n), c.options...)
	}
}

// Load records how long a loader took.
func (o *observer) Load(d time.Duration, _ int, err error) {
	i := 0
	if err != nil {
		i = 1
	}
	o.m.loads.Record(context.Background(), d.Seconds(), o.outcomes[i]...)
}
