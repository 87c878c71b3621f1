// Owns: histories of concurrent clients, checked for linearizability: commands on several keys, transactions with WATCH
// on two keys of which one is written (write skew), and pipelines, whose commands take the server's fast ways. Does not
// own: what single commands answer.
package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"
)

const (
	keys            = 4
	clients         = 6
	operations      = 40
	defaultRounds   = 12
	checkTimeoutMax = 60 * time.Second
	// What must come is waited for so long: never reached when all is well.
	waitMax = 240 * time.Second
)

// options are those of a client that sends nothing twice: go-redis gives up on a reply after three seconds and asks again, which would count
// an INCR twice on a machine that stalls.
func options(port string, protocol int) *redis.Options {
	return &redis.Options{Addr: "127.0.0.1:" + port, Protocol: protocol, MaxRetries: -1, DialTimeout: waitMax, ReadTimeout: waitMax,
		WriteTimeout: waitMax, PoolTimeout: waitMax}
}

// What a client asked for.
type input struct {
	kind   string // get, set, mset, mget, incr, exec, tx
	one    int
	two    int
	values [2]int
}

// What it got.
type output struct {
	values    [2]int
	committed bool
}

// All keys as one register: a command on two keys must be seen as one step.
var model = porcupine.Model{
	Init: func() any { return [keys]int{} },
	Step: func(state, in, out any) (bool, any) {
		now, asked, got := state.([keys]int), in.(input), out.(output)
		switch asked.kind {
		case "get":
			return got.values[0] == now[asked.one], now
		case "set":
			now[asked.one] = asked.values[0]
		case "mset":
			now[asked.one], now[asked.two] = asked.values[0], asked.values[1]
		case "mget":
			return got.values == [2]int{now[asked.one], now[asked.two]}, now
		case "incr":
			now[asked.one]++
			return got.values[0] == now[asked.one], now
		case "exec":
			// MULTI with a read of one key and a write to another.
			ok := got.values[0] == now[asked.one]
			now[asked.two] = asked.values[0]
			return ok, now
		case "tx":
			// WATCH on two keys, a write to one: it commits only if both are what was read.
			if !got.committed {
				return true, now
			}
			ok := got.values == [2]int{now[asked.one], now[asked.two]}
			now[asked.one] = asked.values[0]
			return ok, now
		}
		return true, now
	},
	Equal: func(one, two any) bool { return one.([keys]int) == two.([keys]int) },
	DescribeOperation: func(in, out any) string {
		return fmt.Sprintf("%+v → %+v", in.(input), out.(output))
	},
}

func name(key int) string { return "history:" + strconv.Itoa(key) }

func number(value any) int {
	text, _ := value.(string)
	parsed, _ := strconv.Atoi(text)
	return parsed
}

func run(ctx context.Context, client *redis.Client, asked input) (output, error) {
	var got output
	one, two := name(asked.one), name(asked.two)
	switch asked.kind {
	case "mset":
		return got, client.MSet(ctx, one, asked.values[0], two, asked.values[1]).Err()
	case "mget":
		values, err := client.MGet(ctx, one, two).Result()
		if err == nil {
			got.values = [2]int{number(values[0]), number(values[1])}
		}
		return got, err
	case "incr":
		value, err := client.Incr(ctx, one).Result()
		got.values[0] = int(value)
		return got, err
	case "exec":
		var read *redis.StringCmd
		_, err := client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			read = pipe.Get(ctx, one)
			pipe.Set(ctx, two, asked.values[0], 0)
			return nil
		})
		if err == redis.Nil {
			err = nil
		}
		got.values[0] = number(read.Val())
		return got, err
	default:
		err := client.Watch(ctx, func(tx *redis.Tx) error {
			for at, key := range []string{one, two} {
				value, err := tx.Get(ctx, key).Result()
				if err != nil && err != redis.Nil {
					return err
				}
				got.values[at] = number(value)
			}
			_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
				pipe.Set(ctx, one, asked.values[0], 0)
				return nil
			})
			return err
		}, one, two)
		got.committed = err == nil
		if err == redis.TxFailedErr {
			err = nil
		}
		return got, err
	}
}

