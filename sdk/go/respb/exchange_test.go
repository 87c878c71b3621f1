//go:build unix

package respb

// This file owns the measurement of what a hook costs.

import (
	"context"
	"slices"
	"syscall"
	"testing"
	"time"
)

// exchangeTurns is how often BenchmarkExchange changes between its cases.
const exchangeTurns = 16

// BenchmarkExchange is one GET from end to end, both sides in this process, with a hook and without. They take turns of one length (-benchtime
// 2000x), since whoever comes first in a process also pays for its beginning; and what is told as ns/op is CPU time of both sides: how long a round
// trip takes is how long one waits for the other to be woken.
func BenchmarkExchange(b *testing.B) {
	addr := serve(b, quietServer())
	cases := []struct {
		name  string
		hooks []Hook
	}{{"no hook", nil}, {"hook", []Hook{NoHook{}}}}
	for range exchangeTurns {
		for _, c := range cases {
			b.Run(c.name, func(b *testing.B) {
				conn := dial(b, addr, Options{Hooks: c.hooks})
				ctx := context.Background()
				var v Value
				b.ReportAllocs()
				began := cpuTime(b)
				for range b.N {
					if err := conn.DoInto(ctx, &v, "GET", "k"); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(cpuTime(b)-began)/float64(b.N), "ns/op")
			})
		}
		slices.Reverse(cases)
	}
}

// cpuTime is how long this process has been on a CPU.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
