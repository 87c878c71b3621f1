//go:build unix

package rounds

// This file owns the clock of the processor.

import (
	"syscall"
	"testing"
	"time"
)

// cpuTime is how long this process has been on a processor.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
