package command

// This file owns the tests of transactions of several hashes with a server that refuses.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/weft-db/weft/sdk/go/cache"
)

// refuser replies as a server that queues commands but for those of keys that it refuses.
type refuser struct {
	multi, exec error
	queue       map[string]error // by key: refused when it is queued
	within      map[string]error // by key: refused by HSET within EXEC
	done        []string         // keys of transactions that were executed
	trips       int
}

func (r *refuser) Pipeline(_ context.Context, commands [][][]byte) ([]Reply, error) {
	r.trips++
	var replies []Reply
	var queued [][][]byte
	var abort error
	for _, c := range commands {
		reply := Reply{}
		switch string(c[0]) {
		case "MULTI":
			queued, abort, reply.Err = nil, nil, r.multi
		case "EXEC":
			if reply.Err = errors.Join(r.multi, r.exec, abort); reply.Err != nil {
				break
			}
			for i, q := range queued {
				key := string(q[1])
				if err := r.within[key]; err != nil && string(q[0]) == "HSET" {
					reply.SetErr(i, len(queued), err)
				} else if string(q[0]) == "HSET" {
					r.done = append(r.done, key)
				}
			}
		default:
			if reply.Err = r.queue[string(c[1])]; reply.Err != nil {
				abort = errors.New("EXECABORT Transaction discarded because of previous errors.")
			}
			queued = append(queued, c)
		}
		replies = append(replies, reply)
	}
	return replies, nil
}

func hashes(n int) (ops []*cache.Op) {
	for i := range n {
		fields := [][]byte{[]byte("field"), []byte("value")}
		ops = append(ops, &cache.Op{Kind: cache.OpHashSet, Key: fmt.Append(nil, "key", i), Fields: fields, TTL: 1 << 30})
	}
	return ops
}

// failed returns the keys of operations with an error, and reports to t those that have got another.
func failed(t *testing.T, ops []*cache.Op, want error) (keys []string) {
	t.Helper()
	for _, op := range ops {
		if op.Found == (op.Err != nil) || op.Err != nil && op.Err != want {
			t.Errorf("%s: %v, %v", op.Key, op.Found, op.Err)
		}
		if op.Err != nil {
			keys = append(keys, string(op.Key))
		}
	}
	return keys
}

func TestReplaceErrorsByKey(t *testing.T) {
	const n = 300
	refusal := errors.New("NOPERM No permissions to access a key")
	for name, r := range map[string]*refuser{
		"queued": {queue: map[string]error{"key7": refusal, "key299": refusal}},
		"within": {within: map[string]error{"key7": refusal, "key299": refusal}},
	} {
		t.Run(name, func(t *testing.T) {
			ops, tr := hashes(n), Transactions{}
			if rest := Replace(context.Background(), r, &tr, ops); rest != nil || tr.Missing() {
				t.Error(len(rest), "left over, missing:", tr.Missing())
			}
			if keys := failed(t, ops, refusal); !slices.Equal(keys, []string{"key7", "key299"}) {
				t.Error("failed:", keys)
			}
			if len(r.done) != n-2 {
				t.Error(len(r.done), "hashes were stored")
			}
			if r.trips > 5 {
				t.Error(r.trips, "round trips")
			}
		})
	}
}

// Where no transaction can hold several keys, all that is left is done in another way, and nobody asks again.
func TestReplaceMissing(t *testing.T) {
	for _, r := range []*refuser{
		{multi: errors.New("ERR unknown command 'MULTI', with args beginning with: ")},
		{multi: errors.New("NOPERM User app has no permissions to run the 'multi' command")},
		{exec: errors.New("CROSSSLOT Keys in request don't hash to the same slot")},
		{queue: map[string]error{"key9": errors.New("MOVED 3999 127.0.0.1:6381")}},
	} {
		ops, tr := hashes(200), Transactions{}
		if rest := Replace(context.Background(), r, &tr, ops); len(rest) != 200 || !tr.Missing() || r.trips != 1 {
			t.Errorf("%+v: %d left over, missing: %v, %d round trips", r, len(rest), tr.Missing(), r.trips)
		}
	}
	refused := errors.New("OOM command not allowed when used memory > 'maxmemory'.")
	r, tr, ops := &refuser{exec: refused}, Transactions{}, hashes(2)
	if rest := Replace(context.Background(), r, &tr, ops); rest != nil || tr.Missing() {
		t.Error("out of memory is taken for no transactions")
	}
}

// holder is a session whose store has one lease, and which aborts transactions.
type holder struct {
	held   string
	aborts int
	seen   []string // names of commands
}

func (h *holder) Pipeline(_ context.Context, commands [][][]byte) ([]Reply, error) {
	replies := make([]Reply, len(commands))
	for i, c := range commands {
		name := string(c[0])
		h.seen = append(h.seen, name)
		switch {
		case name == "GET" && h.held == "":
			replies[i].Nil = true
		case name == "GET":
			replies[i].Data = []byte(h.held)
		case name == "EXEC" && h.aborts > 0:
			h.aborts--
			replies[i].Nil = true
		}
	}
	return replies, nil
}