// piped sends a SET, two GETs and an INCR together, and gives each as an operation of its own. That they run in this
// order is left out: it is one client's, and what is checked is what clients see of each other.
func piped(ctx context.Context, client *redis.Client, asked input) ([]input, []output, error) {
	pipe := client.Pipeline()
	pipe.Set(ctx, name(asked.one), asked.values[0], 0)
	gets := []*redis.StringCmd{pipe.Get(ctx, name(asked.two)), pipe.Get(ctx, name(asked.one))}
	incr := pipe.Incr(ctx, name(asked.two))
	_, err := pipe.Exec(ctx)
	inputs := []input{
		{kind: "set", one: asked.one, values: asked.values}, {kind: "get", one: asked.two}, {kind: "get", one: asked.one},
		{kind: "incr", one: asked.two},
	}
	outputs := make([]output, len(inputs))
	for at, get := range gets {
		outputs[1+at].values[0] = number(get.Val())
	}
	outputs[3].values[0] = int(incr.Val())
	return inputs, outputs, err
}

// active fails the test unless as many of the server's threads run clients as it was started for, if that was said.
func active(ctx context.Context, t *testing.T, client *redis.Client) {
	t.Helper()
	wanted := os.Getenv("WEFT_THREADS_ACTIVE")
	if wanted == "" {
		return
	}
	info, err := client.Info(ctx, "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(info, "\r\nworker_threads_active:"+wanted+"\r\n") {
		t.Fatalf("%s threads should be active:\n%s", wanted, info)
	}
}

