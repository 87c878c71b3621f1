package consumer

// This file owns the use of weftotel, and of weftslog, which comes with the SDK.

import (
	"context"
	"log/slog"
	"net"
	"testing"

	"github.com/weft-db/weft/sdk/go/resp"
	"github.com/weft-db/weft/sdk/go/respb"
	"github.com/weft-db/weft/sdk/go/respb/hooks/weftotel"
	"github.com/weft-db/weft/sdk/go/respb/hooks/weftslog"
)

func TestHooks(t *testing.T) {
	m := resp.NewMux()
	m.HandleFunc("GET", 2, func(s *resp.Session, r *resp.Request) error { return s.WriteBulkString("value") })
	server := &resp.Server{Handler: m}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(l)
	defer server.Close()
	hook, err := weftotel.New(weftotel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := respb.Dial(context.Background(), respb.Options{Addr: l.Addr().String(),
		Hooks: []respb.Hook{hook, weftslog.New(slog.New(slog.DiscardHandler), weftslog.Options{})}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if text, err := conn.Get(context.Background(), "key"); text != "value" {
		t.Errorf("Get: %q, %v", text, err)
	}
}
