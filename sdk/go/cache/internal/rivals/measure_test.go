package rivals

// This file owns what each contestant costs: CPU of the client and of the server for a call, memory, and how long a caller waits. Contestants
// take turns, so that what a neighbour of the machine does meets all of them.

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/cache/internal/servers"
)

// keysOf is how many keys the calls go to, and batchOf how many a batch has.
const (
	keysOf    = 1000
	batchOf   = 100
	callersOf = 1000
	valueOf   = 512
)

var value = strings.Repeat("v", valueOf)

// slowSource is how long the source takes where it is the waiting that counts.
const slowSource = 20 * time.Millisecond

// task is a column: n calls of a contestant in each round.
type task struct {
	name string
	n    int
	run  func(ctx context.Context, t *testing.T, p process, n int, loads *atomic.Int64)
}

var tasks = []task{
	{"hit", 500, func(ctx context.Context, t *testing.T, p process, n int, _ *atomic.Int64) {
		for i := range n {
			if v, err := p.get(ctx, keys[i%keysOf]); err != nil || v != value {
				t.Fatal(v, err)
			}
		}
	}},
	{"load, a hit", 500, func(ctx context.Context, t *testing.T, p process, n int, loads *atomic.Int64) {
		for i := range n {
			if v, err := p.load(ctx, keys[i%keysOf], counting(loads, 0)); err != nil || v != value {
				t.Fatal(v, err)
			}
		}
	}},
	{"load, a miss", 200, func(ctx context.Context, t *testing.T, p process, n int, loads *atomic.Int64) {
		for range n {
			if v, err := p.load(ctx, newKey(), counting(loads, 0)); err != nil || v != value {
				t.Fatal(v, err)
			}
		}
		p.settle(t)
	}},
	{"a batch of 100, hits", 20, func(ctx context.Context, t *testing.T, p process, n int, _ *atomic.Int64) {
		for i := range n {
			from := i * batchOf % keysOf
			if found, err := p.many(ctx, keys[from:from+batchOf]); err != nil || found != batchOf {
				t.Fatal(found, err)
			}
		}
	}},
	{"1,000 callers miss one key", 2, func(ctx context.Context, t *testing.T, p process, n int, loads *atomic.Int64) {
		for range n {
			var all sync.WaitGroup
			load, key := counting(loads, time.Millisecond), newKey()
			for range callersOf {
				all.Add(1)
				go func() {
					defer all.Done()
					if v, err := p.load(ctx, key, load); err != nil || v != value {
						t.Error(err)
					}
				}()
			}
			all.Wait()
			p.settle(t)
		}
	}},
}

var made atomic.Int64

// newKey is one that nobody has asked for.
func newKey() string { return fmt.Sprint("new ", made.Add(1)) }

var keys = func() []string {
	all := make([]string, keysOf)
	for i := range all {
		all[i] = fmt.Sprint("key ", i)
	}
	return all
}()

func counting(loads *atomic.Int64, takes time.Duration) loader {
	return func(context.Context) (string, error) {
		loads.Add(1)
		if takes > 0 {
			time.Sleep(takes) // the source is slow
		}
		return value, nil
	}
}

// figures are those of one contestant and task, one of each round.
type figures struct{ client, server, bytes, allocs, loads, wall []float64 }

