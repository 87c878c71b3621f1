package protobuf

// This file owns the tests of the codec with messages that the library brings; sdk/go/cache/bench has those with generated ones.

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weft-db/weft/sdk/go/cache/codec/codectest"
)

func equal[M any, P Message[M]](a, b *M) bool { return proto.Equal(P(a), P(b)) }

func structs(t testing.TB) []*structpb.Struct {
	t.Helper()
	values := []*structpb.Struct{{}}
	for i, text := range codectest.Texts() {
		s, err := structpb.NewStruct(map[string]any{
			"text": text, "number": float64(i) / 3, "null": nil, "flag": true,
			"list": []any{text, 1.5, map[string]any{"deep": []any{}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, s)
	}
	return values
}

func TestCodec(t *testing.T) {
	t.Run("struct", func(t *testing.T) { codectest.Run(t, New[structpb.Struct](), structs(t), equal) })
	t.Run("bytes", func(t *testing.T) {
		values := []*wrapperspb.BytesValue{{}, wrapperspb.Bytes([]byte{0, 1, 0xFF}), wrapperspb.Bytes(make([]byte, 70_000))}
		codectest.Run(t, New[wrapperspb.BytesValue](), values, equal)
	})
}

func TestRefuses(t *testing.T) {
	codectest.Refuses(t, New[structpb.Struct](), nil)
	codectest.Refuses(t, New[wrapperspb.StringValue](), wrapperspb.String("no UTF-8: \xff"))
}

// TestDepth fails when a message that contains itself could take all of the stack.
func TestDepth(t *testing.T) {
	inner := []byte{}
	for range 20_000 { // a list in a value in a list
		inner = appendField(nil, 6, appendField(nil, 1, inner))
		if len(inner) > 1<<20 {
			break
		}
	}
	var v *structpb.Value
	if err := New[structpb.Value]().Decode(inner, &v); err == nil || !strings.Contains(err.Error(), "recursion") {
		t.Errorf("nested beyond all bounds: %v", err)
	}
}

func appendField(dst []byte, number byte, data []byte) []byte {
	dst = append(dst, number<<3|2)
	for n := len(data); ; n >>= 7 {
		if n < 0x80 {
			dst = append(dst, byte(n))
			break
		}
		dst = append(dst, byte(n)|0x80)
	}
	return append(dst, data...)
}

func FuzzDecode(f *testing.F) { codectest.Fuzz(f, New[structpb.Struct](), structs(f)[:12]) }

func TestAppendKeepsCapacity(t *testing.T) {
	dst := make([]byte, 0, 1<<10)
	out, err := New[wrapperspb.StringValue]().AppendEncode(dst, wrapperspb.String("text"))
	if err != nil || &out[0] != &dst[:1][0] || !bytes.HasSuffix(out, []byte("text")) {
		t.Errorf("%q, %v: not in the caller's buffer", out, err)
	}
}
