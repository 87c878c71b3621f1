package cache

// This file owns the way of a value to its stored bytes and back.

import (
	"errors"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"time"
)

// state is what a key comes to.
type state uint8

const (
	stateMiss     state = iota
	stateValue          // a value, perhaps stale
	stateNegative       // known not to be
)

// reading is a value that was read, and what is known about it.
type reading[V any] struct {
	value V
	state state
	stale bool
	fresh int64         // milliseconds since 1970, or 0
	load  time.Duration // how long it took to load
	bytes int           // of the payload, decompressed
	why   Event         // EventMiss, or why what was there is a miss
}

// scratch is what a call works in: buffers that are used again.
type scratch[V any] struct {
	ops   []Op
	reads [][]byte   // what the ops of a batch read into
	key   []byte     // keys, leases and tokens of all ops
	value []byte     // encoded values of all ops
	ends  []int      // of the keys
	plain []byte     // a payload before it is compressed, or after
	r     reading[V] // what is decoded into: a codec's pointer would put it on the heap
	// With a first level, of each key that is asked for.
	hashes []uint64
	stamps []stamp
	flight *flight[V] // a spare one
}

// Bounds of what is kept for another call.
const (
	keepBytes   = 64 << 10
	keepOpBytes = 4 << 10
	keepOps     = 1 << 10
)

func (c *Cache[K, V]) get() *scratch[V] {
	if s, ok := c.scratches.Get().(*scratch[V]); ok {
		return s
	}
	return &scratch[V]{ops: make([]Op, 1)}
}

// put gives a scratch back, but for buffers that have become large.
func (c *Cache[K, V]) put(s *scratch[V]) {
	limit := keepOpBytes
	if len(s.reads) <= 1 {
		limit = keepBytes
	}
	for i := range s.reads {
		if cap(s.reads[i]) > limit {
			s.reads[i] = nil
		}
	}
	for _, b := range []*[]byte{&s.key, &s.value, &s.plain} {
		if cap(*b) > keepBytes*4 {
			*b = nil
		}
	}
	if cap(s.ops) > 2*keepOps || cap(s.ends) > 4*keepOps {
		return
	}
	var zero V
	s.r.value = zero
	c.scratches.Put(s)
}

// size makes room for n ops, and clears them.
func (s *scratch[V]) size(n int) []Op {
	s.ops = slices.Grow(s.ops[:0], n)[:n]
	clear(s.ops)
	return s.ops
}

// read makes op, which is clear, a get of a key, into the buffer with a number.
func (s *scratch[V]) read(i int, op *Op, key []byte) {
	for i >= len(s.reads) {
		s.reads = append(s.reads, nil)
	}
	op.Kind, op.Key, op.Value = OpGet, key, s.reads[i][:0]
}

// done keeps the buffer that an op has read into, when what it has read has been decoded.
func (s *scratch[V]) done(i int, op *Op) {
	if op.Lent {
		op.Value = nil // a scratch must not hold it any longer
		return
	}
	s.reads[i] = op.Value
}

// encode appends v to dst as it is stored. now is the store's time.
func (c *Cache[K, V]) encode(s *scratch[V], dst []byte, v *V, t *terms, load time.Duration, now int64) ([]byte, error) {
	e := envelope{codec: c.codec.ID(), kind: kindPlain}
	if end := c.freshEnd(t); end > 0 {
		e.kind, e.fresh, e.load = kindTimed, now+end.Milliseconds(), load
	}
	start := len(dst)
	dst = e.appendHeader(dst)
	from := len(dst)
	dst, err := guardEncode(c.codec, dst, *v)
	if err != nil {
		return dst[:start], &EncodeError{err}
	}
	size := len(dst) - from
	if size > c.options.ValueBytesMax {
		c.counters.add(EventTooLarge, 1)
		return dst[:start], ErrTooLarge
	}
	if c.options.Compressor != nil && size >= c.options.CompressMin {
		s.plain = append(s.plain[:0], dst[from:]...)
		e.compression, e.size = c.options.Compressor.ID(), size
		packed := c.options.Compressor.AppendCompress(e.appendHeader(dst[:start]), s.plain)
		if len(packed) < len(dst) {
			dst = packed
		} else { // not smaller: as it was
			e.compression = CompressionNone
			dst = append(e.appendHeader(packed[:start]), s.plain...)
		}
	}
	seal(dst[start:])
	return dst, nil
}

