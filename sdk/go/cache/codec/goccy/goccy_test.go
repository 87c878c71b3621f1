package goccy

// This file owns the tests of the codec.

import (
	"errors"
	"testing"

	"github.com/weft-db/weft/sdk/go/cache/codec/codectest"
)

func TestCodec(t *testing.T) {
	t.Run("small", func(t *testing.T) { codectest.Run(t, New[codectest.Small](), codectest.SmallValues(), codectest.Equal) })
	t.Run("medium", func(t *testing.T) {
		codectest.Run(t, New[codectest.Medium](), codectest.MediumValues(), codectest.Equal)
	})
	t.Run("large", func(t *testing.T) { codectest.Run(t, New[codectest.Large](), codectest.LargeValues(), codectest.Equal) })
	t.Run("nested", func(t *testing.T) {
		codectest.Run(t, New[codectest.Nested](), codectest.NestedValues(), codectest.Equal)
	})
	t.Run("optional", func(t *testing.T) {
		codectest.Run(t, New[codectest.Optional](), codectest.OptionalValues(), codectest.Equal)
	})
	t.Run("pointers", func(t *testing.T) {
		values := append(codectest.Pointers(codectest.SmallValues()), nil)
		codectest.Run(t, New[*codectest.Small](), values, codectest.Equal)
	})
	t.Run("texts", func(t *testing.T) { codectest.Run(t, New[string](), codectest.Texts(), codectest.Equal) })
}

func TestRefuses(t *testing.T) {
	codectest.Refuses(t, New[any](), any(make(chan int)))
}

// panics panics where the library calls it, as the library itself has done.
type panics struct{ Text string }

func (p *panics) MarshalJSON() ([]byte, error) {
	if p.Text != "" {
		panic(p.Text)
	}
	return []byte("{}"), nil
}

func (p *panics) UnmarshalJSON([]byte) error { panic("decoding") }

func TestPanicBecomesError(t *testing.T) {
	c := New[panics]()
	for range 3 {
		out, err := c.AppendEncode([]byte("prefix"), panics{"encoding"})
		var p *PanicError
		if !errors.As(err, &p) || p.Value != "encoding" || string(out) != "prefix" {
			t.Fatalf("%q, %v", out, err)
		}
		var v panics
		if err := c.Decode([]byte("{}"), &v); !errors.As(err, &p) || p.Value != "decoding" {
			t.Fatal(err)
		}
		if out, err := c.AppendEncode([]byte("prefix"), panics{}); err != nil || string(out) != "prefix{}" {
			t.Fatalf("after a panic: %q, %v", out, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	codectest.Fuzz(f, New[codectest.Optional](), codectest.OptionalValues())
}
