// Command ratelimiter answers ALLOW key rate burst [cost]: may key spend cost tokens now, when rate tokens come back per second and at most burst
// can be saved? The reply is a map: allowed, remaining, and how many milliseconds to wait before it is worth trying again.
//
// It keeps one time per key: when the bucket will be full again (GCRA). A key that has been full for a while is forgotten.
package main

import (
	"context"
	"flag"
	"hash/maphash"
	"log"
	"math"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/weft-db/weft/sdk/go/resp"
)

// shardCount is how many keys can be decided at the same time, at most.
const shardCount = 64

// sweepInterval is how long a full bucket may stay in memory.
const sweepInterval = 10 * time.Second

// limiter holds the buckets. full is when a bucket has all its tokens back.
type limiter struct {
	seed   maphash.Seed
	shards [shardCount]struct {
		mu   sync.Mutex
		full map[string]time.Time
	}
}

var errPositive = &resp.Error{Message: "rate, burst and cost must be positive numbers and cost no more than burst"}

// allow decides about one request. What it takes of the bucket is given back over time by nothing but the clock.
func (l *limiter) allow(key []byte, now time.Time, rate, burst, cost float64) (ok bool, remaining float64, wait time.Duration) {
	shard := &l.shards[maphash.Bytes(l.seed, key)%shardCount]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	full := shard.full[string(key)]
	if full.Before(now) {
		full = now
	}
	missing := full.Sub(now).Seconds() * rate
	if missing+cost > burst {
		return false, math.Floor(burst - missing), seconds((missing + cost - burst) / rate)
	}
	shard.full[string(key)] = full.Add(seconds(cost / rate))
	return true, math.Floor(burst - missing - cost), 0
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// sweep forgets full buckets until ctx ends.
func (l *limiter) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			for i := range l.shards {
				shard := &l.shards[i]
				shard.mu.Lock()
				for key, full := range shard.full {
					if full.Before(now) {
						delete(shard.full, key)
					}
				}
				shard.mu.Unlock()
			}
		}
	}
}

// serve answers ALLOW.
func (l *limiter) serve(s *resp.Session, r *resp.Request) error {
	numbers := [3]float64{2: 1}
	for i := 2; i < r.Len() && i < 5; i++ {
		f, err := r.Float(i)
		if err != nil {
			return err
		}
		numbers[i-2] = f
	}
	rate, burst, cost := numbers[0], numbers[1], numbers[2]
	if !(rate > 0 && cost > 0 && cost <= burst && burst/rate < 1e6) || r.Len() > 5 {
		return errPositive
	}
	ok, remaining, wait := l.allow(r.Arg(1), time.Now(), rate, burst, cost)
	_ = s.WriteMapHeader(3)
	_ = s.WriteBulkString("allowed")
	_ = s.WriteBool(ok)
	_ = s.WriteBulkString("remaining")
	_ = s.WriteInt64(int64(remaining))
	_ = s.WriteBulkString("retry_after_ms")
	return s.WriteInt64(int64(math.Ceil(wait.Seconds() * 1000)))
}

func main() {
	addr := flag.String("addr", "127.0.0.1:6381", "where to listen")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	l := &limiter{seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].full = map[string]time.Time{}
	}
	mux := resp.NewMux()
	mux.HandleFunc("ALLOW", -4, l.serve)
	server := &resp.Server{Handler: mux, IdleTimeout: 5 * time.Minute, ReadTimeout: 10 * time.Second}
	var sweeping sync.WaitGroup
	sweeping.Add(1)
	go func() {
		defer sweeping.Done()
		l.sweep(ctx)
	}()
	go func() {
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(last)
	}()
	log.Printf("ratelimiter: listening on %s", *addr)
	if err := server.ListenAndServe(*addr); err != resp.ErrServerClosed {
		log.Fatal(err)
	}
	sweeping.Wait()
}
