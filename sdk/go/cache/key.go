package cache

// This file owns the bytes of keys: PREFIX:vN:KEY, injective and without hash tags (docs/adr/0016).

import (
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"reflect"
	"strconv"
	"unsafe"
)

// KeyBytesMax bounds a key as it is stored, prefix and all.
const KeyBytesMax = 32 << 10

// ErrKeyTooLong says that a key has more than KeyBytesMax bytes. Calls that have a loader do not fail: they load such a key each time.
var ErrKeyTooLong = errors.New("cache: the key has more than 32768 bytes")

// KeyAppender is implemented by key types that say themselves what their text is. Two keys that differ must append different texts;
// the cache escapes what it has to.
type KeyAppender interface {
	AppendKey(dst []byte) []byte
}

// keys encodes keys of one cache.
type keys[K comparable] struct {
	prefix   []byte // with everything up to the key itself
	parts    []keyPart
	appender bool
}

// keyPart is one field or element of a key.
type keyPart struct {
	offset uintptr
	kind   reflect.Kind
	size   int // of a byte array
}

// keyPartsMax bounds the fields and elements of a key.
const keyPartsMax = 64

func newKeys[K comparable](prefix string, version int) (keys[K], error) {
	k := keys[K]{}
	if version < 0 {
		return k, errors.New("cache: Version is negative")
	}
	k.prefix = escape([]byte(prefix), 0, true)
	k.prefix = append(strconv.AppendInt(append(k.prefix, ":v"...), int64(version), 10), ':')
	if len(k.prefix) > KeyBytesMax/2 {
		return k, ErrKeyTooLong
	}
	var zero K
	if _, ok := any(&zero).(KeyAppender); ok {
		k.appender = true
		return k, nil
	}
	if err := k.compile(reflect.TypeFor[K](), 0); err != nil {
		return k, err
	}
	if len(k.parts) == 0 || len(k.parts) > keyPartsMax {
		return k, fmt.Errorf("cache: keys of type %v have %d parts; 1 to %d are possible", reflect.TypeFor[K](), len(k.parts), keyPartsMax)
	}
	return k, nil
}

// compile finds the parts of a key's type. Types that are only equal when they are the same object, and floats, which need not equal
// themselves, are refused.
func (k *keys[K]) compile(t reflect.Type, offset uintptr) error {
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		k.parts = append(k.parts, keyPart{offset: offset, kind: t.Kind()})
	case reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			k.parts = append(k.parts, keyPart{offset: offset, kind: reflect.Array, size: t.Len()})
			return nil
		}
		for i := range min(t.Len(), keyPartsMax+1) {
			if err := k.compile(t.Elem(), offset+uintptr(i)*t.Elem().Size()); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range t.NumField() {
			if err := k.compile(t.Field(i).Type, offset+t.Field(i).Offset); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("cache: keys of type %v need a method AppendKey: %v has no text of its own", reflect.TypeFor[K](), t)
	}
	return nil
}

// append appends the whole key.
func (k *keys[K]) append(dst []byte, key *K) ([]byte, error) {
	start := len(dst)
	dst = append(dst, k.prefix...)
	if k.appender {
		from := len(dst)
		copied := *key // so that only this way puts a key on the heap
		dst = escape(any(&copied).(KeyAppender).AppendKey(dst), from, false)
	} else {
		dst = k.appendParts(dst, key)
	}
	if len(dst)-start > KeyBytesMax {
		return dst[:start], ErrKeyTooLong
	}
	return dst, nil
}

// appendParts is append behind the prefix for keys without a method of their own. Nothing in it escapes.
func (k *keys[K]) appendParts(dst []byte, key *K) []byte {
	for i := range k.parts {
		if i > 0 {
			dst = append(dst, ':')
		}
		// The type of K has this part at this offset: compile walked it.
		dst = k.parts[i].append(dst, unsafe.Add(unsafe.Pointer(key), k.parts[i].offset), len(k.parts) > 1)
	}
	return dst
}

// hash is the hash of the whole key's bytes, made on the stack where it can be.
func (k *keys[K]) hash(key *K) (hash uint64, ok bool) {
	if k.appender || len(k.prefix) > keyStackBytes/2 {
		return 0, false
	}
	var stack [keyStackBytes]byte
	b := k.appendParts(append(stack[:0], k.prefix...), key)
	return maphash.Bytes(hashSeed, b), len(b) <= KeyBytesMax
}

// keyStackBytes is room for most keys.
const keyStackBytes = 128

func (p *keyPart) append(dst []byte, at unsafe.Pointer, several bool) []byte {
	switch p.kind {
	case reflect.String:
		from := len(dst)
		return escape(append(dst, *(*string)(at)...), from, several)
	case reflect.Bool:
		return strconv.AppendBool(dst, *(*bool)(at))
	case reflect.Int:
		return strconv.AppendInt(dst, int64(*(*int)(at)), 10)
	case reflect.Int8:
		return strconv.AppendInt(dst, int64(*(*int8)(at)), 10)
	case reflect.Int16:
		return strconv.AppendInt(dst, int64(*(*int16)(at)), 10)
	case reflect.Int32:
		return strconv.AppendInt(dst, int64(*(*int32)(at)), 10)
	case reflect.Int64:
		return strconv.AppendInt(dst, *(*int64)(at), 10)
	case reflect.Uint:
		return strconv.AppendUint(dst, uint64(*(*uint)(at)), 10)
	case reflect.Uint8:
		return strconv.AppendUint(dst, uint64(*(*uint8)(at)), 10)
	case reflect.Uint16:
		return strconv.AppendUint(dst, uint64(*(*uint16)(at)), 10)
	case reflect.Uint32:
		return strconv.AppendUint(dst, uint64(*(*uint32)(at)), 10)
	case reflect.Uint64:
		return strconv.AppendUint(dst, *(*uint64)(at), 10)
	default: // compile lets only arrays of bytes through
		return hex.AppendEncode(dst, unsafe.Slice((*byte)(at), p.size))
	}
}

// escape writes what stands in text from a place on as %XX where a key may not have it: percent signs, braces, and colons if there are
// several parts. It costs one look at each byte when there is nothing to do.
func escape(text []byte, from int, colons bool) []byte {
	for i := from; i < len(text); i++ {
		if escaped(text[i], colons) {
			return escapeRest(text, i, colons)
		}
	}
	return text
}

func escaped(b byte, colons bool) bool {
	return b == '%' || b == '{' || b == '}' || b == ':' && colons
}

func escapeRest(text []byte, from int, colons bool) []byte {
	const digits = "0123456789ABCDEF"
	rest := append([]byte(nil), text[from:]...)
	text = text[:from]
	for _, b := range rest {
		if escaped(b, colons) {
			text = append(text, '%', digits[b>>4], digits[b&15])
		} else {
			text = append(text, b)
		}
	}
	return text
}

// appendLease appends the key of a key's lease: in the same slot, since a key has no braces, and never a value's key.
func appendLease(dst, key []byte) []byte {
	return append(append(append(dst, '{'), key...), "}:lease"...)
}
