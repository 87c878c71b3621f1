// Command bench compares the example server (examples/kv) with redis-server: both answer PING to redis-benchmark, in turns, on one machine. It
// prints three tables of seed 003's form and writes every single run as JSON.
//
//	go run ./bench -json ../../docs/benchmarks/go-resp.json
//
// The figure that counts is the server's CPU time per request, user and system, from /proc: on a machine that is shared, or whose
// cores the load generator needs too, throughput says more about the neighbours. So it runs on Linux only.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// load is one way of calling redis-benchmark.
type load struct {
	Clients  int `json:"clients"`
	Pipeline int `json:"pipeline"`
	Requests int `json:"requests"`
}

// run is one call of redis-benchmark against one server.
type run struct {
	Server     string  `json:"server"`
	GOMAXPROCS int     `json:"gomaxprocs,omitempty"`
	Round      int     `json:"round"`
	Load       load    `json:"load"`
	CPUNanos   float64 `json:"cpu_ns_per_request"`
	Throughput float64 `json:"requests_per_second"`
	Avg        float64 `json:"avg_ms"`
	Min        float64 `json:"min_ms"`
	P50        float64 `json:"p50_ms"`
	P95        float64 `json:"p95_ms"`
	P99        float64 `json:"p99_ms"`
	Max        float64 `json:"max_ms"`
}

// report is what the JSON file holds.
type report struct {
	Machine   string   `json:"machine"`
	Cores     int      `json:"cores"`
	Kernel    string   `json:"kernel"`
	Go        string   `json:"go"`
	Redis     string   `json:"redis"`
	Benchmark string   `json:"redis_benchmark"`
	Command   string   `json:"command"`
	Servers   []string `json:"servers"`
	Runs      []run    `json:"runs"`
}

func main() {
	log.SetFlags(0)
	redis := flag.String("redis", "redis-server", "the server to compare with")
	tool := flag.String("benchmark", "redis-benchmark", "the load generator")
	rounds := flag.Int("rounds", 5, "how often each server and load takes its turn")
	slow := flag.Int("n1", 200_000, "requests for -P 1")
	fast := flag.Int("n1000", 8_000_000, "requests for -P 1000")
	out := flag.String("json", "", "file for the raw figures")
	only := flag.String("print", "", "print the tables of such a file and measure nothing")
	flag.Parse()
	if *only != "" {
		r, err := loadReport(*only)
		if err != nil {
			log.Fatal(err)
		}
		r.print(os.Stdout)
		return
	}
	loads := []load{{1, 1, *slow}, {1, 1000, *fast}, {10, 1000, *fast}}
	r, err := measure(*redis, *tool, *rounds, loads)
	if err != nil {
		log.Fatal(err)
	}
	r.print(os.Stdout)
	if *out != "" {
		if err := r.save(*out); err != nil {
			log.Fatal(err)
		}
	}
}

// measure runs everything, each round going through all loads and servers, so that what the machine does meanwhile hits all alike.
func measure(redis, tool string, rounds int, loads []load) (*report, error) {
	dir, err := os.MkdirTemp("", "resp-bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	kv := filepath.Join(dir, "kv")
	if b, err := exec.Command("go", "build", "-o", kv, "github.com/weft-db/weft/sdk/go/examples/kv").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building examples/kv: %w\n%s", err, b)
	}
	r := &report{
		Machine: cpuModel(), Cores: runtime.NumCPU(), Kernel: kernel(), Go: runtime.Version(),
		Redis: firstLine(redis, "--version"), Benchmark: firstLine(tool, "--version"),
		Command: "redis-benchmark -h 127.0.0.1 -p <port> -c <clients> -P <pipeline> -n <requests> ping",
	}
	servers, err := startAll(redis, kv)
	defer func() {
		for _, s := range servers {
			s.stop()
		}
	}()
	if err != nil {
		return nil, err
	}
	for _, s := range servers {
		r.Servers = append(r.Servers, s.command)
	}
	for round := range rounds {
		for _, l := range loads {
			for _, s := range servers {
				one, err := s.bench(tool, l)
				if err != nil {
					return nil, err
				}
				one.Round = round
				r.Runs = append(r.Runs, one)
			}
		}
	}
	return r, nil
}

func (r *report) save(name string) error {
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(b, '\n'), 0o644)
}

// loadReport reads a file that save wrote.
func loadReport(name string) (*report, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r := &report{}
	return r, json.Unmarshal(b, r)
}

func firstLine(name string, args ...string) string {
	b, _ := exec.Command(name, args...).Output()
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}

func cpuModel() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	_, after, _ := strings.Cut(string(b), "model name\t: ")
	line, _, _ := strings.Cut(after, "\n")
	return line
}

func kernel() string {
	b, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return strings.TrimSpace(string(b))
}
