package rounds

// This file owns measuring by turns.

import (
	"slices"
	"testing"
)

// Case is one side of a comparison. Run is a benchmark that calls [CPU] right before it begins to loop.
type Case struct {
	Name string
	Run  func(b *testing.B)
}

// turns is how often Turns changes between its cases.
const turns = 16

// Turns runs the cases by turns of one length (-benchtime 2000x), forwards and backwards: whoever comes first in a process also pays for its beginning.
func Turns(b *testing.B, cases ...Case) {
	order := slices.Clone(cases)
	for range turns {
		for _, c := range order {
			b.Run(c.Name, c.Run)
		}
		slices.Reverse(order)
	}
}

// CPU makes ns/op what the process has been on a processor, from here until what it returns is called: how long something takes by the clock is
// also what else the machine had to do.
func CPU(b *testing.B) (told func()) {
	began := cpuTime(b)
	return func() { b.ReportMetric(float64(cpuTime(b)-began)/float64(b.N), "ns/op") }
}
