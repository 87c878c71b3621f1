// Package sonic is the JSON codec on bytedance/sonic, which is quick on amd64 and arm64 and encoding/json elsewhere. It reads and writes
// what cache.JSON does.
package sonic

import (
	"github.com/bytedance/sonic"
	"github.com/bytedance/sonic/encoder"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/codec/sonic/internal/box"
)

// ValidateString finds what is no UTF-8. Unmarshal copies the data once, and decoded strings are parts of that copy: one allocation for
// all of them, and the copy lives as long as any of them.
var api = sonic.Config{ValidateString: true}.Froze()

// Codec stores values of V as JSON. HTML is not escaped.
type Codec[V any] struct{ places box.Pool[V] }

// New returns the codec of V: sonic.New[User]().
func New[V any]() *Codec[V] { return &Codec[V]{} }

// ID is CodecJSON.
func (c *Codec[V]) ID() cache.CodecID { return cache.CodecJSON }

// AppendEncode appends v as JSON.
func (c *Codec[V]) AppendEncode(dst []byte, v V) ([]byte, error) {
	place, out := c.places.Put(v), dst
	err := encoder.EncodeInto(&out, place, encoder.CompactMarshaler)
	c.places.Free(place)
	if err != nil {
		return dst, err
	}
	return out, nil
}

// Decode sets *v from JSON.
func (c *Codec[V]) Decode(data []byte, v *V) error { return api.Unmarshal(data, v) }
