package kitbench

// This file owns the comparison in pairs: blocks of calls in turns, so that what else runs on the machine hits both.

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// Goals of docs/benchmarks/go-cache-kit.md: what the kit may take of what the client takes by hand.
const (
	goalOne   = 1.10
	goalBatch = 1.00
)

// TestPairs prints, for each client, the median time of a call with the kit and without, and the median of the ratios of blocks that followed
// each other, with its interval of 95 %: a goal is reached when all of that is, missed when none is, and open in between. It asserts nothing, since a
// machine is not always quiet, so it only runs with PAIRS=rounds.
func TestPairs(t *testing.T) {
	rounds, err := strconv.Atoi(os.Getenv("PAIRS"))
	if err != nil {
		t.Skip("PAIRS is not set to a number of rounds")
	}
	ways := allWays(t)
	ctx := context.Background()
	one := map[string]float64{}
	fmt.Printf("%-8s %-8s %12s %12s %8s %15s  %s\n", "op", "client", "bare ns/item", "kit ns/item", "ratio", "interval", "goal")
	for _, op := range []string{"Set", "Get", "SetMany", "GetMany"} {
		n, items, most := 200, 1, goalOne
		if op == "SetMany" || op == "GetMany" {
			n, items, most = 10, batch, goalBatch
		}
		for i := 0; i < len(ways); i += 2 {
			block := func(w way) float64 {
				begun := time.Now()
				for i := range n {
					if err := w.call(ctx, op, i); err != nil {
						t.Fatal(err)
					}
				}
				return float64(time.Since(begun).Nanoseconds()) / float64(n*items)
			}
			var bare, kit, ratios []float64
			for round := range rounds + 2 {
				var a, b float64
				if round%2 == 0 {
					a, b = block(ways[i].way), block(ways[i+1].way)
				} else {
					b, a = block(ways[i+1].way), block(ways[i].way)
				}
				if round >= 2 { // warm
					bare, kit, ratios = append(bare, a), append(kit, b), append(ratios, b/a)
				}
			}
			client := ways[i].client
			low, high := interval(ratios)
			fmt.Printf("%-8s %-8s %12.0f %12.0f %8.3f %7.3f…%.3f  %s\n", op, client, median(bare), median(kit), median(ratios), low, high,
				verdict(low, high, most, len(ratios)))
			one[op+client+"bare"], one[op+client+"kit"] = median(bare), median(kit)
		}
	}
	fmt.Printf("\n%-8s %-8s %28s %28s\n", "", "client", "bare: batch faster by", "kit: batch faster by")
	for _, op := range []string{"Set", "Get"} {
		for i := 0; i < len(ways); i += 2 {
			client := ways[i].client
			fmt.Printf("%-8s %-8s %28.1f %28.1f\n", op, client, one[op+client+"bare"]/one[op+"Many"+client+"bare"],
				one[op+client+"kit"]/one[op+"Many"+client+"kit"])
		}
	}
}

// interval is that of the median, by the places of sorted ratios between which it lies with 95 %.
func interval(all []float64) (low, high float64) {
	slices.Sort(all)
	half := 0.98 * math.Sqrt(float64(len(all)))
	middle := float64(len(all)-1) / 2
	return all[max(0, int(math.Floor(middle-half)))], all[min(len(all)-1, int(math.Ceil(middle+half)))]
}

func verdict(low, high, most float64, rounds int) string {
	switch {
	case rounds < 6:
		return fmt.Sprintf("at most %.2f: too few rounds", most)
	case high <= most:
		return fmt.Sprintf("at most %.2f: reached", most)
	case low > most:
		return fmt.Sprintf("at most %.2f: MISSED", most)
	}
	return fmt.Sprintf("at most %.2f: open", most)
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}
