package cache

// This file owns the interface of codecs, their numbers, and those that need no library.

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"sync"
)

// Codec turns values into bytes and back. A Codec is used by many goroutines at once.
//
// Append-style: the caller brings the buffer, so that a codec that can encode without allocating does.
type Codec[V any] interface {
	// ID is the number of the encoding, which is stored with each value. It names the bytes and not the library: two codecs that read each
	// other's bytes share a number.
	ID() CodecID
	// AppendEncode appends the encoding of v to dst and returns the longer slice. On an error what it returns is not used, and dst up to
	// its length must be as it was.
	AppendEncode(dst []byte, v V) ([]byte, error)
	// Decode sets *v, which is the zero value, from data. data is lent for the call: what *v is to keep has to be copied.
	// Any bytes must give a value or an error, never a panic. What it allocates must follow from len(data).
	Decode(data []byte, v *V) error
}

// CodecID is the number of an encoding: the first byte of a stored value. A number is never used for anything else.
type CodecID byte

// The encodings with a number. 0 and 255 are invalid, 16 to 127 are kept for further ones, 128 to 254 are the users'.
const (
	CodecRaw         CodecID = 1 // the bytes themselves
	CodecJSON        CodecID = 2 // JSON, by encoding/json, goccy/go-json or sonic
	CodecMessagePack CodecID = 3 // MessagePack as vmihailenco/msgpack writes it
	CodecMsgp        CodecID = 4 // MessagePack as tinylib/msgp writes it: its times are another extension type
	CodecProtobuf    CodecID = 5 // a Protobuf message, by protobuf-go or vtprotobuf
	CodecCBOR        CodecID = 6 // CBOR (RFC 8949)
	CodecHash        CodecID = 7 // a Redis hash, one field for each field of the struct; see Hash
	CodecBinary      CodecID = 8 // encoding.BinaryAppender or BinaryMarshaler

	// CodecUserMin and CodecUserMax bound the numbers for codecs of users.
	CodecUserMin CodecID = 128
	CodecUserMax CodecID = 254
)

// codecInvalid is no codec's number: erased memory reads as all ones.
const codecInvalid CodecID = 255

func (id CodecID) valid() bool { return id != 0 && id != codecInvalid }

// Raw is the codec of values that are bytes already. What Get gives is a copy and the caller's.
type Raw struct{}

// ID is CodecRaw.
func (Raw) ID() CodecID { return CodecRaw }

// AppendEncode appends v.
func (Raw) AppendEncode(dst []byte, v []byte) ([]byte, error) { return append(dst, v...), nil }

// Decode copies data.
func (Raw) Decode(data []byte, v *[]byte) error {
	*v = append(make([]byte, 0, len(data)), data...)
	return nil
}

// RawString is Raw for strings.
type RawString struct{}

// ID is CodecRaw.
func (RawString) ID() CodecID { return CodecRaw }

// AppendEncode appends v.
func (RawString) AppendEncode(dst []byte, v string) ([]byte, error) { return append(dst, v...), nil }

// Decode copies data.
func (RawString) Decode(data []byte, v *string) error {
	*v = string(data)
	return nil
}

// JSON is the codec of encoding/json. HTML is not escaped.
type JSON[V any] struct{}

// ID is CodecJSON.
func (JSON[V]) ID() CodecID { return CodecJSON }

// jsonEncoder is an Encoder with the buffer that it writes to: Marshal would copy what it has encoded.
type jsonEncoder struct {
	dst     []byte
	encoder *json.Encoder
}

// Write appends to the caller's buffer.
func (e *jsonEncoder) Write(p []byte) (int, error) {
	e.dst = append(e.dst, p...)
	return len(p), nil
}

var jsonEncoders = sync.Pool{New: func() any {
	e := &jsonEncoder{}
	e.encoder = json.NewEncoder(e)
	e.encoder.SetEscapeHTML(false)
	return e
}}

// AppendEncode appends v as JSON.
func (JSON[V]) AppendEncode(dst []byte, v V) ([]byte, error) {
	e := jsonEncoders.Get().(*jsonEncoder)
	e.dst = dst
	err := e.encoder.Encode(v)
	out := e.dst
	e.dst = nil
	if err != nil {
		// An Encoder keeps some errors for ever; this one is not used again.
		return dst, err
	}
	jsonEncoders.Put(e)
	return bytes.TrimSuffix(out, newline), nil
}

var newline = []byte("\n")

// Decode sets *v from JSON.
func (JSON[V]) Decode(data []byte, v *V) error { return json.Unmarshal(data, v) }

// Binary is the codec of types with the methods of encoding.BinaryMarshaler and BinaryUnmarshaler, such as netip.Addr and what gob
// prefers. Where there is an AppendBinary it is used.
type Binary[V any, P interface {
	*V
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}] struct{}

// ID is CodecBinary.
func (Binary[V, P]) ID() CodecID { return CodecBinary }

// AppendEncode appends v by its own methods.
func (Binary[V, P]) AppendEncode(dst []byte, v V) ([]byte, error) {
	p := P(&v)
	if a, ok := any(p).(encoding.BinaryAppender); ok {
		return a.AppendBinary(dst)
	}
	data, err := p.MarshalBinary()
	return append(dst, data...), err
}

// Decode sets *v by its own method.
func (Binary[V, P]) Decode(data []byte, v *V) error { return P(v).UnmarshalBinary(data) }

// CodecFunc makes a codec of two functions.
type CodecFunc[V any] struct {
	// Number is between CodecUserMin and CodecUserMax, or the number of an encoding that the functions write exactly.
	Number CodecID
	Append func(dst []byte, v V) ([]byte, error)
	Parse  func(data []byte, v *V) error
}

// ID is the Number.
func (c CodecFunc[V]) ID() CodecID { return c.Number }

// AppendEncode calls Append.
func (c CodecFunc[V]) AppendEncode(dst []byte, v V) ([]byte, error) { return c.Append(dst, v) }

// Decode calls Parse.
func (c CodecFunc[V]) Decode(data []byte, v *V) error { return c.Parse(data, v) }

var errCodecID = errors.New("cache: the codec has the number 0 or 255")
