package main

// This file owns what is cached: values of one shape with one codec, the way by hand and the way of the kit.

import (
	"encoding/json"
	"fmt"

	"github.com/bytedance/sonic"
	fxcbor "github.com/fxamacker/cbor/v2"
	gojson "github.com/goccy/go-json"
	vmsgpack "github.com/vmihailenco/msgpack/v5"
	"google.golang.org/protobuf/proto"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/bench/fixture"
	"github.com/weft-db/weft/sdk/go/cache/codec/cbor"
	"github.com/weft-db/weft/sdk/go/cache/codec/codectest"
	"github.com/weft-db/weft/sdk/go/cache/codec/goccy"
	"github.com/weft-db/weft/sdk/go/cache/codec/msgp"
	"github.com/weft-db/weft/sdk/go/cache/codec/msgpack"
	"github.com/weft-db/weft/sdk/go/cache/codec/protobuf"
	ownsonic "github.com/weft-db/weft/sdk/go/cache/codec/sonic"
	"github.com/weft-db/weft/sdk/go/cache/codec/vtproto"
)

// batch is the number of values, of each kind, and of a pipeline, as in seed 004.
const batch = 100

// shapes are the structs' sizes.
var shapes = []string{"small", "medium", "large", "nested5", "nested10"}

// The codecs, as rows are called.
const (
	codecJSON     = "encoding/json"
	codecGoccy    = "goccy"
	codecSonic    = "sonic"
	codecHash     = "Redis hash"
	codecMsgpack  = "vmihailenco"
	codecCBOR     = "fxamacker cbor"
	codecTinylib  = "tinylib"
	codecProtobuf = "protobuf"
	codecVT       = "vtprotobuf"
	codecRaw      = "raw"
)

// codecNames are in the order of the report.
var codecNames = []string{
	codecJSON, codecGoccy, codecSonic, codecHash, codecMsgpack, codecCBOR, codecTinylib, codecProtobuf, codecVT, codecRaw,
}

// subject is a batch of values. There are two generations of them, so that a write that did not happen is found.
type subject interface {
	name() string
	// use says which generation is written from now on.
	use(generation int)
	// encode and decode are what one writes by hand: the library's plain function. decode sets slot i.
	encode(i int) ([]byte, error)
	decode(data []byte, i int) error
	// appendEncode and parse are the kit's codec.
	appendEncode(dst []byte, i int) ([]byte, error)
	parse(data []byte, i int) error
	// clear forgets what was decoded; check compares the first n slots with a generation.
	clear()
	check(generation, n int) error
	// payload is the mean length of an encoded value.
	payload() (float64, error)
	// kit makes a cache with the codec.
	kit(t cache.Transport, prefix string) (kit, error)
}

// typed is a subject of one type.
type typed[T any] struct {
	codecName string
	values    [2][]T
	current   []T
	slots     []T
	marshal   func(v *T) ([]byte, error)
	unmarshal func(data []byte, v *T) error
	codec     cache.Codec[T]
	equal     func(a, b T) bool
}

func newTyped[T any](name string, make2 func(s *fixture.Source) T, codec cache.Codec[T], equal func(a, b T) bool,
	marshal func(v *T) ([]byte, error), unmarshal func(data []byte, v *T) error) *typed[T] {
	s := &typed[T]{codecName: name, marshal: marshal, unmarshal: unmarshal, codec: codec, equal: equal, slots: make([]T, batch)}
	for g := range s.values {
		source := fixture.NewSource(uint64(g) + 1)
		for range batch {
			s.values[g] = append(s.values[g], make2(source))
		}
	}
	s.use(0)
	return s
}

func (s *typed[T]) name() string       { return s.codecName }
func (s *typed[T]) use(generation int) { s.current = s.values[generation] }
func (s *typed[T]) clear()             { clear(s.slots) }

func (s *typed[T]) encode(i int) ([]byte, error)    { return s.marshal(&s.current[i]) }
func (s *typed[T]) decode(data []byte, i int) error { return s.unmarshal(data, &s.slots[i]) }

func (s *typed[T]) appendEncode(dst []byte, i int) ([]byte, error) {
	return s.codec.AppendEncode(dst, s.current[i])
}

func (s *typed[T]) parse(data []byte, i int) error { return s.codec.Decode(data, &s.slots[i]) }

func (s *typed[T]) check(generation, n int) error {
	for i, want := range s.values[generation][:n] {
		if !s.equal(s.slots[i], want) {
			return fmt.Errorf("%s, value %d: read\n%.500s, written\n%.500s", s.codecName, i, codectest.Show(s.slots[i]), codectest.Show(want))
		}
	}
	return nil
}

