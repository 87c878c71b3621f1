package rivals

// This file owns the tables as Markdown.

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/weft-db/weft/sdk/go/internal/rounds"
)

// out is the file of a table, or empty.
func out(name string) string {
	folder := os.Getenv("RIVALS_OUT")
	if folder == "" || name == "" {
		return folder
	}
	return filepath.Join(folder, name)
}

func writeBehaviour(t *testing.T, cells map[string]map[string]string) {
	t.Helper()
	var b strings.Builder
	b.WriteString("| |")
	for _, c := range contestants {
		fmt.Fprintf(&b, " %s |", c.name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(contestants)) + "\n")
	for _, s := range situations {
		fmt.Fprintf(&b, "| %s |", s.name)
		for _, c := range contestants {
			fmt.Fprintf(&b, " %s |", cells[s.name][c.name])
		}
		b.WriteString("\n")
	}
	write(t, "behaviour.md", b.String())
}

// tables are those of this run.
var tables = map[string]string{}

// write keeps a table for the page, and writes what is no table as a file beside it.
func write(t *testing.T, name, text string) {
	t.Helper()
	tables[name] = text
	if path := out(name); path != "" && strings.HasSuffix(name, ".txt") {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Log("\n" + text)
}

// writePage writes the page beside the folder of the raw data, when everything that it shows was run.
func writePage() error {
	if out("") == "" || tables["behaviour.md"] == "" || tables["cost.md"] == "" || tables["waits.md"] == "" {
		return nil
	}
	text := page
	for name, table := range tables {
		text = strings.ReplaceAll(text, "{"+name+"}", strings.TrimSpace(table))
	}
	text = strings.NewReplacer("{go}", runtime.Version(), "{cores}", fmt.Sprint(runtime.NumCPU()), "{rounds}", os.Getenv("RIVALS_ROUNDS"),
		"{load}", loadBefore+" at its beginning and "+load()+" at its end").Replace(text)
	return os.WriteFile(out("")+".md", []byte(text), 0o644)
}

// loadBefore is what load says when the run begins.
var loadBefore = load()

// load is how many have wanted to run at a time, in the minute before.
func load() string {
	data, _ := os.ReadFile("/proc/loadavg")
	minute, _, found := strings.Cut(string(data), " ")
	if !found {
		return "unknown"
	}
	return minute
}

// page is the text around the tables.
const page = `# The Go cache kit beside other caches

What do Go caches over Redis do when things go wrong, and what do they cost? [` + "`sdk/go/cache`" + `](../cache.md) beside
go-redis/cache v9.0.0 and rueidis's rueidisaside v1.0.64. jetcache-go is not here: no version that the checksum
database knows could be had. Written by one run of

    make bench-cache-rivals

**What is compared, and what is not.** Each contestant is set up as its own documentation does, with values of 512 bytes
that are strings, so that no codec counts ([codecs](go-cache.md) have their own page); go-redis v9.23.0 and rueidis
v1.0.79 below, one redis-server on the same machine. The kit has a soft end, leases, a checksum and counts, which the
others have not, and pays for them here. rueidisaside cannot be had without its first level, so it stands among those
that have one. The kit on its own client library, respb, shares one connection; go-redis has a pool. What is not
compared: clusters, large values, networks with a delay, other machines.

## Behaviour

Each cell is what a test saw (` + "`TestBehaviour`" + `), with processes of their own connections, one that is killed while
it loads, and one whose Go tells a time that is hours wrong. ` + "`make test`" + ` runs it with one contestant of each kind.

{behaviour.md}

- go-redis/cache has single flight within a process and nothing between processes. What it loaded it stores with a plain
  SET, also over a later Delete.
- rueidisaside's placeholder stands where the value would: so nothing stale can be served while a new one is loaded, and
  every caller whose source fails asks it again.
- None of the two serves stale values: their values have no soft end, and so no clock that could be wrong.

## A caller's wait

A value is past its time and the source takes 20 ms: the kit serves the stale one and loads in the background; where
there are no stale values the caller waits for the source. Milliseconds, median and worst of ten times {rounds} rounds.

{waits.md}

## Cost

{cores} cores, Linux, {go}; the load of the machine, this run included, was {load}.
CPU time of the client process (getrusage) and of the server (INFO) for each call, medians of {rounds} rounds with the worst
round beside them; contestants took turns in each round. × is the ratio of each round to go-redis/cache in the same
round, with a first level to the one that has one: the interval holds its median with 95 %, and says less or more where
all of it is on one side of 1. The contestants with a first level serve hits from it. A batch is one call of the kit;
the others have none, and are read by a goroutine for each key. Every value that is read is compared. "1,000 callers" is
a single process, and the source takes 1 ms; each contestant loads once. TinyLFU, set up as its document shows, may stop
serving what it has in the middle of a run; its median is then of hits and of questions to Redis. Every figure of every
round:
[cost.txt](go-cache-rivals/cost.txt), [waits.txt](go-cache-rivals/waits.txt).

{cost.md}
`

// worst of the rounds.
func worst(of []float64) float64 { return slices.Max(of) }

// beside is two cells: the interval of the ratio of each round, and what it says.
func beside(of, first []float64) string {
	ratios := rounds.Ratios(of, first)
	if len(ratios) < rounds.Min {
		return "| too few rounds"
	}
	low, high := rounds.Interval(ratios)
	verdict := "open"
	switch {
	case high < 1:
		verdict = "less"
	case low > 1:
		verdict = "**more**"
	}
	return fmt.Sprintf("%.2f…%.2f | %s", low, high, verdict)
}

// TestBeside: what lies on one side is told, what lies on both is open, and few rounds say nothing.
func TestBeside(t *testing.T) {
	first := []float64{10, 11, 10, 12, 10, 10, 11}
	times := func(factors ...float64) (all []float64) {
		for i, f := range first {
			all = append(all, f*factors[i%len(factors)])
		}
		return all
	}
	for want, of := range map[string][]float64{
		"0.50…0.50 | less": times(0.5), "2.00…2.00 | **more**": times(2), "0.50…2.00 | open": times(0.5, 2), "| too few rounds": first[:rounds.Min-1],
	} {
		if got := beside(of, first); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// writeCost writes the medians with the worst rounds beside them, and every figure of every round.
func writeCost(t *testing.T, turns int, all []map[string]*figures) {
	t.Helper()
	var b, raw strings.Builder
	for _, task := range tasks {
		fmt.Fprintf(&b, "### %s\n\n", strings.ToUpper(task.name[:1])+task.name[1:])
		b.WriteString("| | client CPU, µs | worst | × go-redis/cache | | server CPU, µs | worst | × | | B | allocations |\n|---|---:|---:|---:|---|---:|---:|---:|---|---:|---:|\n")
		base := map[bool]*figures{} // go-redis/cache with a first level, and without
		for i, c := range those() {
			f := all[i][task.name]
			if base[c.near] == nil && strings.HasPrefix(c.name, "go-redis/cache") {
				base[c.near] = f
			}
			client, server := "| ", "| "
			if first := base[c.near]; first != nil && first != f {
				client, server = beside(f.client, first.client), beside(f.server, first.server)
			}
			fmt.Fprintf(&b, "| %s | %.1f | %.1f | %s | %.1f | %.1f | %s | %.0f | %.0f |\n", c.name, rounds.Median(f.client), worst(f.client), client,
				rounds.Median(f.server), worst(f.server), server, rounds.Median(f.bytes), rounds.Median(f.allocs))
			for _, each := range []struct {
				what string
				of   []float64
			}{{"client", f.client}, {"server", f.server}, {"bytes", f.bytes}, {"allocs", f.allocs}, {"loads", f.loads}, {"wall", f.wall}} {
				fmt.Fprintf(&raw, "%s\t%s\t%s\t%.2f\n", task.name, c.name, each.what, each.of)
			}
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&raw, "rounds\t%d\t%s\n", turns, runtime.Version())
	write(t, "cost.md", b.String())
	write(t, "cost.txt", raw.String())
}

func writeWaits(t *testing.T, waits [][]float64) {
	t.Helper()
	var b, raw strings.Builder
	b.WriteString("| | ms | worst |\n|---|---:|---:|\n")
	for i, c := range those() {
		fmt.Fprintf(&b, "| %s | %.1f | %.1f |\n", c.name, rounds.Median(waits[i]), worst(waits[i]))
		fmt.Fprintf(&raw, "%s\t%.3f\n", c.name, waits[i])
	}
	write(t, "waits.md", b.String())
	write(t, "waits.txt", raw.String())
}
