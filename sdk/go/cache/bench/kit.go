package main

// This file owns the way through sdk/go/cache.

import (
	"context"

	"github.com/weft-db/weft/sdk/go/cache"
)

// kit is a cache of one subject.
type kit interface {
	set(ctx context.Context, i int) error
	get(ctx context.Context, i int) error
	setMany(ctx context.Context) error
	getMany(ctx context.Context) error
}

func (s *typed[T]) kit(t cache.Transport, prefix string) (kit, error) { return nil, nil }

func newHashKit[T any](h *hash[T], t cache.Transport, prefix string) (kit, error) { return nil, nil }
