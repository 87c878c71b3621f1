package cache_test

// This file owns the tests of the calls without a loader.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/cache"
)

func TestGetSetDelete(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	c := newCache(t, store)
	if _, err := c.Get(ctx, 1); err != cache.ErrMiss {
		t.Error(err)
	}
	ann := user{1, "Ann"}
	if err := c.Set(ctx, 1, ann); err != nil {
		t.Fatal(err)
	}
	if v, err := c.Get(ctx, 1); err != nil || v != ann {
		t.Error(v, err)
	}
	if ttl, ok := store.TTL("user:v1:1"); !ok || ttl < 59*time.Second || ttl > time.Minute {
		t.Error(ttl, ok)
	}
	if err := c.Delete(ctx, 1); err != nil {
		t.Error(err)
	}
	if _, err := c.Get(ctx, 1); err != cache.ErrMiss {
		t.Error(err)
	}
	if err := c.SetNotFound(ctx, 1); err != nil {
		t.Error(err)
	}
	if _, err := c.Get(ctx, 1); err != cache.ErrNotFound {
		t.Error(err)
	}
	store.Advance(11 * time.Second)
	if _, err := c.Get(ctx, 1); err != cache.ErrMiss {
		t.Error(err)
	}
	expect(t, c, map[cache.Event]int64{cache.EventHit: 2, cache.EventNegative: 1, cache.EventMiss: 3, cache.EventStored: 2})
}

