package rivals

// This file owns the table of behaviour: each row is a situation that every contestant is brought into, each cell what came of it. What is
// written in the table is what is expected; a cell that comes out differently fails, for better as for worse.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/cache/internal/servers"
)

// situation is a row. Its outcomes are in the order of the contestants' families.
type situation struct {
	name string
	// seen brings a contestant into it and says what came of it.
	seen func(t *testing.T, c *contestant, server *servers.Server) string
	// of each family: go-redis/cache, rueidisaside, the kit.
	want map[string]string
}

// Rows with a rule of their own.
const (
	clockRow   = "the clock of who stores is 3 hours behind, or ahead"
	changedRow = "another process changes what the first level has"
)

var situations = []situation{
	{"200 callers in 10 processes miss one key", stampede, map[string]string{"go-redis/cache": "a load in each process", "rueidisaside": "1 load",
		"kit": "1 load"}},
	{"the process that loads is killed", holderDies, map[string]string{"go-redis/cache": "another loads", "rueidisaside": "another loads",
		"kit": "another loads"}},
	{"the source fails for 10 callers", sourceFails, map[string]string{"go-redis/cache": "asked once, all get the error",
		"rueidisaside": "asked by each in turn, all get the error", "kit": "asked once, all get the error"}},
	{"the value is deleted while its old one is loaded", deletedWhileLoading, map[string]string{"go-redis/cache": "the old one is stored",
		"rueidisaside": "not stored", "kit": "not stored"}},
	{"the loader panics", panics, map[string]string{"go-redis/cache": "panics", "rueidisaside": "panics", "kit": "an error"}},
	{"Redis is gone", gone, map[string]string{"go-redis/cache": "loads", "rueidisaside": "an error", "kit": "loads"}},
	{"Redis hangs, the caller waits 2 s", hangs, map[string]string{"go-redis/cache": "loads when the caller's time is over",
		"rueidisaside": "an error", "kit": "loads in time"}},
	{clockRow, clocksDiffer, map[string]string{"go-redis/cache": "not loaded before its time",
		"rueidisaside": "not loaded before its time", "kit": "not loaded before its time"}},
	{changedRow, changed, map[string]string{"go-redis/cache": "the old one is served",
		"rueidisaside": "the new one is served", "kit": "the new one is served"}},
}

func family(name string) string {
	name, _, _ = strings.Cut(name, ",")
	return name
}

// TestBehaviour runs every situation with one contestant of each family; with RIVALS_OUT with all, and it writes the table there.
func TestBehaviour(t *testing.T) {
	server := servers.Redis(t)
	if server == nil {
		t.Skip("redis-server is not installed")
	}
	cells := map[string]map[string]string{}
	defer func() {
		if wrongClock.path != "" {
			_ = os.RemoveAll(filepath.Dir(wrongClock.path))
		}
	}()
	for _, s := range situations {
		cells[s.name] = map[string]string{}
		for _, c := range those() {
			t.Run(s.name+"/"+c.name, func(t *testing.T) {
				if s.name == clockRow && out("") == "" {
					t.Skip("building a Go whose clock is wrong takes a minute: only for a report, make bench-cache-rivals")
				}
				begun := time.Now()
				got := s.seen(t, c, server)
				t.Logf("%s, after %v", got, time.Since(begun).Round(time.Millisecond))
				want := s.want[family(c.name)]
				if !c.near && s.name == changedRow {
					want = "the new one is served" // there is no first level
				}
				if got != want {
					t.Errorf("%s, want %s", got, want)
				}
				cells[s.name][c.name] = got
			})
		}
	}
	writeBehaviour(t, cells)
}

// seconds bounds a call that must end by itself.
func seconds(t *testing.T, n time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), n*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func stampede(t *testing.T, c *contestant, server *servers.Server) string {
	const processes, callers = 10, 20
	ctx := seconds(t, wait/time.Second)
	var loads atomic.Int64
	all := make(chan struct{})
	load := func(context.Context) (string, error) {
		if loads.Add(1) == processes {
			close(all)
		}
		select {
		case <-all:
		case <-time.After(500 * time.Millisecond): // the source is slow
		}
		return "loaded", nil
	}
	var done sync.WaitGroup
	for range processes {
		p := c.process(t, server.Addrs[0])
		for range callers {
			done.Add(1)
			go func() {
				defer done.Done()
				if v, err := p.load(ctx, "stampede "+c.name, load); err != nil || v != "loaded" {
					t.Error(v, err)
				}
			}()
		}
	}
	done.Wait()
	if n := loads.Load(); n > 1 {
		t.Log(n, "loads")
		return "a load in each process"
	}
	return "1 load"
}

// TestMain is also the process that is killed: with RIVALS_CHILD it loads for ever.
func TestMain(m *testing.M) {
	if name, addr, ok := strings.Cut(os.Getenv("RIVALS_CHILD"), "@"); ok {
		for i := range contestants {
			if contestants[i].name == name {
				child(&contestants[i], addr)
			}
		}
	}
	status := m.Run()
	if err := writePage(); err != nil {
		fmt.Println(err)
		status = 1
	}
	os.Exit(status)
}

