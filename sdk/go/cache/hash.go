package cache

// This file owns Hash: structs as Redis hashes, a field for each field, so that some of them can be read and written alone.

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// Hash is a cache of structs as Redis hashes, which other programs can read with HGET. It has neither loaders nor a first level: what it is
// for is reading and writing single fields of large structs.
//
// A field's name is that of the tag `cache:"name"`, else the Go field's; "-" leaves it out, and ",omitempty" does not store it when it is
// zero. Strings and bytes are stored as they are, numbers and booleans as text, times as RFC 3339 with nanoseconds, what has
// encoding.TextMarshaler by that, and anything else as JSON.
type Hash[K comparable, V any] struct {
	transport Transport
	keys      keys[K]
	plan      *hashPlan
	ttl       time.Duration
	jitter    float64
	counters  counters
}

// HashOptions say how a Hash behaves. Prefix and TTL are needed.
type HashOptions struct {
	// Prefix names the cache within its store, Version is the schema's.
	Prefix  string
	Version int
	// TTL is when a hash is gone; Off keeps it.
	TTL time.Duration
	// Jitter takes a random part of up to this fraction off the TTL.
	Jitter float64
	// Observer is told what happens.
	Observer Observer
}

// hashMarker is the field that tells a hash of this cache: its value is the header pair. Redis field names of structs are never empty.
var hashMarker = []byte("")

var hashMark = []byte{byte(CodecHash), form(CompressionNone, kindHash)}

// NewHash makes a cache of structs V as hashes.
func NewHash[K comparable, V any](t Transport, options HashOptions) (*Hash[K, V], error) {
	switch {
	case t == nil:
		return nil, errors.New("cache: a Transport is needed")
	case options.Prefix == "":
		return nil, errors.New("cache: HashOptions.Prefix is needed")
	case options.TTL == 0:
		return nil, errors.New("cache: HashOptions.TTL is needed; Off keeps values for ever")
	case options.Jitter < 0 || options.Jitter > 0.9:
		return nil, errors.New("cache: HashOptions.Jitter is not between 0 and 0.9")
	}
	k, err := newKeys[K](options.Prefix, options.Version)
	if err != nil {
		return nil, err
	}
	plan, err := planOf(reflect.TypeFor[V]())
	if err != nil {
		return nil, err
	}
	h := &Hash[K, V]{transport: t, keys: k, plan: plan, ttl: options.TTL, jitter: options.Jitter}
	h.counters.observer = options.Observer
	return h, nil
}

// Stats returns what the cache has counted.
func (h *Hash[K, V]) Stats() Stats { return h.counters.stats() }

// Get returns the whole struct of a key.
func (h *Hash[K, V]) Get(ctx context.Context, key K) (V, error) {
	results := h.GetMany(ctx, []K{key})
	return results[0].Value, results[0].Err
}

// GetFields returns a struct with just these fields, by their names in the hash; the others are zero. Fields that were not stored are
// zero too.
func (h *Hash[K, V]) GetFields(ctx context.Context, key K, fields ...string) (V, error) {
	results := h.GetFieldsMany(ctx, []K{key}, fields...)
	return results[0].Value, results[0].Err
}

// GetMany is Get for many keys, in one batch.
func (h *Hash[K, V]) GetMany(ctx context.Context, keys []K) Results[V] {
	return h.read(ctx, keys, nil, nil)
}

// GetFieldsMany is GetFields for many keys, in one batch.
func (h *Hash[K, V]) GetFieldsMany(ctx context.Context, keys []K, fields ...string) Results[V] {
	names, of := [][]byte{hashMarker}, []*hashField{nil}
	var unknown error
	for _, name := range fields {
		f := h.plan.byName[name]
		if f == nil {
			unknown = fmt.Errorf("cache: %v has no field %q", h.plan.of, name)
			break
		}
		names, of = append(names, f.name), append(of, f)
	}
	if unknown != nil {
		results := make(Results[V], len(keys))
		for i := range results {
			results[i].Err = unknown
		}
		return results
	}
	return h.read(ctx, keys, names, of)
}

// read reads names of each key, or everything if there are none.
func (h *Hash[K, V]) read(ctx context.Context, keys []K, names [][]byte, of []*hashField) Results[V] {
	results := make(Results[V], len(keys))
	for from := 0; from < len(keys); from += DefaultBatchMax {
		to := min(from+DefaultBatchMax, len(keys))
		ops := make([]Op, 0, to-from)
		at := make([]int, 0, to-from)
		for i := from; i < to; i++ {
			encoded, err := h.keys.append(nil, &keys[i])
			if err != nil {
				results[i].Err = err
				continue
			}
			ops, at = append(ops, Op{Kind: OpHashGet, Key: encoded, Fields: names}), append(at, i)
		}
		if len(ops) > 0 {
			h.transport.Do(ctx, ops)
		}
		for j := range ops {
			results[at[j]] = h.result(ctx, &ops[j], of)
		}
	}
	return results
}

