package main

// This file owns the counters of the kernel: processor time of processes, and system calls of this one. It also puts the process on
// its core.

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Variables of the environment by which the process talks to itself after it has replaced itself.
const (
	envPrepared = "CACHE_BENCH_PREPARED"
	envSection  = "CACHE_BENCH_SECTION"
)

// counted are the system calls that are told apart; the first counts all.
var counted = []string{"raw_syscalls/sys_enter", "syscalls/sys_enter_read", "syscalls/sys_enter_write", "syscalls/sys_enter_epoll_pwait",
	"syscalls/sys_enter_futex"}

// callFiles are the counters' descriptors, in the order of counted.
var callFiles []int

// prepare puts the process on a core and attaches counters, both of which threads inherit: so it is done on one thread, which then becomes
// the process by starting the program again. again says that this has failed to happen only because nothing had to be done.
func prepare(core int, counting bool) (again bool, err error) {
	if fds, ok := os.LookupEnv(envPrepared); ok {
		for _, fd := range strings.Fields(fds) {
			n, err := strconv.Atoi(fd)
			if err != nil {
				return false, err
			}
			syscall.CloseOnExec(n)
			callFiles = append(callFiles, n)
		}
		return false, nil
	}
	runtime.LockOSThread()
	if core >= 0 {
		var set unix.CPUSet
		set.Set(core)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return false, fmt.Errorf("core %d: %w", core, err)
		}
	}
	var fds []string
	if counting {
		if fds, err = openCounters(); err != nil {
			return false, err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return false, err
	}
	return true, syscall.Exec(self, os.Args, append(os.Environ(), envPrepared+"="+strings.Join(fds, " ")))
}

// inheritThread lets threads inherit a counter and processes not: the servers are started from here.
const inheritThread = 1 << 35

func openCounters() (fds []string, err error) {
	for _, name := range counted {
		id, err := os.ReadFile("/sys/kernel/tracing/events/" + name + "/id")
		if err != nil {
			return nil, fmt.Errorf("%w\nsystem calls are counted by tracepoints: mount -t tracefs tracefs /sys/kernel/tracing, as root", err)
		}
		n, err := strconv.ParseUint(strings.TrimSpace(string(id)), 10, 64)
		if err != nil {
			return nil, err
		}
		attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_TRACEPOINT, Config: n, Bits: unix.PerfBitInherit | inheritThread}
		attr.Size = uint32(unsafe.Sizeof(attr))
		fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, 0)
		if err != nil {
			return nil, fmt.Errorf("perf_event_open of %s: %w", name, err)
		}
		fds = append(fds, strconv.Itoa(fd))
	}
	return fds, nil
}

// calls is how many system calls this process has made, in the order of counted. Reading adds to it.
type calls [5]int64

func readCalls() (c calls) {
	var buffer [8]byte
	for i, fd := range callFiles {
		if n, err := syscall.Read(fd, buffer[:]); err == nil && n == len(buffer) {
			c[i] = int64(binary.NativeEndian.Uint64(buffer[:]))
		}
	}
	return c
}

// cpuOf returns the processor time of a process, all threads, user and system. 0 is this one.
func cpuOf(pid int) time.Duration {
	clock := int32(unix.CLOCK_PROCESS_CPUTIME_ID)
	if pid != 0 {
		clock = ^int32(pid)<<3 | 2 // as clock_getcpuclockid(3) makes it
	}
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
