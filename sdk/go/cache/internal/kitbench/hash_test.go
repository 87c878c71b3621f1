package kitbench

// This file owns what hashes in batches cost: structs of five fields, through the kit and with HSET and PEXPIRE in a
// pipeline by hand, which neither takes old fields away nor is atomic.

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weft-db/weft/sdk/go/cache"
)

type person struct {
	ID     int64
	Name   string
	Score  float64
	Active bool
	Since  time.Time
}

func personOf(i int) person {
	return person{int64(i), "somebody", 1.5, true, time.Unix(1_700_000_000, 0).UTC()}
}

// BenchmarkHash stores and reads batches of hashes.
func BenchmarkHash(b *testing.B) {
	ctx := context.Background()
	c := connect(b)
	if c.respb == nil {
		b.Skip("what is no server has no hashes")
	}

	b.Run("op=SetMany/client=go-redis/by=bare", func(b *testing.B) {
		run(b, func(i int) error {
			p := c.redis.Pipeline()
			for j := range batch {
				v := personOf(j)
				key := fmt.Sprint("bare:h:", i*batch%rows+j)
				p.HSet(ctx, key, "ID", v.ID, "Name", v.Name, "Score", v.Score, "Active", v.Active, "Since", v.Since)
				p.PExpire(ctx, key, life)
			}
			_, err := p.Exec(ctx)
			return err
		})
		perItem(b)
	})
	for _, via := range c.kits {
		h, err := cache.NewHash[int, person](via.transport, cache.HashOptions{Prefix: "hash", TTL: life})
		if err != nil {
			b.Fatal(err)
		}
		keys, items := make([]int, batch), make([]cache.Item[int, person], batch)
		b.Run("op=SetMany/client="+via.client+"/by=kit", func(b *testing.B) {
			run(b, func(i int) error {
				for j := range items {
					items[j] = cache.Item[int, person]{Key: i*batch%rows + j, Value: personOf(j)}
				}
				return h.SetMany(ctx, items)
			})
			perItem(b)
		})
		b.Run("op=GetMany/client="+via.client+"/by=kit", func(b *testing.B) {
			for j := range keys {
				keys[j], items[j] = j, cache.Item[int, person]{Key: j, Value: personOf(j)}
			}
			if err := h.SetMany(ctx, items); err != nil {
				b.Fatal(err)
			}
			run(b, func(int) error {
				for j, r := range h.GetMany(ctx, keys) {
					if r.Err != nil || r.Value != personOf(j) {
						return fmt.Errorf("hash %d is %v: %w", j, r.Value, r.Err)
					}
				}
				return nil
			})
			perItem(b)
		})
	}
}

func perItem(b *testing.B) {
	b.ReportAllocs()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/item")
}
