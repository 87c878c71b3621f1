package main

// This file owns the tables: seed 003's figures beside the measured ones.

import (
	"fmt"
	"io"
	"sort"
)

// seedRow is a row of seed 003's tables: an Intel i9-13900KF at 5.5 GHz, GOMAXPROCS 8 and 1.
type seedRow struct {
	clients, pipeline            int
	redis, eight, one            float64
	eightLatencies, oneLatencies string
	redisLatencies               string
}

var seed = []seedRow{
	{1, 1, 161421, 167788, 167546, "0.004 / 0.000 / 0.007 / 0.007 / 0.007 / 0.439", "0.004 / 0.000 / 0.007 / 0.007 / 0.007 / 0.415", "0.004 / 0.000 / 0.007 / 0.007 / 0.007 / 0.303"},
	{1, 1000, 6930488, 10921800, 10629252, "0.059 / 0.048 / 0.063 / 0.071 / 0.071 / 0.215", "0.061 / 0.056 / 0.063 / 0.071 / 0.071 / 0.167", "0.112 / 0.104 / 0.119 / 0.119 / 0.119 / 0.279"},
	{10, 1000, 9683355, 30693678, 18811136, "0.200 / 0.048 / 0.199 / 0.311 / 0.359 / 0.815", "0.499 / 0.056 / 0.503 / 0.927 / 0.935 / 1.191", "0.935 / 0.112 / 0.935 / 1.007 / 1.015 / 1.679"},
}

// print writes the tables: the medians of all rounds.
func (r *report) print(w io.Writer) {
	fmt.Fprintf(w, "%s, %d cores, Linux %s, %s, %s, %s\n", r.Machine, r.Cores, r.Kernel, r.Go, r.Redis, r.Benchmark)
	for _, table := range []struct {
		title  string
		server string
		procs  int
		seed   func(seedRow) (float64, string)
	}{
		{"redis-server", "redis", 0, func(s seedRow) (float64, string) { return s.redis, s.redisLatencies }},
		{"weft resp, examples/kv, GOMAXPROCS=2 (seed: go-resp, GOMAXPROCS=8)", "weft resp", 2, func(s seedRow) (float64, string) { return s.eight, s.eightLatencies }},
		{"weft resp, examples/kv, GOMAXPROCS=1 (seed: go-resp, GOMAXPROCS=1)", "weft resp", 1, func(s seedRow) (float64, string) { return s.one, s.oneLatencies }},
	} {
		fmt.Fprintf(w, "\n### %s\n\n", table.title)
		fmt.Fprintln(w, "| -c | -P | CPU ns/request | × redis | Throughput | Increase | latency | min | p50 | p95 | p99 | max | seed: throughput | seed: increase | seed: latency / min / p50 / p95 / p99 / max |")
		fmt.Fprintln(w, "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|")
		for _, s := range seed {
			base := r.median("redis", 0, s)
			m := r.median(table.server, table.procs, s)
			theirs, latencies := table.seed(s)
			fmt.Fprintf(w, "| %d | %d | %.0f | %.2f | %.0f | %+.1f%% | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f | %.0f | %+.1f%% | %s |\n",
				s.clients, s.pipeline, m.CPUNanos, r.ratio(table.server, table.procs, s), m.Throughput, 100*(m.Throughput/base.Throughput-1),
				m.Avg, m.Min, m.P50, m.P95, m.P99, m.Max, theirs, 100*(theirs/s.redis-1), latencies)
		}
	}
}

// of returns the runs of one server under one load, by round.
func (r *report) of(server string, procs int, s seedRow) (runs []run) {
	for _, one := range r.Runs {
		if one.Server == server && one.GOMAXPROCS == procs && one.Load.Clients == s.clients && one.Load.Pipeline == s.pipeline {
			runs = append(runs, one)
		}
	}
	return runs
}

// median returns the medians of each figure on its own.
func (r *report) median(server string, procs int, s seedRow) (m run) {
	runs := r.of(server, procs, s)
	for _, field := range []func(*run) *float64{
		func(r *run) *float64 { return &r.CPUNanos }, func(r *run) *float64 { return &r.Throughput },
		func(r *run) *float64 { return &r.Avg }, func(r *run) *float64 { return &r.Min }, func(r *run) *float64 { return &r.P50 },
		func(r *run) *float64 { return &r.P95 }, func(r *run) *float64 { return &r.P99 }, func(r *run) *float64 { return &r.Max },
	} {
		var values []float64
		for i := range runs {
			values = append(values, *field(&runs[i]))
		}
		*field(&m) = middle(values)
	}
	return m
}

// ratio is the median of each round's CPU time over that of redis in the same round.
func (r *report) ratio(server string, procs int, s seedRow) float64 {
	base, runs := r.of("redis", 0, s), r.of(server, procs, s)
	var ratios []float64
	for i := range min(len(base), len(runs)) {
		ratios = append(ratios, runs[i].CPUNanos/base[i].CPUNanos)
	}
	return middle(ratios)
}

func middle(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sort.Float64s(values)
	n := len(values)
	return (values[n/2] + values[(n-1)/2]) / 2
}
