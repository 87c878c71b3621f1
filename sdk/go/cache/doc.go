// Package cache is a typed cache in Redis, Valkey or Weft: batches, no stampedes, and a choice of codecs.
package cache
