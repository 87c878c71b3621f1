package respb

// This file owns the measurement of what a hook costs.

import (
	"context"
	"testing"

	"github.com/weft-db/weft/sdk/go/internal/rounds"
)

// BenchmarkExchange is one GET from end to end, both sides in this process, with a hook and without. They take turns, and what is told as ns/op is
// CPU time of both sides: how long a round trip takes is how long one waits for the other to be woken.
func BenchmarkExchange(b *testing.B) {
	addr := serve(b, quietServer())
	exchange := func(hooks ...Hook) func(b *testing.B) {
		return func(b *testing.B) {
			conn := dial(b, addr, Options{Hooks: hooks})
			ctx := context.Background()
			var v Value
			b.ReportAllocs()
			told := rounds.CPU(b)
			for range b.N {
				if err := conn.DoInto(ctx, &v, "GET", "k"); err != nil {
					b.Fatal(err)
				}
			}
			told()
		}
	}
	rounds.Turns(b, rounds.Case{Name: "no hook", Run: exchange()}, rounds.Case{Name: "hook", Run: exchange(NoHook{})})
}
