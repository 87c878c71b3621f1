// Package weftotel gives what a client does to OpenTelemetry, in the names of its conventions for database clients.
//
//	hook, err := weftotel.New(weftotel.Options{})
//	conn, err := respb.Dial(ctx, respb.Options{Addr: addr, Hooks: []respb.Hook{hook}})
//	err = weftotel.Observe(conn, weftotel.Options{}, "sessions")
//
// Each command or pipeline is a span of kind client, named as the command, and counts into the histogram db.client.operation.duration; each
// connection is a span DIAL and counts into db.client.connection.create_time; both are in seconds. Observe adds what [respb.Conn.Stats] tells, as
// weft.client.connections, .channels, .pending, .connects, .breaks, .replies and .io.
//
// Values are never told; keys only if Options.Keys says so.
package weftotel

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/weft-db/weft/sdk/go/respb"
)

const scope = "github.com/weft-db/weft/sdk/go/respb/hooks/weftotel"

// Options says where to and what. Its zero value takes the global providers.
type Options struct {
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
	// NoTraces and NoMetrics turn one of both off.
	NoTraces, NoMetrics bool
	// Keys has spans tell the text of a command, its name and its first key. Keys may be personal data.
	Keys bool
	// System is db.system.name; "redis" unless set.
	System string
}

func (o *Options) setDefaults() {
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	if o.System == "" {
		o.System = "redis"
	}
}

// New returns the Hook. One serves any number of Conns.
func New(o Options) (respb.Hook, error) {
	o.setDefaults()
	h := &hook{opts: o, series: map[series]measured{}}
	if !o.NoTraces {
		h.tracer = o.TracerProvider.Tracer(scope)
	}
	if o.NoMetrics {
		return h, nil
	}
	meter := o.MeterProvider.Meter(scope)
	var err error
	if h.operations, err = meter.Float64Histogram("db.client.operation.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of database client operations."), metric.WithExplicitBucketBoundaries(bounds...)); err != nil {
		return nil, err
	}
	h.connections, err = meter.Float64Histogram("db.client.connection.create_time", metric.WithUnit("s"),
		metric.WithDescription("The time it took to create a new connection."), metric.WithExplicitBucketBoundaries(bounds...))
	return h, err
}

// bounds are those of the conventions, and below them what a server in the same room needs.
var bounds = []float64{0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10}

// seriesMax bounds what is kept about kinds of operations: names, databases and errors together. Beyond it the error is not told.
const seriesMax = 4096

// series is what tells one kind of operation from another.
type series struct {
	addr, name, failed string
	db                 int
}

// measured is what is recorded for one kind: the same attributes for metrics and spans.
type measured struct {
	attributes []attribute.KeyValue
	record     []metric.RecordOption
	start      []trace.SpanStartOption
}

type hook struct {
	opts                    Options
	tracer                  trace.Tracer
	operations, connections metric.Float64Histogram

	mu     sync.RWMutex
	series map[series]measured
}

// Before begins the span.
func (h *hook) Before(ctx context.Context, op *respb.Operation) context.Context {
	if h.tracer == nil {
		return ctx
	}
	ctx, span := h.tracer.Start(ctx, op.Name, h.of(series{op.Addr, op.Name, "", op.DB}).start...)
	if !span.IsRecording() {
		return ctx
	}
	if op.Len > 1 {
		span.SetAttributes(attribute.Int("db.operation.batch.size", op.Len))
	}
	if h.opts.Keys && op.Key != "" {
		span.SetAttributes(attribute.String("db.query.text", op.Name+" "+op.Key))
	}
	return ctx
}

// After ends it, and counts.
func (h *hook) After(ctx context.Context, op *respb.Operation) {
	failed := kind(op.Err)
	if h.operations != nil {
		h.operations.Record(ctx, op.Took.Seconds(), h.of(series{op.Addr, op.Name, failed, op.DB}).record...)
	}
	if h.tracer == nil {
		return
	}
	span := trace.SpanFromContext(ctx)
	if span.IsRecording() {
		span.SetAttributes(attribute.String("network.protocol.name", op.Protocol.String()))
		if op.Len > 1 && op.ErrorReplies > 0 {
			span.SetAttributes(attribute.Int("weft.error_replies", op.ErrorReplies))
		}
		fail(span, failed, op.Err)
	}
	span.End()
}

// Dialed tells a connection.
func (h *hook) Dialed(ctx context.Context, d *respb.Dialed) {
	failed := kind(d.Err)
	m := h.of(series{d.Addr, "DIAL", failed, -1})
	if h.connections != nil {
		h.connections.Record(ctx, d.Took.Seconds(), m.record...)
	}
	if h.tracer == nil {
		return
	}
	_, span := h.tracer.Start(ctx, "DIAL", append(m.start, trace.WithTimestamp(d.Began))...)
	if span.IsRecording() {
		if d.Err == nil {
			span.SetAttributes(attribute.String("network.protocol.name", d.Connected.Protocol.String()))
		}
		fail(span, failed, d.Err)
	}
	span.End(trace.WithTimestamp(d.Began.Add(d.Took)))
}

