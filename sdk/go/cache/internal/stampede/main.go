// Command stampede is one of the processes of the test with ten: it misses a key, at a time that all agree on, and says what it got.
//
//	stampede ADDR KEY COUNTER CALLERS
//
// The loader takes a while and counts its calls at COUNTER in the same server. The program waits for a line on its input before it
// begins.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/transport/weft"
	"github.com/weft-db/weft/sdk/go/respb"
)

// patience is longer than a busy machine takes: a store or an owner who is late would be a reason to load again, which is not what is tested.
const patience = 4 * time.Minute

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(addr, key, counter, number string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	callers, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	store, err := weft.Dial(ctx, respb.Options{Addr: addr})
	if err != nil {
		return err
	}
	defer store.Close()
	c, err := cache.New(store, cache.RawString{}, cache.Options[string, string]{Prefix: "stampede", TTL: time.Hour,
		StoreTimeout: patience, LeaseTTL: patience, LoadTimeout: patience})
	if err != nil {
		return err
	}
	defer c.Close()
	load := func(ctx context.Context, _ string) (string, error) {
		if _, err := store.Conn().Incr(ctx, counter); err != nil {
			return "", err
		}
		time.Sleep(300 * time.Millisecond) // the source is slow
		return "the value", nil
	}
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	errs := make(chan error, callers)
	var all sync.WaitGroup
	for range callers {
		all.Add(1)
		go func() {
			defer all.Done()
			v, err := c.GetOrLoad(ctx, key, load)
			if err == nil && v != "the value" {
				err = fmt.Errorf("got %q", v)
			}
			errs <- err
		}()
	}
	all.Wait()
	close(errs)
	failed := 0
	for err := range errs {
		if err != nil {
			failed++
			fmt.Fprintln(os.Stderr, err)
		}
	}
	stats := c.Stats()
	fmt.Println(callers, failed, stats.Of(cache.EventLoad), stats.Of(cache.EventCoalesced), stats.Of(cache.EventWaited), stats.Of(cache.EventHit))
	return nil
}