func TestTTLs(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	c := newCache(t, store, func(o *options) { o.Jitter = 0.5 })
	left := func(key int64) time.Duration {
		name, err := c.Key(key)
		if err != nil {
			t.Fatal(err)
		}
		ttl, ok := store.TTL(name)
		if !ok {
			t.Fatal(name, "is not there")
		}
		return ttl
	}
	seen := map[time.Duration]bool{}
	for range 50 {
		if err := c.Set(ctx, 1, user{}); err != nil {
			t.Fatal(err)
		}
		ttl := left(1)
		if ttl > time.Minute || ttl < 29*time.Second {
			t.Fatal(ttl)
		}
		seen[ttl.Truncate(time.Millisecond)] = true
	}
	if len(seen) < 10 {
		t.Error("no jitter:", seen)
	}
	_ = c.Set(ctx, 1, user{}, cache.TTL(cache.Off))
	if ttl := left(1); ttl != 0 {
		t.Error(ttl)
	}
	items := []cache.Item[int64, user]{{Key: 2, TTL: 2 * time.Second}, {Key: 3, TTL: cache.Off}, {Key: 4}}
	if err := c.SetMany(ctx, items, cache.TTL(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if a, b, d := left(2), left(3), left(4); a > 2*time.Second || b != 0 || d < 29*time.Minute || d > time.Hour {
		t.Error(a, b, d)
	}
}

func TestMany(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	c := newCache(t, store, func(o *options) { o.BatchMax = 64 })
	var items []cache.Item[int64, user]
	var keys []int64
	for i := range int64(200) {
		items = append(items, cache.Item[int64, user]{Key: i, Value: user{i, fmt.Sprint(i)}})
		keys = append(keys, i, i+1000)
	}
	if err := c.SetMany(ctx, items); err != nil {
		t.Fatal(err)
	}
	if n := store.Trips(); n != 4 { // 200 in batches of 64
		t.Errorf("%d trips", n)
	}
	keys = append(keys, 7, 7)
	results := c.GetMany(ctx, keys)
	for i, key := range keys {
		r := results[i]
		if key < 1000 && (r.Err != nil || r.Value != (user{key, fmt.Sprint(key)})) || key >= 1000 && r.Err != cache.ErrMiss {
			t.Fatal(key, r)
		}
	}
	if err := results.Err(); err != nil {
		t.Error(err)
	}
	if err := c.DeleteMany(ctx, keys); err != nil {
		t.Error(err)
	}
	if left := store.Keys(""); len(left) != 0 {
		t.Error(left)
	}
	if got := c.GetMany(ctx, nil); len(got) != 0 {
		t.Error(got)
	}
	reused := make(cache.Results[user], 0, 8)
	if got := c.GetManyInto(ctx, keys[:3], reused); len(got) != 3 || got[0].Err != cache.ErrMiss {
		t.Error(got)
	}
}

// TestManyPartially has some keys of a batch fail: the others are well.
func TestManyPartially(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	c := newCache(t, store)
	broken := errors.New("broken")
	store.Fault(func(_ context.Context, op *cache.Op) error {
		if strings.HasSuffix(string(op.Key), "3") {
			return broken
		}
		return nil
	})
	items := []cache.Item[int64, user]{{Key: 1, Value: user{ID: 1}}, {Key: 3}, {Key: 4, Value: user{ID: 4}}, {Key: 13}}
	err := c.SetMany(ctx, items)
	var many *cache.ManyError
	if !errors.As(err, &many) || !errors.Is(err, broken) {
		t.Fatal(err)
	}
	for i, failed := range []bool{false, true, false, true} {
		if (many.Errs[i] != nil) != failed {
			t.Error(i, many.Errs[i])
		}
	}
	results := c.GetMany(ctx, []int64{1, 3, 4, 5})
	var s *cache.StoreError
	if results[0].Value.ID != 1 || !errors.As(results[1].Err, &s) || results[2].Value.ID != 4 || results[3].Err != cache.ErrMiss {
		t.Error(results)
	}
	if err := results.Err(); !errors.Is(err, broken) {
		t.Error(err)
	}
	if err := c.DeleteMany(ctx, []int64{1, 3}); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// TestForeignBytes has what the cache did not write at its key: each is a miss, counted by its reason.
func TestForeignBytes(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	c := newCache(t, store)
	if err := c.Set(ctx, 1, user{1, "Ann"}); err != nil {
		t.Fatal(err)
	}
	good, _ := store.Value("user:v1:1")
	other, err := cache.New(store, cache.RawString{}, cache.Options[int64, string]{Prefix: "user", Version: 1, TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	put := func(b []byte) { store.Put("user:v1:1", b, 0) }
	for _, each := range []struct {
		name  string
		write func()
		event cache.Event
	}{
		{"nothing", func() { put(nil) }, cache.EventCorrupt},
		{"half a header", func() { put(good[:3]) }, cache.EventCorrupt},
		{"truncated", func() { put(good[:len(good)-1]) }, cache.EventCorrupt},
		{"longer", func() { put(append(bytes.Clone(good), 'x')) }, cache.EventCorrupt},
		{"a flipped bit", func() { b := bytes.Clone(good); b[len(b)-3] ^= 4; put(b) }, cache.EventCorrupt},
		{"another version", func() { b := bytes.Clone(good); b[1] += 0x20; put(b) }, cache.EventForeignVersion},
		{"plain JSON", func() { put([]byte(`{"id":1}`)) }, cache.EventCorrupt},
		{"plain text", func() { put([]byte("text without a header")) }, cache.EventForeignVersion},
		{"another codec", func() { _ = other.Set(ctx, 1, "text") }, cache.EventForeignCodec},
		{"JSON of another type", func() {
			text := cache.CodecFunc[string]{Number: cache.CodecJSON, Append: cache.RawString{}.AppendEncode, Parse: cache.RawString{}.Decode}
			bad, err := cache.New(store, text, cache.Options[int64, string]{Prefix: "user", Version: 1, TTL: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			defer bad.Close()
			_ = bad.Set(ctx, 1, `{"id":"no number"}`)
		}, cache.EventDecodeError},
	} {
		t.Run(each.name, func(t *testing.T) {
			each.write()
			before := c.Stats()
			if v, err := c.Get(ctx, 1); err != cache.ErrMiss || v != (user{}) {
				t.Error(v, err)
			}
			after := c.Stats()
			if after.Of(each.event) != before.Of(each.event)+1 || after.Of(cache.EventMiss) != before.Of(cache.EventMiss)+1 {
				t.Error("not counted:", before, after)
			}
			v, err := c.GetOrLoad(ctx, 1, func(context.Context, int64) (user, error) { return user{1, "loaded"}, nil })
			if err != nil || v.Name != "loaded" {
				t.Error(v, err)
			}
		})
	}
}

// fakeCompressor says that everything is as large as its first bytes say.
type fakeCompressor struct{ asked *int }

func (fakeCompressor) ID() cache.Compression { return 5 }
func (fakeCompressor) AppendCompress(dst, src []byte) []byte {
	return append(dst, src[0], byte(len(src)), byte(len(src)>>8))
}
func (f fakeCompressor) AppendDecompress(dst, src []byte, size int) ([]byte, error) {
	*f.asked = size
	n := int(src[1]) | int(src[2])<<8
	if n != size {
		return dst, errors.New("another size")
	}
	return append(dst, bytes.Repeat(src[:1], n)...), nil
}

func TestCompression(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	asked := 0
	make := func(change func(o *cache.Options[string, string])) *cache.Cache[string, string] {
		o := cache.Options[string, string]{Prefix: "text", TTL: time.Minute, Compressor: fakeCompressor{&asked}, CompressMin: 100}
		change(&o)
		c, err := cache.New(store, cache.RawString{}, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	c := make(func(*cache.Options[string, string]) {})
	for _, n := range []int{0, 1, 99, 100, 5000} {
		want := strings.Repeat("x", n)
		if err := c.Set(ctx, "k", want); err != nil {
			t.Fatal(err)
		}
		stored, _ := store.Value("text:v0:k")
		if packed := len(stored) < n; packed != (n >= 100) {
			t.Error(n, "is stored as", len(stored))
		}
		if got, err := c.Get(ctx, "k"); err != nil || got != want {
			t.Error(n, len(got), err)
		}
	}
	// The cap is checked before the compressor is asked.
	asked = 0
	capped := make(func(o *cache.Options[string, string]) { o.ValueBytesMax = 4999 })
	if _, err := capped.Get(ctx, "k"); err != cache.ErrMiss || asked != 0 {
		t.Error(err, asked)
	}
	expect(t, capped, map[cache.Event]int64{cache.EventTooLarge: 1})
	if err := capped.Set(ctx, "k", strings.Repeat("x", 5000)); err != cache.ErrTooLarge {
		t.Error(err)
	}
	// One that cannot decompress it.
	without := make(func(o *cache.Options[string, string]) { o.Compressor = nil })
	if _, err := without.Get(ctx, "k"); err != cache.ErrMiss {
		t.Error(err)
	}
	expect(t, without, map[cache.Event]int64{cache.EventForeignCodec: 1})
	reads := make(func(o *cache.Options[string, string]) {
		o.Compressor, o.Compressors = nil, []cache.Compressor{fakeCompressor{&asked}}
	})
	if got, err := reads.Get(ctx, "k"); err != nil || len(got) != 5000 {
		t.Error(len(got), err)
	}
}

// TestBadCodec has a codec fail and panic, both ways.
func TestBadCodec(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	refused := errors.New("refused")
	var acts atomic.Value // also used by what is stored in the background
	acts.Store("")
	act := func() error {
		switch acts.Load() {
		case "panic":
			panic("broken")
		case "error":
			return refused
		}
		return nil
	}
	c, err := cache.New(store, cache.CodecFunc[string]{Number: 200,
		Append: func(dst []byte, v string) ([]byte, error) { return append(dst, v...), act() },
		Parse:  func(data []byte, v *string) error { *v = string(data); return act() },
	}, cache.Options[int, string]{Prefix: "bad", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Set(ctx, 1, "good"); err != nil {
		t.Fatal(err)
	}
	var encode *cache.EncodeError
	for i, how := range []string{"error", "panic"} {
		acts.Store(how)
		if err := c.Set(ctx, 1, "bad"); !errors.As(err, &encode) || (how == "error") != errors.Is(err, refused) {
			t.Error(how, err)
		}
		if v, err := c.Get(ctx, 1); err != cache.ErrMiss || v != "" {
			t.Error(how, v, err)
		}
		err := c.SetMany(ctx, []cache.Item[int, string]{{Key: 1}, {Key: 2}})
		if !errors.As(err, &encode) {
			t.Error(how, err)
		}
		// What cannot be stored is loaded all the same.
		if v, err := c.GetOrLoad(ctx, 1, func(context.Context, int) (string, error) { return "loaded", nil }); err != nil || v != "loaded" {
			t.Error(how, v, err)
		}
		until(t, "the end of storing", func() bool {
			s := c.Stats()
			return s.Of(cache.EventEncodeError) == int64(i+1) && len(store.Keys("{")) == 0
		})
	}
	acts.Store("")
	if v, err := c.Get(ctx, 1); err != nil || v != "good" {
		t.Error(v, err)
	}
	expect(t, c, map[cache.Event]int64{cache.EventDecodeError: 4, cache.EventEncodeError: 2})
}

func TestOptionsThatAreRefused(t *testing.T) {
	store := newStore()
	for _, o := range []options{
		{TTL: time.Minute},
		{Prefix: "p"},
		{Prefix: "p", TTL: time.Minute, SoftTTL: time.Minute},
		{Prefix: "p", TTL: time.Minute, Jitter: 1},
		{Prefix: "p", TTL: time.Minute, EarlyRefresh: -1},
		{Prefix: "p", TTL: time.Minute, LeaseTTL: time.Millisecond},
		{Prefix: "p", TTL: time.Minute, CloseTimeout: cache.Off},
		{Prefix: "p", TTL: time.Minute, Version: -1},
	} {
		if _, err := cache.New(store, cache.JSON[user]{}, o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
	if _, err := cache.New(store, cache.CodecFunc[user]{Number: 255}, options{Prefix: "p", TTL: time.Minute}); err == nil {
		t.Error("codec 255 was taken")
	}
}

func TestCancelledContext(t *testing.T) {
	store := newStore()
	c := newCache(t, store)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	load := func(context.Context, int64) (user, error) { return user{}, nil }
	if _, err := c.Get(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := c.Set(ctx, 1, user{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := c.Delete(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := c.GetOrLoad(ctx, 1, load); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if r := c.GetMany(ctx, []int64{1}); !errors.Is(r[0].Err, context.Canceled) {
		t.Error(r)
	}
	r := c.GetOrLoadMany(ctx, []int64{1}, func(context.Context, []int64) (map[int64]user, error) { return nil, nil })
	if !errors.Is(r[0].Err, context.Canceled) {
		t.Error(r)
	}
	if err := c.SetMany(ctx, []cache.Item[int64, user]{{Key: 1}, {Key: 2}}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := c.DeleteMany(ctx, []int64{1, 2}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// Which is no fault of the store.
	expect(t, c, map[cache.Event]int64{cache.EventCancelled: 10, cache.EventOutOfTime: 0, cache.EventStoreError: 0})
}

// TestWhoseFaultItIs has a store that hangs: given up because the caller did not wait, it counts as another event than what the cache's own
// StoreTimeout ends, or what the store refuses.
func TestWhoseFaultItIs(t *testing.T) {
	store := newStore()
	ctx := testContext(t)
	c := newCache(t, store, func(o *options) { o.StoreTimeout, o.LeaseTTL = time.Millisecond, cache.Off })
	h := newHash(t, store)
	store.Fault(func(ctx context.Context, _ *cache.Op) error { <-ctx.Done(); return ctx.Err() })
	early := func() context.Context {
		over, cancel := context.WithDeadline(ctx, time.Now().Add(-time.Second))
		t.Cleanup(cancel)
		return over
	}
	if _, err := c.Get(early(), 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	load := func(context.Context, int64) (user, error) { return user{1, "loaded"}, nil }
	if _, err := c.GetOrLoad(early(), 1, load); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	expect(t, c, map[cache.Event]int64{cache.EventOutOfTime: 2, cache.EventCancelled: 0, cache.EventStoreError: 0})
	if v, err := c.GetOrLoad(ctx, 1, load); err != nil || v.Name != "loaded" {
		t.Error(v, err)
	}
	expect(t, c, map[cache.Event]int64{cache.EventOutOfTime: 2, cache.EventCancelled: 0, cache.EventStoreError: 1})

	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := h.Get(cancelled, "ann"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := h.SetFields(early(), "ann", profile{}, "name"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	refused := errors.New("refused")
	store.Fault(func(context.Context, *cache.Op) error { return refused })
	if err := h.Delete(ctx, "ann"); !errors.Is(err, refused) {
		t.Error(err)
	}
	expect(t, h, map[cache.Event]int64{cache.EventOutOfTime: 1, cache.EventCancelled: 1, cache.EventStoreError: 1})
}

// lateContext is one whose deadline is over, and whose timer has not fired yet.
type lateContext struct{ context.Context }

func (lateContext) Deadline() (time.Time, bool) { return time.Now().Add(-time.Nanosecond), true }

// TestDeadlineBeforeItsTimer has a client see that the deadline is over before the context says so.
func TestDeadlineBeforeItsTimer(t *testing.T) {
	store := newStore()
	c := newCache(t, store)
	store.Fault(func(context.Context, *cache.Op) error { return os.ErrDeadlineExceeded })
	if _, err := c.Get(lateContext{testContext(t)}, 1); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	expect(t, c, map[cache.Event]int64{cache.EventOutOfTime: 1, cache.EventStoreError: 0})
}

// lending is a transport whose store lends the memory of what it has read.
type lending map[string]string

// lentText is memory that was lent, and what was in it.
type lentText struct {
	memory []byte
	text   string
}

// lent is what it has lent.
var lent []lentText

func (l lending) Do(_ context.Context, ops []cache.Op) {
	for i := range ops {
		op := &ops[i]
		text, ok := l[string(op.Key)]
		if op.Found = ok; ok {
			op.Value, op.Lent = []byte(text)[:len(text):len(text)], true
			lent = append(lent, lentText{op.Value, text})
		}
	}
}

// TestLentMemoryIsNotWrittenTo reads from a transport that lends, and then from one that appends to what it is given.
func TestLentMemoryIsNotWrittenTo(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	writer, err := cache.New(store, cache.RawString{}, cache.Options[string, string]{Prefix: "lent", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	from := lending{}
	for _, word := range []string{"first", "other"} {
		if err := writer.Set(ctx, word, word); err != nil {
			t.Fatal(err)
		}
		stored, _ := store.Value("lent:v0:" + word)
		from["lent:v0:"+word] = string(stored)
	}
	lent = nil
	turns := 0
	c, err := cache.New(transportFunc(func(ctx context.Context, ops []cache.Op) {
		if turns++; turns%2 == 1 {
			from.Do(ctx, ops)
		} else {
			store.Do(ctx, ops)
		}
	}), cache.RawString{}, cache.Options[string, string]{Prefix: "lent", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 4 {
		for _, word := range []string{"first", "other", "first"} {
			if v, err := c.Get(ctx, word); err != nil || v != word {
				t.Error(v, err)
			}
			if r := c.GetMany(ctx, []string{"other", word}); r[0].Value != "other" || r[1].Value != word {
				t.Error(r)
			}
		}
	}
	for _, each := range lent {
		if string(each.memory) != each.text {
			t.Errorf("lent memory has become %q, and was %q", each.memory, each.text)
		}
	}
}

// transportFunc is a transport of a function.
type transportFunc func(ctx context.Context, ops []cache.Op)

func (f transportFunc) Do(ctx context.Context, ops []cache.Op) { f(ctx, ops) }
