package main

// This file owns the tests of reading.

import (
	"strings"
	"testing"
)

func TestVerdicts(t *testing.T) {
	g := goal{"a goal", "A/x", []string{"B", "C"}, 0.5}
	figures := map[string][]float64{}
	for _, raw := range []string{"goos: linux\n" + strings.Repeat("BenchmarkA/x-2 \t 1000\t 10.5 ns/op\t 0 B/op\n", 3) +
		"BenchmarkA/x#01-2 \t 1000\t 10.5 ns/op\nBenchmarkA/x#15 \t 1000\t 10.5 ns/op\nBenchmarkA/x-2 \t 1 \t 10.5 ns/op\nPASS\n",
		strings.Repeat("BenchmarkB-2 \t 1000\t 100 ns/op\nBenchmarkC-2\t 1\t 42 ns/op\n", 6)} {
		if err := read(strings.NewReader(raw), figures); err != nil {
			t.Fatal(err)
		}
	}
	if line := g.line(figures); line != "| a goal | 0.50 | 0.250 | 0.250…0.250 | 0.250 | 6 | reached |" {
		t.Errorf("beside the better of both: %s", line)
	}
	if line := g.line(map[string][]float64{"A/x": {1, 2}}); line != "" {
		t.Errorf("nothing to compare with: %s", line)
	}
}
