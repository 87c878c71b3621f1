package cache

// This file owns the tests of stored bytes.

import (
	"bytes"
	"encoding/hex"
	"testing"
	"time"
)

// TestStoredBytes pins the format down: other programs and other versions read it.
func TestStoredBytes(t *testing.T) {
	for _, c := range []struct {
		name string
		e    envelope
		want string
	}{
		{"plain", envelope{codec: CodecJSON}, "0220b45a212b616263"},
		{"timed", envelope{codec: CodecRaw, kind: kindTimed, fresh: 0x0123456789, load: 5 * time.Millisecond},
			"01218ba860e0000000012345678900000005616263"},
		{"compressed", envelope{codec: CodecRaw, compression: CompressionZstd, size: 9}, "01287dce8a3b00000009616263"},
	} {
		stored := append(c.e.appendHeader(nil), "abc"...)
		seal(stored)
		if got := hex.EncodeToString(stored); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
		var e envelope
		if v := e.parse(stored); v != intact {
			t.Errorf("%s: verdict %d", c.name, v)
		}
		if !bytes.Equal(e.payload, []byte("abc")) || e.codec != c.e.codec || e.kind != c.e.kind || e.fresh != c.e.fresh ||
			e.load != c.e.load || e.compression != c.e.compression || e.size != c.e.size {
			t.Errorf("%s: read back %+v", c.name, e)
		}
	}
}

// TestFlippedBits flips every bit and every pair of neighbours, and cuts at every byte: nothing of that may be taken for a value.
func TestFlippedBits(t *testing.T) {
	for _, e := range []envelope{
		{codec: CodecJSON},
		{codec: CodecJSON, kind: kindTimed, fresh: 1 << 40, load: time.Second},
		{codec: CodecJSON, kind: kindNegative},
		{codec: CodecJSON, compression: CompressionS2, size: 100},
	} {
		stored := append(e.appendHeader(nil), `{"name":"ann"}`...)
		seal(stored)
		for bit := range 8 * len(stored) {
			for _, mask := range []byte{1, 3} {
				bad := bytes.Clone(stored)
				bad[bit/8] ^= mask << (bit % 8)
				var got envelope
				if v := got.parse(bad); v == intact {
					t.Fatalf("bit %d, mask %d: taken for a value", bit, mask)
				}
			}
		}
		for n := range stored {
			var got envelope
			if v := got.parse(stored[:n:n]); v == intact {
				t.Fatalf("cut at %d: taken for a value", n)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	e := envelope{codec: CodecJSON, kind: kindTimed, compression: CompressionS2}
	stored := append(e.appendHeader(nil), "payload"...)
	f.Add(stored)
	f.Add([]byte{2, 0x20})
	f.Fuzz(func(t *testing.T, data []byte) {
		data = bytes.Clone(data)
		if len(data) >= headerBytes { // else the checksum hides the rest
			seal(data)
		}
		var e envelope
		if e.parse(data) == intact && len(e.payload) > len(data)-headerBytes {
			t.Error("the payload is longer than what was stored")
		}
	})
}
