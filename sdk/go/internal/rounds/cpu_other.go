//go:build !unix

package rounds

// This file owns what stands for the clock of the processor where that is not to be had.

import (
	"testing"
	"time"
)

// cpuTime is b's own clock, where the processor's is not to be had.
func cpuTime(b *testing.B) time.Duration { return b.Elapsed() }
