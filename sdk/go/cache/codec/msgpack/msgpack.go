// Package msgpack is the MessagePack codec on vmihailenco/msgpack.
package msgpack

import (
	"bytes"
	"sync"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/codec/msgpack/internal/box"
	"github.com/weft-db/weft/sdk/go/cache/codec/msgpack/internal/messagepack"
)

// Codec stores values of V as MessagePack, structs as maps.
type Codec[V any] struct{ places box.Pool[V] }

// New returns the codec of V: msgpack.New[User]().
func New[V any]() *Codec[V] { return &Codec[V]{} }

// ID is CodecMessagePack.
func (c *Codec[V]) ID() cache.CodecID { return cache.CodecMessagePack }

// writer is the caller's buffer as the library wants it.
type writer struct{ dst []byte }

func (w *writer) Write(p []byte) (int, error) {
	w.dst = append(w.dst, p...)
	return len(p), nil
}

// WriteByte keeps the library from allocating a writer of its own.
func (w *writer) WriteByte(b byte) error {
	w.dst = append(w.dst, b)
	return nil
}

var (
	writers = sync.Pool{New: func() any { return new(writer) }}
	readers = sync.Pool{New: func() any { return new(bytes.Reader) }}
)

// AppendEncode appends v.
func (c *Codec[V]) AppendEncode(dst []byte, v V) ([]byte, error) {
	place, w, e := c.places.Put(v), writers.Get().(*writer), msgpack.GetEncoder()
	w.dst = dst
	e.Reset(w)
	err := e.Encode(place)
	out := w.dst
	w.dst = nil
	writers.Put(w)
	msgpack.PutEncoder(e)
	c.places.Free(place)
	if err != nil {
		return dst, err
	}
	return out, nil
}

// Decode sets *v. Headers that promise more than there is are found before the library makes room for it.
func (c *Codec[V]) Decode(data []byte, v *V) error {
	if err := messagepack.Check(data); err != nil {
		return err
	}
	r, d := readers.Get().(*bytes.Reader), msgpack.GetDecoder()
	r.Reset(data)
	d.Reset(r)
	d.UsePreallocateValues(true)
	err := d.Decode(v)
	msgpack.PutDecoder(d)
	r.Reset(nil)
	readers.Put(r)
	return err
}
