package respb

// This file owns a call: one or more commands that wait for their replies.

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-db/weft/sdk/go/internal/deadline"
)

// States of a call. Whoever moves it away from waiting decides: the reader that the caller gets the replies, or the caller that nobody does.
const (
	callWaiting = iota
	callDone
	callAbandoned
)

// call is in the queue of its lane until its last reply came.
type call struct {
	next     *call
	lane     *lane
	first    uint32  // number of its first request on the channel
	got      int     // replies that came
	values   []Value // one for each reply
	one      [1]Value
	err      error
	state    atomic.Int32
	done     chan struct{} // gets one token when state becomes callDone, unless leads and there is no error
	leads    bool          // the caller reads for itself and others; the reader's
	alone    bool          // nothing else was awaited when it was sent
	extra    time.Duration // how long the command may block by itself; less than 0: for ever
	at       int64         // when it was sent, in looks of link.watch
	given    int64         // over RESP3, when it was first seen to be given up, in looks of link.watch
	confirms int           // RESP3: pushes that stand for the reply
	timer    *time.Timer   // for deadlines
}

var calls = sync.Pool{New: func() any { return &call{done: make(chan struct{}, 1)} }}

// newCall returns a call of one command.
func newCall() *call {
	c := calls.Get().(*call)
	c.state.Store(callWaiting)
	c.one[0].Kind = 0
	c.values = c.one[:]
	return c
}

// waits notes how long one of the call's commands may block by itself.
func (c *call) waits(extra time.Duration) {
	if c.extra >= 0 && (extra < 0 || extra > c.extra) {
		c.extra = extra
	}
}

// keepBytes is how large a reply's buffer may be to be kept for another.
const keepBytes = 16 << 10

// free gives the call back.
func (c *call) free() {
	if cap(c.one[0].Data) > keepBytes || cap(c.one[0].Elems) > 64 || cap(c.one[0].Attrs) > 0 {
		c.one[0] = Value{}
	}
	c.next, c.lane, c.values, c.err, c.got, c.leads, c.extra, c.confirms, c.given = nil, nil, nil, nil, 0, false, 0, 0, 0
	calls.Put(c)
}

// finish hands the call to its caller, or frees it if nobody waits any more.
func (c *call) finish(err error) {
	c.err = err
	hand := err != nil || !c.leads // who fails a call need not be the reader, and must not look
	if !c.state.CompareAndSwap(callWaiting, callDone) {
		c.free()
		return
	}
	if hand {
		c.done <- struct{}{}
	}
}

// waitOrEnd reports that the replies are there, and not that the context has ended.
func (c *call) waitOrEnd(ctx context.Context) bool {
	d, ok := ctx.(*deadline.Context)
	if !ok {
		end := ctx.Done()
		if end == nil {
			<-c.done
			return true
		}
		select {
		case <-c.done:
			return true
		case <-end:
			return false
		}
	}
	at, _ := d.Deadline()
	if c.timer == nil {
		c.timer = time.NewTimer(time.Until(at))
	} else {
		c.timer.Reset(time.Until(at))
	}
	replied := false
	select {
	case <-c.done:
		replied = true
	case <-d.Parent().Done():
	case <-c.timer.C:
		return false
	}
	if !c.timer.Stop() {
		select { // it must not end the next
		case <-c.timer.C:
		default:
		}
	}
	return replied
}

// wait returns when the replies are there, or gives the call up with the context. After an error the call is not the caller's any more
// if abandoned is true.
func (c *call) wait(ctx context.Context) (abandoned bool) {
	select {
	case <-c.done:
		return false
	default:
	}
	if c.waitOrEnd(ctx) {
		return false
	}
	l, lane, first, n := c.lane.link, c.lane, c.first, len(c.values)
	blocks := c.extra != 0
	if !c.state.CompareAndSwap(callWaiting, callAbandoned) {
		<-c.done
		return false
	}
	l.takeBack(lane, first, n, blocks)
	return true
}
