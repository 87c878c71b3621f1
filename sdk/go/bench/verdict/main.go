// Command verdict reads what `go test -bench -count` has printed and says of each goal of docs/benchmarks/go-resp.md whether it is reached: by the
// interval of a ratio, not by its middle.
//
//	go run ./bench/verdict raw...
//
// All that is compared takes turns, so a ratio is of what stands in the same round: what else the machine did then was near to both. The interval
// is the middle 95 % of the medians of ten thousand drawings of these ratios with replacement, from a fixed seed. A goal is reached when all of it
// is on the right side, missed when none is, and open in between: then there were too few rounds, or too much else ran.
package main

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
)

// goal is a bound of what one benchmark takes in relation to the fastest of others.
type goal struct {
	text   string
	of     string
	beside []string
	most   float64
}

var goals = []goal{
	{"RESP: a PING parsed", "Parse/PING/lib=resp", []string{"Parse/PING/lib=bufio"}, 0.5},
	{"RESP: a SET of 64 bytes parsed", "Parse/SET64/lib=resp", []string{"Parse/SET64/lib=bufio"}, 0.5},
	{"RESP: OK written", "Write/OK/lib=resp", []string{"Write/OK/lib=bufio"}, 0.5},
	{"RESP: 64 bytes written", "Write/Bulk64/lib=resp", []string{"Write/Bulk64/lib=bufio"}, 0.5},
	{"RESPB: a GET parsed", "Parse/GET/lib=respb", []string{"Parse/GET/lib=bufio"}, 1.0 / 3},
	{"RESPB: a SET of 64 bytes parsed", "Parse/SET64/lib=respb", []string{"Parse/SET64/lib=bufio"}, 1.0 / 3},
	{"client: GET by 1,000 goroutines, a 2.1th of the better", "Clients/GET/goroutines=1000/client=respb",
		[]string{"Clients/GET/goroutines=1000/client=go-redis", "Clients/GET/goroutines=1000/client=rueidis"}, 1 / 2.1},
	{"client: SET by 1,000 goroutines, a 2.1th of the better", "Clients/SET/goroutines=1000/client=respb",
		[]string{"Clients/SET/goroutines=1000/client=go-redis", "Clients/SET/goroutines=1000/client=rueidis"}, 1 / 2.1},
	{"client without a hook, beside one that does nothing", "Exchange/no_hook", []string{"Exchange/hook"}, 1},
}

// roundsMin is how many rounds an interval needs to say something.
const roundsMin = 6

// drawings is how often rounds are drawn.
const drawings = 10_000

func main() {
	log.SetFlags(0)
	rounds := map[string][]float64{}
	for _, path := range os.Args[1:] {
		f, err := os.Open(path)
		if err != nil {
			log.Fatal(err)
		}
		err = read(f, rounds)
		_ = f.Close()
		if err != nil {
			log.Fatalf("%s: %v", path, err)
		}
	}
	fmt.Println("| goal | at most | ratio | interval | rounds | |\n|---|---:|---:|---:|---:|---|")
	told := 0
	for _, g := range goals {
		if line := g.line(rounds); line != "" {
			fmt.Println(line)
			told++
		}
	}
	if told == 0 {
		log.Fatal("verdict: no file has a benchmark of any goal")
	}
}

// read takes lines such as "BenchmarkParse/PING/lib=resp-2   1000  12.1 ns/op  ...".
func read(r io.Reader, rounds map[string][]float64) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 4 || !strings.HasPrefix(words[0], "Benchmark") || words[3] != "ns/op" {
			continue
		}
		n, err := strconv.ParseFloat(words[2], 64)
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(words[0], "Benchmark")
		if at := strings.LastIndexByte(name, '-'); at > 0 {
			if _, err := strconv.Atoi(name[at+1:]); err == nil {
				name = name[:at]
			}
		}
		rounds[name] = append(rounds[name], n)
	}
	return lines.Err()
}

// line is a row of the table; empty if the goal was not measured.
func (g goal) line(rounds map[string][]float64) string {
	of := rounds[g.of]
	var beside []float64
	for _, name := range g.beside {
		if all := rounds[name]; len(all) > 0 && (beside == nil || median(all) < median(beside)) {
			beside = all
		}
	}
	if len(of) == 0 || len(beside) == 0 {
		return ""
	}
	ratios := make([]float64, min(len(of), len(beside)))
	for i := range ratios {
		ratios[i] = of[i] / beside[i]
	}
	low, high := interval(ratios)
	verdict := "open"
	switch {
	case len(ratios) < roundsMin:
		verdict = "too few rounds"
	case high <= g.most:
		verdict = "reached"
	case low > g.most:
		verdict = "**missed**"
	}
	return fmt.Sprintf("| %s | %.2f | %.3f | %.3f…%.3f | %d | %s |", g.text, g.most, median(ratios), low, high, len(ratios), verdict)
}

// interval is the middle 95 % of the medians of drawings.
func interval(ratios []float64) (low, high float64) {
	random := rand.New(rand.NewPCG(1, 2))
	medians, drawn := make([]float64, drawings), make([]float64, len(ratios))
	for i := range medians {
		for j := range drawn {
			drawn[j] = ratios[random.IntN(len(ratios))]
		}
		medians[i] = median(drawn)
	}
	slices.Sort(medians)
	return medians[drawings*25/1000], medians[drawings*975/1000]
}

func median(all []float64) float64 {
	sorted := slices.Clone(all)
	slices.Sort(sorted)
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}
