package command

// This file owns transactions: several hashes replaced as one, and WATCH, a look, MULTI, EXEC in place of scripts.

import (
	"bytes"
	"context"
	"errors"

	"github.com/weft-db/weft/sdk/go/cache"
)

// Reply is as much of a reply as this needs.
type Reply struct {
	Nil  bool
	Data []byte // of a bulk string
	Int  int64
	Err  error
	Errs []error // of an array's elements; nil if none is one
}

// SetErr says that the i-th of n elements is an error.
func (r *Reply) SetErr(i, n int, err error) {
	if r.Errs == nil {
		r.Errs = make([]error, n)
	}
	r.Errs[i] = err
}

// Session is a connection, or a channel, that nobody else uses meanwhile.
type Session interface {
	// Pipeline sends commands together and returns their replies; the error says that some are missing.
	Pipeline(ctx context.Context, commands [][][]byte) ([]Reply, error)
}

// replaceMax bounds the hashes that are replaced as one: the server serves nobody else meanwhile.
const replaceMax = 128

// Replace runs OpHashSet operations as transactions of many, one behind the other, in place of a script for each. It
// returns those that are still to be done, because there are no transactions of several keys.
func Replace(ctx context.Context, s Session, t *Transactions, ops []*cache.Op) (rest []*cache.Op) {
	for len(ops) > 0 {
		n := min(replaceMax, len(ops))
		_, refused := transact(ctx, s, ops[:n], n)
		if t.Learn(refused) {
			return ops
		}
		if refused != nil && n > 1 { // of one key, maybe, which is no error of the others
			transact(ctx, s, ops[:n], 1)
		}
		ops = ops[n:]
	}
	return nil
}

// Again runs operations that a transport has just learnt it has to run in another way.
func Again(ctx context.Context, do func(context.Context, []cache.Op), ops []*cache.Op) {
	if len(ops) == 0 {
		return
	}
	copies := make([]cache.Op, len(ops))
	for i, op := range ops {
		copies[i] = *op
	}
	do(ctx, copies)
	for i, op := range ops {
		*op = copies[i]
	}
}

// watchTries bounds how often an operation whose keys change under its hands is tried. Each time somebody else has got on.
const watchTries = 16

// Watched runs scripted operations without scripts: two round trips for all, and two for each whose key was changed in between.
func Watched(ctx context.Context, s Session, ops []*cache.Op) {
	aborted := watchedTogether(ctx, s, ops)
	for _, op := range aborted {
		again := []*cache.Op{op}
		for try := 0; len(again) > 0; try++ {
			if try == watchTries {
				op.Err = errBusy
				break
			}
			again = watchedTogether(ctx, s, again)
		}
	}
}

var errBusy = errors.New("cache: the key changes all the time")

// watchedTogether returns the operations that have to be tried again.
func watchedTogether(ctx context.Context, s Session, ops []*cache.Op) (aborted []*cache.Op) {
	fail := func(err error) []*cache.Op {
		for _, op := range ops {
			op.Err = err
		}
		return nil
	}
	watch := [][]byte{wordWatch}
	looks := [][][]byte{nil}
	for _, op := range ops {
		switch op.Kind {
		case cache.OpHashSet: // needs no look
		case cache.OpHashUpdate:
			watch = append(watch, op.Key)
			looks = append(looks, [][]byte{wordExists, op.Key})
		default:
			watch = append(watch, op.Lease)
			looks = append(looks, [][]byte{wordGet, op.Lease})
		}
	}
	looks[0] = watch
	if len(watch) == 1 {
		looks = nil
	}
	var seen []Reply
	if looks != nil {
		var err error
		if seen, err = s.Pipeline(ctx, looks); err == nil {
			err = seen[0].Err
		}
		if err != nil {
			return fail(err)
		}
		seen = seen[1:]
	}
	var taking []*cache.Op
	for _, op := range ops {
		if op.Kind == cache.OpHashSet {
			taking = append(taking, op)
			continue
		}
		look := &seen[0]
		seen = seen[1:]
		switch {
		case look.Err != nil:
			op.Err = look.Err
		case op.Kind == cache.OpHashUpdate && look.Int == 0, op.Kind != cache.OpHashUpdate && !bytes.Equal(look.Data, op.Token):
			op.Found = false
		default:
			taking = append(taking, op)
		}
	}
	if len(taking) == 0 {
		if _, err := s.Pipeline(ctx, [][][]byte{{wordUnwatch}}); err != nil {
			return fail(err)
		}
		return nil
	}
	if aborted, _ := transact(ctx, s, taking, len(taking)); aborted {
		return taking
	}
	return nil
}