func (s *typed[T]) payload() (float64, error) {
	var sum int
	for i := range s.current {
		data, err := s.encode(i)
		if err != nil {
			return 0, err
		}
		sum += len(data)
	}
	return float64(sum) / float64(len(s.current)), nil
}

// message is what is generated for M, by protoc-gen-go and by vtprotobuf.
type message[M any] interface {
	*M
	proto.Message
	vtproto.Message[M]
	MarshalVT() ([]byte, error)
}

// generated is what is generated for T, and its message.
type generated[T, M any] interface {
	msgp.Message[T]
	Message() *M
}

// subjectsOf returns all subjects of a shape.
func subjectsOf(shape string) []subject {
	switch shape {
	case "small":
		return build(func(s *fixture.Source) fixture.Small { return s.Small() }, (*fixture.Small).Message)
	case "medium":
		return build(func(s *fixture.Source) fixture.Medium { return s.Medium() }, (*fixture.Medium).Message)
	case "large":
		return build(func(s *fixture.Source) fixture.Large { return s.Large() }, (*fixture.Large).Message)
	case "nested5":
		return build(func(s *fixture.Source) fixture.Nested { return s.Nested(5) }, (*fixture.Nested).Message)
	case "nested10":
		return build(func(s *fixture.Source) fixture.Nested { return s.Nested(10) }, (*fixture.Nested).Message)
	}
	return nil
}

// microseconds of a time are lost by the library's default, which counts seconds.
var cborMode, _ = fxcbor.EncOptions{Time: fxcbor.TimeRFC3339Nano}.EncMode()

// build makes the subjects of T, whose message is M.
func build[T, M any, P generated[T, M], PM message[M]](next func(s *fixture.Source) T, toMessage func(v *T) *M) []subject {
	plain := func(name string, codec cache.Codec[T], marshal func(v any) ([]byte, error), unmarshal func(data []byte, v any) error) *typed[T] {
		return newTyped(name, next, codec, codectest.Equal,
			func(v *T) ([]byte, error) { return marshal(v) }, func(data []byte, v *T) error { return unmarshal(data, v) })
	}
	messages := func(s *fixture.Source) *M {
		v := next(s)
		return toMessage(&v)
	}
	equal := func(a, b *M) bool { return a != nil && proto.Equal(PM(a), PM(b)) }
	return []subject{
		plain(codecJSON, cache.JSON[T]{}, json.Marshal, json.Unmarshal),
		plain(codecGoccy, goccy.New[T](), gojson.Marshal, func(data []byte, v any) error { return gojson.Unmarshal(data, v) }),
		plain(codecSonic, ownsonic.New[T](), sonic.Marshal, sonic.Unmarshal),
		newHash(next),
		plain(codecMsgpack, msgpack.New[T](), vmsgpack.Marshal, vmsgpack.Unmarshal),
		plain(codecCBOR, cbor.New[T](), cborMode.Marshal, fxcbor.Unmarshal),
		newTyped(codecTinylib, next, msgp.New[T, P](), codectest.Equal,
			func(v *T) ([]byte, error) { return P(v).MarshalMsg(nil) },
			func(data []byte, v *T) error {
				_, err := P(v).UnmarshalMsg(data)
				return err
			}),
		newTyped(codecProtobuf, messages, protobuf.New[M, PM](), equal,
			func(v **M) ([]byte, error) { return proto.Marshal(PM(*v)) },
			func(data []byte, v **M) error {
				*v = new(M)
				return proto.Unmarshal(data, PM(*v))
			}),
		newTyped(codecVT, messages, vtproto.New[M, PM](), equal,
			func(v **M) ([]byte, error) { return PM(*v).MarshalVT() },
			func(data []byte, v **M) error {
				*v = new(M)
				return PM(*v).UnmarshalVT(data)
			}),
		newRaw(next),
	}
}

// newRaw makes the subject of values that are bytes already: the JSON of T.
func newRaw[T any](next func(s *fixture.Source) T) subject {
	encoded := func(s *fixture.Source) []byte {
		data, err := json.Marshal(next(s))
		if err != nil {
			panic(err) // a fixture is always JSON
		}
		return data
	}
	return newTyped(codecRaw, encoded, cache.Raw{}, func(a, b []byte) bool { return string(a) == string(b) },
		func(v *[]byte) ([]byte, error) { return *v, nil },
		func(data []byte, v *[]byte) error {
			*v = append([]byte(nil), data...)
			return nil
		})
}
