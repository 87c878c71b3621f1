package main

// This file owns the test with ten processes that miss the same key: one load, and nobody fails.

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/weft-db/weft/sdk/go/cache/internal/servers"
)

func TestTenProcesses(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "stampede")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, s := range []*servers.Server{servers.Redis(t), servers.Weft(t)} {
		if s != nil {
			t.Run(s.Name, func(t *testing.T) { tenProcesses(t, bin, s.Addrs[0]) })
		}
	}
}

func tenProcesses(t *testing.T, bin, addr string) {
	const processes, callers = 10, 20
	type process struct {
		cmd *exec.Cmd
		in  io.WriteCloser
		out *bufio.Reader
	}
	var all []process
	for range processes {
		cmd := exec.Command(bin, addr, "key", "loads", fmt.Sprint(callers))
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		all = append(all, process{cmd, in, bufio.NewReader(out)})
	}
	for _, p := range all {
		if _, err := p.out.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range all {
		if _, err := io.WriteString(p.in, "go\n"); err != nil {
			t.Fatal(err)
		}
	}
	var sum [6]int
	for i, p := range all {
		var n [6]int
		if _, err := fmt.Fscan(p.out, &n[0], &n[1], &n[2], &n[3], &n[4], &n[5]); err != nil {
			t.Fatal(i, err)
		}
		for j := range sum {
			sum[j] += n[j]
		}
		if err := p.cmd.Wait(); err != nil {
			t.Error(i, err)
		}
	}
	loads := servers.Command(t, addr, "GET", "loads")
	t.Logf("%d processes with %d callers each: %d callers, %d failed, %s load by the source's count, %d by the caches', %d coalesced in their "+
		"process, %d processes waited for another, %d hits", processes, callers, sum[0], sum[1], loads, sum[2], sum[3], sum[4], sum[5])
	if sum[0] != processes*callers || sum[1] != 0 || sum[2] != 1 || loads != "1" {
		t.Error("not one load, or somebody failed")
	}
}
