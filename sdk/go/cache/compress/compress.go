// Package compress has the compressions of a cache: S2, which is quick, and Zstd, which is small.
package compress

import (
	"errors"
	"slices"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/weft-db/weft/sdk/go/cache"
)

var errSize = errors.New("compress: the data has another size than was stored with it")

// S2 compresses with S2, an extension of Snappy.
type S2 struct{}

// ID is cache.CompressionS2.
func (S2) ID() cache.Compression { return cache.CompressionS2 }

// AppendCompress appends src compressed.
func (S2) AppendCompress(dst, src []byte) []byte {
	from := len(dst)
	dst = slices.Grow(dst, s2.MaxEncodedLen(len(src)))
	return dst[:from+len(s2.Encode(dst[from:cap(dst)], src))]
}

// AppendDecompress appends what src was. Its own size is compared before anything is allocated.
func (S2) AppendDecompress(dst, src []byte, size int) ([]byte, error) {
	if n, err := s2.DecodedLen(src); err != nil {
		return dst, err
	} else if n != size {
		return dst, errSize
	}
	from := len(dst)
	dst = slices.Grow(dst, size)
	out, err := s2.Decode(dst[from:from+size], src)
	if err != nil {
		return dst[:from], err
	}
	return dst[:from+len(out)], nil
}

// Zstd compresses with Zstandard.
type Zstd struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

// NewZstd makes one of a level, such as zstd.SpeedFastest.
func NewZstd(level zstd.EncoderLevel) (*Zstd, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderCRC(false)) // the stored value has one
	if err != nil {
		return nil, err
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, err
	}
	return &Zstd{encoder, decoder}, nil
}

// ID is cache.CompressionZstd.
func (*Zstd) ID() cache.Compression { return cache.CompressionZstd }

// AppendCompress appends src compressed.
func (z *Zstd) AppendCompress(dst, src []byte) []byte { return z.encoder.EncodeAll(src, dst) }

// AppendDecompress appends what src was. The decoder stops at size.
func (z *Zstd) AppendDecompress(dst, src []byte, size int) ([]byte, error) {
	from := len(dst)
	dst = slices.Grow(dst, size)
	out, err := z.decoder.DecodeAll(src, dst[:from:from+size])
	if err != nil {
		return dst, err
	}
	if len(out) != from+size {
		return dst, errSize
	}
	return out, nil
}
