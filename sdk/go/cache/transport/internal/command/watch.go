package command

// This file owns what takes the place of scripts: WATCH, a look, MULTI, EXEC.

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
}

// Session is a connection, or a channel, that nobody else uses meanwhile.
type Session interface {
	// Pipeline sends commands together and returns their replies; the error says that some are missing.
	Pipeline(ctx context.Context, commands [][][]byte) ([]Reply, error)
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
	var b Builder
	commands := [][][]byte{{wordMulti}}
	var taking []*cache.Op
	for _, op := range ops {
		if op.Kind == cache.OpHashSet {
			commands, taking = append(commands, b.change(op)...), append(taking, op)
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
			commands, taking = append(commands, b.change(op)...), append(taking, op)
		}
	}
	commands = append(commands, [][]byte{wordExec})
	if len(taking) == 0 {
		commands = [][][]byte{{wordUnwatch}}
	}
	replies, err := s.Pipeline(ctx, commands)
	if err != nil {
		return fail(err)
	}
	last := replies[len(replies)-1]
	if len(taking) == 0 {
		return nil
	}
	if last.Nil {
		return taking
	}
	for _, op := range taking {
		op.Err = last.Err
		for i := range replies[:len(replies)-1] { // what was refused says more than EXECABORT
			if last.Err != nil && replies[i].Err != nil {
				op.Err = replies[i].Err
				break
			}
		}
		op.Found = op.Err == nil
	}
	return nil
}

// change returns what an operation does once it has been found to be in order.
func (b *Builder) change(op *cache.Op) [][][]byte {
	switch op.Kind {
	case cache.OpFill:
		set := cache.Op{Kind: cache.OpSet, Key: op.Key, Value: op.Value, TTL: op.TTL}
		return [][][]byte{b.Args(&set), {wordDel, op.Lease}}
	case cache.OpRelease:
		return [][][]byte{{wordDel, op.Lease}}
	case cache.OpRenew:
		return [][][]byte{{wordPExpire, op.Lease, b.number(op.TTL)}}
	case cache.OpHashSet:
		all := [][][]byte{{wordDel, op.Key}, append([][]byte{wordHSet, op.Key}, op.Fields...)}
		if op.TTL > 0 {
			all = append(all, [][]byte{wordPExpire, op.Key, b.number(op.TTL)})
		}
		return all
	default: // OpHashUpdate
		return [][][]byte{append([][]byte{wordHSet, op.Key}, op.Fields...)}
	}
}
