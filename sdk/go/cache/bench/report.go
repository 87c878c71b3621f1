package main

// This file owns the raw figures: their file, and what describes the machine.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// report is what the file of raw figures holds.
type report struct {
	Machine   string            `json:"machine"`
	Cores     int               `json:"cores"`
	Kernel    string            `json:"kernel"`
	Go        string            `json:"go"`
	Redis     string            `json:"redis"`
	Weft      string            `json:"weft"`
	Placement string            `json:"placement"`
	Rounds    int               `json:"rounds"`
	Libraries map[string]string `json:"libraries"`
	Sections  map[string]string `json:"sections"` // when each was measured
	// Loads is how many wanted to run at a time, in the minute before each section.
	Loads    map[string]float64 `json:"loads"`
	Codecs   []*codecRow        `json:"codecs"`
	Local    []*localRow        `json:"local"`
	Rows     []*row             `json:"rows"`
	Profiles []*profile         `json:"profiles"`
}

// libraries are those whose versions are noted.
var libraries = []string{
	"github.com/goccy/go-json", "github.com/bytedance/sonic", "github.com/vmihailenco/msgpack/v5", "github.com/fxamacker/cbor/v2",
	"github.com/tinylib/msgp", "google.golang.org/protobuf", "github.com/planetscale/vtprotobuf", "github.com/redis/go-redis/v9",
}

// describe notes the machine and the versions.
func (r *report) describe(c *config, placement string) {
	r.Machine, r.Cores, r.Kernel, r.Go = cpuModel(), machineCores(), kernel(), runtime.Version()
	r.Redis, _, _ = strings.Cut(firstLine(c.redis, "--version"), " sha")
	r.Weft = firstLine(c.weft, "--version")
	if placement == "" {
		r.Placement = fmt.Sprintf("servers on core %d, client on core %d, GOMAXPROCS %d", c.serverCore, c.clientCore, runtime.GOMAXPROCS(0))
	}
	if !strings.HasPrefix(c.section, callsPrefix) {
		r.Rounds = c.rounds
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		r.Libraries = map[string]string{}
		for _, d := range info.Deps {
			for _, name := range libraries {
				if d.Path == name {
					r.Libraries[name] = d.Version
				}
			}
		}
	}
	if r.Sections == nil {
		r.Sections = map[string]string{}
	}
	if r.Loads == nil {
		r.Loads = map[string]float64{}
	}
	r.Loads[c.section] = machineLoad()
	r.Sections[c.section] = time.Now().UTC().Format(time.RFC3339)
}

// machineLoad is how many wanted to run at a time, of the last minute; 0 where it is not to be had.
func machineLoad() float64 {
	data, _ := os.ReadFile("/proc/loadavg")
	minute, _, _ := strings.Cut(string(data), " ")
	n, _ := strconv.ParseFloat(minute, 64)
	return n
}

// add replaces the row of the same contestant. Timing and counting each keep what the other found.
func (r *report) add(n *row) {
	for i, old := range r.Rows {
		if old.key() != n.key() {
			continue
		}
		if n.Calls != nil {
			old.Calls = n.Calls
			return
		}
		n.Calls = old.Calls
		r.Rows[i] = n
		return
	}
	r.Rows = append(r.Rows, n)
}

func load(name string) (*report, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r := &report{}
	return r, json.Unmarshal(b, r)
}

// save writes a line for each row, so that versions of the file can be compared.
func (r *report) save(name string) error {
	whole, err := json.Marshal(r)
	if err != nil {
		return err
	}
	whole = bytes.ReplaceAll(whole, []byte(`[{"`), []byte("[\n{\""))
	whole = bytes.ReplaceAll(whole, []byte(`},{"`), []byte("},\n{\""))
	whole = bytes.ReplaceAll(whole, []byte(`}],"`), []byte("}\n],\n\""))
	temporary := name + ".new"
	if err := os.WriteFile(temporary, append(whole, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, name)
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

func machineCores() int {
	b, _ := os.ReadFile("/proc/cpuinfo")
	return strings.Count(string(b), "processor\t:")
}

func kernel() string {
	b, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return "Linux " + strings.TrimSpace(string(b))
}
