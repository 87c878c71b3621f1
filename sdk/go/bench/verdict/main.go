// Command verdict reads what `go test -bench -count` has printed and says of each goal of docs/benchmarks/go-resp.md whether it is reached: by the
// interval of a ratio, not by its middle.
//
//	go run ./bench/verdict [-page docs/benchmarks/go-resp.md] raw...
//
// All that is compared takes turns, so a ratio is of what stands in the same round; package rounds judges it.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-db/weft/sdk/go/internal/rounds"
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
	{"client: GET by 1,000 with a deadline each, the same", "Clients/GET_in_time/goroutines=1000/client=respb",
		[]string{"Clients/GET_in_time/goroutines=1000/client=go-redis", "Clients/GET_in_time/goroutines=1000/client=rueidis"}, 1 / 2.1},
	{"client: SET by 1,000 with a deadline each, the same", "Clients/SET_in_time/goroutines=1000/client=respb",
		[]string{"Clients/SET_in_time/goroutines=1000/client=go-redis", "Clients/SET_in_time/goroutines=1000/client=rueidis"}, 1 / 2.1},
	{"client without a hook, beside one that does nothing", "Exchange/no_hook", []string{"Exchange/hook"}, 1},
}

func main() {
	log.SetFlags(0)
	page := flag.String("page", "", "a page whose table of verdicts is written anew")
	flag.Parse()
	figures := map[string][]float64{}
	for _, path := range flag.Args() {
		f, err := os.Open(path)
		if err != nil {
			log.Fatal(err)
		}
		err = read(f, figures)
		_ = f.Close()
		if err != nil {
			log.Fatalf("%s: %v", path, err)
		}
	}
	table, told := "| goal | at most | ratio | interval | worst | rounds | |\n|---|---:|---:|---:|---:|---:|---|\n", 0
	for _, g := range goals {
		if line := g.line(figures); line != "" {
			table += line + "\n"
			told++
		}
	}
	if told == 0 {
		log.Fatal("verdict: no file has a benchmark of any goal")
	}
	fmt.Print(table)
	if *page != "" {
		if err := rounds.WriteTable(*page, table); err != nil {
			log.Fatal(err)
		}
	}
}

// read takes lines such as "BenchmarkParse/PING/lib=resp-2   1000  12.1 ns/op  ...". What takes several turns in one process is numbered, as
// "BenchmarkExchange/hook#07-2".
func read(r io.Reader, figures map[string][]float64) error {
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
		name, _, _ = strings.Cut(name, "#")
		figures[name] = append(figures[name], n)
	}
	return lines.Err()
}

// line is a row of the table; empty if the goal was not measured.
func (g goal) line(figures map[string][]float64) string {
	of := figures[g.of]
	var beside []float64
	for _, name := range g.beside {
		if all := figures[name]; len(all) > 0 && (beside == nil || rounds.Median(all) < rounds.Median(beside)) {
			beside = all
		}
	}
	if len(of) == 0 || len(beside) == 0 {
		return ""
	}
	ratios := rounds.Ratios(of, beside)
	low, high, verdict := rounds.Verdict(ratios, g.most)
	return fmt.Sprintf("| %s | %.2f | %.3f | %.3f…%.3f | %.3f | %d | %s |", g.text, g.most, rounds.Median(ratios), low, high,
		slices.Max(ratios), len(ratios), verdict)
}
