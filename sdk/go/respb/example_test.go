package respb_test

// This file owns the examples of the package page.

import (
	"context"
	"fmt"
	"log"
	"net"
	"sync"
	"time"

	"github.com/weft-db/weft/sdk/go/resp"
	"github.com/weft-db/weft/sdk/go/respb"
)

// server starts what the examples talk to and returns where it listens.
func server() (addr string, stop func()) {
	var mu sync.Mutex
	values := map[string]string{}
	m := resp.NewMux()
	m.HandleFunc("SET", -3, func(s *resp.Session, r *resp.Request) error {
		mu.Lock()
		defer mu.Unlock()
		values[r.String(1)] = r.String(2)
		return s.WriteOK()
	})
	m.HandleFunc("GET", 2, func(s *resp.Session, r *resp.Request) error {
		mu.Lock()
		defer mu.Unlock()
		if v, ok := values[r.String(1)]; ok {
			return s.WriteBulkString(v)
		}
		return s.WriteNull()
	})
	m.HandleFunc("BLPOP", -3, func(s *resp.Session, r *resp.Request) error {
		ctx := r.Context()
		<-ctx.Done()
		return context.Cause(ctx)
	})
	m.HandleFunc("SCAN", -2, func(s *resp.Session, r *resp.Request) error { // in two replies
		cursor, key := "7", "user:1"
		if r.String(1) == cursor {
			cursor, key = "0", "user:2"
		}
		_ = s.WriteArrayHeader(2)
		_ = s.WriteBulkString(cursor)
		return s.WriteArrayString([]string{key})
	})
	(&resp.PubSub{}).Register(m)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	s := &resp.Server{Handler: m}
	go s.Serve(l)
	return l.Addr().String(), func() { _ = s.Close() }
}

func Example() {
	addr, stop := server()
	defer stop()
	ctx := context.Background()
	conn, err := respb.Dial(ctx, respb.Options{Addr: addr})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Set(ctx, "greeting", "hello", respb.SetEx(time.Minute)); err != nil {
		log.Fatal(err)
	}
	text, err := conn.Get(ctx, "greeting")
	fmt.Println(text, err)
	_, err = conn.Get(ctx, "nothing")
	fmt.Println(err == respb.ErrNil)
	// Output:
	// hello <nil>
	// true
}

// A channel that blocks does not hold back the others, and is taken back with its context.
func ExampleConn_Channel() {
	addr, stop := server()
	defer stop()
	ctx := context.Background()
	conn, err := respb.Dial(ctx, respb.Options{Addr: addr})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	waiter, err := conn.Channel(ctx)
	if err != nil {
		log.Fatal(err)
	}
	short, cancel := context.WithCancel(ctx)
	done := make(chan error)
	go func() {
		_, err := waiter.Blpop(short, []string{"jobs"}, 0)
		done <- err
	}()
	_, err = conn.Set(ctx, "k", "v")
	fmt.Println("meanwhile:", err)
	cancel()
	fmt.Println("waiter:", <-done)
	// Output:
	// meanwhile: <nil>
	// waiter: context canceled
}

func ExampleChannel_Pipeline() {
	addr, stop := server()
	defer stop()
	ctx := context.Background()
	conn, err := respb.Dial(ctx, respb.Options{Addr: addr})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	pipe := conn.Pipeline()
	pipe.Set("a", "1")
	a := pipe.Get("a")
	b := pipe.Get("b")
	if _, err := pipe.Exec(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(a.Get())
	fmt.Println(b.Get())
	// Output:
	// 1 <nil>
	//  respb: the reply is null
}

func ExampleChannel_Subscribe() {
	addr, stop := server()
	defer stop()
	ctx := context.Background()
	conn, err := respb.Dial(ctx, respb.Options{Addr: addr})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel(ctx)
	if err != nil {
		log.Fatal(err)
	}
	sub, err := ch.Subscribe(ctx, "news")
	if err != nil {
		log.Fatal(err)
	}
	n, err := conn.Publish(ctx, "news", "it works")
	fmt.Println(n, err)
	m, err := sub.Receive(ctx)
	fmt.Println(m.Channel, m.Payload, err)
	// Output:
	// 1 <nil>
	// news it works <nil>
}

// What SCAN finds, over as many replies as it takes.
func ExampleCommands_EachKey() {
	addr, stop := server()
	defer stop()
	ctx := context.Background()
	options, err := respb.ParseURL("redis://" + addr + "/?read_timeout=10s")
	if err != nil {
		log.Fatal(err)
	}
	conn, err := respb.Dial(ctx, options)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	for key, err := range conn.EachKey(ctx, respb.ScanOptions{Match: "user:*"}) {
		if err != nil {
			fmt.Println(err)
			break
		}
		fmt.Println(key)
	}
	// Output:
	// user:1
	// user:2
}
