package cbor

// This file owns the tests of the codec.

import (
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

func FuzzDecode(f *testing.F) {
	codectest.Fuzz(f, New[codectest.Optional](), codectest.OptionalValues())
}
