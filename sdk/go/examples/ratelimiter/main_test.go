package main

// This file owns the test that talks to the rate limiter as a client would.

import (
	"hash/maphash"
	"testing"
	"time"
)

// TestAllow spends a bucket of 3 that refills at 2 a second, with a clock of its own.
func TestAllow(t *testing.T) {
	l := &limiter{seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].full = map[string]time.Time{}
	}
	start := time.Unix(1000, 0)
	for _, step := range []struct {
		after     time.Duration
		cost      float64
		ok        bool
		remaining float64
		wait      time.Duration
	}{
		{0, 1, true, 2, 0},
		{0, 2, true, 0, 0},
		{0, 1, false, 0, 500 * time.Millisecond},
		{500 * time.Millisecond, 1, true, 0, 0},
		{time.Second, 2, false, 1, 500 * time.Millisecond},
		{10 * time.Second, 3, true, 0, 0},
	} {
		ok, remaining, wait := l.allow([]byte("k"), start.Add(step.after), 2, 3, step.cost)
		if ok != step.ok || remaining != step.remaining || wait != step.wait {
			t.Errorf("after %v for %v: %v %v %v", step.after, step.cost, ok, remaining, wait)
		}
	}
}
