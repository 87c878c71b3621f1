//go:build !linux

package main

// This file owns what stands for the counters where they are not to be had: the program builds, and says so when it is run.

import (
	"errors"
	"time"
)

const envSection = "CACHE_BENCH_SECTION"

type calls [5]int64

var counted = make([]string, len(calls{}))

func prepare(int, bool) (bool, error) { return false, errors.New("the benchmark runs on Linux") }

func readCalls() calls { return calls{} }

func cpuOf(int) time.Duration { return 0 }
