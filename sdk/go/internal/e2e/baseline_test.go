package e2e

// This file owns the baseline that channels are compared with: 2,000 logical clients through few RESP connections, which rueidis
// pipelines by itself, and through channels. Each client asks, waits for its answer, and asks again. What is told is the CPU time of the
// server and of this process for each GET, latencies, and what one slow client does to the others.
//
// It is no test of every day: WEFT_BASELINE names the folder that the table goes to, and `make bench-baseline` sets it.

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weft-db/weft/sdk/go/respb"
)

const (
	baselineClients = 2000
	baselineConns   = 4 // rueidis makes as many by default on a machine of two cores
	baselineRounds  = 5
	baselineTime    = time.Second
	baselineBig     = 4 << 20
)

// asker is a logical client.
type asker func(ctx context.Context, key string) (int, error)

// way is how the logical clients reach the server; slow is one more client beside them.
type way struct {
	name string
	open func(t *testing.T, addr string) (askers []asker, slow asker)
}

var ways = []way{
	{"rueidis, pipelined by itself, 4 connections of RESP3", func(t *testing.T, addr string) ([]asker, asker) {
		c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true, ForceSingleClient: true, PipelineMultiplex: 2})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		get := func(ctx context.Context, key string) (int, error) {
			s, err := c.Do(ctx, c.B().Get().Key(key).Build()).ToString()
			return len(s), err
		}
		return slices.Repeat([]asker{get}, baselineClients), get
	}},
	{"respb, shared sessions, 4 connections of RESP3", sharedConns(respb.RESP3)},
	{"respb, shared sessions, 4 connections of RESPB", sharedConns(respb.RESPB)},
	{"respb, 2,000 channels of 4 connections", func(t *testing.T, addr string) (askers []asker, slow asker) {
		ctx := context.Background()
		conns := dialAll(t, addr, respb.RESPB)
		channel := func(i int) asker {
			ch, err := conns[i%len(conns)].Channel(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return func(ctx context.Context, key string) (int, error) {
				s, err := ch.Get(ctx, key)
				return len(s), err
			}
		}
		for i := range baselineClients {
			askers = append(askers, channel(i))
		}
		return askers, channel(0)
	}},
}

func dialAll(t *testing.T, addr string, protocol respb.Protocol) (conns []*respb.Conn) {
	for range baselineConns {
		c, err := respb.Dial(context.Background(), respb.Options{Addr: addr, Protocol: protocol})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		conns = append(conns, c)
	}
	return conns
}

func sharedConns(protocol respb.Protocol) func(t *testing.T, addr string) ([]asker, asker) {
	return func(t *testing.T, addr string) (askers []asker, slow asker) {
		for _, c := range dialAll(t, addr, protocol) {
			askers = append(askers, func(ctx context.Context, key string) (int, error) {
				s, err := c.Get(ctx, key)
				return len(s), err
			})
		}
		return slices.Repeat(askers, baselineClients/baselineConns), askers[0]
	}
}

// figures are of one round, in microseconds.
type figures struct{ rate, server, client, p50, p99 float64 }

