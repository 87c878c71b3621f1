package respb

// This file owns opening a Channel, again after a break: who does it, who waits for it, and which failures another try may get over.

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/weft-db/weft/sdk/go/internal/deadline"
)

// opener lets one goroutine open a channel while others wait.
type opener struct {
	mu  sync.Mutex
	now *opening // nil: nobody opens
}

// opening is being opened, or has been when done is closed.
type opening struct {
	done chan struct{}
	lane *lane
	err  error
}

// open makes the channel's lane and gives it back what the channel is. It goes on when whoever came first has no time left: a server that takes longer
// to connect to than its callers wait would never be connected to. A panic of a hook or of Options.Dialer is an error.
func (ch *Channel) open(ctx context.Context, attempts int) (*lane, error) {
	for joined := false; ; joined = true {
		o, own, err := ch.join(ctx, attempts)
		if err != nil {
			return nil, err
		}
		select {
		case <-o.done:
			if o.err != nil && !own && !joined && ctx.Err() == nil {
				continue // it had begun before this caller came, who tries once more
			}
			return o.lane, o.err
		case <-ctx.Done():
			return nil, deadline.Cause(ctx)
		}
	}
}

// join returns the opening that goes on, or begins one, which is then the caller's own.
func (ch *Channel) join(ctx context.Context, attempts int) (o *opening, own bool, err error) {
	ch.opening.mu.Lock()
	defer ch.opening.mu.Unlock()
	if la := ch.lane.Load(); la != nil {
		done := make(chan struct{})
		close(done)
		return &opening{done: done, lane: la}, true, nil
	}
	if ch.closed.Load() {
		return nil, false, ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, false, deadline.Cause(ctx)
	}
	if ch.opening.now != nil {
		return ch.opening.now, false, nil
	}
	o = &opening{done: make(chan struct{})}
	ch.opening.now = o
	go ch.runOpening(context.WithoutCancel(ctx), o, attempts) // ends with its attempts, or with the Conn
	return o, true, nil
}

func (ch *Channel) runOpening(ctx context.Context, o *opening, attempts int) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ch.conn.ctx, cancel)()
	defer func() {
		if p := recover(); p != nil {
			o.lane, o.err = nil, &ConnError{fmt.Errorf("panic while connecting: %v\n%s", p, debug.Stack()), true}
		}
		if o.err != nil && ch.conn.ctx.Err() != nil {
			o.err = ErrClosed
		}
		ch.opening.mu.Lock()
		ch.opening.now = nil
		ch.opening.mu.Unlock()
		close(o.done)
	}()
	o.lane, o.err = ch.tryToOpen(ctx, attempts)
}

// tryToOpen opens the channel, again if what breaks is the new connection. attempts 0 is for ever.
func (ch *Channel) tryToOpen(ctx context.Context, attempts int) (*lane, error) {
	r := &ch.conn.opts.Reconnect
	for failures := 0; ; failures++ {
		l, err := ch.conn.linkFor(ctx, ch, attempts)
		if err != nil {
			return nil, err
		}
		la, err := ch.openOn(ctx, l)
		if err == nil || !passes(err) || r.Disabled || ch.closed.Load() || attempts > 0 && failures+1 >= attempts {
			return la, err
		}
		if err := sleep(ctx, r.pause(failures)); err != nil {
			return nil, err
		}
	}
}

// openOn makes the channel's lane on a link.
func (ch *Channel) openOn(ctx context.Context, l *link) (*lane, error) {
	la, err := l.add(ch)
	if err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, ch.conn.opts.DialTimeout)
	defer cancel()
	if err := ch.setUp(within, la); err != nil {
		ch.drop(la, err)
		return nil, err
	}
	ch.lane.Store(la)
	l.mu.Lock()
	broken := la.err
	l.mu.Unlock()
	if broken != nil || ch.closed.Load() { // between the two
		ch.lane.CompareAndSwap(la, nil)
		ch.drop(la, ErrClosed)
		if broken == nil {
			broken = ErrClosed
		}
		return nil, broken
	}
	return la, nil
}

// passing are the beginnings of errors that a server gives while it cannot serve yet, or just now.
var passing = []string{"LOADING ", "BUSY ", "TRYAGAIN ", "MASTERDOWN ", "CLUSTERDOWN ", "ERR max number of clients"}

// passes reports whether what kept a channel from being opened may be over at another try.
func passes(err error) bool {
	var lost *ConnError
	var closed *CloseError
	var late *TimeoutError
	var reply *Error
	switch {
	case errors.Is(err, ErrClosed):
		return false
	case errors.As(err, &reply):
		for _, begin := range passing {
			if strings.HasPrefix(reply.Error(), begin) {
				return true
			}
		}
		return false
	}
	return errors.As(err, &lost) || errors.As(err, &closed) || errors.As(err, &late) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrChannels)
}

// sleep returns after d, or with the context's end.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return deadline.Cause(ctx)
	}
}
