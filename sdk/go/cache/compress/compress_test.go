package compress_test

// This file owns the tests of the compressions: there and back, other sizes, any bytes, bombs.

import (
	"bytes"
	"context"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/compress"
	"github.com/weft-db/weft/sdk/go/cache/transport/memory"
)

func all(t testing.TB) map[string]cache.Compressor {
	z, err := compress.NewZstd(zstd.SpeedFastest)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]cache.Compressor{"s2": compress.S2{}, "zstd": z}
}

func TestThereAndBack(t *testing.T) {
	random := make([]byte, 100000)
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	for name, c := range all(t) {
		for _, src := range [][]byte{{}, []byte("a"), []byte(strings.Repeat("abc", 10000)), random} {
			packed := c.AppendCompress([]byte("before"), src)
			if !bytes.HasPrefix(packed, []byte("before")) {
				t.Errorf("%s wrote over what was there", name)
			}
			packed = packed[len("before"):]
			got, err := c.AppendDecompress([]byte("x"), packed, len(src))
			if err != nil || string(got) != "x"+string(src) {
				t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(src), err)
			}
			for _, size := range []int{len(src) - 1, len(src) + 1, 2 * len(src)} {
				if size < 0 || size == len(src) {
					continue
				}
				if _, err := c.AppendDecompress(nil, packed, size); err == nil {
					t.Errorf("%s took %d bytes for %d", name, len(src), size)
				}
			}
			for n := range min(len(packed), 200) {
				if got, err := c.AppendDecompress(nil, packed[:n], len(src)); err == nil && len(src) > 0 {
					t.Errorf("%s: %d of %d bytes gave %d", name, n, len(packed), len(got))
				}
			}
		}
	}
}

// TestBomb has a small value say that it is large, and be large: nothing of that size may be allocated.
func TestBomb(t *testing.T) {
	for name, c := range all(t) {
		bomb := c.AppendCompress(nil, make([]byte, 64<<20))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := c.AppendDecompress(nil, bomb, 1<<20); err == nil {
			t.Errorf("%s took it", name)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
			t.Errorf("%s allocated %d bytes for 1 MiB", name, n)
		}
	}
}

func TestCache(t *testing.T) {
	ctx := context.Background()
	text := strings.Repeat("All work and no play makes Jack a dull boy. ", 1000)
	for name, c := range all(t) {
		store := &memory.Store{}
		o := cache.Options[string, string]{Prefix: "text", TTL: time.Minute, Compressor: c}
		texts, err := cache.New(store, cache.RawString{}, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := texts.Set(ctx, "k", text); err != nil {
			t.Fatal(err)
		}
		stored, _ := store.Value("text:v0:k")
		if got, err := texts.Get(ctx, "k"); err != nil || got != text || len(stored) > len(text)/10 {
			t.Error(name, len(got), len(stored), err)
		}
		o.ValueBytesMax = len(text) - 1
		capped, err := cache.New(store, cache.RawString{}, o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := capped.Get(ctx, "k"); err != cache.ErrMiss {
			t.Error(name, err)
		}
		_, _ = texts.Close(), capped.Close()
	}
}

func FuzzDecompress(f *testing.F) {
	compressors := all(f)
	for _, c := range compressors {
		f.Add(c.AppendCompress(nil, []byte("some text some text some text")), 29)
	}
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		size = min(max(size, 0), 1<<16)
		for name, c := range compressors {
			if out, err := c.AppendDecompress(nil, data, size); err == nil && len(out) != size {
				t.Errorf("%s gave %d bytes for %d", name, len(out), size)
			}
		}
	})
}
