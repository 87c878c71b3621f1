package kitbench

// This file owns the comparison in pairs: blocks of calls in turns, so that what else runs on the machine hits both.

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// TestPairs prints, for each client, the median time of a call with the kit and without, and the median of the ratios of blocks that followed
// each other. It measures and asserts nothing, so it only runs with PAIRS=rounds.
func TestPairs(t *testing.T) {
	rounds, err := strconv.Atoi(os.Getenv("PAIRS"))
	if err != nil {
		t.Skip("PAIRS is not set to a number of rounds")
	}
	ways := allWays(t)
	ctx := context.Background()
	one := map[string]float64{}
	fmt.Printf("%-8s %-8s %12s %12s %8s\n", "op", "client", "bare ns/item", "kit ns/item", "ratio")
	for _, op := range []string{"Set", "Get", "SetMany", "GetMany"} {
		n, items := 200, 1
		if op == "SetMany" || op == "GetMany" {
			n, items = 10, batch
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
			fmt.Printf("%-8s %-8s %12.0f %12.0f %8.3f\n", op, client, median(bare), median(kit), median(ratios))
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

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}
