package main

// This file owns the way through sdk/go/cache.

import (
	"context"
	"fmt"

	"github.com/weft-db/weft/sdk/go/cache"
)

// kit is a cache of one subject.
type kit interface {
	set(ctx context.Context, i int) error
	get(ctx context.Context, i int) error
	setMany(ctx context.Context) error
	getMany(ctx context.Context) error
}

func (s *typed[T]) kit(t cache.Transport, prefix string) (kit, error) {
	c, err := cache.New(t, s.codec, cache.Options[string, T]{Prefix: prefix, Version: 1, TTL: lifetime})
	if err != nil {
		return nil, err
	}
	return newKit(s, c), nil
}

// kit keeps structs as hashes: MULTI, DEL, HSET, PEXPIRE and EXEC for each that is written.
func (h *hash[T]) kit(t cache.Transport, prefix string) (kit, error) {
	c, err := cache.NewHash[string, T](t, cache.HashOptions{Prefix: prefix, Version: 1, TTL: lifetime})
	if err != nil {
		return nil, err
	}
	return newKit(h.typed, c), nil
}

// store is what a Cache and a Hash have in common.
type store[T any] interface {
	Set(ctx context.Context, key string, value T, options ...cache.CallOption) error
	Get(ctx context.Context, key string) (T, error)
	SetMany(ctx context.Context, items []cache.Item[string, T], options ...cache.CallOption) error
	GetMany(ctx context.Context, keys []string) cache.Results[T]
}

func newKit[T any](s *typed[T], c store[T]) kit {
	k := &typedKit[T]{subject: s, cache: c, items: make([]cache.Item[string, T], batch)}
	for i := range batch {
		k.keys = append(k.keys, fmt.Sprintf("%05d", i))
	}
	return k
}

// typedKit is a cache without a first level, and nothing that a loader needs.
type typedKit[T any] struct {
	subject *typed[T]
	cache   store[T]
	keys    []string
	items   []cache.Item[string, T]
}

func (k *typedKit[T]) set(ctx context.Context, i int) error {
	return k.cache.Set(ctx, k.keys[i], k.subject.current[i])
}

func (k *typedKit[T]) get(ctx context.Context, i int) (err error) {
	k.subject.slots[i], err = k.cache.Get(ctx, k.keys[i])
	return err
}

func (k *typedKit[T]) setMany(ctx context.Context) error {
	for i := range k.items {
		k.items[i] = cache.Item[string, T]{Key: k.keys[i], Value: k.subject.current[i]}
	}
	return k.cache.SetMany(ctx, k.items)
}

func (k *typedKit[T]) getMany(ctx context.Context) error {
	results := k.cache.GetMany(ctx, k.keys)
	for i := range results {
		if results[i].Err != nil {
			return results[i].Err
		}
		k.subject.slots[i] = results[i].Value
	}
	return nil
}
