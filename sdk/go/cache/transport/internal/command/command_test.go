package command

// This file owns the tests of the commands that operations become.

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/cache"
)

// TestArgs has operations one behind the other in a Builder, whose times are milliseconds and each operation's own.
func TestArgs(t *testing.T) {
	key, lease, token, value := []byte("k"), []byte("{k}:lease"), []byte("t"), []byte("v")
	fields := [][]byte{[]byte("f"), []byte("1")}
	var b Builder
	for round := range 2 {
		for _, c := range []struct {
			op   cache.Op
			want string
		}{
			{cache.Op{Kind: cache.OpGet, Key: key}, "GET k"},
			{cache.Op{Kind: cache.OpSet, Key: key, Value: value}, "SET k v"},
			{cache.Op{Kind: cache.OpSet, Key: key, Value: value, TTL: 1500 * time.Millisecond}, "SET k v PX 1500"},
			{cache.Op{Kind: cache.OpSet, Key: key, Value: value, TTL: time.Hour}, "SET k v PX 3600000"},
			{cache.Op{Kind: cache.OpSet, Key: key, Value: value, TTL: time.Microsecond}, "SET k v PX 1"},
			{cache.Op{Kind: cache.OpSet, Key: key, Value: value, TTL: time.Hour}, "SET k v PX 3600000"},
			{cache.Op{Kind: cache.OpDelete, Key: key}, "DEL k"},
			{cache.Op{Kind: cache.OpDelete, Key: key, Lease: lease}, "DEL k {k}:lease"},
			{cache.Op{Kind: cache.OpAcquire, Key: key, Lease: lease, Token: token, TTL: 3 * time.Second}, "SET {k}:lease t NX PX 3000"},
			{cache.Op{Kind: cache.OpFill, Key: key, Lease: lease, Token: token, Value: value, TTL: time.Second}, "EVAL * 2 {k}:lease k t v 1000"},
			{cache.Op{Kind: cache.OpFill, Key: key, Lease: lease, Token: token, Value: value}, "EVAL * 2 {k}:lease k t v 0"},
			{cache.Op{Kind: cache.OpRelease, Key: key, Lease: lease, Token: token}, "EVAL * 1 {k}:lease t"},
			{cache.Op{Kind: cache.OpRenew, Key: key, Lease: lease, Token: token, TTL: 2 * time.Second}, "EVAL * 1 {k}:lease t 2000"},
			{cache.Op{Kind: cache.OpHashSet, Key: key, Fields: fields, TTL: time.Second}, "EVAL * 1 k 1000 f 1"},
			{cache.Op{Kind: cache.OpHashUpdate, Key: key, Fields: fields}, "EVAL * 1 k f 1"},
			{cache.Op{Kind: cache.OpHashGet, Key: key}, "HGETALL k"},
			{cache.Op{Kind: cache.OpHashGet, Key: key, Fields: fields[:1]}, "HMGET k f"},
		} {
			args := b.Args(&c.op)
			if len(args) > 1 && string(args[0]) == "EVAL" {
				args = append([][]byte{args[0], []byte("*")}, args[2:]...)
			}
			if got := string(bytes.Join(args, []byte(" "))); got != c.want {
				t.Errorf("round %d: %s, want %s", round, got, c.want)
			}
		}
		b.Reset()
	}
}

// TestWatchLooksAtTheToken: who has lost the lease neither fills nor releases it, and takes the watch away.
func TestWatchLooksAtTheToken(t *testing.T) {
	for name, held := range map[string]string{"nobody's": "", "somebody's": "another"} {
		t.Run(name, func(t *testing.T) {
			s := &holder{held: held}
			op := &cache.Op{Kind: cache.OpFill, Key: []byte("k"), Lease: []byte("l"), Token: []byte("mine"), Value: []byte("v")}
			Watched(t.Context(), s, []*cache.Op{op})
			if op.Found || op.Err != nil {
				t.Error(op.Found, op.Err)
			}
			if got := strings.Join(s.seen, " "); got != "WATCH GET UNWATCH" {
				t.Error(got)
			}
		})
	}
}

// TestWatchTriesAgain: a key that changes between the look and EXEC is looked at again, and not for ever.
func TestWatchTriesAgain(t *testing.T) {
	for aborts, busy := range map[int]bool{0: false, 2: false, 1000: true} {
		s := &holder{held: "mine", aborts: aborts}
		op := &cache.Op{Kind: cache.OpRelease, Key: []byte("k"), Lease: []byte("l"), Token: []byte("mine")}
		Watched(t.Context(), s, []*cache.Op{op})
		if (op.Err == errBusy) != busy || op.Found == busy {
			t.Error(aborts, op.Found, op.Err)
		}
		if tries := strings.Count(strings.Join(s.seen, " "), "EXEC"); tries != min(aborts, watchTries)+1 {
			t.Error(aborts, "aborts,", tries, "tries")
		}
	}
}

// TestAgainKeepsResults: what is run in another way comes back to where it was asked for.
func TestAgainKeepsResults(t *testing.T) {
	a, b := &cache.Op{Kind: cache.OpGet, Key: []byte("a")}, &cache.Op{Kind: cache.OpGet, Key: []byte("b")}
	Again(t.Context(), newCounting().do, []*cache.Op{a})
	c := newCounting()
	c.values["b"] = "value"
	Again(t.Context(), c.do, []*cache.Op{a, b})
	if a.Found || !b.Found || string(b.Value) != "value" {
		t.Error(a.Found, b.Found, string(b.Value))
	}
}
