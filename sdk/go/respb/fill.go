package respb

// This file owns making a Value of what a decoder found in a frame. Texts are copied into the Value's own memory.

import (
	"github.com/weft-db/weft/sdk/go/internal/frame"
	"github.com/weft-db/weft/sdk/go/resp"
)

var kinds = [...]resp.Kind{
	frame.OK: resp.Status, frame.Error: resp.ErrorLine, frame.Integer: resp.Integer, frame.Bulk: resp.Bulk, frame.Array: resp.Array,
	frame.Null: resp.Null, frame.Bool: resp.Boolean, frame.Float: resp.Double, frame.Map: resp.Map, frame.Set: resp.Set,
	frame.Push: resp.Push, frame.Simple: resp.Status, frame.BigNumber: resp.BigNumber, frame.Verbatim: resp.Verbatim,
}

// fill makes dst the first value of values, with everything in it.
func fill(dst *Value, values []frame.Value, raw []byte) {
	fillOne(dst, values, raw)
}

// fillOne returns what is left of values behind the first. Nesting is bounded by the decoder.
func fillOne(dst *Value, values []frame.Value, raw []byte) []frame.Value {
	dst.Data, dst.Elems = dst.Data[:0], dst.Elems[:0]
	if len(dst.Attrs) > 0 {
		dst.Attrs = dst.Attrs[:0]
	}
	v := &values[0]
	values = values[1:]
	if v.Type == frame.Attribute {
		attrs := dst.Attrs[:0]
		for range 2 * int(v.Count) {
			attrs = append(attrs, Value{})
			values = fillOne(&attrs[len(attrs)-1], values, raw)
		}
		values = fillOne(dst, values, raw)
		dst.Attrs = append(attrs, dst.Attrs...)
		return values
	}
	dst.Kind = kinds[v.Type]
	elements := 0
	switch v.Type {
	case frame.OK:
		dst.Data = append(dst.Data, "OK"...)
	case frame.Integer:
		dst.Int = v.Int()
	case frame.Bool:
		dst.Int = 0
		if v.Bool() {
			dst.Int = 1
		}
	case frame.Float:
		dst.Float = v.Float()
		dst.Data = frame.AppendDouble(dst.Data, dst.Float)
	case frame.Null:
	case frame.Verbatim:
		dst.Format = v.Format
		dst.Data = append(dst.Data, v.Bytes(raw)...)
	case frame.Error, frame.Bulk, frame.Simple, frame.BigNumber:
		dst.Data = append(dst.Data, v.Bytes(raw)...)
	case frame.Map:
		elements = 2 * int(v.Count)
	default:
		elements = int(v.Count)
	}
	for i := range elements {
		if i < cap(dst.Elems) {
			dst.Elems = dst.Elems[:i+1]
		} else {
			dst.Elems = append(dst.Elems, Value{})
		}
		values = fillOne(&dst.Elems[i], values, raw)
	}
	return values
}
