package main

// This file owns what one writes by hand with a client: a command for each item, a pipeline, and the commands for many keys.

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/weft-db/weft/sdk/go/respb"
)

// lifetime is that of what SET stores. MSET has none.
const lifetime = time.Hour

// client is one of those that are compared. Values are encoded and decoded by the subject, item by item, as it is done by hand.
type client interface {
	set(ctx context.Context, s subject, key string, i int) error
	get(ctx context.Context, s subject, key string, i int) error
	setPipelined(ctx context.Context, s subject, keys []string) error
	getPipelined(ctx context.Context, s subject, keys []string) error
	setMany(ctx context.Context, s subject, keys []string) error
	getMany(ctx context.Context, s subject, keys []string) error
}

// goRedis is go-redis with its defaults.
type goRedis struct{ rdb *redis.Client }

func (c *goRedis) set(ctx context.Context, s subject, key string, i int) error {
	if h, ok := s.(hashed); ok {
		return c.rdb.HSet(ctx, key, h.fields(i)...).Err()
	}
	data, err := s.encode(i)
	if err != nil {
		return err
	}
	return c.rdb.Set(ctx, key, data, lifetime).Err()
}

func (c *goRedis) get(ctx context.Context, s subject, key string, i int) error {
	if h, ok := s.(hashed); ok {
		return h.scan(c.rdb.HGetAll(ctx, key), i)
	}
	data, err := c.rdb.Get(ctx, key).Bytes()
	if err != nil {
		return err
	}
	return s.decode(data, i)
}

func (c *goRedis) setPipelined(ctx context.Context, s subject, keys []string) error {
	p := c.rdb.Pipeline()
	h, hash := s.(hashed)
	for i, key := range keys {
		if hash {
			p.HSet(ctx, key, h.fields(i)...)
			continue
		}
		data, err := s.encode(i)
		if err != nil {
			return err
		}
		p.Set(ctx, key, data, lifetime)
	}
	replies, err := p.Exec(ctx)
	if err == nil && len(replies) != len(keys) {
		err = fmt.Errorf("%d replies", len(replies))
	}
	return err
}

func (c *goRedis) getPipelined(ctx context.Context, s subject, keys []string) error {
	p := c.rdb.Pipeline()
	if h, ok := s.(hashed); ok {
		replies := make([]*redis.MapStringStringCmd, len(keys))
		for i, key := range keys {
			replies[i] = p.HGetAll(ctx, key)
		}
		if _, err := p.Exec(ctx); err != nil {
			return err
		}
		for i, reply := range replies {
			if err := h.scan(reply, i); err != nil {
				return err
			}
		}
		return nil
	}
	replies := make([]*redis.StringCmd, len(keys))
	for i, key := range keys {
		replies[i] = p.Get(ctx, key)
	}
	if _, err := p.Exec(ctx); err != nil {
		return err
	}
	for i, reply := range replies {
		data, err := reply.Bytes()
		if err != nil {
			return err
		}
		if err := s.decode(data, i); err != nil {
			return err
		}
	}
	return nil
}

func (c *goRedis) setMany(ctx context.Context, s subject, keys []string) error {
	pairs := make([]any, 0, 2*len(keys))
	for i, key := range keys {
		data, err := s.encode(i)
		if err != nil {
			return err
		}
		pairs = append(pairs, key, data)
	}
	return c.rdb.MSet(ctx, pairs...).Err()
}

func (c *goRedis) getMany(ctx context.Context, s subject, keys []string) error {
	values, err := c.rdb.MGet(ctx, keys...).Result()
	if err != nil {
		return err
	}
	for i, v := range values {
		text, ok := v.(string)
		if !ok {
			return fmt.Errorf("%s is %v", keys[i], v)
		}
		if err := s.decode([]byte(text), i); err != nil {
			return err
		}
	}
	return nil
}

// ownClient is sdk/go/respb over RESPB.
type ownClient struct {
	conn     *respb.Conn
	pipeline *respb.Pipeline
	value    respb.Value
	values   []respb.Value
	args     [][]byte
}

var (
	wordSet  = []byte("SET")
	wordGet  = []byte("GET")
	wordMSet = []byte("MSET")
	wordMGet = []byte("MGET")
	wordPX   = []byte("PX")
	wordTTL  = fmt.Appendf(nil, "%d", lifetime.Milliseconds())
)

func (c *ownClient) flush(ctx context.Context) error {
	_, err := c.conn.Do(ctx, "FLUSHALL")
	return err
}

func (c *ownClient) set(ctx context.Context, s subject, key string, i int) error {
	if h, ok := s.(hashed); ok {
		_, err := c.conn.Do(ctx, h.words("HSET", key, i)...)
		return err
	}
	data, err := s.encode(i)
	if err != nil {
		return err
	}
	return c.conn.DoBytes(ctx, &c.value, wordSet, []byte(key), data, wordPX, wordTTL)
}

func (c *ownClient) get(ctx context.Context, s subject, key string, i int) error {
	if h, ok := s.(hashed); ok {
		if err := c.conn.DoInto(ctx, &c.value, "HGETALL", key); err != nil {
			return err
		}
		return h.pairs(&c.value, i)
	}
	if err := c.conn.DoBytes(ctx, &c.value, wordGet, []byte(key)); err != nil {
		return err
	}
	return s.decode(c.value.Data, i)
}

func (c *ownClient) setPipelined(ctx context.Context, s subject, keys []string) error {
	p := c.pipeline
	p.Reset()
	h, hash := s.(hashed)
	for i, key := range keys {
		if hash {
			p.Do(h.words("HSET", key, i)...)
			continue
		}
		data, err := s.encode(i)
		if err != nil {
			return err
		}
		p.Lend(wordSet, []byte(key), data, wordPX, wordTTL)
	}
	var err error
	if c.values, err = p.ExecInto(ctx, c.values); err != nil {
		return err
	}
	for i := range c.values {
		if err := c.values[i].Err(); err != nil {
			return err
		}
	}
	return nil
}

func (c *ownClient) getPipelined(ctx context.Context, s subject, keys []string) error {
	p := c.pipeline
	p.Reset()
	h, hash := s.(hashed)
	name := "GET"
	if hash {
		name = "HGETALL"
	}
	for _, key := range keys {
		p.Do(name, key)
	}
	var err error
	if c.values, err = p.ExecInto(ctx, c.values); err != nil {
		return err
	}
	for i := range c.values {
		if hash {
			err = h.pairs(&c.values[i], i)
		} else if err = c.values[i].Err(); err == nil {
			err = s.decode(c.values[i].Data, i)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *ownClient) setMany(ctx context.Context, s subject, keys []string) error {
	c.args = append(c.args[:0], wordMSet)
	for i, key := range keys {
		data, err := s.encode(i)
		if err != nil {
			return err
		}
		c.args = append(c.args, []byte(key), data)
	}
	return c.conn.DoBytes(ctx, &c.value, c.args...)
}

func (c *ownClient) getMany(ctx context.Context, s subject, keys []string) error {
	c.args = append(c.args[:0], wordMGet)
	for _, key := range keys {
		c.args = append(c.args, []byte(key))
	}
	if err := c.conn.DoBytes(ctx, &c.value, c.args...); err != nil {
		return err
	}
	if len(c.value.Elems) != len(keys) {
		return fmt.Errorf("%d values", len(c.value.Elems))
	}
	for i := range c.value.Elems {
		if err := s.decode(c.value.Elems[i].Data, i); err != nil {
			return err
		}
	}
	return nil
}
