// Package kitbench compares the cache kit with the clients below it: what it costs over a bare call, and its batches with pipelines by
// hand. docs/benchmarks/go-cache-kit.md has the figures and the commands.
package kitbench
