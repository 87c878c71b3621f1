package cache

// This file owns the bytes of a stored value: header, checksum, times, size, payload (docs/adr/0016).

import (
	"encoding/binary"
	"hash/crc32"
	"time"
)

// A stored value. Numbers are big endian.
//
//	 0      1       2        6            14         18       (those that are there)
//	+------+-------+--------+------------+----------+--------+---------
//	| u8   | u8    | u32    | u64        | u32      | u32    | payload
//	| codec| form  | CRC-32C| fresh until| load time| size   |
//	+------+-------+--------+------------+----------+--------+---------
//	                         kind timed only         compressed only
//
//	form:  7 6 5 version   4 3 2 compression   1 0 kind
//
// The checksum is over everything else. "fresh until" is in milliseconds since 1970 by the store's clock, the load time in milliseconds, the size is that of
// the payload before it was compressed.
const (
	formatVersion = 1

	headerBytes  = 6
	timesBytes   = 12
	sizeBytes    = 4
	overheadMax  = headerBytes + timesBytes + sizeBytes
	checksumFrom = 2
)

// kind says what is stored.
type kind byte

const (
	kindPlain    kind = 0 // a value
	kindTimed    kind = 1 // a value with times
	kindNegative kind = 2 // the source has no such value; no payload
	kindHash     kind = 3 // the marker field of a Redis hash; no checksum
)

// Compression is the number of a compression, three bits of a stored value.
type Compression byte

// The compressions with a number. 4 to 7 are the users'.
const (
	CompressionNone Compression = 0
	CompressionS2   Compression = 1
	CompressionZstd Compression = 2

	compressionMax Compression = 7
)

// Compressor makes payloads smaller. It is used by many goroutines at once.
type Compressor interface {
	// ID is its number, 1 to 7.
	ID() Compression
	// AppendCompress appends src compressed to dst.
	AppendCompress(dst, src []byte) []byte
	// AppendDecompress appends what src was before, which is exactly size bytes, and fails if it is not. size is bounded by the cache, and
	// not more than that may be allocated, whatever src says.
	AppendDecompress(dst, src []byte, size int) ([]byte, error)
}

// envelope is a stored value without its payload.
type envelope struct {
	codec       CodecID
	kind        kind
	compression Compression
	fresh       int64         // kindTimed: milliseconds since 1970, by the store's clock
	load        time.Duration // kindTimed
	size        int           // compressed: bytes of the payload before
	payload     []byte        // a part of what was parsed
}

// verdict is what parsing a stored value comes to. All but intact are misses.
type verdict byte

const (
	intact         verdict = iota
	corrupt                // truncated, or its checksum is wrong
	foreignVersion         // a version of the format that this code does not know
	foreignCodec           // another codec, or a compression that the cache does not have
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum goes over the pair in front by table: two steps cost less than a call.
func checksum(data []byte) uint32 {
	crc := ^uint32(0)
	for _, b := range data[:checksumFrom] {
		crc = castagnoli[byte(crc)^b] ^ crc>>8
	}
	return crc32.Update(^crc, castagnoli, data[headerBytes:])
}

func form(c Compression, k kind) byte { return formatVersion<<5 | byte(c)<<2 | byte(k) }

// appendHeader appends everything in front of the payload; seal has to be called once that is there.
func (e *envelope) appendHeader(dst []byte) []byte {
	dst = append(dst, byte(e.codec), form(e.compression, e.kind), 0, 0, 0, 0)
	if e.kind == kindTimed {
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.fresh))
		dst = binary.BigEndian.AppendUint32(dst, uint32(min(e.load.Milliseconds(), 1<<32-1)))
	}
	if e.compression != CompressionNone {
		dst = binary.BigEndian.AppendUint32(dst, uint32(e.size))
	}
	return dst
}

// seal writes the checksum of a stored value into its header.
func seal(stored []byte) {
	binary.BigEndian.PutUint32(stored[checksumFrom:], checksum(stored))
}

// parse reads a stored value. The version decides before the checksum: another version may have none.
func (e *envelope) parse(stored []byte) verdict {
	if len(stored) < headerBytes {
		return corrupt
	}
	if stored[1]>>5 != formatVersion {
		return foreignVersion
	}
	e.codec, e.kind, e.compression = CodecID(stored[0]), kind(stored[1]&3), Compression(stored[1]>>2&7)
	if binary.BigEndian.Uint32(stored[checksumFrom:]) != checksum(stored) || e.kind == kindHash {
		return corrupt
	}
	rest := stored[headerBytes:]
	if e.kind == kindTimed {
		if len(rest) < timesBytes {
			return corrupt
		}
		e.fresh = int64(binary.BigEndian.Uint64(rest))
		e.load = time.Duration(binary.BigEndian.Uint32(rest[8:])) * time.Millisecond
		rest = rest[timesBytes:]
	}
	if e.compression != CompressionNone {
		if len(rest) < sizeBytes {
			return corrupt
		}
		e.size = int(min(binary.BigEndian.Uint32(rest), 1<<31-1))
		rest = rest[sizeBytes:]
	}
	e.payload = rest
	return intact
}
