package kitbench

// This file owns what hashes in batches cost: structs of five fields, through the kit and with HSET and PEXPIRE in a
// pipeline by hand, which neither takes old fields away nor is atomic.

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/internal/servers"
	"github.com/weft-db/weft/sdk/go/cache/transport/goredis"
	viarueidis "github.com/weft-db/weft/sdk/go/cache/transport/rueidis"
	"github.com/weft-db/weft/sdk/go/cache/transport/weft"
	"github.com/weft-db/weft/sdk/go/respb"
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

// BenchmarkHash stores and reads batches of hashes, against the server of WEFT_ADDR or redis-server.
func BenchmarkHash(b *testing.B) {
	ctx := context.Background()
	addr := os.Getenv("WEFT_ADDR")
	if addr == "" {
		s := servers.Redis(b)
		if s == nil {
			b.Skip("WEFT_ADDR is not set and redis-server is not installed")
		}
		addr = s.Addrs[0]
	}
	gr := redis.NewClient(&redis.Options{Addr: addr})
	defer gr.Close()
	option := rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true, ForceSingleClient: true}
	ru, err := rueidis.NewClient(option)
	if err != nil {
		b.Fatal(err)
	}
	defer ru.Close()
	options := respb.Options{Addr: addr}
	rb, err := respb.Dial(ctx, options)
	if err != nil {
		b.Fatal(err)
	}
	defer rb.Close()

	b.Run("op=SetMany/client=go-redis/by=bare", func(b *testing.B) {
		run(b, func(i int) error {
			p := gr.Pipeline()
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
	for _, via := range []struct {
		client string
		tr     cache.Transport
	}{{"go-redis", goredis.New(gr)}, {"rueidis", viarueidis.New(ru, option)}, {"respb", weft.New(rb, options)}} {
		h, err := cache.NewHash[int, person](via.tr, cache.HashOptions{Prefix: "hash", TTL: life})
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
