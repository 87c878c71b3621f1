// Package local is the first level of a cache: a store in this process, bounded in bytes, that a scan does not empty. The policy is that of
// otter, W-TinyLFU.
package local

import (
	"errors"
	"math"

	"github.com/maypok86/otter/v2"
)

// Store is a cache.Local. Several caches may share one.
type Store struct{ entries *otter.Cache[uint64, kept] }

// kept is an entry and what it counts with.
type kept struct {
	entry any
	bytes uint32
}

// New makes a store of at most so many bytes, by what the caches say that their entries take.
func New(bytesMax int64) (*Store, error) {
	if bytesMax <= 0 {
		return nil, errors.New("local: the bound is not above 0")
	}
	entries, err := otter.New(&otter.Options[uint64, kept]{
		MaximumWeight: uint64(bytesMax),
		Weigher:       func(_ uint64, k kept) uint32 { return k.bytes },
	})
	if err != nil {
		return nil, err
	}
	return &Store{entries}, nil
}

// Get returns the entry of a hash.
func (s *Store) Get(hash uint64) (any, bool) {
	k, ok := s.entries.GetIfPresent(hash)
	return k.entry, ok
}

// Set keeps an entry, unless the policy thinks that others are worth more.
func (s *Store) Set(hash uint64, entry any, bytes int) {
	s.entries.Set(hash, kept{entry, uint32(min(uint64(max(bytes, 1)), math.MaxUint32))})
}

// Delete drops an entry.
func (s *Store) Delete(hash uint64) { s.entries.Invalidate(hash) }

// Bytes returns what the entries take, by what their caches have said.
func (s *Store) Bytes() int64 { return int64(s.entries.WeightedSize()) }

// Len returns about how many entries there are.
func (s *Store) Len() int { return s.entries.EstimatedSize() }

// Close ends what runs in the background. The store must not be used afterwards.
func (s *Store) Close() { s.entries.StopAllGoroutines() }
