// Package rounds says what a comparison shows whose sides took turns: by the interval of the ratios within a round, not by their middle. What else
// the machine did in a round was near to both sides.
package rounds

import (
	"math/rand/v2"
	"slices"
)

// Min is how many rounds an interval needs to say something.
const Min = 6

// drawings is how often rounds are drawn.
const drawings = 10_000

// Ratios returns, for each round that both have, what of took in relation to beside.
func Ratios(of, beside []float64) []float64 {
	ratios := make([]float64, 0, min(len(of), len(beside)))
	for i := range min(len(of), len(beside)) {
		if beside[i] > 0 {
			ratios = append(ratios, of[i]/beside[i])
		}
	}
	return ratios
}

// Median returns the middle of all, which are not empty.
func Median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}

// Interval is the middle 95 % of the medians of drawings of ratios with replacement, from a fixed seed.
func Interval(ratios []float64) (low, high float64) {
	random := rand.New(rand.NewPCG(1, 2))
	medians, drawn := make([]float64, drawings), make([]float64, len(ratios))
	for i := range medians {
		for j := range drawn {
			drawn[j] = ratios[random.IntN(len(ratios))]
		}
		medians[i] = Median(drawn)
	}
	slices.Sort(medians)
	return medians[drawings*25/1000], medians[drawings*975/1000]
}

// Verdict tells whether ratios are at most that, with their interval: reached when all of it is, missed when none is, and open in between, where
// there were too few rounds, or too much else ran.
func Verdict(ratios []float64, most float64) (low, high float64, verdict string) {
	low, high = Interval(ratios)
	switch {
	case len(ratios) < Min:
		return low, high, "too few rounds"
	case high <= most:
		return low, high, "reached"
	case low > most:
		return low, high, "**missed**"
	}
	return low, high, "open"
}
