package main

// This file owns the tests of all codecs with generated code, of what they write for each other, and of the goals that need no clock.

import (
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/bench/fixture"
	"github.com/weft-db/weft/sdk/go/cache/bench/fixture/pb"
	"github.com/weft-db/weft/sdk/go/cache/codec/codectest"
	"github.com/weft-db/weft/sdk/go/cache/codec/goccy"
	"github.com/weft-db/weft/sdk/go/cache/codec/msgp"
	"github.com/weft-db/weft/sdk/go/cache/codec/protobuf"
	"github.com/weft-db/weft/sdk/go/cache/codec/sonic"
	"github.com/weft-db/weft/sdk/go/cache/codec/vtproto"
)

// smalls and its like are those of codectest as types of fixture: zero values, extremes, several scripts, long texts.
func smalls() (values []fixture.Small) {
	for _, v := range codectest.SmallValues() {
		values = append(values, fixture.Small(v))
	}
	return values
}

func mediums() (values []fixture.Medium) {
	for _, v := range codectest.MediumValues() {
		values = append(values, fixture.Medium(v))
	}
	return values
}

func larges() (values []fixture.Large) {
	for _, v := range codectest.LargeValues() {
		values = append(values, fixture.Large(v))
	}
	return values
}

func nesteds() (values []fixture.Nested) {
	for _, v := range codectest.NestedValues() {
		n := fixture.Nested{ID: v.Small.ID, Name: v.Small.Name, Score: v.Small.Score, Active: v.Small.Active, CreatedAt: v.Small.CreatedAt}
		for _, item := range v.Items {
			n.Items = append(n.Items, fixture.Item(item))
		}
		values = append(values, n)
	}
	return values
}

func conform[T, M any, P generated[T, M], PM message[M]](t *testing.T, values []T) {
	t.Run("msgp", func(t *testing.T) { codectest.Run(t, msgp.New[T, P](), values, codectest.Equal) })
	t.Run("msgp pointers", func(t *testing.T) {
		codectest.Run(t, msgp.NewPointers[T, P](), append(codectest.Pointers(values), nil), codectest.Equal)
	})
	var messages []*M
	for i := range values {
		messages = append(messages, P(&values[i]).Message())
	}
	equal := func(a, b *M) bool { return proto.Equal(PM(a), PM(b)) }
	t.Run("protobuf", func(t *testing.T) { codectest.Run(t, protobuf.New[M, PM](), messages, equal) })
	t.Run("vtproto", func(t *testing.T) { codectest.Run(t, vtproto.New[M, PM](), messages, equal) })
	t.Run("protobuf reads vtproto", func(t *testing.T) {
		exchange(t, vtproto.New[M, PM](), protobuf.New[M, PM](), messages, equal)
		exchange(t, protobuf.New[M, PM](), vtproto.New[M, PM](), messages, equal)
	})
	t.Run("JSON reads JSON", func(t *testing.T) {
		all := []cache.Codec[T]{cache.JSON[T]{}, goccy.New[T](), sonic.New[T]()}
		for _, from := range all {
			for _, to := range all {
				exchange(t, from, to, values, codectest.Equal)
			}
		}
	})
}

// exchange checks that codecs with one number read each other's values.
func exchange[V any](t *testing.T, from, to cache.Codec[V], values []V, equal func(a, b V) bool) {
	t.Helper()
	if from.ID() != to.ID() {
		t.Errorf("the numbers are %d and %d", from.ID(), to.ID())
	}
	for i, want := range values {
		data, err := from.AppendEncode(nil, want)
		if err != nil {
			t.Fatal(err)
		}
		var got V
		if err := to.Decode(data, &got); err != nil || !equal(got, want) {
			t.Fatalf("value %d, %T to %T: %v\n%.300s\n%.300s", i, from, to, err, codectest.Show(got), codectest.Show(want))
		}
	}
}

