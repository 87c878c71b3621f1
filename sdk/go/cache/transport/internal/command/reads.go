package command

// This file owns the choice between GETs and MGET for a batch of reads.

import (
	"context"
	"sync/atomic"
	"unsafe"

	"github.com/weft-db/weft/sdk/go/cache"
)

// Reads runs batches of reads as MGET where that pays. It is less work for servers and clients than a pipeline of GETs, but says nil for a key
// of another type, where GET gives an error. So what comes as nil is asked for again, by GET; and because that is another round trip, MGET is
// taken only while batches have lately been found whole. The zero value begins with GETs.
type Reads struct {
	absence
	whole atomic.Uint32 // batches in a row of which everything was found
}

// Bounds of a batch that leaves as MGET, of one MGET, and of how many batches must have been found whole before.
const (
	readsMin   = 8
	ReadsMax   = 256
	readsWhole = 16
)

// Run runs operations: batches of reads by mget where that pays, and everything else by do. mget sets what it has found, or errors; that it
// was refused it reports with Refused, and leaves the operations.
func (r *Reads) Run(ctx context.Context, ops []cache.Op, mget, do func(context.Context, []cache.Op)) {
	if !r.together(ops) {
		do(ctx, ops)
		r.saw(ops)
		return
	}
	for i := range ops {
		ops[i].Found, ops[i].Err = false, nil
	}
	mget(ctx, ops)
	var rest []*cache.Op
	for i := range ops {
		if op := &ops[i]; !op.Found && op.Err == nil {
			rest = append(rest, op)
		}
	}
	if len(rest) > 0 {
		r.whole.Store(0)
		Again(ctx, do, rest)
	}
}

// Refused remembers that the server, or what stands in front of it, has answered MGET with an error.
func (r *Reads) Refused() { r.remember() }

func (r *Reads) together(ops []cache.Op) bool {
	return len(ops) >= readsMin && r.whole.Load() >= readsWhole && onlyReads(ops) && !r.Missing()
}

func onlyReads(ops []cache.Op) bool {
	for i := range ops {
		if ops[i].Kind != cache.OpGet {
			return false
		}
	}
	return true
}

// saw looks at what a batch came to.
func (r *Reads) saw(ops []cache.Op) {
	if len(ops) < readsMin || !onlyReads(ops) {
		return
	}
	for i := range ops {
		if !ops[i].Found {
			if r.whole.Load() != 0 {
				r.whole.Store(0)
			}
			return
		}
	}
	if r.whole.Load() < readsWhole {
		r.whole.Add(1)
	}
}

// Give makes text, which never changes, what an operation has read.
func Give(op *cache.Op, text string) {
	op.Found = true
	if len(op.Value) > 0 {
		op.Value = append(op.Value, text...)
		return
	}
	op.Value, op.Lent = unsafe.Slice(unsafe.StringData(text), len(text)), true
}
