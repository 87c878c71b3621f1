package main

// This file owns measuring: the load, the check that nothing was lost, CPU times, the table.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weft-db/weft/sdk/go/respb"
)

const (
	defaultEach = time.Second
	users       = 10_000
	pages       = 1_000
	items       = 100
	buyOneIn    = 20
	stockAtOnce = 1_000_000_000
)

// plan is what a run consists of.
type plan struct {
	addr    string
	pid     int
	workers int
	rounds  int
	each    time.Duration
}

// turn is what one step did in one round.
type turn struct {
	actions         int
	rate            float64
	p50, p99        time.Duration
	ownCPU, itsCPU  time.Duration // for each action
	sockets, bought int
}

// server is a weft of our own.
type server struct {
	cmd  *exec.Cmd
	addr string
}

func startServer(path string) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	_ = l.Close()
	_, port, _ := net.SplitHostPort(addr)
	cmd := exec.Command(path, "serve", "--port", port, "--threads", "1")
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd, addr}
	for until := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		nc, err := net.Dial("tcp", addr)
		if err == nil {
			_ = nc.Close()
			return s, nil
		}
		if time.Now().After(until) {
			s.stop()
			return nil, err
		}
	}
}

func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
}

// run has the steps take turns, so that what the machine does meanwhile hits all alike, and prints medians.
func (p *plan) run(ctx context.Context) (table string, err error) {
	admin, err := respb.Dial(ctx, respb.Options{Addr: p.addr})
	if err != nil {
		return "", err
	}
	defer admin.Close()
	if err := fill(ctx, admin); err != nil {
		return "", err
	}
	turns := make([][]turn, len(steps))
	for range p.rounds {
		for i, s := range steps {
			t, err := p.turn(ctx, admin, s)
			if err != nil {
				return "", fmt.Errorf("%s: %w", s.name, err)
			}
			turns[i] = append(turns[i], t)
		}
	}
	return p.table(turns), nil
}

func profile(user int) string {
	return fmt.Sprintf("user %06d, %s", user, strings.Repeat("likes tea, ", 8))
}

func fill(ctx context.Context, c *respb.Conn) error {
	pipe := c.Pipeline()
	for user := range users {
		pipe.Set(profileKey(user), profile(user))
	}
	for item := range items {
		pipe.Set(stockKey(item), strconv.Itoa(stockAtOnce))
	}
	_, err := pipe.Exec(ctx)
	return err
}

// turn runs one step for its time, and checks with the server that every view was counted and every item paid for.
func (p *plan) turn(ctx context.Context, admin *respb.Conn, s step) (t turn, err error) {
	views, stock, err := totals(ctx, admin)
	if err != nil {
		return t, err
	}
	idle := sockets(p.pid)
	shop, err := s.open(ctx, p.addr, p.workers)
	if err != nil {
		return t, err
	}
	defer shop.close()
	if err := p.load(ctx, shop, p.each/5, &turn{}); err != nil { // connections are made, memory is warm
		return t, err
	}
	before, _, err := totals(ctx, admin)
	if err != nil {
		return t, err
	}
	warm := before - views
	own, its := ownCPU(), processCPU(p.pid)
	began := time.Now()
	if err := p.load(ctx, shop, p.each, &t); err != nil {
		return t, err
	}
	took := time.Since(began)
	own, its = ownCPU()-own, processCPU(p.pid)-its
	t.sockets = sockets(p.pid) - idle
	t.rate = float64(t.actions) / took.Seconds()
	t.ownCPU, t.itsCPU = own/time.Duration(t.actions), its/time.Duration(t.actions)
	after, left, err := totals(ctx, admin)
	if err != nil {
		return t, err
	}
	if got := after - views - warm; got != int64(t.actions-t.bought) {
		return t, fmt.Errorf("%d visits, %d views counted", t.actions-t.bought, got)
	}
	if stock-left < int64(t.bought) {
		return t, fmt.Errorf("%d items bought, %d taken from stock", t.bought, stock-left)
	}
	return t, nil
}

