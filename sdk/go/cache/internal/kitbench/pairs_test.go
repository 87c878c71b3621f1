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

	"github.com/weft-db/weft/sdk/go/internal/rounds"
)

// Goals of docs/benchmarks/go-cache-kit.md: what the kit may take of what the client takes by hand.
const (
	goalOne   = 1.10
	goalBatch = 1.00
)

// TestPairs prints, for each client, the median time of a call with the kit and without, and the median of the ratios of blocks that followed
// each other, with its interval of 95 %: a goal is reached when all of that is, missed when none is, and open in between. It asserts nothing, since a
// machine is not always quiet, so it only runs with PAIRS=rounds. PAIRS_PAGE names a page whose table is written anew.
func TestPairs(t *testing.T) {
	turns, err := strconv.Atoi(os.Getenv("PAIRS"))
	if err != nil {
		t.Skip("PAIRS is not set to a number of rounds")
	}
	ways := allWays(t)
	ctx := context.Background()
	one := map[string]float64{}
	table := "| | client | bare ns/item | kit ns/item | at most | ratio | interval | worst | pairs | |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---|\n"
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
			for round := range turns + 2 {
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
			low, high, verdict := rounds.Verdict(ratios, most)
			table += fmt.Sprintf("| %s | %s | %.0f | %.0f | %.2f | %.3f | %.3f…%.3f | %.3f | %d | %s |\n", op, client, rounds.Median(bare), rounds.Median(kit),
				most, rounds.Median(ratios), low, high, slices.Max(ratios), len(ratios), verdict)
			one[op+client+"bare"], one[op+client+"kit"] = rounds.Median(bare), rounds.Median(kit)
		}
	}
	fmt.Print(table)
	if page := os.Getenv("PAIRS_PAGE"); page != "" {
		if err := rounds.WriteTable(page, table); err != nil {
			t.Fatal(err)
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
