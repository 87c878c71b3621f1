package resp

// This file owns the guard of what parsing and writing cost: instructions, counted by valgrind, beside those in testdata/instructions.json.

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// instructionsFile has the counts that a change may not pass by more than instructionsSlack. With WEFT_WRITE_INSTRUCTIONS=1 the test writes it: a lower
// count in the commit that brought it, a higher one with its reason in the commit's message.
const (
	instructionsFile  = "testdata/instructions.json"
	instructionsSlack = 1.03
	// instructionsTries is how often a case is counted before it counts as slower: on a busy machine the runtime's own threads add to a count, and
	// nothing ever takes away from it, so that the least is the truest.
	instructionsTries = 12
)

type instructions struct {
	// Go is the version that compiled them; another one's are not compared.
	Go    string
	Cases map[string]float64
}

// TestInstructions runs benchmarks of this package under valgrind, each with two numbers of rounds, so that what is paid once drops out.
func TestInstructions(t *testing.T) {
	if raceEnabled || testing.CoverMode() != "" || runtime.GOARCH != "amd64" || runtime.GOOS != "linux" {
		t.Skip("it counts what the plain compiler made for linux/amd64")
	}
	if _, err := exec.LookPath("valgrind"); err != nil {
		t.Skip("valgrind is not installed; Debian has it in valgrind")
	}
	data, err := os.ReadFile(instructionsFile)
	if err != nil {
		t.Fatal(err)
	}
	var want instructions
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`^go1\.\d+`).FindString(runtime.Version())
	write := os.Getenv("WEFT_WRITE_INSTRUCTIONS") != ""
	if version != want.Go && !write {
		t.Skipf("the counts are of %s, this is %s", want.Go, version)
	}
	got := instructions{version, map[string]float64{}}
	for name, limit := range want.Cases {
		few, many := 2_000, 42_000
		if strings.HasPrefix(name, "Write/") { // a buffer is sent for thousands of them
			many = 402_000
		}
		each, least := 0.0, [2]int64{math.MaxInt64, math.MaxInt64}
		for try := 0; try == 0 || try < instructionsTries && each > limit*instructionsSlack; try++ {
			least[0], least[1] = min(least[0], count(t, name, few)), min(least[1], count(t, name, many))
			each = float64(least[1]-least[0]) / float64(many-few)
		}
		got.Cases[name] = math.Round(each*10) / 10
		t.Logf("%-26s %6.1f instructions, %6.1f in the file", name, each, limit)
		if each > limit*instructionsSlack && !write {
			t.Errorf("%s: %.1f instructions, more than %.0f %% above the %.1f of %s", name, each, 100*(instructionsSlack-1), limit, instructionsFile)
		}
	}
	if write {
		data, _ := json.MarshalIndent(got, "", "\t")
		if err := os.WriteFile(instructionsFile, append(data, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var guestInstructions = regexp.MustCompile(`guest instrs: +([0-9,]+)`)

// count is how many instructions the process of one benchmark takes.
func count(t *testing.T, name string, rounds int) int64 {
	t.Helper()
	cmd := exec.Command("valgrind", "--tool=lackey", "--basic-counts=yes", os.Args[0], "-test.run", "XXX", "-test.bench", "^Benchmark"+strings.ReplaceAll(name, "/", "$/^")+"$",
		"-test.benchtime", fmt.Sprint(rounds, "x"), "-test.cpu", "1")
	cmd.Env = append(os.Environ(), "GOGC=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found := guestInstructions.FindSubmatch(out)
	if found == nil || !strings.Contains(string(out), "ns/op") {
		t.Fatalf("%s was not counted:\n%s", name, out)
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(string(found[1]), ",", ""), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