// totals returns all views and all stock.
func totals(ctx context.Context, c *respb.Conn) (views, stock int64, err error) {
	pipe := c.Pipeline()
	for page := range pages {
		pipe.Get(viewsKey(page))
	}
	for item := range items {
		pipe.Get(stockKey(item))
	}
	values, err := pipe.Exec(ctx)
	for i := range values {
		n, _ := strconv.ParseInt(string(values[i].Data), 10, 64) // a page that nobody has seen is 0
		if i < pages {
			views += n
		} else {
			stock += n
		}
	}
	return views, stock, err
}

// load has all workers act for a time.
func (p *plan) load(ctx context.Context, s shop, long time.Duration, t *turn) error {
	end := time.Now().Add(long)
	var mu sync.Mutex
	var all sync.WaitGroup
	var failed error
	var times []time.Duration
	for worker := range p.workers {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 7))
			var mine []time.Duration
			bought := 0
			var err error
			for now := time.Now(); err == nil && (len(mine) == 0 || now.Before(end)); { // at least once
				if random.IntN(buyOneIn) == 0 {
					err = s.buy(ctx, worker, random.IntN(items))
					bought++
				} else {
					user := random.IntN(users)
					var got string
					got, err = s.visit(ctx, user, random.IntN(pages))
					if err == nil && got != profile(user) {
						err = fmt.Errorf("user %d is %q", user, got)
					}
				}
				then := now
				now = time.Now()
				mine = append(mine, now.Sub(then))
			}
			mu.Lock()
			defer mu.Unlock()
			times = append(times, mine...)
			t.bought += bought
			if failed == nil {
				failed = err
			}
		})
	}
	all.Wait()
	slices.Sort(times)
	if t.actions = len(times); t.actions > 0 {
		t.p50, t.p99 = times[len(times)/2], times[len(times)*99/100]
	}
	return failed
}

func ownCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// processCPU is what all threads of a process have used.
func processCPU(pid int) (sum time.Duration) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, file := range files {
		b, _ := os.ReadFile(file)
		first, _, _ := strings.Cut(string(b), " ")
		n, _ := strconv.ParseInt(first, 10, 64)
		sum += time.Duration(n)
	}
	return sum
}

// sockets is how many a process has open.
func sockets(pid int) (count int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, file := range files {
		if target, _ := os.Readlink(file); strings.HasPrefix(target, "socket:") {
			count++
		}
	}
	return count
}

func (p *plan) table(turns [][]turn) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d workers, %d rounds of %v, one action is a visit (GET, INCR) or, once in %d, a purchase (WATCH, GET, MULTI, DECR, EXEC)\n\n",
		p.workers, p.rounds, p.each, buyOneIn)
	fmt.Fprintln(&b, "| step | actions/s | × | p50 µs | p99 µs | program CPU µs | × | server CPU µs | × | sockets |")
	fmt.Fprintln(&b, "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	median := func(of []turn, field func(t turn) float64) float64 {
		var all []float64
		for _, t := range of {
			all = append(all, field(t))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	rate := func(t turn) float64 { return t.rate }
	own := func(t turn) float64 { return float64(t.ownCPU) / 1e3 }
	its := func(t turn) float64 { return float64(t.itsCPU) / 1e3 }
	for i, of := range turns {
		first := turns[0]
		fmt.Fprintf(&b, "| %d. %s | %.0f | %.2f | %.0f | %.0f | %.1f | %.2f | %.1f | %.2f | %d |\n", i, steps[i].name,
			median(of, rate), median(of, rate)/median(first, rate),
			median(of, func(t turn) float64 { return float64(t.p50) / 1e3 }), median(of, func(t turn) float64 { return float64(t.p99) / 1e3 }),
			median(of, own), median(of, own)/median(first, own), median(of, its), median(of, its)/max(median(first, its), 0.001),
			int(median(of, func(t turn) float64 { return float64(t.sockets) })))
	}
	return b.String()
}
