package main

// This file owns the test that every step runs and loses nothing.

import (
	"context"
	"errors"
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

func TestCommandSize(t *testing.T) {
	const command = "*2\r\n$3\r\nGET\r\n$10\r\nkey:123456\r\n"
	for cut := range command {
		if n, err := commandSize([]byte(command[:cut])); n != 0 || err != nil {
			t.Errorf("%d bytes: %d, %v", cut, n, err)
		}
	}
	if n, err := commandSize([]byte(command + "*1\r\n")); n != len(command) || err != nil {
		t.Error(n, err)
	}
	for _, bad := range []string{"PING\r\n", "*x\r\n", "*-1\r\n", "*1\r\n+OK\r\n", "*1\r\n$-1\r\n"} {
		if _, err := commandSize([]byte(bad)); !errors.Is(err, errTwisted) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
