package deadline

// This file owns the tests of the context.

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"
)

type key struct{}

func TestEndsAtItsTime(t *testing.T) {
	for name, ask := range map[string]bool{"asked for Done": true, "not asked": false} {
		t.Run(name, func(t *testing.T) {
			c := New(context.WithValue(context.Background(), key{}, "v"), time.Now().Add(10*time.Millisecond))
			defer c.End()
			if c.Err() != nil || c.Value(key{}) != "v" {
				t.Error(c.Err(), c.Value(key{}))
			}
			if ask {
				<-c.Done()
			} else {
				at, _ := c.Deadline()
				<-time.After(time.Until(at))
			}
			if !errors.Is(c.Err(), context.DeadlineExceeded) || context.Cause(c) != context.DeadlineExceeded || c.Value(key{}) != "v" {
				t.Error(c.Err(), context.Cause(c))
			}
		})
	}
}

func TestEndsWithItsParent(t *testing.T) {
	for name, ask := range map[string]bool{"asked for Done": true, "not asked": false} {
		t.Run(name, func(t *testing.T) {
			cause := errors.New("cause")
			parent, cancel := context.WithCancelCause(context.Background())
			c := New(parent, time.Now().Add(time.Hour))
			defer c.End()
			if ask {
				c.Done()
			}
			if cancel(cause); ask {
				<-c.Done()
			}
			if c.Err() != context.Canceled || context.Cause(c) != cause {
				t.Error(c.Err(), context.Cause(c))
			}
		})
	}
}

func TestEnd(t *testing.T) {
	for name, before := range map[string]bool{"asked before": true, "asked behind": false} {
		t.Run(name, func(t *testing.T) {
			c := New(context.Background(), time.Now().Add(time.Hour))
			if before {
				c.Done()
			}
			c.End()
			if c.Err() != context.Canceled {
				t.Error(c.Err())
			}
			<-c.Done()
			if c.Err() != context.Canceled {
				t.Error(c.Err())
			}
		})
	}
}

// TestChildren has contexts made of it end with it, without goroutines that wait for that.
func TestChildren(t *testing.T) {
	c := New(context.Background(), time.Now().Add(time.Hour))
	before := runtime.NumGoroutine()
	children := make([]context.Context, 100)
	for i := range children {
		child, cancel := context.WithCancel(c)
		defer cancel()
		children[i] = child
	}
	if n := runtime.NumGoroutine() - before; n > 10 {
		t.Error(n, "goroutines")
	}
	c.End()
	for _, child := range children {
		<-child.Done()
	}
}

func TestAllocations(t *testing.T) {
	at := time.Now().Add(time.Hour)
	var err error
	if n := testing.AllocsPerRun(100, func() {
		c := New(context.Background(), at)
		err = c.Err()
		c.End()
	}); n > 1 || err != nil {
		t.Error(n, err)
	}
}

// TestErrFollowsTheTime: from its time on Err says so, though the timer that closes Done may come a little later. Who waits with a timer of his
// own asks just then.
func TestErrFollowsTheTime(t *testing.T) {
	parent, cancel := context.WithCancel(context.Background())
	defer cancel()
	for name, ask := range map[string]bool{"asked for Done": true, "not asked": false} {
		t.Run(name, func(t *testing.T) {
			for range 200 {
				at := time.Now().Add(20 * time.Microsecond)
				c := New(parent, at)
				if ask {
					c.Done()
				}
				for time.Now().Before(at) {
				}
				if err, why := c.Err(), Cause(c); err != context.DeadlineExceeded || why != context.DeadlineExceeded {
					t.Fatal(err, why)
				}
				c.End()
			}
		})
	}
}

// ended is a context that has ended, but has told nobody yet.
type ended struct{ context.Context }

func (ended) Done() <-chan struct{} { return make(chan struct{}) }
func (ended) Err() error            { return context.Canceled }

// TestErrFollowsTheParent: the same for the end of the parent, of which its children hear one by one.
func TestErrFollowsTheParent(t *testing.T) {
	c := New(ended{context.Background()}, time.Now().Add(time.Hour))
	defer c.End()
	c.Done()
	if err, why := c.Err(), Cause(c); err != context.Canceled || why != context.Canceled {
		t.Error(err, why)
	}
}

// TestCauseIsNeverNil: who has given up says why, also if clocks disagree about the time.
func TestCauseIsNeverNil(t *testing.T) {
	c := New(context.Background(), time.Now().Add(time.Hour))
	defer c.End()
	if why := Cause(c); why != context.DeadlineExceeded {
		t.Error(why)
	}
	cause := errors.New("cause")
	parent, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	if why := Cause(New(parent, time.Now().Add(time.Hour))); why != cause {
		t.Error(why)
	}
}
