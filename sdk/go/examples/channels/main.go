// Command channels opens 10,000 RESPB channels over one connection and has each of them wait for an element of a list of its own, as
// 10,000 users of a chat or of a job queue would; then it pushes to every list and counts who was woken. Over RESP the same takes
// 10,000 connections.
//
//	go run ./examples/channels -addr 127.0.0.1:6379
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-db/weft/sdk/go/respb"
)

// batch is how many lists one pipeline pushes to.
const batch = 500

func main() {
	addr := flag.String("addr", "127.0.0.1:6379", "a server that speaks RESPB")
	n := flag.Int("n", 10_000, "channels")
	flag.Parse()
	log.SetFlags(0)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := run(ctx, *addr, *n); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, addr string, n int) error {
	conn, err := respb.Dial(ctx, respb.Options{Addr: addr, Protocol: respb.RESPB, InFlightMax: 2 * n})
	if err != nil {
		return err
	}
	defer conn.Close()
	list := func(i int) string { return fmt.Sprintf("channels:%d:%d", os.Getpid(), i) }

	begin := time.Now()
	var all sync.WaitGroup
	var woken atomic.Int64
	failed := make(chan error, 1)
	for i := range n {
		ch, err := conn.Channel(ctx)
		if err != nil {
			return fmt.Errorf("channel %d: %w", i, err)
		}
		all.Add(1)
		go func() {
			defer all.Done()
			defer ch.Close()
			got, err := ch.Blpop(ctx, []string{list(i)}, time.Minute)
			if err == nil && len(got) == 2 && got[1] == fmt.Sprint(i) {
				woken.Add(1)
				return
			}
			select {
			case failed <- fmt.Errorf("channel %d got %q, %w", i, got, err):
			default:
			}
		}()
	}
	// Channel 0 does not wait behind any of them.
	if _, err := conn.Ping(ctx); err != nil {
		return err
	}
	fmt.Printf("%d channels wait on one connection after %v\n", n, time.Since(begin).Round(time.Millisecond))
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	fmt.Printf("this process holds %.1f KiB for each, its waiting goroutine included\n", float64(mem.Sys)/float64(n)/1024)

	begin = time.Now()
	pipe := conn.Pipeline()
	for i := range n {
		pipe.Lpush(list(i), fmt.Sprint(i))
		if pipe.Len() == batch || i == n-1 {
			if _, err := pipe.Exec(ctx); err != nil {
				return err
			}
			pipe.Reset()
		}
	}
	all.Wait()
	fmt.Printf("%d were woken within %v\n", woken.Load(), time.Since(begin).Round(time.Millisecond))
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}
