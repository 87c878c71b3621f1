package resp

// This file owns the memory under requests and replies: small buffers that a connection keeps, pooled blocks that
// it has while it is busy, and larger ones that the garbage collector takes back.

import (
	"io"
	"sync"
)

// A block is in one of two places: the pool, or the one field that took it. release clears the field before it gives the block
// back, so a block cannot be given back twice and two clients cannot share one.
type block struct {
	data  [blockBytes]byte
	spans [3 * batchMax]span // what a parser needs beside the bytes while it has them
	ends  [batchMax]int
}

var blocks = sync.Pool{New: func() any { return new(block) }}

// takeBlock fills *field, which must be nil, from the pool.
func takeBlock(field **block) []byte {
	b := blocks.Get().(*block)
	*field = b
	return b.data[:]
}

// releaseBlock gives *field back and clears it. It does nothing when there is none.
func releaseBlock(field **block) {
	if b := *field; b != nil {
		*field = nil
		blocks.Put(b)
	}
}

// empty reports whether no byte in buf is of use any more, handed-out arguments apart.
func (p *parser) empty() bool {
	return p.start == p.end && p.head == len(p.ends)
}

// release gives the buffer back if nothing is in it. Arguments that were handed out end here.
func (p *parser) release() {
	if !p.empty() {
		return
	}
	p.spans, p.ends, p.head, p.taken = p.spans[:0], p.ends[:0], 0, 0
	p.giveBack()
	p.drop()
	p.start, p.pos, p.end = 0, 0, 0
	if cap(p.spans) > keepArgs {
		p.spans = nil
	}
}

// take makes buf a block, and uses its room for spans if there is no other.
func (p *parser) take() {
	p.buf = takeBlock(&p.block)
	if p.spans == nil && p.ends == nil {
		p.spans, p.ends, p.borrowed = p.block.spans[:0], p.block.ends[:0], true
	}
}

// giveBack releases the block that buf is made of, if it is, and keeps what the spans in it say.
func (p *parser) giveBack() {
	if p.borrowed {
		p.spans, p.ends, p.borrowed = append([]span(nil), p.spans...), append([]int(nil), p.ends...), false
	}
	releaseBlock(&p.block)
}

// drop forgets buf and every slice into it, so that a large buffer can be collected.
func (p *parser) drop() {
	p.buf = nil
	if cap(p.args) > keepArgs {
		p.args = nil
	} else {
		clear(p.args[:cap(p.args)])
	}
}

// room makes space to read into and returns it; it is never empty. It ends the arguments that were handed out.
func (p *parser) room() []byte {
	if p.empty() {
		p.start, p.pos, p.end = 0, 0, 0
		if len(p.buf) > blockBytes || p.block != nil && !p.wide {
			p.giveBack()
			p.drop()
		}
	}
	used := p.end - p.start
	switch {
	case p.buf == nil && p.wide:
		p.take()
	case p.buf == nil:
		p.buf = make([]byte, smallBytes)
	case len(p.buf) < blockBytes && p.wide:
		p.grow()
	case len(p.buf) > blockBytes && used+p.missing() < blockBytes/2:
		p.shrink()
	case used > len(p.buf)/2 && len(p.buf)-p.end < p.missing():
		p.grow()
	case p.start > 0 && len(p.buf)-p.end < len(p.buf)/4:
		p.move(p.buf)
	case p.end == len(p.buf):
		p.grow()
	}
	return p.buf[p.end:]
}

// missing is how many bytes the command being received is known to need at least.
func (p *parser) missing() int {
	if p.bulk >= 0 {
		return p.bulk + 2 - (p.end - p.pos)
	}
	return 1
}

// grow moves the command being received to a buffer of about twice the size. An announced length never makes it larger
// than that: memory is spent on bytes that arrived, not on promises.
func (p *parser) grow() {
	if len(p.buf) < blockBytes {
		var b *block
		fresh := takeBlock(&b)
		p.move(fresh)
		p.buf, p.block = fresh, b
		return
	}
	size := 2 * len(p.buf)
	if used := p.end - p.start; used+p.missing() < size {
		// All of the argument fits in less: 64 bytes for the next header.
		size = max(used+p.missing()+64, len(p.buf)+len(p.buf)/4)
	}
	fresh := make([]byte, size)
	p.move(fresh)
	p.buf = fresh
	p.giveBack()
}

// shrink moves the command being received from a large buffer to a block, which must have room for it.
func (p *parser) shrink() {
	var b *block
	fresh := takeBlock(&b)
	p.move(fresh)
	p.drop()
	p.buf, p.block = fresh, b
}

// move copies the bytes from start on to the front of dst.
func (p *parser) move(dst []byte) {
	copy(dst, p.buf[p.start:p.end])
	for i := range p.spans {
		p.spans[i].start -= p.start
		p.spans[i].end -= p.start
	}
	p.pos -= p.start
	p.end -= p.start
	p.start = 0
}

// fill reads once from r. It must only be called when next had nothing to hand out.
func (p *parser) fill(r io.Reader) error {
	space := p.room()
	n, err := r.Read(space)
	p.received(n, len(space))
	return p.readResult(n, err)
}

// readResult turns the outcome of a read into an error. The end of the stream inside a command is not a clean end.
func (p *parser) readResult(n int, err error) error {
	switch {
	case n > 0:
		return nil // an error that came with bytes comes again without them
	case err == nil:
		return io.ErrNoProgress
	case err == io.EOF && !p.empty():
		return io.ErrUnexpectedEOF
	}
	return err
}

// received takes note of n bytes read into space. After a full read the next one gets a block; after enough small reads the
// connection goes back to its small buffer.
func (p *parser) received(n, space int) {
	p.end += n
	switch {
	case n == space:
		p.wide, p.narrow = true, 0
	case n > smallBytes:
		p.narrow = 0
	case p.narrow < narrowReads:
		p.narrow++
	default:
		p.wide = false
	}
}