func TestGeneratedCodecs(t *testing.T) {
	t.Run("small", func(t *testing.T) { conform[fixture.Small, pb.Small](t, smalls()) })
	t.Run("medium", func(t *testing.T) { conform[fixture.Medium, pb.Medium](t, mediums()) })
	t.Run("large", func(t *testing.T) { conform[fixture.Large, pb.Large](t, larges()) })
	t.Run("nested", func(t *testing.T) { conform[fixture.Nested, pb.Nested](t, nesteds()) })
	t.Run("refused", func(t *testing.T) {
		codectest.Refuses(t, protobuf.New[pb.Small](), nil)
		codectest.Refuses(t, protobuf.New[pb.Small](), &pb.Small{Name: "no UTF-8: \xff"})
		codectest.Refuses(t, vtproto.New[pb.Small](), nil)
	})
}

// TestEncodeAllocatesNothing is a goal: tinylib and vtprotobuf with a buffer that is used again.
func TestEncodeAllocatesNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes pools forget on purpose")
	}
	var small []*pb.Small
	for _, v := range smalls() {
		small = append(small, v.Message())
	}
	var large []*pb.Large
	for _, v := range larges() {
		large = append(large, v.Message())
	}
	var nested []*pb.Nested
	for _, v := range nesteds() {
		nested = append(nested, v.Message())
	}
	codectest.NoAllocations(t, msgp.New[fixture.Small](), smalls())
	codectest.NoAllocations(t, msgp.New[fixture.Large](), larges())
	codectest.NoAllocations(t, msgp.New[fixture.Nested](), nesteds())
	codectest.NoAllocations(t, msgp.NewPointers[fixture.Nested](), codectest.Pointers(nesteds()))
	codectest.NoAllocations(t, vtproto.New[pb.Small](), small)
	codectest.NoAllocations(t, vtproto.New[pb.Large](), large)
	codectest.NoAllocations(t, vtproto.New[pb.Nested](), nested)
}

// TestSubjects fails when what a subject writes by hand does not come back, or a check finds nothing wrong with what is.
func TestSubjects(t *testing.T) {
	for _, shape := range shapes {
		all := subjectsOf(shape)
		if len(all) != len(codecNames) {
			t.Errorf("%s has %d codecs, not %d", shape, len(all), len(codecNames))
		}
		for n, s := range all {
			if s.name() != codecNames[n] {
				t.Errorf("%s: row %d is %s, not %s", shape, n, s.name(), codecNames[n])
			}
			for generation := range 2 {
				s.use(generation)
				s.clear()
				if err := s.check(generation, batch); err == nil {
					t.Errorf("%s %s: nothing was read and nothing is wrong", shape, s.name())
				}
				if err := fill(s); err != nil {
					t.Fatalf("%s %s: %v", shape, s.name(), err)
				}
				if err := s.check(generation, batch); err != nil {
					t.Error(err)
				}
				if s.check(1-generation, batch) == nil {
					t.Errorf("%s %s: the generations are equal", shape, s.name())
				}
			}
			if size, err := s.payload(); err != nil || size < 20 {
				t.Errorf("%s %s: %v bytes, %v", shape, s.name(), size, err)
			}
		}
	}
}

// fill encodes and decodes all values.
func fill(s subject) error {
	if h, ok := s.(hashFiller); ok {
		return h.fill()
	}
	for i := range batch {
		data, err := s.encode(i)
		if err != nil {
			return err
		}
		if err := s.decode(data, i); err != nil {
			return err
		}
	}
	return nil
}

type hashFiller interface{ fill() error }

func (h *hash[T]) fill() (err error) {
	for i := range h.current {
		flatten(reflect.ValueOf(&h.current[i]).Elem(), "", func(name, value string) {
			if e := assign(reflect.ValueOf(&h.slots[i]).Elem(), name, value); e != nil {
				err = e
			}
		})
	}
	return err
}

func TestHashFieldsOfNobody(t *testing.T) {
	var v fixture.Nested
	for _, name := range []string{"items", "items.x.count", "items.-1.count", "items.100.count", "items.5", "nobody"} {
		if err := assign(reflect.ValueOf(&v).Elem(), name, "1"); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

func TestQuantile(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	if quantile(values, 0) != 1 || quantile(values, 0.5) != 3 || quantile(values, 1) != 5 || quantile(nil, 0.5) != 0 {
		t.Error("quantiles are wrong")
	}
}