func fail(span trace.Span, failed string, err error) {
	if failed == "" {
		return
	}
	span.SetStatus(codes.Error, err.Error())
	span.SetAttributes(attributesOf(failed, err)...)
}

// attributesOf are those of an error.
func attributesOf(failed string, err error) []attribute.KeyValue {
	all := []attribute.KeyValue{attribute.String("error.type", failed)}
	var reply *respb.Error
	if errors.As(err, &reply) {
		all = append(all, attribute.String("db.response.status_code", reply.Prefix))
	}
	return all
}

// kind names what kind of error it is, with as many names as servers have prefixes and the client reasons; empty is none.
func kind(err error) string {
	var reply *respb.Error
	var lost *respb.ConnError
	var late *respb.TimeoutError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &reply):
		return reply.Prefix
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.As(err, &lost):
		return "connection"
	case errors.As(err, &late), errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return "_OTHER"
}

// of returns what is recorded for one kind of operation.
func (h *hook) of(s series) measured {
	h.mu.RLock()
	m, ok := h.series[s]
	full := len(h.series) >= seriesMax
	h.mu.RUnlock()
	if ok {
		return m
	}
	attributes := []attribute.KeyValue{attribute.String("db.system.name", h.opts.System)}
	if s.name != "DIAL" {
		attributes = append(attributes, attribute.String("db.operation.name", s.name), attribute.String("db.namespace", strconv.Itoa(s.db)))
	}
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		host = s.addr
	}
	attributes = append(attributes, attribute.String("server.address", host))
	if n, err := strconv.Atoi(port); err == nil {
		attributes = append(attributes, attribute.Int("server.port", n))
	}
	if s.failed != "" {
		if full {
			s.failed = "_OTHER"
		}
		attributes = append(attributes, attribute.String("error.type", s.failed))
	}
	m = measured{attributes, []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attributes...))},
		[]trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...)}}
	m.start = m.start[:len(m.start):len(m.start)] // what is appended is the caller's
	if !full {
		h.mu.Lock()
		h.series[s] = m
		h.mu.Unlock()
	}
	return m
}

// Observe has a meter ask the Conn for its Stats. name is the attribute db.client.connection.pool.name, which tells several Conns apart.
func Observe(conn *respb.Conn, o Options, name string) error {
	o.setDefaults()
	meter := o.MeterProvider.Meter(scope)
	attributes := metric.WithAttributeSet(attribute.NewSet(attribute.String("db.client.connection.pool.name", name)))
	direction := func(word string) metric.ObserveOption {
		return metric.WithAttributeSet(attribute.NewSet(attribute.String("db.client.connection.pool.name", name), attribute.String("direction", word)))
	}
	in, out := direction("in"), direction("out")
	type gauge struct {
		to metric.Int64ObservableUpDownCounter
		of func(s *respb.Stats) int64
	}
	type counter struct {
		to metric.Int64ObservableCounter
		of func(s *respb.Stats) int64
	}
	var gauges []gauge
	var counters []counter
	var all []metric.Observable
	for _, each := range []struct {
		name, unit, text string
		of               func(s *respb.Stats) int64
	}{
		{"connections", "{connection}", "Connections that are open", func(s *respb.Stats) int64 { return int64(s.Connections) }},
		{"channels", "{channel}", "Logical clients that are open", func(s *respb.Stats) int64 { return int64(s.Channels) }},
		{"pending", "{command}", "Commands that wait for their replies", func(s *respb.Stats) int64 { return int64(s.Pending) }},
	} {
		g, err := meter.Int64ObservableUpDownCounter("weft.client."+each.name, metric.WithUnit(each.unit), metric.WithDescription(each.text))
		if err != nil {
			return err
		}
		gauges, all = append(gauges, gauge{g, each.of}), append(all, g)
	}
	for _, each := range []struct {
		name, unit, text string
		of               func(s *respb.Stats) int64
	}{
		{"connects", "{connection}", "Connections that were made", func(s *respb.Stats) int64 { return s.Connects }},
		{"breaks", "{connection}", "Connections that were lost", func(s *respb.Stats) int64 { return s.Breaks }},
		{"replies", "{reply}", "Replies that came", func(s *respb.Stats) int64 { return s.Replies }},
	} {
		c, err := meter.Int64ObservableCounter("weft.client."+each.name, metric.WithUnit(each.unit), metric.WithDescription(each.text))
		if err != nil {
			return err
		}
		counters, all = append(counters, counter{c, each.of}), append(all, c)
	}
	io, err := meter.Int64ObservableCounter("weft.client.io", metric.WithUnit("By"), metric.WithDescription("Bytes from and to the server"))
	if err != nil {
		return err
	}
	_, err = meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		s := conn.Stats()
		for _, g := range gauges {
			to.ObserveInt64(g.to, g.of(&s), attributes)
		}
		for _, c := range counters {
			to.ObserveInt64(c.to, c.of(&s), attributes)
		}
		to.ObserveInt64(io, s.BytesIn, in)
		to.ObserveInt64(io, s.BytesOut, out)
		return nil
	}, append(all, io)...)
	return err
}
