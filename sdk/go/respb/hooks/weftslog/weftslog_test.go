package weftslog_test

// This file owns the test of the adapter: what is written for commands and connections, and what is not.

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/resp"
	"github.com/weft-db/weft/sdk/go/respb"
	"github.com/weft-db/weft/sdk/go/respb/hooks/weftslog"
)

func TestLog(t *testing.T) {
	m := resp.NewMux()
	m.HandleFunc("GET", 2, func(s *resp.Session, r *resp.Request) error { return s.WriteBulkString("secret value") })
	m.HandleFunc("SET", -3, func(s *resp.Session, r *resp.Request) error { return s.WriteErrorPrefix("WRONGTYPE", "no") })
	server := &resp.Server{Handler: m, Logger: slog.New(slog.DiscardHandler)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })

	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	conn, err := respb.Dial(context.Background(), respb.Options{Addr: l.Addr().String(),
		Hooks: []respb.Hook{weftslog.New(logger, weftslog.Options{Keys: true, Slow: -1}), weftslog.New(logger, weftslog.Options{Slow: time.Nanosecond})}})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Get(context.Background(), "k1")
	_, _ = conn.Set(context.Background(), "k2", "another secret")
	p := conn.Pipeline()
	p.Get("a")
	p.Set("b", "c")
	_, _ = p.Exec(context.Background())
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	_, _ = conn.Get(gone, "k3")
	_ = conn.Close()
	_, _ = respb.Dial(context.Background(), respb.Options{Network: "unix", Addr: "/nowhere", Hooks: []respb.Hook{weftslog.New(logger, weftslog.Options{})},
		Reconnect: respb.Reconnect{Disabled: true}})

	text := out.String()
	for _, want := range []string{
		"level=INFO msg=connected addr=" + l.Addr().String(), "protocol=RESPB",
		"level=DEBUG msg=command command=GET", "key=k1", `level=WARN msg="command slow" command=GET`,
		`level=WARN msg="command failed" command=SET`, `error="WRONGTYPE no"`,
		`level=WARN msg="command failed" command=PIPELINE`, "commands=2 error_replies=1",
		`level=DEBUG msg="command given up" command=GET`, `level=ERROR msg="no connection" addr=/nowhere`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not written", want)
		}
	}
	if strings.Contains(text, "secret") {
		t.Error("a value is written")
	}
	if strings.Count(text, "key=k1") != 1 {
		t.Error("a key is written that was not asked for")
	}
	if t.Failed() {
		t.Log(text)
	}
}
