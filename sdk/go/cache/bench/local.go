package main

// This file owns the rows of the first level: what a value costs that is in the process already.

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/bench/fixture"
	"github.com/weft-db/weft/sdk/go/cache/codec/msgp"
	"github.com/weft-db/weft/sdk/go/cache/local"
	inprocess "github.com/weft-db/weft/sdk/go/cache/transport/memory"
)

// localRow is one way of reading a value that is in the process already.
type localRow struct {
	Name   string  `json:"name"`
	Nanos  float64 `json:"ns"`
	Bytes  float64 `json:"b_op"`
	Allocs float64 `json:"allocs_op"`
}

const (
	localBytesMax = 64 << 20
	localRepeat   = 200
	// localTTL outlasts the measurement: the store in memory tells of changes, so it does not bound what is served.
	localTTL = time.Hour
)

// measureLocal measures hits of 100 keys, large structs by pointer and by value, keys that are numbers and strings.
func (c *config) measureLocal(r *report) error {
	r.Local = nil
	var values []fixture.Large
	source := fixture.NewSource(1)
	for range batch {
		values = append(values, source.Large())
	}
	number := func(i int) int64 { return int64(i) }
	text := func(i int) string { return fmt.Sprintf("user-%05d", i) }
	pointer := func(i int) *fixture.Large { return &values[i] }
	plain := func(i int) fixture.Large { return values[i] }
	equal := func(a, b *fixture.Large) bool { return *a == *b }
	for _, measure := range []func() (*localRow, error){
		func() (*localRow, error) {
			return localHits(c, "pointer to a large struct, key is a number", number, pointer, msgp.NewPointers[fixture.Large](), equal)
		},
		func() (*localRow, error) {
			return localHits(c, "pointer to a large struct, key is a string", text, pointer, msgp.NewPointers[fixture.Large](), equal)
		},
		func() (*localRow, error) {
			return localHits(c, "large struct, key is a number", number, plain, msgp.New[fixture.Large](),
				func(a, b fixture.Large) bool { return a == b })
		},
	} {
		row, err := measure()
		if err != nil {
			return err
		}
		r.Local = append(r.Local, row)
	}
	return nil
}

func localHits[K comparable, V any](c *config, name string, key func(i int) K, value func(i int) V, codec cache.Codec[V],
	equal func(a, b V) bool) (*localRow, error) {
	level, err := local.New(localBytesMax)
	if err != nil {
		return nil, err
	}
	defer level.Close()
	kit, err := cache.New(&inprocess.Store{}, codec, cache.Options[K, V]{Prefix: "bench", TTL: localTTL, LocalTTL: localTTL, Local: level})
	if err != nil {
		return nil, err
	}
	defer kit.Close()
	ctx := context.Background()
	keys, slots := make([]K, batch), make([]V, batch)
	for i := range keys {
		keys[i] = key(i)
		if err := kit.Set(ctx, keys[i], value(i)); err != nil {
			return nil, err
		}
	}
	run := func() error {
		for i, k := range keys {
			var err error
			if slots[i], err = kit.Get(ctx, k); err != nil {
				return err
			}
		}
		return nil
	}
	// The first level is used once its store tells of changes, which begins in the background.
	for until := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		before := kit.Stats()
		if err := run(); err != nil {
			return nil, err
		}
		after := kit.Stats()
		if after.Of(cache.EventLocalHit)-before.Of(cache.EventLocalHit) == batch {
			break
		}
		if time.Now().After(until) {
			return nil, fmt.Errorf("%s: the first level is not used", name)
		}
	}
	row := &localRow{Name: name}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range localRepeat {
		if err := run(); err != nil {
			return nil, err
		}
	}
	runtime.ReadMemStats(&after)
	row.Bytes = float64(after.TotalAlloc-before.TotalAlloc) / (localRepeat * batch)
	row.Allocs = float64(after.Mallocs-before.Mallocs) / (localRepeat * batch)
	var chunks []float64
	for range c.rounds {
		begun := cpuOf(0)
		for range localRepeat {
			if err := run(); err != nil {
				return nil, err
			}
		}
		chunks = append(chunks, float64(cpuOf(0)-begun)/(localRepeat*batch))
	}
	row.Nanos = quantile(chunks, 0.5)
	for i, k := range keys {
		if got, err := kit.Get(ctx, k); err != nil || !equal(got, value(i)) {
			return nil, fmt.Errorf("%s: value %d came back as %v, %v", name, i, got, err)
		}
	}
	return row, nil
}
