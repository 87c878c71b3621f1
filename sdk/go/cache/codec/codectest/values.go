package codectest

// This file owns the values: structs of seed 004's sizes, and one with everything that may be missing.

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"
)

// Small has five fields, one of each type.
type Small struct {
	ID        int64     `json:"id" msgpack:"id" cbor:"id"`
	Name      string    `json:"name" msgpack:"name" cbor:"name"`
	Score     float64   `json:"score" msgpack:"score" cbor:"score"`
	Active    bool      `json:"active" msgpack:"active" cbor:"active"`
	CreatedAt time.Time `json:"created_at" msgpack:"created_at" cbor:"created_at"`
}

// Medium has ten fields, two of each type.
type Medium struct {
	ID, Visits           int64
	Name, Email          string
	Score, Balance       float64
	Active, Verified     bool
	CreatedAt, UpdatedAt time.Time
}

// Large has 25 fields, five of each type.
type Large struct {
	ID, Visits, Orders, Age, Level                       int64
	Name, Email, Street, City, Note                      string
	Score, Balance, Discount, Latitude, Longitude        float64
	Active, Verified, Subscribed, Blocked, Staff         bool
	CreatedAt, UpdatedAt, SeenAt, ConfirmedAt, RenewedAt time.Time
}

// Nested has a Small and items.
type Nested struct {
	Small Small
	Items []Item
}

// Item has two fields.
type Item struct {
	Article string
	Count   int64
}

// Optional has what may be missing: pointers, slices, a map and another Optional.
type Optional struct {
	Name  *string           `json:"name,omitempty" msgpack:"name" cbor:"name"`
	Count *int64            `json:"count" msgpack:"count" cbor:"count"`
	Blob  []byte            `json:"blob" msgpack:"blob" cbor:"blob"`
	Tags  []string          `json:"tags" msgpack:"tags" cbor:"tags"`
	Words map[string]string `json:"words" msgpack:"words" cbor:"words"`
	Next  *Optional         `json:"next" msgpack:"next" cbor:"next"`
}

// Texts are strings that codecs get wrong: empty, at the edges of length headers, with what JSON escapes, and in several scripts.
func Texts() []string {
	texts := []string{
		"", "a", "Zażółć gęślą jaźń", "日本語テキスト", "👩‍👩‍👧 and 🏳️‍🌈", "\x00\x01\x1f\x7f", "\u2028\u2029\ufeff\ufffd",
		`"quoted" \ </script> & 'single'`, "line\r\nline\ttab", "e\u0301 is not \u00e9",
	}
	for _, n := range []int{15, 16, 23, 24, 31, 32, 127, 128, 255, 256, 65535, 65536, 1 << 20} {
		texts = append(texts, strings.Repeat("x", n))
	}
	return texts
}

var (
	integers = []int64{0, 1, -1, 23, 24, 127, 128, -32, -33, -128, -129, 255, 256, 32767, 65536, 1 << 31, 1 << 32, 1<<53 + 1,
		math.MaxInt64, math.MinInt64}
	floats = []float64{0, 1, -1, 0.1, 1.0 / 3, 1e21, -1e-9, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Pi, 16777217}
	times  = []time.Time{
		{}, time.Unix(0, 0).UTC(), time.Date(1969, 7, 20, 20, 17, 40, 1000, time.UTC), time.Date(2026, 2, 28, 23, 59, 59, 999_999_999, time.UTC),
		time.Date(2038, 1, 19, 3, 14, 8, 1, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		time.Date(2024, 7, 1, 12, 0, 0, 5_000_000, time.FixedZone("", 5*3600+1800)),
	}
)

func at[T any](list []T, i int) T { return list[i%len(list)] }

// SmallValues begin with the zero value.
func SmallValues() []Small {
	values := []Small{{}}
	for i, text := range Texts() {
		values = append(values, Small{at(integers, i), text, at(floats, i), i%2 == 0, at(times, i)})
	}
	for i := range integers {
		values = append(values, Small{at(integers, i), "x", at(floats, i), true, at(times, i)})
	}
	return values
}

// MediumValues begin with the zero value.
func MediumValues() []Medium {
	texts := Texts()
	values := []Medium{{}}
	for i := range 20 {
		values = append(values, Medium{
			at(integers, i), at(integers, i+7), at(texts[:19], i), at(texts[:19], i+5), at(floats, i), at(floats, i+3),
			i%2 == 0, i%3 == 0, at(times, i), at(times, i+2),
		})
	}
	return values
}

// LargeValues begin with the zero value.
func LargeValues() []Large {
	texts := Texts()[:17]
	values := []Large{{}}
	for i := range 10 {
		values = append(values, Large{
			at(integers, i), at(integers, i+1), at(integers, i+2), at(integers, i+3), at(integers, i+4),
			at(texts, i), at(texts, i+1), at(texts, i+2), at(texts, i+3), at(texts, i+4),
			at(floats, i), at(floats, i+1), at(floats, i+2), at(floats, i+3), at(floats, i+4),
			i%2 == 0, i%3 == 0, i%4 == 0, i%5 == 0, true,
			at(times, i), at(times, i+1), at(times, i+2), at(times, i+3), at(times, i+4),
		})
	}
	return values
}

// NestedValues have no items, 5, 10 and, once, 2,000.
func NestedValues() []Nested {
	small := SmallValues()[:12]
	var values []Nested
	for i, n := range []int{0, 5, 10, 10, 1, 2_000} {
		v := Nested{Small: small[i]}
		for j := range n {
			v.Items = append(v.Items, Item{Article: at(Texts()[:12], i+j), Count: at(integers, i+j)})
		}
		values = append(values, v)
	}
	return values
}

// OptionalValues have nil and set pointers, slices and maps.
func OptionalValues() []Optional {
	text, empty, number, zero := "text", "", int64(-5), int64(0)
	full := Optional{
		Name: &text, Count: &number, Blob: []byte{0, 1, 0xFF}, Tags: []string{"a", "", "ü"}, Words: map[string]string{"k": "v", "": "empty"},
	}
	deep := &Optional{Name: &empty, Count: &zero}
	for range 20 {
		deep = &Optional{Count: &number, Next: deep}
	}
	return []Optional{{}, full, {Name: &empty, Count: &zero, Next: &full}, *deep, {Blob: make([]byte, 70_000)}}
}

// Pointers returns pointers to the values.
func Pointers[V any](values []V) []*V {
	pointers := make([]*V, len(values))
	for i := range values {
		pointers[i] = &values[i]
	}
	return pointers
}

// Equal compares what a cache must bring back: times are equal when they are the same moment, and slices and maps without elements are
// equal to nil, since several formats cannot tell them apart.
func Equal[V any](a, b V) bool {
	return equal(reflect.ValueOf(&a).Elem(), reflect.ValueOf(&b).Elem())
}

var timeType = reflect.TypeFor[time.Time]()

func equal(a, b reflect.Value) bool {
	switch {
	case a.Type() == timeType:
		return a.Interface().(time.Time).Equal(b.Interface().(time.Time))
	case a.Kind() == reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return equal(a.Elem(), b.Elem())
	case a.Kind() == reflect.Struct:
		for i := range a.NumField() {
			if !equal(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case a.Kind() == reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !equal(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case a.Kind() == reflect.Map && a.Len() == 0 && b.Len() == 0:
		return true
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// Show is v for a message: what pointers point at, too.
func Show(v any) string {
	if r := reflect.ValueOf(v); r.Kind() == reflect.Pointer && !r.IsNil() {
		return fmt.Sprintf("&%+v", r.Elem().Interface())
	}
	return fmt.Sprintf("%+v", v)
}
