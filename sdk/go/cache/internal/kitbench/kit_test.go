package kitbench

// This file owns the comparison. Every value that is read is compared. The codec allocates nothing, so what is counted is the kit's and the
// client's.

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/respb"
)

// row is what is stored: 64 bytes, or 70 with the kit's header.
type row [8]int64

func rowOf(i int) row { return row{int64(i), 1, 2, 3, 4, 5, 6, int64(-i)} }

type rowCodec struct{}

func (rowCodec) ID() cache.CodecID { return cache.CodecUserMin }

func (rowCodec) AppendEncode(dst []byte, v row) ([]byte, error) {
	for _, n := range v {
		dst = binary.BigEndian.AppendUint64(dst, uint64(n))
	}
	return dst, nil
}

func (rowCodec) Decode(data []byte, v *row) error {
	if len(data) != 64 {
		return errors.New("not 64 bytes")
	}
	for i := range v {
		v[i] = int64(binary.BigEndian.Uint64(data[8*i:]))
	}
	return nil
}

const (
	rows  = 1000
	batch = 100
	life  = time.Hour
)

// way is one way to store and read rows.
type way struct {
	set, get         func(ctx context.Context, i int) error
	setMany, getMany func(ctx context.Context, from int) error // batch rows
	cache            *cache.Cache[int, row]                    // of the kit
}

func check(i int, got row, err error) error {
	if err == nil && got != rowOf(i) {
		err = fmt.Errorf("row %d is %v", i, got)
	}
	return err
}

func keyOf(i int) string { return fmt.Sprintf("bare:v0:%d", i) }

var keyNames = func() (all [rows]string) {
	for i := range all {
		all[i] = keyOf(i)
	}
	return all
}()

// decoded compares what a client gave.
func decoded(i int, data []byte, err error) error {
	if err != nil {
		return err
	}
	var v row
	err = rowCodec{}.Decode(data, &v)
	return check(i, v, err)
}

func bareGoRedis(c *redis.Client) way {
	encode := func(i int) []byte {
		b, _ := rowCodec{}.AppendEncode(make([]byte, 0, 64), rowOf(i))
		return b
	}
	buf := make([]byte, 0, 64)
	return way{
		set: func(ctx context.Context, i int) error {
			b, _ := rowCodec{}.AppendEncode(buf, rowOf(i))
			return c.Set(ctx, keyNames[i], b, life).Err()
		},
		get: func(ctx context.Context, i int) error {
			data, err := c.Get(ctx, keyNames[i]).Bytes()
			return decoded(i, data, err)
		},
		setMany: func(ctx context.Context, from int) error {
			p := c.Pipeline()
			for i := range batch {
				p.Set(ctx, keyNames[from+i], encode(from+i), life)
			}
			_, err := p.Exec(ctx)
			return err
		},
		getMany: func(ctx context.Context, from int) error {
			p := c.Pipeline()
			var replies [batch]*redis.StringCmd
			for i := range batch {
				replies[i] = p.Get(ctx, keyNames[from+i])
			}
			_, err := p.Exec(ctx)
			for i := 0; i < batch && err == nil; i++ {
				var data []byte
				if data, err = replies[i].Bytes(); err == nil {
					err = decoded(from+i, data, nil)
				}
			}
			return err
		},
	}
}

func bareRespb(c *respb.Conn) way {
	return way{
		set: func(ctx context.Context, i int) error {
			var b [64]byte
			data, _ := rowCodec{}.AppendEncode(b[:0], rowOf(i))
			_, err := c.Set(ctx, keyNames[i], string(data), respb.SetPx(life))
			return err
		},
		get: func(ctx context.Context, i int) error {
			text, err := c.Get(ctx, keyNames[i])
			return decoded(i, []byte(text), err)
		},
		setMany: func(ctx context.Context, from int) error {
			p := c.Pipeline()
			for i := range batch {
				var b [64]byte
				data, _ := rowCodec{}.AppendEncode(b[:0], rowOf(from+i))
				p.Set(keyNames[from+i], string(data), respb.SetPx(life))
			}
			_, err := p.Exec(ctx)
			return err
		},
		getMany: func(ctx context.Context, from int) error {
			p := c.Pipeline()
			for i := range batch {
				p.Get(keyNames[from+i])
			}
			values, err := p.Exec(ctx)
			for i := range values {
				if err == nil {
					err = decoded(from+i, values[i].Data, values[i].Err())
				}
			}
			return err
		},
	}
}

