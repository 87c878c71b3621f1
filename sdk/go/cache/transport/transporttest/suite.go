// Package transporttest is the suite that every transport of a cache passes: what each operation does, batches, and a cache on top.
package transporttest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/cache"
)

// wait bounds everything that a test waits for; it is never a pause.
const wait = 240 * time.Second

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	t.Cleanup(cancel)
	return ctx
}

// until waits for something that somebody else brings about.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(wait); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not happen", what)
		}
	}
}

// suite has keys of its own, so that it can run against a store that others use.
type suite struct {
	tr     cache.Transport
	prefix string
}

// Run runs the suite with a transport whose store may hold other keys.
func Run(t *testing.T, tr cache.Transport) {
	var random [6]byte
	_, _ = rand.Read(random[:]) // never fails
	s := &suite{tr, "suite-" + hex.EncodeToString(random[:]) + ":"}
	for _, test := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"Strings", s.strings}, {"Bytes", s.bytes}, {"TTL", s.ttl}, {"Time", s.time}, {"Leases", s.leases}, {"LeasesExpire", s.leasesExpire},
		{"Contention", s.contention}, {"Hashes", s.hashes}, {"ManyHashes", s.manyHashes}, {"Batch", s.batch},
		{"ErrorsByKey", s.errorsByKey}, {"ManyReads", s.manyReads}, {"Lent", s.lent}, {"Cancelled", s.cancelled}, {"Concurrent", s.concurrent},
		{"Cache", s.cache}, {"Late", s.late}, {"Damaged", s.damaged}, {"Stampede", s.stampede}, {"Tracking", s.tracking},
	} {
		t.Run(test.name, test.run)
	}
}

func (s *suite) key(name string) []byte { return []byte(s.prefix + name) }

// lease is the key of a key's lease, in the same slot.
func (s *suite) lease(name string) []byte { return []byte("{" + s.prefix + name + "}:lease") }

// do runs one operation that must not fail.
func (s *suite) do(t *testing.T, op cache.Op) cache.Op {
	t.Helper()
	ops := []cache.Op{op}
	s.tr.Do(testContext(t), ops)
	if ops[0].Err != nil {
		t.Fatalf("operation %d: %v", op.Kind, ops[0].Err)
	}
	return ops[0]
}

func (s *suite) get(t *testing.T, key []byte) (string, bool) {
	t.Helper()
	op := s.do(t, cache.Op{Kind: cache.OpGet, Key: key})
	return string(op.Value), op.Found
}

func (s *suite) strings(t *testing.T) {
	key := s.key("strings")
	if v, ok := s.get(t, key); ok || v != "" {
		t.Errorf("%q, %v", v, ok)
	}
	s.do(t, cache.Op{Kind: cache.OpSet, Key: key, Value: []byte("one")})
	s.do(t, cache.Op{Kind: cache.OpSet, Key: key, Value: []byte("two"), TTL: time.Minute})
	if v, ok := s.get(t, key); !ok || v != "two" {
		t.Errorf("%q, %v", v, ok)
	}
	// What is read is appended.
	op := s.do(t, cache.Op{Kind: cache.OpGet, Key: key, Value: append(make([]byte, 0, 64), "before "...)})
	if string(op.Value) != "before two" {
		t.Errorf("%q", op.Value)
	}
	if op := s.do(t, cache.Op{Kind: cache.OpDelete, Key: key}); !op.Found {
		t.Error("DEL did not find it")
	}
	if op := s.do(t, cache.Op{Kind: cache.OpDelete, Key: key}); op.Found {
		t.Error("DEL found it twice")
	}
	lease := s.lease("strings")
	s.do(t, cache.Op{Kind: cache.OpSet, Key: key, Value: []byte("v")})
	s.do(t, cache.Op{Kind: cache.OpSet, Key: lease, Value: []byte("l")})
	s.do(t, cache.Op{Kind: cache.OpDelete, Key: key, Lease: lease})
	if _, ok := s.get(t, lease); ok {
		t.Error("the lease was not deleted")
	}
}

