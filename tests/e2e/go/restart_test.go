// Owns: histories of clients of a server that is killed while they write and started again, with a log that is synced before each reply: what a
// client was told, and what it has read, is there. Does not own: what is kept otherwise (crates/weft/tests/crash.rs).
package e2e

import (
	"context"
	"math"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"
)

// Kills of one history: all that runs between them must have one order.
const killsOfHistory = 3

// unknown is what a request got that was under way when the server was killed: it may have run, at any later time as others see it, or not.
const unknown = math.MinInt

// modelOfKills is the model of single commands, with outputs that nobody has seen.
var modelOfKills = porcupine.Model{
	Init: model.Init,
	Step: func(state, in, out any) (bool, any) {
		got := out.(output)
		if got.values[0] != unknown {
			return model.Step(state, in, out)
		}
		_, next := model.Step(state, in, out)
		return true, next
	},
	Equal:             model.Equal,
	DescribeOperation: model.DescribeOperation,
}

type killed struct {
	program, folder string
	process         *exec.Cmd
}

func (k *killed) start(t *testing.T) {
	t.Helper()
	k.process = exec.Command(k.program, "serve", "--port", "0", "--unixsocket", filepath.Join(k.folder, "socket"), "--dir", k.folder,
		"--appendonly", "yes", "--appendfsync", "always", "--save", "", "--threads", "2", "--threads-always-active", "yes")
	if err := k.process.Start(); err != nil {
		t.Fatal(err)
	}
	client := k.client()
	defer client.Close()
	for ends := time.Now().Add(waitMax); client.DBSize(context.Background()).Err() != nil; {
		if time.Now().After(ends) {
			t.Fatal("the server does not come up")
		}
	}
}

func (k *killed) kill() {
	_ = k.process.Process.Kill()
	_ = k.process.Wait()
}

func (k *killed) client() *redis.Client {
	settings := options("0", 3)
	settings.Network, settings.Addr = "unix", filepath.Join(k.folder, "socket")
	return redis.NewClient(settings)
}

func TestHistoriesOutliveKills(t *testing.T) {
	program := os.Getenv("WEFT")
	if program == "" {
		t.Skip("WEFT names no program: tests/e2e/run does")
	}
	rounds := 3
	if given, err := strconv.Atoi(os.Getenv("WEFT_ROUNDS")); err == nil {
		rounds = given
	}
	seed := time.Now().UnixNano()
	if given, err := strconv.ParseInt(os.Getenv("WEFT_SEED"), 10, 64); err == nil {
		seed = given
	}
	t.Logf("seed %d (WEFT_SEED), %d rounds (WEFT_ROUNDS)", seed, rounds)
	checked, lost := 0, 0
	for round := range rounds {
		server := &killed{program: program, folder: t.TempDir()}
		var history []porcupine.Operation
		for kill := range killsOfHistory {
			server.start(t)
			history = append(history, recordUntilKilled(server, seed+int64(round*killsOfHistory+kill))...)
		}
		server.start(t)
		client := server.client()
		for key := range keys {
			call := time.Now().UnixNano()
			asked := input{kind: "mget", one: key, two: (key + 1) % keys}
			got, err := run(context.Background(), client, asked)
			if err != nil {
				t.Fatal(err)
			}
			history = append(history, porcupine.Operation{ClientId: 0, Input: asked, Call: call, Output: got, Return: time.Now().UnixNano()})
		}
		client.Close()
		server.kill()
		for _, operation := range history {
			if operation.Output.(output).values[0] == unknown {
				lost++
			}
		}
		switch porcupine.CheckOperationsTimeout(modelOfKills, history, checkTimeoutMax) {
		case porcupine.Illegal:
			for _, operation := range history {
				t.Logf("%d: %s [%d, %d]", operation.ClientId, model.DescribeOperation(operation.Input, operation.Output), operation.Call,
					operation.Return)
			}
			t.Fatalf("round %d of seed %d has no order that explains it", round, seed)
		case porcupine.Unknown:
			t.Logf("round %d: not decided within %s", round, checkTimeoutMax)
		default:
			checked += len(history)
		}
	}
	if checked == 0 {
		t.Fatal("no history was decided: the test shows nothing")
	}
	t.Logf("%d operations checked over %d kills, %d of them under way when the server was killed", checked, rounds*killsOfHistory, lost)
}

// recordUntilKilled lets clients ask until the server is killed under them.
func recordUntilKilled(server *killed, seed int64) []porcupine.Operation {
	var lock sync.Mutex
	var history []porcupine.Operation
	var group sync.WaitGroup
	dice := rand.New(rand.NewSource(seed))
	enough, reached := 30+dice.Intn(60), make(chan struct{})
	for at := range clients {
		client := server.client()
		group.Add(1)
		go func() {
			defer group.Done()
			defer client.Close()
			dice := rand.New(rand.NewSource(seed*31 + int64(at)))
			for step := 0; ; step++ {
				one := dice.Intn(keys)
				asked := input{
					kind:   []string{"mset", "mget", "incr", "exec"}[dice.Intn(4)],
					one:    one,
					two:    (one + 1 + dice.Intn(keys-1)) % keys,
					values: [2]int{int(seed%1000)*1_000_000 + at*10_000 + step*2, int(seed%1000)*1_000_000 + at*10_000 + step*2 + 1},
				}
				call := time.Now().UnixNano()
				got, err := run(context.Background(), client, asked)
				end := time.Now().UnixNano()
				if err != nil {
					// Whatever others have seen of it may have come as late as that.
					got, end = output{values: [2]int{unknown, unknown}}, math.MaxInt64
				}
				lock.Lock()
				history = append(history, porcupine.Operation{ClientId: int(seed%1000)*clients + at, Input: asked, Call: call, Output: got, Return: end})
				if len(history) == enough {
					close(reached)
				}
				lock.Unlock()
				if err != nil {
					return
				}
			}
		}()
	}
	<-reached
	server.kill()
	group.Wait()
	return history
}
