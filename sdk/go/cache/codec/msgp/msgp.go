// Package msgp is the codec for types with the methods that tinylib/msgp generates. It needs only the methods and so imports nothing.
//
// Generate with `//msgp:newtime`, so that other implementations of MessagePack read the times, and `//msgp:timezone utc`.
package msgp

import (
	"errors"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/codec/internal/box"
	"github.com/weft-db/weft/sdk/go/cache/codec/internal/messagepack"
)

// Message is what msgp generates for M, without its streaming half (-io=false).
type Message[M any] interface {
	*M
	MarshalMsg(dst []byte) ([]byte, error)
	UnmarshalMsg(data []byte) ([]byte, error)
}

// null is how a nil pointer is stored; no struct begins with it.
const null = 0xc0

var errRest = errors.New("msgp: there is something behind the value")

// Codec stores values of M.
type Codec[M any, P Message[M]] struct{ places box.Pool[M] }

// New returns the codec of M: msgp.New[User]().
func New[M any, P Message[M]]() *Codec[M, P] { return &Codec[M, P]{} }

// ID is CodecMsgp.
func (c *Codec[M, P]) ID() cache.CodecID { return cache.CodecMsgp }

// AppendEncode appends v. It allocates nothing if dst has room and M's fields need nothing.
func (c *Codec[M, P]) AppendEncode(dst []byte, v M) ([]byte, error) {
	place := c.places.Put(v)
	defer c.places.Free(place)
	return P(place).MarshalMsg(dst)
}

// Decode sets *v. Headers that promise more than there is are found before anything is allocated for them.
func (c *Codec[M, P]) Decode(data []byte, v *M) error { return decode(data, P(v)) }

// Pointers stores *M: nothing is copied on the way, and a nil pointer comes back as one.
type Pointers[M any, P Message[M]] struct{}

// NewPointers returns the codec of *M: msgp.NewPointers[User]().
func NewPointers[M any, P Message[M]]() Pointers[M, P] { return Pointers[M, P]{} }

// ID is CodecMsgp.
func (Pointers[M, P]) ID() cache.CodecID { return cache.CodecMsgp }

// AppendEncode appends what v points at.
func (Pointers[M, P]) AppendEncode(dst []byte, v *M) ([]byte, error) {
	if v == nil {
		return append(dst, null), nil
	}
	return P(v).MarshalMsg(dst)
}

// Decode sets *v to a new M.
func (Pointers[M, P]) Decode(data []byte, v **M) error {
	if len(data) == 1 && data[0] == null {
		*v = nil
		return nil
	}
	m := new(M)
	if err := decode(data, P(m)); err != nil {
		return err
	}
	*v = m
	return nil
}

func decode[M any, P Message[M]](data []byte, m P) error {
	if err := messagepack.Check(data); err != nil {
		return err
	}
	rest, err := m.UnmarshalMsg(data)
	if err == nil && len(rest) > 0 {
		err = errRest
	}
	return err
}
