package cache

// This file owns what can be set about a cache and about a call.

import (
	"errors"
	"time"
)

// Defaults and bounds of [Options].
const (
	// DefaultLeaseTTL is how long a lease outlives its owner.
	DefaultLeaseTTL = 3 * time.Second
	// DefaultLoadTimeout bounds a load.
	DefaultLoadTimeout = 30 * time.Second
	// DefaultStoreTimeout bounds each step of a load that the store has a part in.
	DefaultStoreTimeout = time.Second
	// DefaultCloseTimeout bounds Close.
	DefaultCloseTimeout = 5 * time.Second
	// DefaultRetryPause is how long a refresh that failed is not tried again, by any process.
	DefaultRetryPause = time.Second
	// DefaultCompressMin is the smallest payload that is compressed.
	DefaultCompressMin = 1 << 10
	// DefaultValueBytesMax bounds a payload, before it is compressed and after it is decompressed.
	DefaultValueBytesMax = 64 << 20
	// DefaultLocalTTL is how long the first level may be behind where changes are not told.
	DefaultLocalTTL = 5 * time.Second
	// DefaultBatchMax is how many operations leave together; longer calls are cut.
	DefaultBatchMax = 1000
	// DefaultRefreshMax is how many refreshes run at once; what is over that is tried by a later caller.
	DefaultRefreshMax = 256
)

// Off turns a duration of Options off whose zero means its default.
const Off time.Duration = -1

// Options say how a cache behaves. Prefix and TTL are needed, everything else has a default.
type Options[K comparable, V any] struct {
	// Prefix names the cache within its store. Two caches with different types of keys need different ones.
	Prefix string
	// Version is the schema's: a value written under another one is not seen.
	Version int

	// TTL is when a value is gone for good; Off keeps it.
	TTL time.Duration
	// SoftTTL, if it is set, is when a value is refreshed in the background while it is still served.
	SoftTTL time.Duration
	// NegativeTTL is how long it is remembered that the source has no such value. 0 does not remember it.
	NegativeTTL time.Duration
	// Jitter takes a random part of up to this fraction off each TTL, so that what was written together does not expire together.
	Jitter float64
	// EarlyRefresh, if it is over 0, has single callers refresh a value in the background shortly before its soft end, or its end if there
	// is none: the earlier the longer it takes to load, the more often the larger. 1 is usual.
	EarlyRefresh float64

	// LeaseTTL is how long a lease outlives its owner, who renews it while loading. Off has nobody wait for another process: each loads, and
	// the first one's value is stored.
	LeaseTTL time.Duration
	// WaitMax is how long a load waits for another process to load the same; then it loads itself, and stores the value unless the key was
	// deleted, or another load stored one, meanwhile. It is a part of LoadTimeout, and half of it unless set: a longer one leaves no time to load.
	WaitMax time.Duration
	// LoadTimeout ends the loader's context, and the wait of its callers; waiting for another process is part of it.
	LoadTimeout time.Duration
	// StoreTimeout bounds each step of calls that have a loader: reading, taking leases, storing, each with all of its keys. Other calls
	// have their context's end only.
	StoreTimeout time.Duration
	// CloseTimeout is how long Close waits for loaders that do not heed their context.
	CloseTimeout time.Duration
	// RetryPause is how long a refresh that failed is not tried again. A caller who finds the value gone within that time waits for its end too,
	// at most WaitMax, before he loads: keep it below what is left of a value behind its soft end.
	RetryPause time.Duration
	// RefreshMax is how many refreshes run at once.
	RefreshMax int

	// Compressor, if it is set, compresses payloads of at least CompressMin bytes, when that makes them smaller. Compressors are further
	// ones that values may have been written with.
	Compressor  Compressor
	Compressors []Compressor
	CompressMin int
	// ValueBytesMax bounds a payload, before it is compressed and after it is decompressed.
	ValueBytesMax int

	// Local is the first level, in this process. Several caches may share one. What it gives is shared by all callers, who must not change
	// what they got through a pointer, slice or map.
	Local Local
	// LocalTTL bounds the age of what the first level gives where the store does not tell of changes. Where it does, TTL does.
	LocalTTL time.Duration
	// Weigh says how many bytes a value takes in memory, for the first level. Unless set, it is twice what it takes in the store.
	Weigh func(v *V) int

	// BatchMax is how many operations leave together.
	BatchMax int
	// Observer is told what happens.
	Observer Observer

	waits bool // for other processes that load
}

