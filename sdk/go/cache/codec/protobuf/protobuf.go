// Package protobuf is the codec for Protobuf messages on google.golang.org/protobuf. What it writes is read by codec/vtproto, and the
// other way round.
package protobuf

import (
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/weft-db/weft/sdk/go/cache"
)

// Message is what protoc-gen-go generates for M.
type Message[M any] interface {
	*M
	proto.Message
}

// ErrNil is returned for a nil message: it would come back as an empty one.
var ErrNil = errors.New("protobuf: a nil message cannot be stored")

// Codec stores *M.
type Codec[M any, P Message[M]] struct{}

// New returns the codec of *M: protobuf.New[pb.User]().
func New[M any, P Message[M]]() Codec[M, P] { return Codec[M, P]{} }

// ID is CodecProtobuf.
func (Codec[M, P]) ID() cache.CodecID { return cache.CodecProtobuf }

// AppendEncode appends v.
func (Codec[M, P]) AppendEncode(dst []byte, v *M) ([]byte, error) {
	if v == nil {
		return dst, ErrNil
	}
	return proto.MarshalOptions{}.MarshalAppend(dst, P(v))
}

// Decode sets *v to a new M. Strings and bytes are copied; nesting is bounded by the library.
func (Codec[M, P]) Decode(data []byte, v **M) error {
	m := new(M)
	if err := proto.Unmarshal(data, P(m)); err != nil {
		return err
	}
	*v = m
	return nil
}