func TestHistoriesAreLinearizable(t *testing.T) {
	port := os.Getenv("WEFT_PORT")
	if port == "" {
		t.Skip("WEFT_PORT names no server: tests/e2e/run starts one")
	}
	rounds := defaultRounds
	if given, err := strconv.Atoi(os.Getenv("WEFT_ROUNDS")); err == nil {
		rounds = given
	}
	seed := time.Now().UnixNano()
	if given, err := strconv.ParseInt(os.Getenv("WEFT_SEED"), 10, 64); err == nil {
		seed = given
	}
	t.Logf("seed %d (WEFT_SEED), %d rounds (WEFT_ROUNDS)", seed, rounds)
	ctx := context.Background()
	pool := make([]*redis.Client, clients)
	for at := range pool {
		pool[at] = redis.NewClient(options(port, 2+at%2))
		defer pool[at].Close()
	}
	checked, committed := 0, 0
	for round := range rounds {
		for key := range keys {
			if err := pool[0].Set(ctx, name(key), 0, 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
		active(ctx, t, pool[0])
		history := record(ctx, t, pool, seed+int64(round))
		active(ctx, t, pool[0])
		for _, operation := range history {
			if operation.Output.(output).committed {
				committed++
			}
		}
		switch porcupine.CheckOperationsTimeout(model, history, checkTimeoutMax) {
		case porcupine.Illegal:
			for _, operation := range history {
				t.Logf("%d: %s [%d, %d]", operation.ClientId,
					model.DescribeOperation(operation.Input, operation.Output), operation.Call, operation.Return)
			}
			t.Fatalf("round %d of seed %d has no order that explains it", round, seed)
		case porcupine.Unknown:
			t.Logf("round %d: not decided within %s", round, checkTimeoutMax)
		default:
			checked += len(history)
		}
	}
	if checked == 0 || committed == 0 {
		t.Fatalf("%d operations checked, %d transactions committed: the test shows nothing", checked, committed)
	}
	t.Logf("%d operations checked, %d transactions committed", checked, committed)
}

func record(ctx context.Context, t *testing.T, pool []*redis.Client, seed int64) []porcupine.Operation {
	var lock sync.Mutex
	var history []porcupine.Operation
	var group sync.WaitGroup
	for at, client := range pool {
		group.Add(1)
		go func() {
			defer group.Done()
			dice := rand.New(rand.NewSource(seed*31 + int64(at)))
			for step := range operations {
				one := dice.Intn(keys)
				asked := input{
					kind:   []string{"mset", "mget", "mget", "incr", "exec", "tx", "tx", "pipe"}[dice.Intn(8)],
					one:    one,
					two:    (one + 1 + dice.Intn(keys-1)) % keys,
					values: [2]int{at*1000 + step + 1, at*1000 + step + 500},
				}
				var inputs []input
				var outputs []output
				var err error
				call := time.Now().UnixNano()
				if asked.kind == "pipe" {
					inputs, outputs, err = piped(ctx, client, asked)
				} else {
					inputs, outputs = []input{asked}, make([]output, 1)
					outputs[0], err = run(ctx, client, asked)
				}
				end := time.Now().UnixNano()
				if err != nil {
					t.Error(err)
					return
				}
				lock.Lock()
				for place := range inputs {
					history = append(history, porcupine.Operation{
						ClientId: at, Input: inputs[place], Call: call, Output: outputs[place], Return: end,
					})
				}
				lock.Unlock()
			}
		}()
	}
	group.Wait()
	return history
}

func TestGoRedis(t *testing.T) {
	port := os.Getenv("WEFT_PORT")
	if port == "" {
		t.Skip("WEFT_PORT names no server: tests/e2e/run starts one")
	}
	ctx := context.Background()
	for _, protocol := range []int{2, 3} {
		client := redis.NewClient(options(port, protocol))
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(client.FlushAll(ctx).Err())
		pipe := client.Pipeline()
		for at := range 500 {
			pipe.Set(ctx, name(at), at, 0)
		}
		results, err := pipe.Exec(ctx)
		must(err)
		if len(results) != 500 {
			t.Fatalf("%d results", len(results))
		}
		must(client.HSet(ctx, "h", "a", 1).Err())
		if got := client.HGetAll(ctx, "h").Val(); got["a"] != "1" {
			t.Fatalf("%v", got)
		}
		subscriber := client.Subscribe(ctx, "news")
		_, err = subscriber.Receive(ctx)
		must(err)
		must(client.Publish(ctx, "news", "hello").Err())
		message, err := subscriber.ReceiveMessage(ctx)
		must(err)
		if message.Payload != "hello" {
			t.Fatalf("%v", message)
		}
		must(subscriber.Close())
		popped := make(chan []string)
		go func() { popped <- client.BLPop(ctx, waitMax, "list").Val() }()
		must(client.RPush(ctx, "list", "x").Err())
		if got := <-popped; len(got) != 2 || got[1] != "x" {
			t.Fatalf("%v", got)
		}
		must(client.Close())
	}
}

// TestGoRedisTLS without a certificate of its own and with one.
func TestGoRedisTLS(t *testing.T) {
	port, folder := os.Getenv("WEFT_PORT"), os.Getenv("WEFT_CERTIFICATES")
	if port == "" || folder == "" {
		t.Skip("WEFT_PORT names no server: tests/e2e/run starts one")
	}
	authority, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	own, err := tls.LoadX509KeyPair(filepath.Join(folder, "client.crt"), filepath.Join(folder, "client.key"))
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for user, certificates := range map[string][]tls.Certificate{"default": nil, "client": {own}} {
		settings := options(port, 3)
		settings.TLSConfig = &tls.Config{RootCAs: roots, ServerName: "localhost", Certificates: certificates}
		client := redis.NewClient(settings)
		if got, err := client.Do(ctx, "ACL", "WHOAMI").Text(); err != nil || got != user {
			t.Fatal(user, got, err)
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
