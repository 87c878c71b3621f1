package e2e

// This file owns the server that the tests of this package talk to.

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/resp"
)

// testWait bounds everything that a test waits for; it is never a pause.
const testWait = 240 * time.Second

// start serves what the tests of this package call, on an ephemeral port, and returns where.
func start(t *testing.T) (host, port string) {
	t.Helper()
	var mu sync.Mutex
	values := map[string]string{}
	m := resp.NewMux()
	m.HandleFunc("PING", -1, func(s *resp.Session, r *resp.Request) error { return s.WriteStatusString("PONG") })
	m.HandleFunc("ECHO", 2, func(s *resp.Session, r *resp.Request) error { return s.WriteBulkBytes(r.Arg(1)) })
	m.HandleFunc("CLIENT", -2, func(s *resp.Session, r *resp.Request) error {
		if strings.EqualFold(r.String(1), "setname") && r.Len() == 3 {
			s.SetName(r.String(2))
		}
		return s.WriteOK()
	})
	m.HandleFunc("SET", 3, func(s *resp.Session, r *resp.Request) error {
		mu.Lock()
		values[r.String(1)] = r.String(2)
		mu.Unlock()
		return s.WriteOK()
	})
	m.HandleFunc("GET", 2, func(s *resp.Session, r *resp.Request) error {
		mu.Lock()
		v, ok := values[r.String(1)]
		mu.Unlock()
		if !ok {
			return s.WriteNull()
		}
		return s.WriteBulkString(v)
	})
	m.HandleFunc("HGETALL", 2, func(s *resp.Session, r *resp.Request) error {
		return s.WriteMapString([]string{"a", "1", "b", "2"})
	})
	m.HandleFunc("SMEMBERS", 2, func(s *resp.Session, r *resp.Request) error { return s.WriteSetString([]string{"x", "y"}) })
	m.HandleFunc("ZSCORE", 3, func(s *resp.Session, r *resp.Request) error { return s.WriteFloat(1.5) })
	m.HandleFunc("LPUSH", -3, func(s *resp.Session, r *resp.Request) error { return resp.ErrWrongType })
	m.HandleFunc("STRLEN", 2, func(s *resp.Session, r *resp.Request) error { return s.WriteInt(len(r.Arg(1))) })
	(&resp.PubSub{}).Register(m)
	server := &resp.Server{Handler: m, Auth: func(s *resp.Session, user, password string) error {
		if password != "secret" {
			return resp.ErrWrongPass
		}
		return nil
	}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testWait)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		<-served
	})
	return "127.0.0.1", strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}
