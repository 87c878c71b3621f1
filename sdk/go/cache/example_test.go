package cache_test

// This file owns the examples of the package page. They run against the store in memory, which is also what unit tests use.

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/weft-db/weft/sdk/go/cache"
	"github.com/weft-db/weft/sdk/go/cache/transport/memory"
)

type Book struct {
	Title string
	Pages int
}

func books() *cache.Cache[string, Book] {
	c, err := cache.New(&memory.Store{}, cache.JSON[Book]{}, cache.Options[string, Book]{
		Prefix: "book", Version: 1, TTL: time.Hour, NegativeTTL: time.Minute, Jitter: 0.1,
	})
	if err != nil {
		log.Fatal(err)
	}
	return c
}

func Example() {
	c := books()
	defer c.Close()
	ctx := context.Background()
	load := func(_ context.Context, isbn string) (Book, error) {
		fmt.Println("loading", isbn)
		if isbn != "0-201-53082-1" {
			return Book{}, cache.ErrNotFound
		}
		return Book{"Computational Complexity", 523}, nil
	}
	for range 2 {
		book, err := c.GetOrLoad(ctx, "0-201-53082-1", load)
		fmt.Println(book.Title, err)
	}
	_, err := c.GetOrLoad(ctx, "0", load)
	fmt.Println(errors.Is(err, cache.ErrNotFound))
	// Output:
	// loading 0-201-53082-1
	// Computational Complexity <nil>
	// Computational Complexity <nil>
	// loading 0
	// true
}

// The loader is called once, with the keys that are missing.
func ExampleCache_GetOrLoadMany() {
	c := books()
	defer c.Close()
	ctx := context.Background()
	if err := c.Set(ctx, "a", Book{"A", 1}); err != nil {
		log.Fatal(err)
	}
	results := c.GetOrLoadMany(ctx, []string{"a", "b", "c"}, func(_ context.Context, missing []string) (map[string]Book, error) {
		fmt.Println("loading", missing)
		return map[string]Book{"b": {"B", 2}}, nil
	})
	for _, r := range results {
		fmt.Println(r.Value.Title, r.Err)
	}
	// Output:
	// loading [b c]
	// A <nil>
	// B <nil>
	//  cache: the source has no such value
}

// Each item of a batch has a TTL of its own, and each key a result of its own.
func ExampleCache_SetMany() {
	c := books()
	defer c.Close()
	ctx := context.Background()
	err := c.SetMany(ctx, []cache.Item[string, Book]{
		{Key: "a", Value: Book{"A", 1}},
		{Key: "b", Value: Book{"B", 2}, TTL: time.Second},
	})
	fmt.Println(err)
	for _, r := range c.GetMany(ctx, []string{"b", "x"}) {
		fmt.Println(r.Value.Pages, r.Err)
	}
	// Output:
	// <nil>
	// 2 <nil>
	// 0 cache: miss
}

type account struct {
	Name    string `cache:"name"`
	Balance int64  `cache:"balance"`
	History []string
}

// A Hash reads and writes single fields.
func ExampleHash() {
	h, err := cache.NewHash[int, account](&memory.Store{}, cache.HashOptions{Prefix: "account", TTL: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if err := h.Set(ctx, 1, account{"Ann", 10, []string{"opened"}}); err != nil {
		log.Fatal(err)
	}
	if err := h.SetFields(ctx, 1, account{Balance: 12}, "balance"); err != nil {
		log.Fatal(err)
	}
	a, err := h.GetFields(ctx, 1, "name", "balance")
	fmt.Println(a.Name, a.Balance, len(a.History), err)
	// Output: Ann 12 0 <nil>
}

type point struct{ X, Y int8 }

// A codec of two functions. Numbers from CodecUserMin are the users'.
func ExampleCodecFunc() {
	codec := cache.CodecFunc[point]{
		Number: cache.CodecUserMin,
		Append: func(dst []byte, p point) ([]byte, error) { return append(dst, byte(p.X), byte(p.Y)), nil },
		Parse: func(data []byte, p *point) error {
			if len(data) != 2 {
				return errors.New("not two bytes")
			}
			p.X, p.Y = int8(data[0]), int8(data[1])
			return nil
		},
	}
	c, err := cache.New(&memory.Store{}, codec, cache.Options[string, point]{Prefix: "point", TTL: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx := context.Background()
	if err := c.Set(ctx, "p", point{3, -4}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Get(ctx, "p"))
	// Output: {3 -4} <nil>
}
