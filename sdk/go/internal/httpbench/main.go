// Command httpbench measures what a command costs over RESP, RESPB and HTTP, in clients as programs have them and in
// the server, and where the difference comes from. Owns: the program's flags, the rounds, the tables, the floor. Does
// not own: the server, which it is told of; the clients (clients.go, raw.go).
//
// Every reply is compared with what it must be.
package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Figures of one round, for each operation.
type figures struct {
	WallNs   float64 `json:"wall_ns"`
	ClientNs float64 `json:"client_cpu_ns"`
	Bytes    float64 `json:"bytes"`
	Allocs   float64 `json:"allocs"`
	ServerNs float64 `json:"server_cpu_ns"`
}

// A row of a table: an operation over one way.
type row struct {
	Operation string    `json:"operation"`
	Way       string    `json:"way"`
	Rounds    []figures `json:"rounds"`
	run       func(n int)
	pids      []int
}

// A floor is a server of HTTP that answers a GET without what Weft does for it: nothing but a constant, or in front of
// another store.
type floor struct {
	name, addr, path string
	// What its answers end with.
	end  string
	pids []int
}

var (
	addr       = flag.String("addr", "127.0.0.1:6379", "the server")
	pid        = flag.Int("pid", 0, "its process")
	serve      = flag.String("serve", "", "be the floor: answer every request at this address with a constant")
	floors     []floor
	rounds     = flag.Int("rounds", 7, "rounds of all rows, one after the other")
	operations = flag.Int("n", 4000, "operations of a row in a round")
	out        = flag.String("out", "", "a folder for the raw data")
)

func main() {
	flag.Func("floor", "a server to compare with: `NAME,ADDRESS,PATH,END,PID…`, where END is what an answer ends with", addFloor)
	flag.Parse()
	if *serve != "" {
		check(http.ListenAndServe(*serve, http.HandlerFunc(constant)))
	}
	table, reasons := rows()
	all := slices.Concat(table, reasons)
	for _, row := range all {
		// Connections, caches and the first growth of buffers are not measured.
		row.run(*operations / 10)
	}
	for range *rounds {
		for _, row := range all {
			row.measure()
		}
	}
	print("Operations", table)
	print("Where it comes from", reasons)
	if *out != "" {
		check(os.MkdirAll(*out, 0o755))
		all := map[string]any{"operations": table, "reasons": reasons, "n": *operations}
		data := must(json.MarshalIndent(all, "", " "))
		check(os.WriteFile(filepath.Join(*out, "clients.json"), append(data, '\n'), 0o644))
	}
}

func addFloor(text string) error {
	parts := strings.Split(text, ",")
	if len(parts) < 5 {
		return fmt.Errorf("%q has not the parts NAME,ADDRESS,PATH,END,PID", text)
	}
	f := floor{name: parts[0], addr: parts[1], path: parts[2], end: parts[3]}
	for _, part := range parts[4:] {
		pid, err := strconv.Atoi(part)
		if err != nil {
			return err
		}
		f.pids = append(f.pids, pid)
	}
	floors = append(floors, f)
	return nil
}

// constant is what a GET of a value of 16 bytes is answered, without any store behind it.
func constant(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	must(fmt.Fprintf(w, "{\"result\":%q}", value))
}

func (r *row) measure() {
	n := *operations
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	server, client, began := cpuNs(r.pids...), cpuNs(os.Getpid()), time.Now()
	r.run(n)
	wall, clientAfter, serverAfter := time.Since(began), cpuNs(os.Getpid()), cpuNs(r.pids...)
	runtime.ReadMemStats(&after)
	each := func(value float64) float64 { return value / float64(n) }
	r.Rounds = append(r.Rounds, figures{
		WallNs:   each(float64(wall.Nanoseconds())),
		ClientNs: each(clientAfter - client),
		Bytes:    each(float64(after.TotalAlloc - before.TotalAlloc)),
		Allocs:   each(float64(after.Mallocs - before.Mallocs)),
		ServerNs: each(serverAfter - server),
	})
}

// cpuNs is the time that all threads of processes have run, in nanoseconds.
func cpuNs(pids ...int) float64 {
	var tasks []string
	for _, pid := range pids {
		tasks = append(tasks, must(filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid)))...)
	}
	sum := 0.0
	for _, task := range tasks {
		// A thread may end meanwhile.
		text, err := os.ReadFile(task)
		if err == nil {
			first, _, _ := strings.Cut(string(text), " ")
			sum += must(strconv.ParseFloat(first, 64))
		}
	}
	return sum
}

func print(title string, rows []*row) {
	fmt.Printf("## %s\n\n| operation | over | µs | client CPU µs | server CPU µs | bytes | allocations |\n", title)
	fmt.Println("|---|---|---:|---:|---:|---:|---:|")
	for _, row := range rows {
		m := func(pick func(figures) float64) float64 { return median(row.Rounds, pick) }
		spread := fmt.Sprintf("%.2f (%.2f–%.2f)", m(serverNs)/1e3, least(row.Rounds)/1e3, most(row.Rounds)/1e3)
		fmt.Printf("| %s | %s | %.1f | %.1f | %s | %.0f | %.1f |\n", row.Operation, row.Way,
			m(func(f figures) float64 { return f.WallNs })/1e3, m(func(f figures) float64 { return f.ClientNs })/1e3, spread,
			m(func(f figures) float64 { return f.Bytes }), m(func(f figures) float64 { return f.Allocs }))
	}
	fmt.Println()
}

func serverNs(f figures) float64 { return f.ServerNs }

func median(rounds []figures, pick func(figures) float64) float64 {
	values := make([]float64, 0, len(rounds))
	for _, round := range rounds {
		values = append(values, pick(round))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func byServer(a, b figures) int { return cmp.Compare(a.ServerNs, b.ServerNs) }

func least(rounds []figures) float64 { return slices.MinFunc(rounds, byServer).ServerNs }
func most(rounds []figures) float64  { return slices.MaxFunc(rounds, byServer).ServerNs }

// check ends the program: a benchmark that goes on after a wrong reply measures something else.
func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "httpbench:", err)
		os.Exit(1)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

// same ends the program where a reply is not what it must be.
func same[T comparable](what string, got, wanted T) {
	if got != wanted {
		check(fmt.Errorf("%s was answered %v, not %v", what, got, wanted))
	}
}
