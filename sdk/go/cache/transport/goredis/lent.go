package goredis

// This file owns commands that are used again: GET, and SET with a time to live, which batches are full of. What go-redis makes for each of
// them by hand costs as much as sending it and reading its reply.

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weft-db/weft/sdk/go/cache"
)

// lent has commands that point to words, which change from batch to batch. One batch has it at a time.
type lent struct {
	gets []get
	sets []set
	used struct{ gets, sets int }
	all  []redis.Cmder // of the batch
	args []any         // of MGETs

	digits []byte        // of all times to live
	ttl    time.Duration // that millis is
	millis word
}

type get struct {
	key word
	cmd redis.StringCmd
}

type set struct {
	key, value, millis word
	cmd                redis.StatusCmd
}

// Bounds of how many commands are made at once, and of how many are kept for another batch.
const (
	lentMin = 16
	lentMax = 1 << 10
)

// borrow returns a lent with as many commands as a batch needs.
func (t *Transport) borrow(gets, sets int) *lent {
	l, _ := t.idle.Get().(*lent)
	if l == nil {
		l = &lent{}
	}
	background := context.Background() // a command does not look at its context
	if gets > len(l.gets) {
		l.gets = make([]get, roundUp(gets))
		for i := range l.gets {
			g := &l.gets[i]
			g.cmd = *redis.NewStringCmd(background, "get", &g.key)
		}
	}
	if sets > len(l.sets) {
		l.sets = make([]set, roundUp(sets))
		for i := range l.sets {
			s := &l.sets[i]
			s.cmd = *redis.NewStatusCmd(background, "set", &s.key, &s.value, "px", &s.millis)
		}
	}
	return l
}

// roundUp spares batches that grow from making commands each time.
func roundUp(n int) int { return max(n+n/4, lentMin) }

// giveBack takes out what a batch has put in, and keeps the commands for another.
func (t *Transport) giveBack(l *lent) {
	for i := range l.gets[:l.used.gets] {
		g := &l.gets[i]
		g.key = nil
		g.cmd.SetVal("")
	}
	for i := range l.sets[:l.used.sets] {
		s := &l.sets[i]
		s.key, s.value, s.millis = nil, nil, nil
	}
	l.used.gets, l.used.sets = 0, 0
	l.digits, l.ttl = l.digits[:0], 0
	clear(l.all)
	l.all = l.all[:0]
	clear(l.args)
	l.args = l.args[:0]
	if len(l.gets) <= lentMax && len(l.sets) <= lentMax {
		t.idle.Put(l)
	}
}

func (l *lent) get(op *cache.Op) redis.Cmder {
	g := &l.gets[l.used.gets]
	l.used.gets++
	g.key = op.Key
	g.cmd.SetErr(nil)
	return &g.cmd
}

// mget returns the arguments of MGET, which are the keys of the GETs that it stands for.
func (l *lent) mget(ops []cache.Op) []any {
	from := len(l.args)
	l.args = append(slices.Grow(l.args, 1+len(ops)), "mget")
	for i := range ops {
		g := &l.gets[l.used.gets]
		l.used.gets++
		g.key = ops[i].Key
		l.args = append(l.args, &g.key)
	}
	return l.args[from:len(l.args):len(l.args)]
}

func (l *lent) set(op *cache.Op) redis.Cmder {
	s := &l.sets[l.used.sets]
	l.used.sets++
	s.key, s.value, s.millis = op.Key, op.Value, l.px(op.TTL)
	s.cmd.SetErr(nil)
	return &s.cmd
}

// px returns a time to live in milliseconds. Most operations of a batch have the same.
func (l *lent) px(ttl time.Duration) word {
	if l.ttl != ttl {
		from := len(l.digits)
		l.digits = strconv.AppendInt(l.digits, ttl.Milliseconds(), 10)
		l.ttl, l.millis = ttl, l.digits[from:len(l.digits):len(l.digits)]
	}
	return l.millis
}

// word is an argument that is an interface without an allocation, since it is a pointer.
type word []byte

// MarshalBinary is what go-redis sends.
func (w *word) MarshalBinary() ([]byte, error) { return *w, nil }

// String is what the client's hooks see.
func (w *word) String() string { return string(*w) }
