package respb

// This file owns iterators that wait: over what is added to a stream, for one reader and for a group's.

import (
	"context"
	"iter"
	"strconv"
	"time"
)

// Follow iterates over the entries of a stream behind an ID, those that are added meanwhile included, until the context ends, which is no error; "$"
// is from now on, "0" all. A connection that breaks, or a server that is away, is no end either: the next one goes on behind the last entry, and none is missed or comes
// twice. Any other error is the last pair. The Channel waits all the time, so it is best used for nothing else.
func (c ChannelCommands) Follow(ctx context.Context, key, after string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if after == "$" { // once: what is added between two commands must not be passed over
			var err error
			if after, err = c.lastID(ctx, key); err != nil {
				yield(Entry{}, err)
				return
			}
		}
		for failures := 0; ctx.Err() == nil; {
			entries, err := c.readStream(ctx, "XREAD", "COUNT", strconv.Itoa(entryBatch), "BLOCK", "0", "STREAMS", key, after)
			if failures = c.pause(ctx, failures, err); err != nil && !c.goesOn(ctx, err) {
				if ctx.Err() == nil {
					yield(Entry{}, err)
				}
				return
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
				after = e.ID
			}
		}
	}
}

// Consume iterates over the entries of a stream that a group's consumer gets: first those that it has got before and not acknowledged, then new
// ones, until the context ends, which is no error. Who has done with an entry acknowledges it, with [Commands.Xack]; what is not comes again to the
// next Consume of the same consumer, and after a connection that broke to this one. Any other error is the last pair. The Channel waits all the
// time: acknowledge on another, or on the Conn.
func (c ChannelCommands) Consume(ctx context.Context, key, group, consumer string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for from, failures := "0", 0; ctx.Err() == nil; {
			entries, err := c.readStream(ctx, "XREADGROUP", "GROUP", group, consumer, "COUNT", strconv.Itoa(entryBatch), "BLOCK", "0", "STREAMS", key, from)
			failures = c.pause(ctx, failures, err)
			switch {
			case err == nil:
			case c.goesOn(ctx, err):
				from = "0" // what the lost reply had is pending
				continue
			default:
				if ctx.Err() == nil {
					yield(Entry{}, err)
				}
				return
			}
			if from != ">" && len(entries) == 0 {
				from = ">"
			}
			for _, e := range entries {
				if from != ">" {
					from = e.ID
				}
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// readStream reads one stream.
func (c ChannelCommands) readStream(ctx context.Context, args ...string) ([]Entry, error) {
	streams, err := run(ctx, c.ch, args, asStreams)
	if err != nil || len(streams) == 0 {
		return nil, err
	}
	return streams[0].Entries, nil
}

// goesOn reports whether an error may be over at another try: a connection that broke or cannot be made, or a channel that the server has closed.
func (c ChannelCommands) goesOn(ctx context.Context, err error) bool {
	return passes(err) && ctx.Err() == nil && !c.ch.closed.Load() && !c.ch.conn.opts.Reconnect.Disabled
}

// pause waits before another try as Reconnect says, longer with each failure, and returns how many there have been in a row.
func (c ChannelCommands) pause(ctx context.Context, failures int, err error) int {
	if err == nil || !c.goesOn(ctx, err) {
		return 0
	}
	_ = sleep(ctx, c.ch.conn.opts.Reconnect.pause(failures))
	return failures + 1
}

// lastID is that of the last entry of a stream, and that of none.
func (c ChannelCommands) lastID(ctx context.Context, key string) (string, error) {
	entries, err := c.ch.Xrevrange(ctx, key, "+", "-", XrevrangeCount(1))
	if err != nil || len(entries) == 0 {
		return "0", err
	}
	return entries[0].ID, nil
}

// EachAbandoned iterates over the entries of a stream that consumers of a group have had for so long without acknowledging them, and makes them
// this consumer's, with XAUTOCLAIM. An error is the last pair.
func (c Commands) EachAbandoned(ctx context.Context, key, group, consumer string, idle time.Duration) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for next := "0"; ; {
			claimed, err := c.Xautoclaim(ctx, key, group, consumer, idle, next, XautoclaimCount(entryBatch))
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for _, e := range claimed.Entries {
				if !yield(e, nil) {
					return
				}
			}
			if next = claimed.Next; next == "0-0" || next == "0" {
				return
			}
		}
	}
}
