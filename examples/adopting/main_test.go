package main

// This file owns the test that every step runs and loses nothing.

import (
	"context"
	"os"
	"testing"
	"time"
)

// TestSteps runs every step for a moment against weft serve; turn checks that no view and no purchase is lost.
func TestSteps(t *testing.T) {
	weft := os.Getenv("WEFT_BIN")
	if weft == "" {
		t.Skip("WEFT_BIN says where weft is")
	}
	s, err := startServer(weft)
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	p := plan{addr: s.addr, pid: s.cmd.Process.Pid, workers: 16, rounds: 1, each: 200 * time.Millisecond}
	table, err := p.run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Log(table)
}
