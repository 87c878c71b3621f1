// Owns: redsync, redlock in Go, as an application uses it. Does not own: the server.

package apps

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

func TestRedsyncHasOneHolder(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: address(), DB: 6})
	defer client.Close()
	locks := redsync.New(goredis.NewPool(client))
	var inside, done atomic.Int32
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 25 {
				lock := locks.NewMutex("lock", redsync.WithExpiry(time.Minute), redsync.WithTries(100_000),
					redsync.WithRetryDelay(time.Millisecond))
				if err := lock.Lock(); err != nil {
					t.Error(err)
					return
				}
				if now := inside.Add(1); now != 1 {
					t.Errorf("%d hold the lock", now)
				}
				inside.Add(-1)
				done.Add(1)
				if ok, err := lock.Unlock(); !ok || err != nil {
					t.Errorf("unlock: %v %v", ok, err)
				}
			}
		})
	}
	group.Wait()
	if done.Load() != 200 {
		t.Errorf("the lock was held %d times", done.Load())
	}
}

func TestRedsyncOnlyTheHolderExtendsAndReleases(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: address(), DB: 7})
	defer client.Close()
	locks := redsync.New(goredis.NewPool(client))
	held := locks.NewMutex("lock", redsync.WithExpiry(10*time.Second))
	if err := held.Lock(); err != nil {
		t.Fatal(err)
	}
	other := locks.NewMutex("lock", redsync.WithTries(1))
	if err := other.Lock(); err == nil {
		t.Fatal("a second holder")
	}
	if ok, err := held.Extend(); !ok || err != nil {
		t.Errorf("extend: %v %v", ok, err)
	}
	if ok, _ := other.Unlock(); ok {
		t.Error("somebody else has released it")
	}
	client.Del(context.Background(), "lock")
	if ok, _ := held.Extend(); ok {
		t.Error("what is gone was extended")
	}
}
