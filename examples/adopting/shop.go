package main

// This file owns the program that is moved: a shop whose visits read a profile and count a view, and whose purchases take from a
// stock under WATCH. It has four forms, one for each step.

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/weft-db/weft/sdk/go/respb"
)

// shop is what the rest of the program sees.
type shop interface {
	// visit reads the profile of a user and counts a view of a page.
	visit(ctx context.Context, user, page int) (profile string, err error)
	// buy takes one item. worker says who asks.
	buy(ctx context.Context, worker, item int) error
	close()
}

func profileKey(user int) string { return "profile:" + strconv.Itoa(user) }
func viewsKey(page int) string   { return "views:" + strconv.Itoa(page) }
func stockKey(item int) string   { return "stock:" + strconv.Itoa(item) }

// redisShop is the program as it was, on go-redis.
type redisShop struct{ db *redis.Client }

func (s redisShop) visit(ctx context.Context, user, page int) (string, error) {
	profile, err := s.db.Get(ctx, profileKey(user)).Result()
	if err != nil {
		return "", err
	}
	return profile, s.db.Incr(ctx, viewsKey(page)).Err()
}

func (s redisShop) buy(ctx context.Context, _, item int) error {
	for {
		err := s.db.Watch(ctx, func(tx *redis.Tx) error {
			left, err := tx.Get(ctx, stockKey(item)).Int64()
			if err != nil {
				return err
			}
			if left == 0 {
				return fmt.Errorf("item %d is sold out", item)
			}
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Decr(ctx, stockKey(item)).Err() })
			return err
		}, stockKey(item))
		if !errors.Is(err, redis.TxFailedErr) {
			return err
		}
	}
}

func (s redisShop) close() { _ = s.db.Close() }

// typedShop has its simple commands as typed commands on one connection that all goroutines share; purchases stay on go-redis.
type typedShop struct{ overRESPB }

func (s typedShop) visit(ctx context.Context, user, page int) (string, error) {
	profile, err := s.conn.Get(ctx, profileKey(user))
	if err != nil {
		return "", err
	}
	_, err = s.conn.Incr(ctx, viewsKey(page))
	return profile, err
}

// channelShop has no go-redis any more: a transaction needs a client of its own, which is a channel for each worker.
type channelShop struct {
	typedShop
	workers []*respb.Channel
}

func (s channelShop) buy(ctx context.Context, worker, item int) error {
	ch := s.workers[worker]
	for {
		// WATCH and GET go together: what a pipeline saves is a round trip.
		p := ch.Pipeline()
		p.Watch(stockKey(item))
		stock := p.Get(stockKey(item))
		if _, err := p.Exec(ctx); err != nil {
			return err
		}
		text, err := stock.Get()
		if err != nil {
			return err
		}
		if text == "0" {
			return errors.Join(fmt.Errorf("item %d is sold out", item), ch.Unwatch(ctx))
		}
		tx := ch.Pipeline()
		tx.Decr(stockKey(item))
		if _, err := tx.ExecTx(ctx); !errors.Is(err, respb.ErrTxAborted) {
			return err
		}
	}
}

func (s channelShop) close() { _ = s.conn.Close() }
