package weftotel_test

// This file owns the test of the adapter, with OpenTelemetry's SDK taking what came.

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/weft-db/weft/sdk/go/resp"
	"github.com/weft-db/weft/sdk/go/respb"
	"github.com/weft-db/weft/sdk/go/respb/hooks/weftotel"
)

func serve(t *testing.T) string {
	m := resp.NewMux()
	m.HandleFunc("GET", 2, func(s *resp.Session, r *resp.Request) error { return s.WriteNull() })
	m.HandleFunc("SET", -3, func(s *resp.Session, r *resp.Request) error { return s.WriteErrorPrefix("WRONGTYPE", "no") })
	server := &resp.Server{Handler: m, Logger: slog.New(slog.DiscardHandler)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return l.Addr().String()
}

func TestTracesAndMetrics(t *testing.T) {
	addr := serve(t)
	spans := tracetest.NewSpanRecorder()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	reader := sdk.NewManualReader()
	o := weftotel.Options{TracerProvider: tracers, MeterProvider: sdk.NewMeterProvider(sdk.WithReader(reader)), Keys: true}
	hook, err := weftotel.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, parent := tracers.Tracer("test").Start(context.Background(), "parent")
	conn, err := respb.Dial(ctx, respb.Options{Addr: addr, DB: 0, Hooks: []respb.Hook{hook}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := weftotel.Observe(conn, o, "main"); err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Get(ctx, "k1")
	_, _ = conn.Set(ctx, "k2", "secret")
	p := conn.Pipeline()
	p.Get("a")
	p.Set("b", "c")
	_, _ = p.Exec(ctx)

	type told struct {
		status codes.Code
		attrs  map[attribute.Key]string
	}
	all := map[string]told{}
	for _, span := range spans.Ended() {
		if span.Parent().SpanID() != parent.SpanContext().SpanID() || span.SpanKind() != trace.SpanKindClient {
			t.Errorf("%s has the parent %v and the kind %v", span.Name(), span.Parent().SpanID(), span.SpanKind())
		}
		s := told{span.Status().Code, map[attribute.Key]string{}}
		for _, a := range span.Attributes() {
			s.attrs[a.Key] = a.Value.Emit()
		}
		all[span.Name()] = s
	}
	host, port, _ := net.SplitHostPort(addr)
	for name, want := range map[string]told{
		"DIAL": {codes.Unset, map[attribute.Key]string{"server.address": host, "network.protocol.name": "RESPB"}},
		"GET": {codes.Unset, map[attribute.Key]string{"db.system.name": "redis", "db.operation.name": "GET", "db.namespace": "0", "server.port": port,
			"db.query.text": "GET k1"}},
		"SET":      {codes.Error, map[attribute.Key]string{"error.type": "WRONGTYPE", "db.response.status_code": "WRONGTYPE", "db.query.text": "SET k2"}},
		"PIPELINE": {codes.Unset, map[attribute.Key]string{"db.operation.batch.size": "2", "weft.error_replies": "1"}},
	} {
		got, ok := all[name]
		if !ok || got.status != want.status {
			t.Errorf("%s: %v with the status %v", name, ok, got.status)
		}
		for key, value := range want.attrs {
			if got.attrs[key] != value {
				t.Errorf("%s: %s is %q, want %q", name, key, got.attrs[key], value)
			}
		}
	}

	got := counts(t, reader)
	for name, want := range map[string]int64{
		"db.client.operation.duration GET ": 1, "db.client.operation.duration SET WRONGTYPE": 1, "db.client.operation.duration PIPELINE ": 1,
		"db.client.connection.create_time  ": 1, "weft.client.connections  ": 1, "weft.client.connects  ": 1, "weft.client.replies  ": 4,
	} {
		if got[name] != want {
			t.Errorf("%s is %d, want %d", name, got[name], want)
		}
	}
	if got["weft.client.io  "] == 0 {
		t.Error("no bytes are counted")
	}
}

func counts(t *testing.T, reader sdk.Reader) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	add := func(name string, set attribute.Set, n int64) {
		operation, _ := set.Value("db.operation.name")
		failed, _ := set.Value("error.type")
		got[name+" "+operation.AsString()+" "+failed.AsString()] += n
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				add(m.Name, p.Attributes, p.Value)
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				add(m.Name, p.Attributes, int64(p.Count))
			}
		}
	}
	return got
}

// TestSeriesAreBounded: a server whose errors all have prefixes of their own does not fill the memory.
func TestSeriesAreBounded(t *testing.T) {
	reader := sdk.NewManualReader()
	hook, err := weftotel.New(weftotel.Options{NoTraces: true, MeterProvider: sdk.NewMeterProvider(sdk.WithReader(reader))})
	if err != nil {
		t.Fatal(err)
	}
	const kinds = 4096
	for i := range kinds + 1 {
		hook.After(context.Background(), &respb.Operation{Name: "GET", Err: &respb.Error{Prefix: fmt.Sprint("E", i)}})
	}
	got := counts(t, reader)
	last := fmt.Sprint("db.client.operation.duration GET E", kinds-1)
	if got[last] != 1 || got["db.client.operation.duration GET _OTHER"] != 1 {
		t.Errorf("the last is counted %d times, one past it %d times as _OTHER", got[last], got["db.client.operation.duration GET _OTHER"])
	}
}

func BenchmarkHook(b *testing.B) {
	hook, err := weftotel.New(weftotel.Options{NoTraces: true, MeterProvider: sdk.NewMeterProvider(sdk.WithReader(sdk.NewManualReader()))})
	if err != nil {
		b.Fatal(err)
	}
	op := &respb.Operation{Name: "GET", Addr: "127.0.0.1:6379"}
	b.ReportAllocs()
	for b.Loop() {
		hook.After(hook.Before(context.Background(), op), op)
	}
}
