// Package promcache gives what a cache counts to Prometheus.
//
//	metrics, err := promcache.New(registry)
//	users, err := cache.New(store, codec, cache.Options[int64, User]{..., Observer: metrics.Cache("users")})
//
// The metrics are weft_cache_events_total (labels cache and event), weft_cache_bytes_total (cache, direction) and the histogram
// weft_cache_load_seconds (cache, outcome: ok or error).
package promcache

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-db/weft/sdk/go/cache"
)

// Metrics are those of all caches.
type Metrics struct {
	events, bytes *prometheus.CounterVec
	loads         *prometheus.HistogramVec
}

// New makes the metrics and registers them.
func New(to prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		events: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "weft_cache_events_total",
			Help: "What happened to keys of the cache."}, []string{"cache", "event"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "weft_cache_bytes_total",
			Help: "Bytes of values from and to the store."}, []string{"cache", "direction"}),
		loads: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "weft_cache_load_seconds",
			Help: "How long calls of loaders took.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16)}, []string{"cache", "outcome"}),
	}
	for _, c := range []prometheus.Collector{m.events, m.bytes, m.loads} {
		if err := to.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Cache returns the Observer of the cache with a name.
func (m *Metrics) Cache(name string) cache.Observer {
	o := &observer{ok: m.loads.WithLabelValues(name, "ok"), failed: m.loads.WithLabelValues(name, "error")}
	for _, e := range cache.Events() {
		switch e {
		case cache.EventBytesRead:
			o.counters = append(o.counters, m.bytes.WithLabelValues(name, "read"))
		case cache.EventBytesWritten:
			o.counters = append(o.counters, m.bytes.WithLabelValues(name, "written"))
		default:
			o.counters = append(o.counters, m.events.WithLabelValues(name, e.String()))
		}
	}
	return o
}

type observer struct {
	counters   []prometheus.Counter
	ok, failed prometheus.Observer
}

// Count counts an event.
func (o *observer) Count(e cache.Event, n int) {
	if int(e) < len(o.counters) {
		o.counters[e].Add(float64(n))
	}
}

// Load records how long a loader took.
func (o *observer) Load(d time.Duration, _ int, err error) {
	if err != nil {
		o.failed.Observe(d.Seconds())
		return
	}
	o.ok.Observe(d.Seconds())
}
