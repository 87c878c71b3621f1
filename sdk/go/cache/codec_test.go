package cache_test

// This file owns the tests of the codecs that need no library.

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/weft-db/weft/sdk/go/cache"
)

// back encodes behind what is there, and decodes what came.
func back[V any](t *testing.T, c cache.Codec[V], v V) V {
	t.Helper()
	data, err := c.AppendEncode([]byte("before"), v)
	if err != nil || !strings.HasPrefix(string(data), "before") {
		t.Fatalf("%q, %v", data, err)
	}
	data = data[len("before"):]
	var got V
	if err := c.Decode(data, &got); err != nil {
		t.Fatal(err)
	}
	for i := range data { // it was lent
		data[i] = 0xff
	}
	return got
}

func TestCodecs(t *testing.T) {
	if got := back(t, cache.Raw{}, []byte("a\x00b")); string(got) != "a\x00b" {
		t.Errorf("%q", got)
	}
	if got := back(t, cache.RawString{}, "text"); got != "text" {
		t.Errorf("%q", got)
	}
	if got := back(t, cache.JSON[map[string]string]{}, map[string]string{"k": "<&>"}); got["k"] != "<&>" {
		t.Error(got)
	}
	if got := back(t, cache.JSON[*user]{}, &user{1, "Ann"}); *got != (user{1, "Ann"}) {
		t.Error(got)
	}
	addr := netip.MustParseAddr("192.0.2.1")
	if got := back(t, cache.Binary[netip.Addr, *netip.Addr]{}, addr); got != addr {
		t.Error(got)
	}
}

// TestJSONErrors has an encoder fail, and be used again.
func TestJSONErrors(t *testing.T) {
	dst := []byte("before")
	if out, err := (cache.JSON[any]{}).AppendEncode(dst, map[string]any{"a": 1, "b": func() {}}); err == nil || string(out) != "before" {
		t.Errorf("%q, %v", out, err)
	}
	for range 3 {
		if out, err := (cache.JSON[any]{}).AppendEncode(dst, 1); err != nil || string(out) != "before1" {
			t.Errorf("%q, %v", out, err)
		}
	}
	var n int
	for _, bad := range []string{"", "1 2", "{", `"x"`} {
		if err := (cache.JSON[int]{}).Decode([]byte(bad), &n); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