func TestBaseline(t *testing.T) {
	out := os.Getenv("WEFT_BASELINE")
	if out == "" {
		t.Skip("a measurement of minutes: make bench-baseline")
	}
	addr, pid := kvAddr(t), serverPID(t)
	keys := prepare(t, addr)
	table := "| way | GETs a second | server µs | client µs | p50 µs | p99 µs | p50 beside a slow one | p99 beside a slow one |\n" +
		"|---|---:|---:|---:|---:|---:|---:|---:|\n"
	alone, beside := make([][]figures, len(ways)), make([][]figures, len(ways))
	// In turns, so that what else the machine does meets all.
	for range baselineRounds {
		for i, way := range ways {
			t.Run(way.name, func(t *testing.T) {
				askers, slow := way.open(t, addr)
				_ = round(t, pid, askers, nil, keys) // warm
				alone[i] = append(alone[i], round(t, pid, askers, nil, keys))
				beside[i] = append(beside[i], round(t, pid, askers, slow, keys))
			})
		}
	}
	for i, way := range ways {
		a, b := alone[i], beside[i]
		table += fmt.Sprintf("| %s | %.0f | %.2f | %.2f | %.0f | %.0f | %.0f | %.0f |\n", way.name,
			median(a, func(f figures) float64 { return f.rate }), median(a, func(f figures) float64 { return f.server }),
			median(a, func(f figures) float64 { return f.client }), median(a, func(f figures) float64 { return f.p50 }),
			median(a, func(f figures) float64 { return f.p99 }), median(b, func(f figures) float64 { return f.p50 }),
			median(b, func(f figures) float64 { return f.p99 }))
	}
	if err := os.WriteFile(filepath.Join(out, "baseline.md"), []byte(table), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table)
}

func serverPID(t *testing.T) int {
	pid, err := strconv.Atoi(os.Getenv("WEFT_PID"))
	if err != nil {
		t.Fatal("WEFT_PID is not the server's process: make bench-baseline")
	}
	return pid
}

// prepare stores what is asked for.
func prepare(t *testing.T, addr string) (keys []string) {
	c, err := respb.Dial(context.Background(), respb.Options{Addr: addr})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := context.Background()
	for i := range 1000 {
		keys = append(keys, fmt.Sprintf("key:%06d", i))
		if _, err := c.Set(ctx, keys[i], strings.Repeat("v", 64)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Set(ctx, "big", strings.Repeat("v", baselineBig)); err != nil {
		t.Fatal(err)
	}
	return keys
}

// round has all clients ask for a while; slow asks for what is large meanwhile.
func round(t *testing.T, pid int, askers []asker, slow asker, keys []string) figures {
	ctx := context.Background()
	var wg sync.WaitGroup
	var stop atomic.Bool
	all := make([][]time.Duration, len(askers))
	serverBefore, clientBefore, began := serverCPU(t, pid), ownCPU(), time.Now()
	fail := func(err error, n int) bool {
		if err != nil || n == 0 {
			t.Errorf("%d bytes, %v", n, err)
			stop.Store(true)
		}
		return stop.Load()
	}
	for i, ask := range askers {
		wg.Go(func() {
			for n := i; !stop.Load(); n++ {
				asked := time.Now()
				length, err := ask(ctx, keys[n%len(keys)])
				all[i] = append(all[i], time.Since(asked))
				if fail(err, length) {
					return
				}
			}
		})
	}
	if slow != nil {
		wg.Go(func() {
			for !stop.Load() {
				if n, err := slow(ctx, "big"); fail(err, n) {
					return
				}
			}
		})
	}
	time.Sleep(baselineTime) // how long it is measured
	stop.Store(true)
	wg.Wait()
	elapsed := time.Since(began)
	took := slices.Concat(all...)
	slices.Sort(took)
	count := float64(len(took))
	us := func(d time.Duration) float64 { return float64(d) / 1e3 }
	return figures{
		rate: count / elapsed.Seconds(), server: us(serverCPU(t, pid)-serverBefore) / count, client: us(ownCPU()-clientBefore) / count,
		p50: us(took[len(took)/2]), p99: us(took[len(took)*99/100]),
	}
}

// serverCPU is the time that the server's threads have been on a CPU.
func serverCPU(t *testing.T, pid int) (sum time.Duration) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(tasks) == 0 {
		t.Fatalf("process %d: %v", pid, err)
	}
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // a thread that has ended
		}
		ns, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(ns)
	}
	return sum
}

func ownCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail for oneself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func median(of []figures, field func(figures) float64) float64 {
	all := make([]float64, len(of))
	for i, f := range of {
		all[i] = field(f)
	}
	slices.Sort(all)
	return all[len(all)/2]
}