// bytes has every byte in keys and values, the empty value, and a large one.
func (s *suite) bytes(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for name, value := range map[string][]byte{"empty": {}, "every": every, "large": bytes.Repeat(every, 4096), "line end": []byte("\r\n")} {
		key := append(s.key(name+" "), every[:122]...) // no brace: those decide the slot
		s.do(t, cache.Op{Kind: cache.OpSet, Key: key, Value: value, TTL: time.Minute})
		op := s.do(t, cache.Op{Kind: cache.OpGet, Key: key})
		if !op.Found || !bytes.Equal(op.Value, value) {
			t.Errorf("%s: %d bytes came back of %d, found %v", name, len(op.Value), len(value), op.Found)
		}
	}
}

func (s *suite) ttl(t *testing.T) {
	short, long := s.key("short"), s.key("long")
	s.do(t, cache.Op{Kind: cache.OpSet, Key: short, Value: []byte("v"), TTL: 20 * time.Millisecond})
	s.do(t, cache.Op{Kind: cache.OpSet, Key: long, Value: []byte("v"), TTL: time.Minute})
	until(t, "expiry", func() bool { _, ok := s.get(t, short); return !ok })
	if _, ok := s.get(t, long); !ok {
		t.Error("it is gone before its time")
	}
}

// time asks for the store's time, which is this machine's here.
func (s *suite) time(t *testing.T) {
	clock, ok := s.tr.(cache.Clock)
	if !ok {
		t.Skip("the transport cannot tell the store's time")
	}
	ctx, cancel := context.WithCancel(testContext(t))
	before := time.Now()
	at, err := clock.Time(ctx)
	if err != nil || at.Before(before.Add(-wait)) || at.After(time.Now().Add(wait)) {
		t.Error(at, err)
	}
	cancel()
	if _, err := clock.Time(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func (s *suite) leases(t *testing.T) {
	key, lease := s.key("leases"), s.lease("leases")
	mine, other := []byte("mine"), []byte("other")
	found := func(op cache.Op, want bool) {
		t.Helper()
		op.Key, op.Lease = key, lease
		if op = s.do(t, op); op.Found != want {
			t.Errorf("operation %d with %q: found %v", op.Kind, op.Token, op.Found)
		}
	}
	// Without a lease nothing is done.
	found(cache.Op{Kind: cache.OpFill, Token: mine, Value: []byte("v"), TTL: time.Minute}, false)
	found(cache.Op{Kind: cache.OpRelease, Token: mine}, false)
	found(cache.Op{Kind: cache.OpRenew, Token: mine, TTL: time.Minute}, false)
	found(cache.Op{Kind: cache.OpAcquire, Token: mine, TTL: time.Minute}, true)
	found(cache.Op{Kind: cache.OpAcquire, Token: other, TTL: time.Minute}, false)
	found(cache.Op{Kind: cache.OpAcquire, Token: mine, TTL: time.Minute}, false)
	// Nor with somebody else's.
	found(cache.Op{Kind: cache.OpFill, Token: other, Value: []byte("v"), TTL: time.Minute}, false)
	found(cache.Op{Kind: cache.OpRelease, Token: other}, false)
	found(cache.Op{Kind: cache.OpRenew, Token: other, TTL: time.Minute}, false)
	if _, ok := s.get(t, key); ok {
		t.Error("somebody without the lease has stored")
	}
	found(cache.Op{Kind: cache.OpRenew, Token: mine, TTL: time.Hour}, true)
	found(cache.Op{Kind: cache.OpFill, Token: mine, Value: []byte("filled"), TTL: time.Minute}, true)
	if v, _ := s.get(t, key); v != "filled" {
		t.Errorf("%q", v)
	}
	found(cache.Op{Kind: cache.OpAcquire, Token: other, TTL: time.Minute}, true)
	found(cache.Op{Kind: cache.OpFill, Token: other, Value: []byte("for ever")}, true)
	if v, _ := s.get(t, key); v != "for ever" {
		t.Errorf("%q", v)
	}
	found(cache.Op{Kind: cache.OpAcquire, Token: mine, TTL: time.Minute}, true)
	found(cache.Op{Kind: cache.OpRelease, Token: mine}, true)
	found(cache.Op{Kind: cache.OpAcquire, Token: other, TTL: time.Minute}, true)
	found(cache.Op{Kind: cache.OpRelease, Token: other}, true)
}

func (s *suite) leasesExpire(t *testing.T) {
	key, lease := s.key("dead"), s.lease("dead")
	acquire := cache.Op{Kind: cache.OpAcquire, Key: key, Lease: lease, Token: []byte("dead"), TTL: 20 * time.Millisecond}
	if !s.do(t, acquire).Found {
		t.Fatal("the lease was not free")
	}
	acquire.Token, acquire.TTL = []byte("next"), time.Minute
	until(t, "the end of the lease", func() bool { return s.do(t, acquire).Found })
	if s.do(t, cache.Op{Kind: cache.OpFill, Key: key, Lease: lease, Token: []byte("dead"), Value: []byte("late")}).Found {
		t.Error("who has lost the lease has stored")
	}
	fill := cache.Op{Kind: cache.OpFill, Key: key, Lease: lease, Token: []byte("next"), Value: []byte("v"), TTL: time.Millisecond}
	if !s.do(t, fill).Found {
		t.Error("the lease was lost")
	}
	until(t, "the value's end", func() bool { _, ok := s.get(t, key); return !ok })
}

// contention has many take, fill and release the same few leases: one at a time has each.
func (s *suite) contention(t *testing.T) {
	ctx := testContext(t)
	var owners [4]atomic.Int64
	var all sync.WaitGroup
	var won atomic.Int64
	for g := range 16 {
		all.Add(1)
		go func() {
			defer all.Done()
			for round := range 30 {
				k := (g + round) % len(owners)
				name := fmt.Sprint("contended", k)
				token := []byte(fmt.Sprint(g, "/", round))
				ops := []cache.Op{{Kind: cache.OpAcquire, Key: s.key(name), Lease: s.lease(name), Token: token, TTL: time.Minute}}
				if s.tr.Do(ctx, ops); ops[0].Err != nil || !ops[0].Found {
					if ops[0].Err != nil {
						t.Error(ops[0].Err)
					}
					continue
				}
				won.Add(1)
				if owners[k].Add(1) != 1 {
					t.Error("two have the lease")
				}
				owners[k].Add(-1)
				ops[0].Kind, ops[0].Value = cache.OpFill, token
				if round%2 == 1 {
					ops[0].Kind = cache.OpRelease
				}
				if s.tr.Do(ctx, ops); ops[0].Err != nil || !ops[0].Found {
					t.Error("the owner has lost the lease", ops[0].Err)
				}
			}
		}()
	}
	all.Wait()
	if won.Load() == 0 {
		t.Error("nobody got a lease")
	}
}

func (s *suite) hashes(t *testing.T) {
	key := s.key("hash")
	list := func(words ...string) [][]byte {
		var all [][]byte
		for _, w := range words {
			all = append(all, []byte(w))
		}
		return all
	}
	if op := s.do(t, cache.Op{Kind: cache.OpHashUpdate, Key: key, Fields: list("a", "1")}); op.Found {
		t.Error("a hash that is not there was updated")
	}
	if op := s.do(t, cache.Op{Kind: cache.OpHashGet, Key: key, Fields: list("a")}); op.Found || len(op.Values) != 1 || op.Values[0] != nil {
		t.Error(op.Found, op.Values)
	}
	s.do(t, cache.Op{Kind: cache.OpHashSet, Key: key, Fields: list("a", "1", "b", "", "c", "\r\n"), TTL: time.Minute})
	s.do(t, cache.Op{Kind: cache.OpHashSet, Key: key, Fields: list("a", "2", "b", ""), TTL: time.Minute})
	op := s.do(t, cache.Op{Kind: cache.OpHashGet, Key: key, Fields: list("b", "c", "a")})
	if !op.Found || len(op.Values) != 3 || op.Values[0] == nil || len(op.Values[0]) != 0 || op.Values[1] != nil || string(op.Values[2]) != "2" {
		t.Errorf("%v %q", op.Found, op.Values)
	}
	if op := s.do(t, cache.Op{Kind: cache.OpHashUpdate, Key: key, Fields: list("a", "3", "d", "4")}); !op.Found {
		t.Error("a hash that is there was not updated")
	}
	op = s.do(t, cache.Op{Kind: cache.OpHashGet, Key: key})
	pairs := map[string]string{}
	for i := 0; i+1 < len(op.Values); i += 2 {
		pairs[string(op.Values[i])] = string(op.Values[i+1])
	}
	if fmt.Sprint(pairs) != "map[a:3 b: d:4]" {
		t.Error(pairs)
	}
	s.do(t, cache.Op{Kind: cache.OpHashSet, Key: key, Fields: list("a", "1"), TTL: 20 * time.Millisecond})
	s.do(t, cache.Op{Kind: cache.OpHashUpdate, Key: key, Fields: list("a", "2")})
	until(t, "the hash's end", func() bool { return !s.do(t, cache.Op{Kind: cache.OpHashGet, Key: key}).Found })
	ops := []cache.Op{{Kind: cache.OpHashSet, Key: key}}
	if s.tr.Do(testContext(t), ops); ops[0].Err == nil {
		t.Error("a hash without fields was stored")
	}
}

// manyHashes replaces more hashes than leave as one, among other operations; each gets what is its own.
func (s *suite) manyHashes(t *testing.T) {
	ctx := testContext(t)
	const n = 300
	for round := range 2 {
		var ops []cache.Op
		for i := range n {
			fields := [][]byte{[]byte("number"), fmt.Append(nil, i), []byte("round"), fmt.Append(nil, round)}
			if round == 0 {
				fields = append(fields, []byte("old"), nil)
			}
			key := s.key(fmt.Sprint("many", i))
			ops = append(ops, cache.Op{Kind: cache.OpHashSet, Key: key, Fields: fields, TTL: time.Minute})
			if i%100 == 0 {
				key := s.key(fmt.Sprint("between", i))
				ops = append(ops, cache.Op{Kind: cache.OpSet, Key: key, Value: []byte("v"), TTL: time.Minute})
			}
		}
		s.tr.Do(ctx, ops)
		for i := range ops {
			if ops[i].Err != nil {
				t.Fatal(round, i, ops[i].Err)
			}
		}
		ops = ops[:0]
		for i := range n {
			ops = append(ops, cache.Op{Kind: cache.OpHashGet, Key: s.key(fmt.Sprint("many", i)),
				Fields: [][]byte{[]byte("number"), []byte("round"), []byte("old")}})
		}
		s.tr.Do(ctx, ops)
		for i := range ops {
			v := ops[i].Values
			if ops[i].Err != nil || len(v) != 3 {
				t.Fatalf("%d, %d: %q, %v", round, i, v, ops[i].Err)
			}
			if string(v[0]) != fmt.Sprint(i) || string(v[1]) != fmt.Sprint(round) || (v[2] != nil) != (round == 0) {
				t.Fatalf("%d, %d: %q", round, i, v)
			}
		}
	}
	// What is of another type is replaced, and not updated.
	s.do(t, cache.Op{Kind: cache.OpSet, Key: s.key("many0"), Value: []byte("v"), TTL: time.Minute})
	ops := []cache.Op{
		{Kind: cache.OpHashUpdate, Key: s.key("many0"), Fields: [][]byte{[]byte("number"), []byte("1")}},
		{Kind: cache.OpHashUpdate, Key: s.key("many1"), Fields: [][]byte{[]byte("number"), []byte("2")}},
	}
	s.tr.Do(ctx, ops)
	if ops[0].Err == nil || ops[0].Found {
		t.Error("a string was updated as a hash:", ops[0].Found)
	}
	if ops[1].Err != nil || !ops[1].Found {
		t.Error(ops[1].Found, ops[1].Err)
	}
	fields := [][]byte{[]byte("number"), []byte("3")}
	s.do(t, cache.Op{Kind: cache.OpHashSet, Key: s.key("many0"), Fields: fields, TTL: time.Minute})
}

// batch has a thousand operations of all kinds leave together; those on one key run in their order.
func (s *suite) batch(t *testing.T) {
	ctx := testContext(t)
	const n = 250
	var ops []cache.Op
	for i := range n {
		name := fmt.Sprint("batch", i)
		key, lease, token := s.key(name), s.lease(name), []byte("token")
		ops = append(ops,
			cache.Op{Kind: cache.OpSet, Key: key, Value: []byte(fmt.Sprint("value ", i)), TTL: time.Minute},
			cache.Op{Kind: cache.OpGet, Key: key},
			cache.Op{Kind: cache.OpAcquire, Key: key, Lease: lease, Token: token, TTL: time.Minute},
			cache.Op{Kind: cache.OpDelete, Key: key})
	}
	s.tr.Do(ctx, ops)
	for i := range n {
		set, get, acquire, del := ops[4*i], ops[4*i+1], ops[4*i+2], ops[4*i+3]
		if err := errors.Join(set.Err, get.Err, acquire.Err, del.Err); err != nil {
			t.Fatal(i, err)
		}
		if string(get.Value) != fmt.Sprint("value ", i) || !acquire.Found || !del.Found {
			t.Fatalf("%d: %q, %v, %v", i, get.Value, acquire.Found, del.Found)
		}
	}
	ops = ops[:0]
	for i := range n {
		name := fmt.Sprint("batch", i)
		key, lease, token := s.key(name), s.lease(name), []byte("token")
		switch i % 4 {
		case 0:
			ops = append(ops, cache.Op{Kind: cache.OpFill, Key: key, Lease: lease, Token: token, Value: []byte(name), TTL: time.Minute})
		case 1:
			ops = append(ops, cache.Op{Kind: cache.OpRelease, Key: key, Lease: lease, Token: token})
		case 2:
			ops = append(ops, cache.Op{Kind: cache.OpFill, Key: key, Lease: lease, Token: []byte("wrong"), Value: []byte(name)})
		default:
			ops = append(ops, cache.Op{Kind: cache.OpSet, Key: key, Value: []byte(name)})
		}
	}
	s.tr.Do(ctx, ops)
	for i := range ops {
		if ops[i].Err != nil || i%4 < 2 && !ops[i].Found || i%4 == 2 && ops[i].Found {
			t.Fatal(i, ops[i].Found, ops[i].Err)
		}
	}
	s.tr.Do(ctx, nil)
}

// errorsByKey has one key of a batch hold another type.
func (s *suite) errorsByKey(t *testing.T) {
	s.do(t, cache.Op{Kind: cache.OpHashSet, Key: s.key("wrong"), Fields: [][]byte{[]byte("f"), []byte("v")}, TTL: time.Minute})
	s.do(t, cache.Op{Kind: cache.OpSet, Key: s.key("right"), Value: []byte("v"), TTL: time.Minute})
	ops := []cache.Op{{Kind: cache.OpGet, Key: s.key("right")}, {Kind: cache.OpGet, Key: s.key("wrong")}, {Kind: cache.OpGet, Key: s.key("right")}}
	s.tr.Do(testContext(t), ops)
	if ops[0].Err != nil || ops[2].Err != nil || string(ops[0].Value) != "v" || string(ops[2].Value) != "v" {
		t.Error(ops[0].Err, ops[2].Err)
	}
	if ops[1].Err == nil || ops[1].Found || !strings.Contains(strings.ToLower(ops[1].Err.Error()), "kind of value") {
		t.Error(ops[1].Found, ops[1].Err)
	}
	one := []cache.Op{{Kind: cache.OpGet, Key: s.key("wrong")}}
	if s.tr.Do(testContext(t), one); one[0].Err == nil {
		t.Error("no error")
	}
}

// manyReads reads batches often enough for a transport to have found another way for them, and then some of other types and of none.
func (s *suite) manyReads(t *testing.T) {
	ctx := testContext(t)
	const n = 600
	var ops []cache.Op
	for i := range n {
		key, value := s.key(fmt.Sprint("reads", i)), fmt.Append(nil, "value ", i)
		ops = append(ops, cache.Op{Kind: cache.OpSet, Key: key, Value: value, TTL: time.Minute})
	}
	s.tr.Do(ctx, ops)
	large := bytes.Repeat([]byte("large"), 40<<10)
	s.do(t, cache.Op{Kind: cache.OpSet, Key: s.key("reads7"), Value: large, TTL: time.Minute})
	for round := range 60 {
		switch round {
		case 40:
			s.do(t, cache.Op{Kind: cache.OpDelete, Key: s.key("reads300")})
			s.do(t, cache.Op{Kind: cache.OpHashSet, Key: s.key("reads2"), Fields: [][]byte{[]byte("f"), []byte("v")}, TTL: time.Minute})
			s.do(t, cache.Op{Kind: cache.OpSet, Key: s.key("reads3"), TTL: time.Minute})
		case 41:
			s.do(t, cache.Op{Kind: cache.OpDelete, Key: s.key("reads2")})
		}
		ops = ops[:1+round*17%n]
		for i := range ops {
			ops[i] = cache.Op{Kind: cache.OpGet, Key: s.key(fmt.Sprint("reads", i)), Value: ops[i].Value[:0]}
			if ops[i].Value == nil || round%2 == 1 {
				ops[i].Value = make([]byte, 0, 8)
			}
		}
		if round == 40 || round == 41 {
			for i := len(ops); i < n; i++ {
				ops = append(ops, cache.Op{Kind: cache.OpGet, Key: s.key(fmt.Sprint("reads", i))})
			}
		}
		s.tr.Do(ctx, ops)
		for i := range ops {
			op, want, fails := &ops[i], fmt.Append(nil, "value ", i), false
			switch {
			case i == 7:
				want = large
			case round >= 40 && i == 3:
				want = nil
			case round == 40 && i == 2:
				want, fails = nil, true
			case round >= 40 && (i == 300 || i == 2):
				want = nil
			}
			if found := want != nil || round >= 40 && i == 3; op.Found != found || !bytes.Equal(op.Value, want) || (op.Err != nil) != fails {
				t.Fatalf("round %d: %q is %.20q, found %v, %v", round, op.Key, op.Value, op.Found, op.Err)
			}
			if op.Lent { // a next round must not write there
				op.Value = nil
			}
		}
	}
}

// lent writes over key and value when Do has returned.
func (s *suite) lent(t *testing.T) {
	ctx := testContext(t)
	key, value := s.key("lent 000"), bytes.Repeat([]byte("x"), 100)
	for i := range 300 {
		copy(key[len(key)-3:], fmt.Sprintf("%03d", i))
		copy(value, fmt.Sprintf("%03d", i))
		ops := []cache.Op{{Kind: cache.OpSet, Key: key, Value: value, TTL: time.Minute}}
		if s.tr.Do(ctx, ops); ops[0].Err != nil {
			t.Fatal(ops[0].Err)
		}
	}
	for i := range 300 {
		if v, _ := s.get(t, s.key(fmt.Sprintf("lent %03d", i))); !strings.HasPrefix(v, fmt.Sprintf("%03dx", i)) {
			t.Fatalf("%d: %.10q", i, v)
		}
	}
}

func (s *suite) cancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, n := range []int{1, 10} {
		ops := make([]cache.Op, n)
		for i := range ops {
			ops[i] = cache.Op{Kind: cache.OpGet, Key: s.key(fmt.Sprint("cancelled", i))}
		}
		s.tr.Do(ctx, ops)
		for i := range ops {
			if !errors.Is(ops[i].Err, context.Canceled) {
				t.Error(n, ops[i].Err)
			}
		}
	}
	if _, ok := s.get(t, s.key("cancelled0")); ok {
		t.Error("found")
	}
}

func (s *suite) concurrent(t *testing.T) {
	ctx := testContext(t)
	var all sync.WaitGroup
	for g := range 32 {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := range 50 {
				key, want := s.key(fmt.Sprint("concurrent", g)), []byte(fmt.Sprint(g, " ", i))
				ops := []cache.Op{{Kind: cache.OpSet, Key: key, Value: want, TTL: time.Minute}, {Kind: cache.OpGet, Key: key}}
				if i%2 == 0 {
					s.tr.Do(ctx, ops[:1])
					s.tr.Do(ctx, ops[1:])
				} else {
					s.tr.Do(ctx, ops)
				}
				if err := errors.Join(ops[0].Err, ops[1].Err); err != nil || !bytes.Equal(ops[1].Value, want) {
					t.Errorf("%q, want %q, %v", ops[1].Value, want, err)
					return
				}
			}
		}()
	}
	all.Wait()
}
