package cache_test

// This file owns the tests of structs as hashes.

import (
	"errors"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/cache"
)

type base struct {
	Created time.Time
}

type profile struct {
	base           // not exported itself, but its fields are
	Name    string `cache:"name"`
	Age     int8   `cache:"age"`
	Visits  uint64
	Score   float64
	Ratio   float32
	Active  bool
	Raw     []byte
	Addr    netip.Addr
	Tags    []string         `cache:"tags,omitempty"`
	More    map[string]int   `cache:",omitempty"`
	Next    *struct{ N int } `cache:",omitempty"`
	Secret  string           `cache:"-"`
	private int
}

func fullProfile() profile {
	return profile{base: base{time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}, Name: "Ann \r\n", Age: -128, Visits: math.MaxUint64,
		Score: 0.1, Ratio: 1.0 / 3, Active: true, Raw: []byte{0, 255}, Addr: netip.MustParseAddr("::1"), Tags: []string{"a"},
		More: map[string]int{"x": 1}, Next: &struct{ N int }{7}}
}

func newHash(t *testing.T, store cache.Transport) *cache.Hash[string, profile] {
	t.Helper()
	h, err := cache.NewHash[string, profile](store, cache.HashOptions{Prefix: "profile", Version: 2, TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHash(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	h := newHash(t, store)
	if _, err := h.Get(ctx, "ann"); err != cache.ErrMiss {
		t.Error(err)
	}
	want := fullProfile()
	stored := want
	stored.Secret, stored.private = "secret", 1
	if err := h.Set(ctx, "ann", stored); err != nil {
		t.Fatal(err)
	}
	if got, err := h.Get(ctx, "ann"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
	got, err := h.GetFields(ctx, "ann", "name", "Score", "Created")
	if err != nil || !reflect.DeepEqual(got, profile{base: want.base, Name: want.Name, Score: want.Score}) {
		t.Errorf("%+v, %v", got, err)
	}
	if err := h.SetFields(ctx, "ann", profile{Age: 9, Tags: nil}, "age", "tags"); err != nil {
		t.Error(err)
	}
	want.Age, want.Tags = 9, nil
	if got, err := h.Get(ctx, "ann"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
	if ttl, ok := store.TTL("profile:v2:ann"); !ok || ttl < 59*time.Second {
		t.Error(ttl, ok)
	}
	// What the new value does not have is gone.
	if err := h.Set(ctx, "ann", profile{Name: "new"}, cache.TTL(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got, err := h.Get(ctx, "ann"); err != nil || got.Name != "new" || got.More != nil || got.Next != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if err := h.SetFields(ctx, "nobody", profile{}, "age"); err != cache.ErrMiss {
		t.Error(err)
	}
	if err := h.SetFields(ctx, "ann", profile{}, "Secret"); err == nil {
		t.Error("a field that is not stored was set")
	}
	if _, err := h.GetFields(ctx, "ann", "nothing"); err == nil {
		t.Error("a field that there is not was read")
	}
	if err := h.Delete(ctx, "ann", "nobody"); err != nil {
		t.Error(err)
	}
	if _, err := h.GetFields(ctx, "ann", "name"); err != cache.ErrMiss {
		t.Error(err)
	}
}

func TestHashMany(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	h := newHash(t, store)
	items := []cache.Item[string, profile]{{Key: "a", Value: profile{Name: "a"}}, {Key: "b", Value: profile{Name: "b"}, TTL: time.Second}}
	if err := h.SetMany(ctx, items); err != nil {
		t.Fatal(err)
	}
	results := h.GetMany(ctx, []string{"a", "x", "b"})
	if results[0].Value.Name != "a" || results[1].Err != cache.ErrMiss || results[2].Value.Name != "b" {
		t.Error(results)
	}
	store.Advance(2 * time.Second)
	results = h.GetFieldsMany(ctx, []string{"a", "b"}, "name")
	if results[0].Value.Name != "a" || results[1].Err != cache.ErrMiss {
		t.Error(results)
	}
}

// TestForeignHash has a hash that another program wrote, and one with a field that cannot be read.
func TestForeignHash(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	h := newHash(t, store)
	put := func(fields ...string) {
		var all [][]byte
		for _, f := range fields {
			all = append(all, []byte(f))
		}
		store.Do(ctx, []cache.Op{{Kind: cache.OpHashSet, Key: []byte("profile:v2:k"), Fields: all}})
	}
	for _, each := range []struct {
		fields []string
		event  cache.Event
	}{
		{[]string{"name", "Ann"}, cache.EventForeignVersion},
		{[]string{"", "\x07\x43", "name", "Ann"}, cache.EventForeignVersion},
		{[]string{"", "\x07\x23", "age", "128"}, cache.EventDecodeError},
		{[]string{"", "\x07\x23", "age", "x"}, cache.EventDecodeError},
		{[]string{"", "\x07\x23", "tags", "{"}, cache.EventDecodeError},
	} {
		put(each.fields...)
		before := h.Stats()
		if _, err := h.Get(ctx, "k"); err != cache.ErrMiss {
			t.Error(each.fields, err)
		}
		if _, err := h.GetFields(ctx, "k", "name", "age", "tags"); err != cache.ErrMiss {
			t.Error(each.fields, err)
		}
		after := h.Stats()
		if after.Of(each.event) != before.Of(each.event)+2 {
			t.Error(each.fields, "not counted")
		}
	}
	put("", "\x07\x23", "name", "Ann", "from the future", "x")
	if got, err := h.Get(ctx, "k"); err != nil || got.Name != "Ann" {
		t.Error(got, err)
	}
	store.Put("profile:v2:k", []byte("no hash"), 0)
	if _, err := h.Get(ctx, "k"); err == nil || err == cache.ErrMiss {
		t.Error(err)
	}
}

func TestHashTypesThatAreRefused(t *testing.T) {
	store := newStore()
	o := cache.HashOptions{Prefix: "p", TTL: time.Minute}
	if _, err := cache.NewHash[int, int](store, o); err == nil {
		t.Error("int was taken")
	}
	if _, err := cache.NewHash[int, struct{ a int }](store, o); err == nil {
		t.Error("a struct without fields was taken")
	}
	if _, err := cache.NewHash[int, struct {
		A int `cache:"x"`
		B int `cache:"x"`
	}](store, o); err == nil {
		t.Error("two fields of one name were taken")
	}
	if _, err := cache.NewHash[int, profile](store, cache.HashOptions{Prefix: "p"}); err == nil {
		t.Error("no TTL was taken")
	}
}

// TestHashDeleteByKey has one of several keys be too long: the others are deleted, and the error says which.
func TestHashDeleteByKey(t *testing.T) {
	ctx := testContext(t)
	store := newStore()
	h := newHash(t, store)
	for _, key := range []string{"ann", "bob"} {
		if err := h.Set(ctx, key, profile{Name: key}); err != nil {
			t.Fatal(err)
		}
	}
	err := h.Delete(ctx, "ann", strings.Repeat("x", cache.KeyBytesMax), "bob")
	var many *cache.ManyError
	if !errors.As(err, &many) || many.Errs[0] != nil || many.Errs[1] != cache.ErrKeyTooLong || many.Errs[2] != nil {
		t.Error(err)
	}
	if left := store.Keys(""); len(left) != 0 {
		t.Error(left, "are left")
	}
}
