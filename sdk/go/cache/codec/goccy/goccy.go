// Package goccy is the JSON codec on goccy/go-json. It reads and writes what cache.JSON does.
//
// The library has panicked on input that it should have refused. A panic becomes an error here; what it may do to memory that
// it reads through unsafe pointers cannot be helped.
package goccy

import (
	"fmt"
	"sync"

	"github.com/goccy/go-json"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/codec/goccy/internal/box"
)

// Codec stores values of V as JSON. HTML is not escaped.
type Codec[V any] struct {
	places   box.Pool[V]
	encoders sync.Pool
}

// New returns the codec of V: goccy.New[User]().
func New[V any]() *Codec[V] { return &Codec[V]{} }

// ID is CodecJSON.
func (c *Codec[V]) ID() cache.CodecID { return cache.CodecJSON }

// PanicError is a panic of the library.
type PanicError struct{ Value any }

func (e *PanicError) Error() string { return fmt.Sprintf("goccy: the library panicked: %v", e.Value) }

// encoder is the library's, with the buffer that it writes to.
type encoder struct {
	dst  []byte
	json *json.Encoder
}

// Write appends to the caller's buffer.
func (e *encoder) Write(p []byte) (int, error) {
	e.dst = append(e.dst, p...)
	return len(p), nil
}

func (c *Codec[V]) encoder() *encoder {
	if e, ok := c.encoders.Get().(*encoder); ok {
		return e
	}
	e := &encoder{}
	e.json = json.NewEncoder(e)
	e.json.SetEscapeHTML(false)
	return e
}

// AppendEncode appends v as JSON.
func (c *Codec[V]) AppendEncode(dst []byte, v V) (out []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			out, err = dst, &PanicError{r}
		}
	}()
	e, place := c.encoder(), c.places.Put(v)
	e.dst = dst
	err = e.json.Encode(place)
	out, e.dst = e.dst, nil
	c.places.Free(place)
	if err != nil {
		return dst, err
	}
	c.encoders.Put(e)
	return out[:len(out)-1], nil // without the line's end
}

// Decode sets *v from JSON.
func (c *Codec[V]) Decode(data []byte, v *V) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &PanicError{r}
		}
	}()
	return json.Unmarshal(data, v)
}
