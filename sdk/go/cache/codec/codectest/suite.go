package codectest

// This file owns the suite: what a codec must do with good bytes and with bad ones.

import (
	"bytes"
	"fmt"
	"runtime/metrics"
	"sync"
	"testing"

	"github.com/weft-db/weft/sdk/go/cache"
)

// Bounds of what the suite tries.
const (
	// flipsMax is the number of bits of one value that are flipped, each on its own. They are spread evenly.
	flipsMax = 1024
	// truncationsMax is the number of lengths that one value is cut to.
	truncationsMax = 256
	// damagedBytesMax is the longest encoding that is damaged: longer values add nothing but time.
	damagedBytesMax = 16 << 10
	// allocatedBytesMax and allocatedPerByteMax bound what decoding damaged bytes may allocate: libraries begin with buffers of
	// their own, and what follows must come from the length of the data.
	allocatedBytesMax   = 2 << 20
	allocatedPerByteMax = 256

	goroutines = 8
	rounds     = 20
)

// Run holds the codec to the contract of [cache.Codec] with these values, of which there must be two at least.
func Run[V any](t *testing.T, codec cache.Codec[V], values []V, equal func(a, b V) bool) {
	t.Helper()
	if len(values) < 2 {
		t.Fatal("codectest: too few values")
	}
	s := suite[V]{codec: codec, values: values, equal: equal}
	t.Run("number", s.number)
	t.Run("round trip", s.roundTrip)
	t.Run("append", s.appends)
	t.Run("input is lent", s.inputIsLent)
	t.Run("truncated", s.truncated)
	t.Run("bit flips", s.bitFlips)
	t.Run("noise", s.noise)
	t.Run("concurrent", s.concurrent)
}

type suite[V any] struct {
	codec  cache.Codec[V]
	values []V
	equal  func(a, b V) bool
}

// encode fails the test unless v can be encoded.
func (s *suite[V]) encode(t testing.TB, v V) []byte {
	t.Helper()
	data, err := s.codec.AppendEncode(nil, v)
	if err != nil {
		t.Fatalf("%.200v: %v", v, err)
	}
	return data
}

func (s *suite[V]) number(t *testing.T) {
	if id := s.codec.ID(); id == 0 || id == 255 {
		t.Errorf("%d is no codec's number", id)
	}
}

func (s *suite[V]) roundTrip(t *testing.T) {
	var buffer []byte
	for i, want := range s.values {
		fresh := s.encode(t, want)
		var err error
		if buffer, err = s.codec.AppendEncode(buffer[:0], want); err != nil {
			t.Fatalf("value %d into a used buffer: %v", i, err)
		}
		for _, data := range [][]byte{fresh, buffer} {
			var got V
			if err := s.codec.Decode(data, &got); err != nil {
				t.Fatalf("value %d: %v\n%.300q", i, err, data)
			}
			if !s.equal(got, want) {
				t.Fatalf("value %d came back as\n%.500v\nand not as\n%.500v", i, Show(got), Show(want))
			}
		}
	}
}

// appends finds a codec that writes over what is in the buffer, or behind its capacity.
func (s *suite[V]) appends(t *testing.T) {
	prefix := []byte("prefix")
	for i, v := range s.values {
		plain := s.encode(t, v)
		rooms := []int{0, 1, len(plain) - 1, len(plain), len(plain) + 100}
		if len(plain) > damagedBytesMax {
			rooms = rooms[3:]
		}
		for _, room := range rooms {
			backing := bytes.Repeat([]byte{0xA5}, len(prefix)+max(room, 0)+8)
			copy(backing, prefix)
			end := len(prefix) + max(room, 0)
			out, err := s.codec.AppendEncode(backing[:len(prefix):end], v)
			if err != nil {
				t.Fatalf("value %d: %v", i, err)
			}
			if !bytes.HasPrefix(out, prefix) || !bytes.HasPrefix(backing, prefix) {
				t.Fatalf("value %d: the buffer began with %q and now begins with %.20q", i, prefix, out)
			}
			if tail := backing[end:]; !bytes.Equal(tail, bytes.Repeat([]byte{0xA5}, len(tail))) {
				t.Fatalf("value %d: written behind the buffer's capacity", i)
			}
			var got V
			if err := s.codec.Decode(out[len(prefix):], &got); err != nil || !s.equal(got, v) {
				t.Fatalf("value %d behind a prefix: %v\n%.300v", i, err, Show(got))
			}
		}
	}
}

// inputIsLent finds a codec that keeps the bytes it decodes, or changes them.
func (s *suite[V]) inputIsLent(t *testing.T) {
	for i, want := range s.values {
		data := s.encode(t, want)
		before := bytes.Clone(data)
		var got V
		if err := s.codec.Decode(data, &got); err != nil {
			t.Fatalf("value %d: %v", i, err)
		}
		if !bytes.Equal(data, before) {
			t.Fatalf("value %d: decoding has changed the data", i)
		}
		for j := range data {
			data[j] = 0xA5
		}
		if !s.equal(got, want) {
			t.Fatalf("value %d: it changes with the data it was decoded from", i)
		}
	}
}