func (o *Options[K, V]) setDefaults() error {
	def := func(field *time.Duration, value time.Duration) {
		if *field == 0 {
			*field = value
		}
	}
	if o.waits = o.LeaseTTL >= 0; !o.waits {
		o.LeaseTTL = DefaultLeaseTTL
	}
	def(&o.LeaseTTL, DefaultLeaseTTL)
	def(&o.LoadTimeout, DefaultLoadTimeout)
	def(&o.WaitMax, o.LoadTimeout/2)
	def(&o.StoreTimeout, DefaultStoreTimeout)
	def(&o.CloseTimeout, DefaultCloseTimeout)
	def(&o.RetryPause, DefaultRetryPause)
	def(&o.LocalTTL, DefaultLocalTTL)
	for _, f := range []struct {
		field *int
		value int
	}{{&o.RefreshMax, DefaultRefreshMax}, {&o.CompressMin, DefaultCompressMin}, {&o.ValueBytesMax, DefaultValueBytesMax},
		{&o.BatchMax, DefaultBatchMax}} {
		if *f.field <= 0 {
			*f.field = f.value
		}
	}
	switch {
	case o.Prefix == "":
		return errors.New("cache: Options.Prefix is needed")
	case o.TTL == 0:
		return errors.New("cache: Options.TTL is needed; Off keeps values for ever")
	case o.TTL > 0 && o.SoftTTL >= o.TTL:
		return errors.New("cache: Options.SoftTTL is not below TTL")
	case o.Jitter < 0 || o.Jitter > 0.9:
		return errors.New("cache: Options.Jitter is not between 0 and 0.9")
	case o.EarlyRefresh < 0:
		return errors.New("cache: Options.EarlyRefresh is negative")
	case o.LoadTimeout < 0 || o.WaitMax < 0 || o.CloseTimeout < 0:
		return errors.New("cache: LoadTimeout, WaitMax and CloseTimeout have no Off")
	case o.LeaseTTL < 10*time.Millisecond:
		return errors.New("cache: Options.LeaseTTL is below 10 ms")
	}
	return nil
}

// CallOption changes one call.
type CallOption struct {
	ttl, soft, negative time.Duration
	fresh               bool
}

// TTL sets the hard TTL of what the call stores, and takes the soft one away unless SoftTTL is given as well. Off keeps it for ever.
func TTL(d time.Duration) CallOption { return CallOption{ttl: d} }

// SoftTTL sets the soft TTL of what the call stores.
func SoftTTL(d time.Duration) CallOption { return CallOption{soft: d} }

// NegativeTTL sets how long the call has it remembered that the source has no such value; Off does not.
func NegativeTTL(d time.Duration) CallOption { return CallOption{negative: d} }

// Fresh has GetOrLoad pass over what is cached and load anew, still once for all who ask so at the same time.
func Fresh() CallOption { return CallOption{fresh: true} }

// terms are the TTLs of one call.
type terms struct {
	ttl, soft, negative time.Duration
	fresh               bool
}

func (o *Options[K, V]) terms(options []CallOption) terms {
	t := terms{ttl: o.TTL, soft: o.SoftTTL, negative: o.NegativeTTL}
	for i := range options {
		if each := &options[i]; each.ttl != 0 {
			t.ttl, t.soft = each.ttl, 0
		}
	}
	for i := range options {
		each := &options[i]
		if each.soft != 0 {
			t.soft = each.soft
		}
		if each.negative != 0 {
			t.negative = each.negative
		}
		t.fresh = t.fresh || each.fresh
	}
	if t.ttl > 0 && t.soft >= t.ttl {
		t.soft = 0
	}
	return t
}
