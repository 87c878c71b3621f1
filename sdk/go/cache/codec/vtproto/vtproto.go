// Package vtproto is the codec for Protobuf messages with the methods that vtprotobuf generates. It needs only the methods and so imports
// nothing. What it writes is read by codec/protobuf, and the other way round.
//
// What vtprotobuf generates follows nested messages without a bound: for recursive messages from untrusted stores take codec/protobuf.
package vtproto

import (
	"errors"
	"slices"

	"github.com/weft-db/weft/sdk/go/cache"
)

// Message is what protoc-gen-go-vtproto generates for M with the features marshal, unmarshal and size.
type Message[M any] interface {
	*M
	SizeVT() int
	MarshalToSizedBufferVT(dst []byte) (int, error)
	UnmarshalVT(data []byte) error
}

// ErrNil is returned for a nil message: it would come back as an empty one.
var ErrNil = errors.New("vtproto: a nil message cannot be stored")

var errSize = errors.New("vtproto: the message has changed while it was encoded")

// Codec stores *M.
type Codec[M any, P Message[M]] struct{}

// New returns the codec of *M: vtproto.New[pb.User]().
func New[M any, P Message[M]]() Codec[M, P] { return Codec[M, P]{} }

// ID is CodecProtobuf.
func (Codec[M, P]) ID() cache.CodecID { return cache.CodecProtobuf }

// AppendEncode appends v. It allocates nothing if dst has room.
func (Codec[M, P]) AppendEncode(dst []byte, v *M) ([]byte, error) {
	if v == nil {
		return dst, ErrNil
	}
	size := P(v).SizeVT()
	dst = slices.Grow(dst, size)
	out := dst[:len(dst)+size]
	n, err := P(v).MarshalToSizedBufferVT(out[len(dst):])
	if err == nil && n != size {
		err = errSize
	}
	return out, err
}

// Decode sets *v to a new M. Strings and bytes are copied.
func (Codec[M, P]) Decode(data []byte, v **M) error {
	m := new(M)
	if err := P(m).UnmarshalVT(data); err != nil {
		return err
	}
	*v = m
	return nil
}