// damaged decodes bytes that need not make sense: what comes out counts for nothing, but it must come out, and cost little.
func (s *suite[V]) damaged(t testing.TB, data []byte, what string) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			t.Fatalf("%s: decoding panics: %v\n%.300q", what, r, data)
		}
	}()
	before := allocated()
	var v V
	err := s.codec.Decode(data, &v)
	limit := uint64(allocatedBytesMax + allocatedPerByteMax*len(data))
	if n := allocated() - before; n > limit {
		t.Fatalf("%s: decoding %d bytes allocates %d\n%.300q", what, len(data), n, data)
	}
	if err != nil && err.Error() == "" {
		t.Fatalf("%s: an error without a text", what)
	}
}

// allocated returns the bytes that the process has allocated so far. Small objects may be counted late, large ones are not.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func (s *suite[V]) truncated(t *testing.T) {
	for i, v := range s.values {
		data := s.encode(t, v)
		if len(data) > damagedBytesMax {
			continue
		}
		step := 1 + len(data)/truncationsMax
		for n := 0; n < len(data); n += step {
			s.damaged(t, bytes.Clone(data[:n]), fmt.Sprintf("value %d, %d bytes of %d", i, n, len(data)))
		}
	}
}

func (s *suite[V]) bitFlips(t *testing.T) {
	for i, v := range s.values {
		data := s.encode(t, v)
		if len(data) > damagedBytesMax {
			continue
		}
		step := 1 + 8*len(data)/flipsMax
		for bit := 0; bit < 8*len(data); bit += step {
			data[bit/8] ^= 1 << (bit % 8)
			s.damaged(t, data, fmt.Sprintf("value %d, bit %d", i, bit))
			data[bit/8] ^= 1 << (bit % 8)
		}
	}
}

// noise decodes every byte followed by all ones and all zeros, which makes each header of a binary format as long as it gets.
func (s *suite[V]) noise(t *testing.T) {
	for first := range 256 {
		for _, fill := range []byte{0x00, 0x7F, 0xFF, byte(first)} {
			data := bytes.Repeat([]byte{fill}, 40)
			data[0] = byte(first)
			s.damaged(t, data, fmt.Sprintf("%#x and %#x", first, fill))
			// The first value of a codec for structs is inside a map or a message.
			nested := append(s.encode(t, s.values[1%len(s.values)]), data...)
			if len(nested) < damagedBytesMax {
				s.damaged(t, nested, fmt.Sprintf("a value, then %#x and %#x", first, fill))
			}
		}
	}
}

func (s *suite[V]) concurrent(t *testing.T) {
	var all sync.WaitGroup
	errors := make(chan error, goroutines)
	for g := range goroutines {
		all.Add(1)
		go func() {
			defer all.Done()
			var buffer []byte
			for round := range rounds {
				want := s.values[(g+round)%len(s.values)]
				var err error
				if buffer, err = s.codec.AppendEncode(buffer[:0], want); err == nil {
					var got V
					if err = s.codec.Decode(buffer, &got); err == nil && !s.equal(got, want) {
						err = fmt.Errorf("%.300v is not %.300v", Show(got), Show(want))
					}
				}
				if err != nil {
					errors <- err
					return
				}
			}
		}()
	}
	all.Wait()
	select {
	case err := <-errors:
		t.Error(err)
	default:
	}
}

// Refuses checks that a value that cannot be encoded gives an error, no panic, and leaves the buffer as it was.
func Refuses[V any](t *testing.T, codec cache.Codec[V], v V) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("encoding panics: %v", r)
		}
	}()
	buffer := append(make([]byte, 0, 64), "prefix"...)
	if out, err := codec.AppendEncode(buffer, v); err == nil {
		t.Errorf("encoded as %.100q, not refused", out[len(buffer):])
	}
	if string(buffer) != "prefix" {
		t.Errorf("the buffer has become %q", buffer)
	}
}

// NoAllocations checks that encoding into a buffer that is long enough allocates nothing.
func NoAllocations[V any](t *testing.T, codec cache.Codec[V], values []V) {
	t.Helper()
	var buffer []byte
	for i, v := range values {
		var err error
		n := testing.AllocsPerRun(100, func() { buffer, err = codec.AppendEncode(buffer[:0], v) })
		if err != nil || n != 0 {
			t.Errorf("value %d: %v allocations, error %v", i, n, err)
		}
	}
}

// Fuzz decodes what the fuzzer finds, beginning with the encodings of the values.
func Fuzz[V any](f *testing.F, codec cache.Codec[V], values []V) {
	s := suite[V]{codec: codec, values: values}
	for _, v := range values {
		f.Add(s.encode(f, v))
	}
	f.Fuzz(func(t *testing.T, data []byte) { s.damaged(t, data, "found") })
}