// wordsMax is how many words an operation's commands have at most, without its fields: DEL, key, HSET, key, PEXPIRE,
// key, time.
const wordsMax = 7

// transact runs operations as transactions of so many each, all in one round trip, and sets their results. Of the last
// transaction it returns whether a watched key was changed, which sets nothing, and what the server refused it with.
func transact(ctx context.Context, s Session, ops []*cache.Op, each int) (aborted bool, refused error) {
	words := 0
	for _, op := range ops {
		words += len(op.Fields) + wordsMax
	}
	b := Builder{args: make([][]byte, 0, words)}
	counts := make([]int, len(ops)) // of each operation's commands
	commands := make([][][]byte, 0, 3*len(ops)+2*(len(ops)+each-1)/each)
	for i, op := range ops {
		if i%each == 0 {
			commands = append(commands, [][]byte{wordMulti})
		}
		before := len(commands)
		commands = b.change(commands, op)
		counts[i] = len(commands) - before
		if i%each == each-1 || i == len(ops)-1 {
			commands = append(commands, [][]byte{wordExec})
		}
	}
	replies, err := s.Pipeline(ctx, commands)
	if err != nil {
		for _, op := range ops {
			op.Err = err
		}
		return false, nil
	}
	for len(ops) > 0 {
		group := ops[:min(each, len(ops))]
		size := 2 // MULTI and EXEC
		for i := range group {
			size += counts[i]
		}
		aborted, refused = settle(group, counts, replies[:size])
		ops, counts, replies = ops[len(group):], counts[len(group):], replies[size:]
	}
	return aborted, refused
}

// settle sets the results of one transaction.
func settle(ops []*cache.Op, counts []int, replies []Reply) (aborted bool, refused error) {
	exec := &replies[len(replies)-1]
	if exec.Nil {
		return true, nil
	}
	refused = exec.Err
	for i := 0; i < len(replies)-1 && exec.Err != nil; i++ { // what was refused says more than EXECABORT
		if replies[i].Err != nil {
			refused = replies[i].Err
			break
		}
	}
	from := 0
	for i, op := range ops {
		op.Err = refused
		for to := from + counts[i]; from < to; from++ {
			if from < len(exec.Errs) && exec.Errs[from] != nil && op.Err == nil {
				op.Err = exec.Errs[from]
			}
		}
		op.Found = op.Err == nil
	}
	return false, refused
}

// change appends what an operation does once it has been found to be in order.
func (b *Builder) change(to [][][]byte, op *cache.Op) [][][]byte {
	switch op.Kind {
	case cache.OpFill:
		set := cache.Op{Kind: cache.OpSet, Key: op.Key, Value: op.Value, TTL: op.TTL}
		return append(to, b.Args(&set), b.words(wordDel, op.Lease))
	case cache.OpRelease:
		return append(to, b.words(wordDel, op.Lease))
	case cache.OpRenew:
		return append(to, b.words(wordPExpire, op.Lease, b.number(op.TTL)))
	case cache.OpHashSet:
		to = append(to, b.words(wordDel, op.Key), b.words(wordHSet, op.Key, op.Fields...))
		if op.TTL > 0 {
			to = append(to, b.words(wordPExpire, op.Key, b.number(op.TTL)))
		}
		return to
	default: // OpHashUpdate
		return append(to, b.words(wordHSet, op.Key, op.Fields...))
	}
}

// words returns a command.
func (b *Builder) words(name, key []byte, rest ...[]byte) [][]byte {
	from := len(b.args)
	b.args = append(append(b.args, name, key), rest...)
	return b.args[from:len(b.args):len(b.args)]
}
