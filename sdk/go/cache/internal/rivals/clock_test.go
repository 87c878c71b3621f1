package rivals

// This file owns processes whose clock is wrong: this test built anew, with a Go whose time.Now is hours off. Only the wall clock is: time that
// passes is right, as on a machine that was set wrongly.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-db/weft/sdk/go/cache/internal/servers"
)

// skew replaces time.Now by one that adds what the environment says to the wall clock.
const skew = `package time

import "syscall"

var skewed = func() (seconds int64) {
	text, _ := syscall.Getenv("RIVALS_SKEW_S")
	for i := 0; i < len(text); i++ {
		if text[i] != '-' {
			seconds = seconds*10 + int64(text[i]-'0')
		}
	}
	if len(text) > 0 && text[0] == '-' {
		seconds = -seconds
	}
	return seconds
}()

// Now is the time of a machine whose clock is wrong.
func Now() Time {
	t := nowUnskewed()
	t.addSec(skewed)
	return t
}
`

// wrongClock is built once.
var wrongClock = struct {
	sync.Once
	path string
	err  error
}{}

// buildWrongClock builds this test with the wrong Go.
func buildWrongClock(folder string) (string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	source := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	text, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	changed := bytes.Replace(text, []byte("\nfunc Now() Time {"), []byte("\nfunc nowUnskewed() Time {"), 1)
	if bytes.Equal(changed, text) {
		return "", fmt.Errorf("%s has another shape: clock_test.go has to be adapted", source)
	}
	replace := map[string]string{source: filepath.Join(folder, "time.go"), filepath.Join(filepath.Dir(source), "skew.go"): filepath.Join(folder, "skew.go")}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	for name, text := range map[string][]byte{"time.go": changed, "skew.go": []byte(skew), "overlay.json": overlay} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
			return "", err
		}
	}
	path := filepath.Join(folder, "skewed.test")
	build := exec.Command("go", "test", "-c", "-overlay", filepath.Join(folder, "overlay.json"), "-o", path, ".")
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, said)
	}
	return path, nil
}

// clocksDiffer has processes whose clocks are three hours behind and ahead load a value with a soft end in half an hour, and asks for it here.
func clocksDiffer(t *testing.T, c *contestant, server *servers.Server) string {
	wrongClock.Do(func() {
		folder, err := os.MkdirTemp("", "rivals")
		if err != nil {
			wrongClock.err = err
			return
		}
		wrongClock.path, wrongClock.err = buildWrongClock(folder)
	})
	if wrongClock.err != nil {
		t.Fatal(wrongClock.err)
	}
	ctx := seconds(t, 240)
	p := c.process(t, server.Addrs[0])
	var loads atomic.Int64
	for _, hours := range []int{-3, 3} {
		key := fmt.Sprint("clock ", hours, " ", c.name)
		cmd := exec.Command(wrongClock.path)
		cmd.Env = append(os.Environ(), "RIVALS_CHILD="+c.name+"@"+server.Addrs[0], "RIVALS_STORE="+key, fmt.Sprint("RIVALS_SKEW_S=", hours*3600))
		said, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(said), "stored") {
			t.Fatal(err, string(said))
		}
		t.Logf("%s", said)
		for range 3 {
			if v, err := p.load(ctx, key, counting(&loads, 0)); err != nil || v != "stored" {
				t.Fatal(v, err)
			}
		}
	}
	p.close() // refreshes that have begun load, or have found that they need not
	if n := loads.Load(); n > 0 {
		return fmt.Sprint("loaded again: ", n)
	}
	return "not loaded before its time"
}

// store is what the process with the wrong clock does.
func store(p process, key string) error {
	if _, err := p.load(context.Background(), key, func(context.Context) (string, error) { return "stored", nil }); err != nil {
		return err
	}
	p.settle(nil)
	return nil
}