func bareRueidis(c rueidis.Client) way {
	set := func(i int) rueidis.Completed {
		var b [64]byte
		data, _ := rowCodec{}.AppendEncode(b[:0], rowOf(i))
		return c.B().Set().Key(keyNames[i]).Value(string(data)).PxMilliseconds(life.Milliseconds()).Build()
	}
	return way{
		set: func(ctx context.Context, i int) error { return c.Do(ctx, set(i)).Error() },
		get: func(ctx context.Context, i int) error {
			data, err := c.Do(ctx, c.B().Get().Key(keyNames[i]).Build()).AsBytes()
			return decoded(i, data, err)
		},
		setMany: func(ctx context.Context, from int) error {
			commands := make(rueidis.Commands, 0, batch)
			for i := range batch {
				commands = append(commands, set(from+i))
			}
			for _, r := range c.DoMulti(ctx, commands...) {
				if err := r.Error(); err != nil {
					return err
				}
			}
			return nil
		},
		getMany: func(ctx context.Context, from int) error {
			commands := make(rueidis.Commands, 0, batch)
			for i := range batch {
				commands = append(commands, c.B().Get().Key(keyNames[from+i]).Build())
			}
			for i, r := range c.DoMulti(ctx, commands...) {
				data, err := r.AsBytes()
				if err := decoded(from+i, data, err); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func kit(b testing.TB, tr cache.Transport) way {
	c, err := cache.New(tr, rowCodec{}, cache.Options[int, row]{Prefix: "kit", TTL: life})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	items, keys := make([]cache.Item[int, row], batch), make([]int, batch)
	var results cache.Results[row]
	return way{
		cache: c,
		set:   func(ctx context.Context, i int) error { return c.Set(ctx, i, rowOf(i)) },
		get: func(ctx context.Context, i int) error {
			v, err := c.Get(ctx, i)
			return check(i, v, err)
		},
		setMany: func(ctx context.Context, from int) error {
			for i := range items {
				items[i] = cache.Item[int, row]{Key: from + i, Value: rowOf(from + i)}
			}
			return c.SetMany(ctx, items)
		},
		getMany: func(ctx context.Context, from int) error {
			for i := range keys {
				keys[i] = from + i
			}
			results = c.GetManyInto(ctx, keys, results)
			for i := range results {
				if err := check(from+i, results[i].Value, results[i].Err); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// call runs an operation for the i-th time.
func (w way) call(ctx context.Context, op string, i int) error {
	switch op {
	case "Set":
		return w.set(ctx, i%rows)
	case "Get":
		return w.get(ctx, i%rows)
	case "SetMany":
		return w.setMany(ctx, i*batch%rows)
	default:
		return w.getMany(ctx, i*batch%rows)
	}
}

type namedWay struct {
	client, by string
	way        way
}

// allWays connects each client, and returns it bare and with the kit, one behind the other, with all rows stored.
func allWays(b testing.TB) (ways []namedWay) {
	c := connect(b)
	bare := []way{bareGoRedis(c.redis), bareRueidis(c.rueidis)}
	if c.respb != nil {
		bare = append(bare, bareRespb(c.respb))
	}
	for i, k := range c.kits {
		ways = append(ways, namedWay{k.client, "bare", bare[i]}, namedWay{k.client, "kit", kit(b, k.transport)})
	}
	for _, w := range ways[:2] { // all have the same keys
		for i := range rows {
			if err := w.way.set(context.Background(), i); err != nil {
				b.Fatal(err)
			}
		}
	}
	return ways
}

// BenchmarkKit has the way as part of the name, for benchstat -col /by.
func BenchmarkKit(b *testing.B) {
	ctx := context.Background()
	ways := allWays(b)
	for _, op := range []string{"Set", "Get", "SetMany", "GetMany"} {
		for _, w := range ways {
			b.Run(fmt.Sprintf("op=%s/client=%s/by=%s", op, w.client, w.by), func(b *testing.B) {
				b.ReportAllocs()
				run(b, func(i int) error { return w.way.call(ctx, op, i) })
				if op == "SetMany" || op == "GetMany" {
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/item")
				}
			})
		}
	}
}

func run(b *testing.B, f func(i int) error) {
	for i := 0; b.Loop(); i++ {
		if err := f(i); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGetOrLoad hits in the store; the first level's is in the module cache/local. The loader is never called.
func BenchmarkGetOrLoad(b *testing.B) {
	ctx := context.Background()
	ways := allWays(b)
	load := func(context.Context, int) (row, error) { return row{}, errors.New("it was there") }
	for _, w := range ways {
		if w.way.cache == nil {
			continue
		}
		b.Run("client="+w.client, func(b *testing.B) {
			b.ReportAllocs()
			run(b, func(i int) error {
				v, err := w.way.cache.GetOrLoad(ctx, i%rows, load)
				return check(i%rows, v, err)
			})
		})
	}
}