func child(c *contestant, addr string) {
	p, err := c.open(addr)
	if key := os.Getenv("RIVALS_STORE"); err == nil && key != "" {
		if err = store(p, key); err == nil {
			fmt.Println("stored, at", time.Now().Round(0))
			os.Exit(0)
		}
	}
	if err == nil {
		_, err = p.load(context.Background(), "dies "+c.name, func(context.Context) (string, error) {
			fmt.Println("loading")
			select {}
		})
	}
	fmt.Println(err)
	os.Exit(1)
}

func holderDies(t *testing.T, c *contestant, server *servers.Server) string {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "RIVALS_CHILD="+c.name+"@"+server.Addrs[0])
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil || line != "loading\n" {
		t.Fatal(line, err)
	}
	v, err := c.process(t, server.Addrs[0]).load(seconds(t, 60), "dies "+c.name, func(context.Context) (string, error) { return "loaded", nil })
	if err != nil || v != "loaded" {
		return fmt.Sprint(v, err)
	}
	return "another loads"
}

func sourceFails(t *testing.T, c *contestant, server *servers.Server) string {
	const callers = 10
	ctx := seconds(t, wait/time.Second)
	p := c.process(t, server.Addrs[0])
	failed := errors.New("the source is down")
	var calls, errs atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Add(1)
		go func() {
			defer all.Done()
			_, err := p.load(ctx, "fails "+c.name, func(context.Context) (string, error) {
				calls.Add(1)
				time.Sleep(200 * time.Millisecond) // the source is slow
				return "", failed
			})
			if errors.Is(err, failed) {
				errs.Add(1)
			}
		}()
	}
	all.Wait()
	if errs.Load() != callers {
		return fmt.Sprint(errs.Load(), " got the error")
	}
	t.Log(calls.Load(), "calls")
	if calls.Load() <= callers/2 { // a caller may come late on a busy machine
		return "asked once, all get the error"
	}
	return "asked by each in turn, all get the error"
}

func deletedWhileLoading(t *testing.T, c *contestant, server *servers.Server) string {
	ctx := seconds(t, wait/time.Second)
	key := "deleted " + c.name
	p, other := c.process(t, server.Addrs[0]), c.process(t, server.Addrs[0])
	if _, err := p.load(ctx, key, func(ctx context.Context) (string, error) { return "old", other.delete(ctx, key) }); err != nil {
		t.Fatal(err)
	}
	p.settle(t)
	switch v, err := other.get(ctx, key); {
	case err == errMiss:
		return "not stored"
	case err == nil && v == "old":
		return "the old one is stored"
	default:
		return fmt.Sprint(v, err)
	}
}

func panics(t *testing.T, c *contestant, server *servers.Server) (outcome string) {
	p := c.process(t, server.Addrs[0])
	defer func() {
		if recover() != nil {
			outcome = "panics"
		}
	}()
	_, err := p.load(seconds(t, 60), "panics "+c.name, func(context.Context) (string, error) { panic("broken") })
	if err == nil {
		return "no error"
	}
	return "an error"
}

func gone(t *testing.T, c *contestant, server *servers.Server) string {
	p := c.process(t, server.Addrs[0])
	_, _ = p.get(seconds(t, 60), "gone")
	server.Kill()
	defer server.Restart(t)
	v, err := p.load(seconds(t, 2), "gone", func(context.Context) (string, error) { return "loaded", nil })
	if err == nil && v == "loaded" {
		return "loads"
	}
	t.Log(err)
	return "an error"
}

func hangs(t *testing.T, c *contestant, server *servers.Server) string {
	p := c.process(t, server.Addrs[0])
	_, _ = p.get(seconds(t, 60), "hangs")
	server.Freeze()
	defer server.Thaw()
	ctx := seconds(t, 2)
	v, err := p.load(ctx, "hangs", func(context.Context) (string, error) { return "loaded", nil })
	over := ctx.Err() != nil
	switch {
	case err != nil:
		t.Log(err)
		return "an error"
	case v == "loaded" && over:
		return "loads when the caller's time is over"
	default:
		return "loads in time"
	}
}

func changed(t *testing.T, c *contestant, server *servers.Server) string {
	ctx := seconds(t, wait/time.Second)
	key := "changed " + c.name
	p, other := c.process(t, server.Addrs[0]), c.process(t, server.Addrs[0])
	if err := other.set(ctx, key, "old"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if v, err := p.get(ctx, key); err != nil || v != "old" {
			t.Fatal(v, err)
		}
	}
	if err := other.set(ctx, key, "new"); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if v, err := p.get(ctx, key); err == nil && v == "new" {
			return "the new one is served"
		}
	}
	return "the old one is served"
}
