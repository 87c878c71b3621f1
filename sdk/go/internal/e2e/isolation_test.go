package e2e

// This file owns what one client that blocks, and one that does not read, do to 2,000 others: where each is a channel beside theirs, and
// where each has a connection. It is measured with the baseline (baseline_test.go), which has the rounds.

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-db/weft/sdk/go/respb"
)

const (
	isolationTopic    = "isolation"
	isolationMessages = 2000
	isolationBytes    = 8 << 10 // of a message: all together more than a client takes that does not read
)

// apart is how 2,000 clients are kept apart; beside gives one more, among theirs.
type apart struct {
	name string
	open func(t *testing.T, addr string) (askers []asker, beside func() *respb.Channel)
}

var aparts = []apart{
	{"2,000 connections of RESP3", func(t *testing.T, addr string) (askers []asker, beside func() *respb.Channel) {
		one := func() *respb.Channel {
			c, err := respb.Dial(context.Background(), respb.Options{Addr: addr, Protocol: respb.RESP3})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			return channelOf(t, c)
		}
		for range baselineClients {
			askers = append(askers, gets(one()))
		}
		return askers, one
	}},
	{"2,000 channels of 4 connections", func(t *testing.T, addr string) (askers []asker, beside func() *respb.Channel) {
		conns := dialAll(t, addr, respb.RESPB)
		for i := range baselineClients {
			askers = append(askers, gets(channelOf(t, conns[i%len(conns)])))
		}
		return askers, func() *respb.Channel { return channelOf(t, conns[0]) }
	}},
}

func channelOf(t *testing.T, c *respb.Conn) *respb.Channel {
	ch, err := c.Channel(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

func gets(ch *respb.Channel) asker {
	return func(ctx context.Context, key string) (int, error) {
		s, err := ch.Get(ctx, key)
		return len(s), err
	}
}

func TestIsolation(t *testing.T) {
	out := os.Getenv("WEFT_BASELINE")
	if out == "" {
		t.Skip("a measurement of minutes: make bench-baseline")
	}
	addr, pid := kvAddr(t), serverPID(t)
	keys := prepare(t, addr)
	neighbours := []struct {
		name string
		with func(t *testing.T, addr string, ch *respb.Channel) (end func())
	}{{"alone", nil}, {"one that blocks", blocks}, {"one that does not read", doesNotRead}}
	results := make([][][]figures, len(aparts))
	for i := range results {
		results[i] = make([][]figures, len(neighbours))
	}
	for range baselineRounds {
		for i, apart := range aparts {
			t.Run(apart.name, func(t *testing.T) {
				askers, beside := apart.open(t, addr)
				_ = round(t, pid, askers, nil, keys) // warm
				for k, neighbour := range neighbours {
					end := func() {}
					if neighbour.with != nil {
						end = neighbour.with(t, addr, beside())
					}
					results[i][k] = append(results[i][k], round(t, pid, askers, nil, keys))
					end()
				}
			})
		}
	}
	table := "| way | beside | GETs a second | server µs | p50 µs | p99 µs |\n|---|---|---:|---:|---:|---:|\n"
	for i, apart := range aparts {
		for k, neighbour := range neighbours {
			of := results[i][k]
			table += fmt.Sprintf("| %s | %s | %.0f | %.2f | %.0f | %.0f |\n", apart.name, neighbour.name,
				median(of, func(f figures) float64 { return f.rate }), median(of, func(f figures) float64 { return f.server }),
				median(of, func(f figures) float64 { return f.p50 }), median(of, func(f figures) float64 { return f.p99 }))
		}
	}
	if err := os.WriteFile(filepath.Join(out, "isolation.md"), []byte(table), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table)
}

// blocks waits in BLPOP until the end, with requests behind it.
func blocks(t *testing.T, addr string, ch *respb.Channel) (end func()) {
	ctx := context.Background()
	done := make(chan error, 1)
	go func() {
		_, err := ch.Do(ctx, "BLPOP", "isolation:list", "0")
		done <- err
	}()
	return func() {
		if err := publisher(t, addr)("RPUSH", "isolation:list", "x"); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		_ = ch.Close()
	}
}

// doesNotRead is subscribed, has messages waiting, and takes none.
func doesNotRead(t *testing.T, addr string, ch *respb.Channel) (end func()) {
	if _, err := ch.Subscribe(context.Background(), isolationTopic); err != nil {
		t.Fatal(err)
	}
	publish := publisher(t, addr)
	message := strings.Repeat("m", isolationBytes)
	for range isolationMessages {
		if err := publish("PUBLISH", isolationTopic, message); err != nil {
			t.Fatal(err)
		}
	}
	return func() { _ = ch.Close() }
}

// publisher gives what sends commands over a connection of its own; each must be taken by somebody.
func publisher(t *testing.T, addr string) func(words ...string) error {
	c, err := respb.Dial(context.Background(), respb.Options{Addr: addr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return func(words ...string) error {
		v, err := c.Do(context.Background(), words...)
		if err == nil && v.Int != 1 {
			err = fmt.Errorf("%s: %d", words[0], v.Int)
		}
		return err
	}
}