// TestCost measures in so many rounds as RIVALS_ROUNDS says; without it, in one round of fewer calls, which only shows that it works.
func TestCost(t *testing.T) {
	server := servers.Redis(t)
	if server == nil {
		t.Skip("redis-server is not installed")
	}
	rounds, _ := strconv.Atoi(os.Getenv("RIVALS_ROUNDS"))
	part := 1
	if rounds == 0 {
		rounds, part = 1, 5
	}
	ctx := context.Background()
	all := make([]map[string]*figures, len(those()))
	processes := make([]process, len(all))
	for i, c := range those() {
		all[i] = map[string]*figures{}
		processes[i] = c.process(t, server.Addrs[0])
		for _, task := range tasks {
			all[i][task.name] = &figures{}
		}
	}
	for _, task := range tasks {
		for range rounds {
			for i, p := range processes {
				if _, err := atOnce(keys, func(key string) error { return p.set(ctx, key, value) }); err != nil {
					t.Fatal(err)
				}
				n := max(task.n/part, 1)
				for range 2 { // first levels and pools are warm, also where the first pass is invalidated by what was just set
					if _, err := p.many(ctx, keys); err != nil {
						t.Fatal(err)
					}
				}
				task.run(ctx, t, p, max(n/10, 1), new(atomic.Int64))
				measure(ctx, t, server, p, &task, n, all[i][task.name])
			}
		}
	}
	for i, c := range those() {
		if f := all[i]["1,000 callers miss one key"]; slices.Max(f.loads) != 1 {
			t.Errorf("%s: %v loads for a stampede in one process", c.name, f.loads)
		}
	}
	writeCost(t, rounds, all)
}

func measure(ctx context.Context, t *testing.T, server *servers.Server, p process, task *task, n int, f *figures) {
	t.Helper()
	runtime.GC()
	var loads atomic.Int64
	var before, after runtime.MemStats
	serverBefore := serverCPU(t, server)
	runtime.ReadMemStats(&before)
	clientBefore, begun := clientCPU(t), time.Now()
	task.run(ctx, t, p, n, &loads)
	wall, client := time.Since(begun), clientCPU(t)-clientBefore
	runtime.ReadMemStats(&after)
	per := func(total float64) float64 { return total / float64(n) }
	f.client = append(f.client, per(float64(client.Nanoseconds())/1000))
	f.server = append(f.server, per((serverCPU(t, server)-serverBefore)*1e6))
	f.bytes = append(f.bytes, per(float64(after.TotalAlloc-before.TotalAlloc)))
	f.allocs = append(f.allocs, per(float64(after.Mallocs-before.Mallocs)))
	f.loads = append(f.loads, per(float64(loads.Load())))
	f.wall = append(f.wall, per(float64(wall.Nanoseconds())/1000))
}

// clientCPU is what this process has used.
func clientCPU(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// serverCPU is what the server says that it has used, in seconds.
func serverCPU(t *testing.T, server *servers.Server) (sum float64) {
	t.Helper()
	for _, line := range strings.Split(servers.Command(t, server.Addrs[0], "INFO", "cpu"), "\r\n") {
		name, text, _ := strings.Cut(line, ":")
		if name == "used_cpu_user" || name == "used_cpu_sys" {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += v
		}
	}
	return sum
}

// TestWait has a value be past its time while the source takes 20 ms: how long a caller waits for a value, stale or new.
func TestWait(t *testing.T) {
	server := servers.Redis(t)
	if server == nil {
		t.Skip("redis-server is not installed")
	}
	rounds, _ := strconv.Atoi(os.Getenv("RIVALS_ROUNDS"))
	rounds = max(10*rounds, 1)
	ctx := context.Background()
	waits := make([][]float64, len(those()))
	processes := make([]process, len(those()))
	for i, c := range those() {
		processes[i] = c.process(t, server.Addrs[0])
	}
	for range rounds {
		for i, c := range those() {
			key := newKey()
			p := processes[i]
			if k, ok := p.(*kit); ok {
				k.stale(ctx, t, key)
			} // where nothing is served stale, what is past its time is not there
			var loads atomic.Int64
			begun := time.Now()
			if v, err := p.load(ctx, key, counting(&loads, slowSource)); err != nil || v != value {
				t.Fatal(c.name, v, err)
			}
			took := time.Since(begun)
			waits[i] = append(waits[i], float64(took.Microseconds())/1000)
			_, serves := p.(*kit)
			if !serves && took < slowSource {
				t.Errorf("%s waited for %v only", c.name, took)
			}
			until(t, "the load", func() bool { // a refresh that was given up, since the store took too long, is the next caller's
				if serves && loads.Load() == 0 {
					_, _ = p.load(ctx, key, counting(&loads, slowSource))
				}
				return loads.Load() > 0
			})
			p.settle(t)
		}
	}
	writeWaits(t, waits)
}