// encodeNegative appends that the source has no such value.
func encodeNegative(dst []byte, id CodecID) []byte {
	start := len(dst)
	e := envelope{codec: id, kind: kindNegative}
	dst = e.appendHeader(dst)
	seal(dst[start:])
	return dst
}

// freshEnd is when a value of these terms stops being fresh, if that has to be stored.
func (c *Cache[K, V]) freshEnd(t *terms) time.Duration {
	switch {
	case t.soft > 0:
		return c.jitter(t.soft)
	case c.options.EarlyRefresh > 0 && t.ttl > 0:
		return t.ttl
	}
	return 0
}

// jitter takes the random part off a TTL.
func (c *Cache[K, V]) jitter(d time.Duration) time.Duration { return jittering(d, c.options.Jitter) }

// jittering takes a random part of up to a fraction off a TTL. What the store gets is whole milliseconds, and at least one.
func jittering(d time.Duration, fraction float64) time.Duration {
	if d <= 0 {
		return 0
	}
	if fraction > 0 {
		d -= time.Duration(rand.Float64() * fraction * float64(d))
	}
	return max(d/time.Millisecond, 1) * time.Millisecond
}

// decode reads what is stored into r, which is on the heap. What cannot be read is a miss, and r.why says why.
func (c *Cache[K, V]) decode(s *scratch[V], stored []byte, r *reading[V]) {
	var e envelope
	switch e.parse(stored) {
	case corrupt:
		r.why = EventCorrupt
		return
	case foreignVersion:
		r.why = EventForeignVersion
		return
	case intact:
	}
	if e.codec != c.codec.ID() {
		r.why = EventForeignCodec
		return
	}
	if e.kind == kindNegative {
		r.state = stateNegative
		return
	}
	payload := e.payload
	if e.compression != CompressionNone {
		compressor := c.compressors[e.compression]
		switch {
		case compressor == nil:
			r.why = EventForeignCodec
			return
		case e.size > c.options.ValueBytesMax: // before anything is allocated
			r.why = EventTooLarge
			return
		}
		var err error
		s.plain, err = compressor.AppendDecompress(s.plain[:0], payload, e.size)
		if err != nil || len(s.plain) != e.size {
			r.why = EventDecodeError
			return
		}
		payload = s.plain
	} else if len(payload) > c.options.ValueBytesMax {
		r.why = EventTooLarge
		return
	}
	if err := guardDecode(c.codec, payload, &r.value); err != nil {
		var zero V
		r.value, r.why = zero, EventDecodeError
		return
	}
	r.state, r.bytes = stateValue, len(payload)
	if e.kind == kindTimed {
		r.fresh, r.load = e.fresh, e.load
		r.stale = c.now() >= e.fresh
	}
}

// guardEncode and guardDecode make an error of a codec's panic: the values of one writer must not end the readers' process.
func guardEncode[V any](c Codec[V], dst []byte, v V) (out []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = dst, &PanicError{p, debug.Stack()}
		}
	}()
	out, err = c.AppendEncode(dst, v)
	if err == nil && len(out) < len(dst) {
		return dst, errors.New("the codec returned less than it was given")
	}
	if err != nil {
		out = dst
	}
	return out, err
}

func guardDecode[V any](c Codec[V], data []byte, v *V) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{p, debug.Stack()}
		}
	}()
	return c.Decode(data, v)
}
