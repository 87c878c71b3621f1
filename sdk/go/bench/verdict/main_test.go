package main

// This file owns the tests of reading and judging.

import (
	"fmt"
	"strings"
	"testing"
)

func TestVerdicts(t *testing.T) {
	g := goal{"a goal", "A/x", []string{"B", "C"}, 0.5}
	for want, figures := range map[string][3][]float64{
		"reached":        {{10, 11, 10, 10, 10, 10}, {40, 41, 40, 42, 40, 40}, {100, 100, 100, 100, 100, 100}},
		"**missed**":     {{30, 31, 30, 30, 30, 30}, {100, 100, 100, 100, 100, 100}, {40, 41, 40, 42, 40, 40}},
		"open":           {{19, 22, 21, 18, 22, 19}, {40, 41, 40, 42, 40, 41}, nil},
		"too few rounds": {{10, 10, 10, 10, 10}, {40, 41, 40, 42, 40, 40}, nil},
	} {
		var raw strings.Builder
		for i, name := range []string{"A/x-2", "B-2", "C-2"} {
			for _, f := range figures[i] {
				fmt.Fprintf(&raw, "Benchmark%s \t 1000\t %v ns/op\t 0 B/op\n", name, f)
			}
		}
		rounds := map[string][]float64{}
		if err := read(strings.NewReader("goos: linux\n"+raw.String()+"PASS\n"), rounds); err != nil {
			t.Fatal(err)
		}
		if line := g.line(rounds); !strings.HasSuffix(line, "| "+want+" |") {
			t.Errorf("%s, want %s", line, want)
		}
	}
	// What makes whole rounds slow falls on both sides.
	busy := map[string][]float64{"A/x": {10, 90, 11, 80, 10, 95}, "B": {40, 360, 44, 320, 40, 380}}
	if line := g.line(busy); !strings.HasSuffix(line, "| 0.250 | 0.250…0.250 | 6 | reached |") {
		t.Errorf("rounds that differ, and their ratios do not: %s", line)
	}
	if line := g.line(map[string][]float64{"A/x": {1, 2}}); line != "" {
		t.Errorf("nothing to compare with: %s", line)
	}
}
