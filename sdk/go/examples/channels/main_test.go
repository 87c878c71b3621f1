package main

// This file owns the test of the example.

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/resp"
)

// TestRun runs the example against a server that has just what it needs.
func TestRun(t *testing.T) {
	var mu sync.Mutex
	lists := map[string]chan string{}
	list := func(name string) chan string {
		mu.Lock()
		defer mu.Unlock()
		if lists[name] == nil {
			lists[name] = make(chan string, 1)
		}
		return lists[name]
	}
	m := resp.NewMux()
	m.HandleFunc("PING", 1, func(s *resp.Session, r *resp.Request) error { return s.WriteStatusString("PONG") })
	m.HandleFunc("LPUSH", 3, func(s *resp.Session, r *resp.Request) error {
		list(r.String(1)) <- r.String(2)
		return s.WriteInt(1)
	})
	m.HandleFunc("BLPOP", 3, func(s *resp.Session, r *resp.Request) error {
		ctx, name := r.Context(), r.String(1)
		select {
		case value := <-list(name):
			return s.WriteArrayString([]string{name, value})
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &resp.Server{Handler: m}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	if err := run(ctx, l.Addr().String(), 2000); err != nil {
		t.Error(err)
	}
	if err := server.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	<-served
}
