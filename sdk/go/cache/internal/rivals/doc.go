// Package rivals puts the cache kit beside other Go caches over Redis: what each does when things go wrong, and what it costs. It has tests
// only; docs/benchmarks/go-cache-rivals.md is written by them.
package rivals
