// Package cbor is the CBOR codec (RFC 8949) on fxamacker/cbor.
package cbor

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/fxamacker/cbor/v2"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/codec/cbor/internal/box"
)

// Times are text with nanoseconds and zone: the library's default has only seconds.
var (
	encoding = must(cbor.EncOptions{Time: cbor.TimeRFC3339Nano}.UserBufferEncMode())
	decoding = must(cbor.DecOptions{}.DecMode())
)

func must[T any](mode T, err error) T {
	if err != nil {
		panic(fmt.Sprint("cbor: options that are constants: ", err))
	}
	return mode
}

// Codec stores values of V as CBOR, structs as maps.
type Codec[V any] struct{ places box.Pool[V] }

// New returns the codec of V: cbor.New[User]().
func New[V any]() *Codec[V] { return &Codec[V]{} }

// ID is CodecCBOR.
func (c *Codec[V]) ID() cache.CodecID { return cache.CodecCBOR }

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// AppendEncode appends v.
func (c *Codec[V]) AppendEncode(dst []byte, v V) ([]byte, error) {
	place, buffer := c.places.Put(v), buffers.Get().(*bytes.Buffer)
	*buffer = *bytes.NewBuffer(dst)
	err := encoding.MarshalToBuffer(place, buffer)
	out := buffer.Bytes()
	*buffer = bytes.Buffer{}
	buffers.Put(buffer)
	c.places.Free(place)
	if err != nil {
		return dst, err
	}
	return out, nil
}

// Decode sets *v. The library checks that the data is one whole value before it makes anything of it.
func (c *Codec[V]) Decode(data []byte, v *V) error { return decoding.Unmarshal(data, v) }