// result makes a struct of what was read.
func (h *Hash[K, V]) result(ctx context.Context, op *Op, of []*hashField) (r Result[V]) {
	if op.Err != nil {
		h.counters.failed(ctx)
		return Result[V]{Err: &StoreError{op.Err}}
	}
	miss := func(why Event) Result[V] {
		h.counters.add(EventMiss, 1)
		if why != EventMiss {
			h.counters.add(why, 1)
		}
		return Result[V]{Err: ErrMiss}
	}
	if !op.Found {
		return miss(EventMiss)
	}
	marked, size := false, 0
	into := reflect.ValueOf(&r.Value).Elem()
	set := func(f *hashField, text []byte) bool {
		size += len(text)
		return f.parse(into.FieldByIndex(f.index), text) == nil
	}
	if of == nil {
		for i := 0; i+1 < len(op.Values); i += 2 {
			name, text := op.Values[i], op.Values[i+1]
			if len(name) == 0 {
				marked = string(text) == string(hashMark)
			} else if f := h.plan.byName[string(name)]; f != nil && !set(f, text) {
				return miss(EventDecodeError)
			}
		}
	} else {
		marked = len(op.Values) == len(of) && string(op.Values[0]) == string(hashMark)
		for i := 1; i < len(of) && marked; i++ {
			if text := op.Values[i]; text != nil && !set(of[i], text) {
				return miss(EventDecodeError)
			}
		}
	}
	if !marked {
		return miss(EventForeignVersion)
	}
	h.counters.add(EventHit, 1)
	h.counters.add(EventBytesRead, size)
	return r
}

// Set stores a struct in place of what was there.
func (h *Hash[K, V]) Set(ctx context.Context, key K, value V, options ...CallOption) error {
	err := h.SetMany(ctx, []Item[K, V]{{Key: key, Value: value}}, options...)
	var many *ManyError
	if errors.As(err, &many) {
		return many.Errs[0]
	}
	return err
}

// SetMany is Set for many items, in one batch.
func (h *Hash[K, V]) SetMany(ctx context.Context, items []Item[K, V], options ...CallOption) error {
	ttl := h.ttl
	for _, o := range options {
		if o.ttl != 0 {
			ttl = o.ttl
		}
	}
	errs := make([]error, len(items))
	for from := 0; from < len(items); from += DefaultBatchMax {
		to := min(from+DefaultBatchMax, len(items))
		ops := make([]Op, 0, to-from)
		at := make([]int, 0, to-from)
		for i := from; i < to; i++ {
			op := Op{Kind: OpHashSet, TTL: jittering(ttl, h.jitter)}
			if items[i].TTL != 0 {
				op.TTL = jittering(items[i].TTL, h.jitter)
			}
			var err error
			if op.Key, err = h.keys.append(nil, &items[i].Key); err == nil {
				op.Fields, err = h.plan.encode(reflect.ValueOf(&items[i].Value).Elem(), nil)
			}
			if errs[i] = err; err == nil {
				ops, at = append(ops, op), append(at, i)
			}
		}
		h.write(ctx, ops, at, errs)
	}
	if !slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return nil
	}
	return &ManyError{errs}
}

// SetFields stores just these fields of a struct, by their names in the hash, and leaves the others and the time to live as they are. ErrMiss
// says that the key has no hash; then nothing is stored.
func (h *Hash[K, V]) SetFields(ctx context.Context, key K, value V, fields ...string) error {
	if len(fields) == 0 {
		return nil
	}
	op := Op{Kind: OpHashUpdate}
	var err error
	if op.Key, err = h.keys.append(nil, &key); err != nil {
		return err
	}
	if op.Fields, err = h.plan.encode(reflect.ValueOf(&value).Elem(), fields); err != nil {
		return err
	}
	errs := []error{nil}
	ops := []Op{op}
	h.write(ctx, ops, []int{0}, errs)
	if errs[0] == nil && !ops[0].Found {
		return ErrMiss
	}
	return errs[0]
}

// write runs ops and counts; errs gets an error at the place that at names.
func (h *Hash[K, V]) write(ctx context.Context, ops []Op, at []int, errs []error) {
	if len(ops) == 0 {
		return
	}
	h.transport.Do(ctx, ops)
	for j := range ops {
		if ops[j].Err != nil {
			h.counters.failed(ctx)
			errs[at[j]] = &StoreError{ops[j].Err}
			continue
		}
		size := 0
		for _, text := range ops[j].Fields {
			size += len(text)
		}
		h.counters.add(EventStored, 1)
		h.counters.add(EventBytesWritten, size)
	}
}

// Delete deletes keys. It returns nil, or a ManyError that says which failed.
func (h *Hash[K, V]) Delete(ctx context.Context, keys ...K) error {
	errs := make([]error, len(keys))
	failed := false
	for from := 0; from < len(keys); from += DefaultBatchMax {
		to := min(from+DefaultBatchMax, len(keys))
		ops, at := make([]Op, 0, to-from), make([]int, 0, to-from)
		for i := from; i < to; i++ {
			encoded, err := h.keys.append(nil, &keys[i])
			if err != nil {
				errs[i], failed = err, true
				continue
			}
			ops, at = append(ops, Op{Kind: OpDelete, Key: encoded}), append(at, i)
		}
		if len(ops) > 0 {
			h.transport.Do(ctx, ops)
		}
		for j := range ops {
			if ops[j].Err != nil {
				h.counters.failed(ctx)
				errs[at[j]], failed = &StoreError{ops[j].Err}, true
			}
		}
	}
	if !failed {
		return nil
	}
	return &ManyError{errs}
}
