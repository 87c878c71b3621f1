package messagepack

// This file owns the tests of Check.

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	deep := append(bytes.Repeat([]byte{0x91}, DepthMax), 0xc0)
	for _, c := range []struct {
		name string
		data string
		want error
	}{
		{"nothing", "", errShort},
		{"nil", "\xc0", nil},
		{"a number and more", "\x01\x02", errTrailing},
		{"no value", "\xc1", errByte},
		{"small map", "\x82\xa1a\x01\xa1b\xc3", nil},
		{"small map, half", "\x82\xa1a\x01\xa1b", errShort},
		{"empty array", "\x90", nil},
		{"array of arrays", "\x92\x91\x01\x90", nil},
		{"array of arrays, short", "\x92\x91\x01", errShort},
		{"str 8", "\xd9\x03abc", nil},
		{"str 8, short", "\xd9\x04abc", errShort},
		{"str 16", "\xda\x00\x01a", nil},
		{"str 32 without its length", "\xdb\x00\x00", errShort},
		{"str 32 of 4 GiB", "\xdb\xff\xff\xff\xffabc", errShort},
		{"bin 16", "\xc5\x00\x02ab", nil},
		{"float 64", "\xcb" + strings.Repeat("\x00", 8), nil},
		{"float 64, short", "\xcb" + strings.Repeat("\x00", 7), errShort},
		{"int 16", "\xd1\x00\x00", nil},
		{"time of 12 bytes", "\xc7\x0c\xff" + strings.Repeat("\x00", 12), nil},
		{"time of 8 bytes", "\xd7\xff" + strings.Repeat("\x00", 8), nil},
		{"time of 8 bytes, short", "\xd7\xff" + strings.Repeat("\x00", 7), errShort},
		{"array 16", "\xdc\x00\x02\x01\x02", nil},
		{"array of 4 G", "\xdd\xff\xff\xff\xff\x01", errShort},
		{"map of 4 G", "\xdf\xff\xff\xff\xff\x01", errShort},
		{"map 16, one value missing", "\xde\x00\x01\x01", errShort},
		{"deep", string(deep), nil},
		{"too deep", "\x91" + string(deep), errDeep},
		{"much too deep", strings.Repeat("\x91", 1<<20), errDeep},
	} {
		if err := Check([]byte(c.data)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestCheckAllocatesNothing(t *testing.T) {
	data := []byte("\x82\xa1a\x01\xa1b\x93\x01\x02\x91\xc0")
	if n := testing.AllocsPerRun(100, func() { _ = Check(data) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte("\x82\xa1a\x01\xa1b\x93\x01\x02\x91\xc0"))
	f.Add([]byte("\xdc\x00\x02\xd9\x03abc\xc7\x00\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if Check(data) != nil {
			return
		}
		if Check(data[:len(data)-1]) == nil || Check(append(bytes.Clone(data), 0xc0)) == nil {
			t.Errorf("%q is one value, with less or more of it too", data)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	data := []byte{0xde, 0, 25}
	for range 25 {
		data = append(data, "\xa5field\xcb\x01\x02\x03\x04\x05\x06\x07\x08"...)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := Check(data); err != nil {
			b.Fatal(err)
		}
	}
}
