// Package metricstest tests what takes a cache's events to a library of metrics: an observer of a cache named "texts".
package metricstest

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/transport/memory"
)

// Names are those of the library's three instruments, which count events, bytes and the time of loads.
type Names struct{ Events, Bytes, Load string }

// Run has a cache hit, miss, load and fail, and compares what observer has told with what it must. read returns the library's figures by instrument,
// cache and label, such as "weft.cache.events texts hit": sums, and of durations how many there were.
func Run(t *testing.T, observer cache.Observer, names Names, read func() map[string]int64) {
	t.Helper()
	ctx := context.Background()
	c, err := cache.New(&memory.Store{}, cache.RawString{}, cache.Options[int, string]{Prefix: "p", TTL: time.Minute, Observer: observer})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = c.GetOrLoad(ctx, 1, func(context.Context, int) (string, error) { return "value", nil })
	_, _ = c.GetOrLoad(ctx, 2, func(context.Context, int) (string, error) { return "", errors.New("failed") })
	// The value is stored behind the caller's back, and Close ends what is under way.
	for read()[names.Bytes+" texts written"] == 0 {
		runtime.Gosched()
	}
	_ = c.Close()
	_, _ = c.Get(ctx, 1)
	got := read()
	for name, want := range map[string]int64{
		names.Events + " texts miss": 2, names.Events + " texts hit": 1, names.Events + " texts load": 2, names.Events + " texts load_error": 1,
		names.Bytes + " texts written": 11, names.Bytes + " texts read": 11, names.Load + " texts ok": 1, names.Load + " texts error": 1,
	} {
		if got[name] != want {
			t.Errorf("%s is %d, want %d", name, got[name], want)
		}
	}
}
