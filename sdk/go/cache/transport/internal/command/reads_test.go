package command

// This file owns the test of when a batch of reads leaves as MGET, with a store that counts.

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/weft-db/weft/sdk/go/cache"
)

// counting is a store of strings and of keys of another type, which counts how it is asked.
type counting struct {
	reads       Reads
	values      map[string]string // "" is another type
	mgets, gets int
	refuses     bool
	fails       error
}

var errType = errors.New("WRONGTYPE")

func (c *counting) mget(_ context.Context, ops []cache.Op) {
	c.mgets++
	for i := range ops {
		switch v := c.values[string(ops[i].Key)]; {
		case c.refuses:
			c.reads.Refused()
			return
		case c.fails != nil:
			ops[i].Err = c.fails
		case v != "":
			Give(&ops[i], v)
		}
	}
}

func (c *counting) do(_ context.Context, ops []cache.Op) {
	for i := range ops {
		c.gets++
		v, there := c.values[string(ops[i].Key)]
		ops[i].Found, ops[i].Err = false, nil
		switch {
		case there && v == "":
			ops[i].Err = errType
		case there:
			Give(&ops[i], v)
		}
	}
}

func newCounting() *counting {
	c := &counting{values: map[string]string{}}
	for i := range 20 {
		c.values[fmt.Sprint("k", i)] = fmt.Sprint("v", i)
	}
	return c
}

// read reads n keys and checks what comes.
func (c *counting) read(t *testing.T, n int) {
	t.Helper()
	ops := make([]cache.Op, n)
	for i := range ops {
		ops[i] = cache.Op{Kind: cache.OpGet, Key: fmt.Append(nil, "k", i)}
	}
	c.reads.Run(context.Background(), ops, c.mget, c.do)
	for i := range ops {
		v, there := c.values[string(ops[i].Key)]
		want := error(nil)
		if there && v == "" {
			want = errType
		}
		if ops[i].Err != want || ops[i].Found != (v != "") || string(ops[i].Value) != v {
			t.Fatalf("%s: %q, found %v, %v", ops[i].Key, ops[i].Value, ops[i].Found, ops[i].Err)
		}
	}
}

// TestReads has batches become MGETs when enough of them were found whole, and GETs again when something is not there.
func TestReads(t *testing.T) {
	c := newCounting()
	expect := func(mgets, gets int) {
		t.Helper()
		if c.mgets != mgets || c.gets != gets {
			t.Fatalf("%d MGETs and %d GETs, want %d and %d", c.mgets, c.gets, mgets, gets)
		}
		c.mgets, c.gets = 0, 0
	}
	for range readsWhole {
		c.read(t, 10)
	}
	expect(0, 10*readsWhole)
	c.read(t, 20)
	expect(1, 0)
	c.read(t, readsMin-1)
	expect(0, readsMin-1)

	c.values["k3"] = "" // another type
	c.read(t, 20)
	expect(1, 1)
	c.read(t, 20)
	expect(0, 20)
	delete(c.values, "k3")
	c.read(t, 20)
	expect(0, 20)

	c.values["k3"] = "v"
	for range readsWhole {
		c.read(t, 10)
	}
	expect(0, 10*readsWhole)
	// Refused, it is not tried again for a while.
	c.refuses = true
	c.read(t, 20)
	expect(1, 20)
	for range readsWhole {
		c.read(t, 10)
	}
	expect(0, 10*readsWhole)
}

// TestReadsFail has a connection break under an MGET: it is not asked again.
func TestReadsFail(t *testing.T) {
	c := newCounting()
	for range readsWhole {
		c.read(t, 10)
	}
	c.gets, c.fails = 0, errors.New("gone")
	ops := []cache.Op{}
	for i := range 10 {
		ops = append(ops, cache.Op{Kind: cache.OpGet, Key: fmt.Append(nil, "k", i)})
	}
	c.reads.Run(context.Background(), ops, c.mget, c.do)
	for i := range ops {
		if ops[i].Err != c.fails || ops[i].Found {
			t.Fatal(i, ops[i].Found, ops[i].Err)
		}
	}
	if c.gets != 0 {
		t.Error(c.gets, "GETs")
	}
}

// TestGive appends to what is there, and lends where nothing is.
func TestGive(t *testing.T) {
	op := cache.Op{Value: append(make([]byte, 0, 64), "before "...)}
	if Give(&op, "text"); string(op.Value) != "before text" || op.Lent || !op.Found {
		t.Errorf("%q, %v", op.Value, op.Lent)
	}
	op = cache.Op{Value: make([]byte, 0, 64)}
	if Give(&op, "text"); string(op.Value) != "text" || !op.Lent || cap(op.Value) != 4 {
		t.Errorf("%q, %v, %d", op.Value, op.Lent, cap(op.Value))
	}
}
