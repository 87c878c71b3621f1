// Package weftslog writes what a client does to a log/slog.Logger.
//
//	conn, err := respb.Dial(ctx, respb.Options{Addr: addr, Hooks: []respb.Hook{weftslog.New(logger, weftslog.Options{})}})
//
// What fails and what is slow is a warning, a connection that was made is told at info, one that could not be made is an error, and every command
// at debug. Values are never written, keys only if that is asked for.
package weftslog

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/weft-db/weft/sdk/go/respb"
)

// DefaultSlow is from when on a command is slow.
const DefaultSlow = 100 * time.Millisecond

// Options says what is written.
type Options struct {
	// Slow is from when on a command is slow; DefaultSlow unless set, and less than zero for never. What blocks takes the time it is told to.
	Slow time.Duration
	// Keys has the first key of a command written. Keys may be personal data.
	Keys bool
}

// New returns the Hook.
func New(logger *slog.Logger, o Options) respb.Hook {
	if o.Slow == 0 {
		o.Slow = DefaultSlow
	}
	return &hook{logger: logger, opts: o}
}

type hook struct {
	respb.NoHook
	logger *slog.Logger
	opts   Options
}

// After writes a command.
func (h *hook) After(ctx context.Context, op *respb.Operation) {
	level, text := slog.LevelDebug, "command"
	switch {
	case errors.Is(op.Err, context.Canceled):
		text = "command given up" // by the caller: nobody's fault
	case op.Err != nil || op.ErrorReplies > 0:
		level, text = slog.LevelWarn, "command failed"
	case h.opts.Slow > 0 && op.Took >= h.opts.Slow:
		level, text = slog.LevelWarn, "command slow"
	}
	if !h.logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.String("command", op.Name), slog.Duration("took", op.Took), slog.String("addr", op.Addr), slog.Int("db", op.DB)}
	if h.opts.Keys && op.Key != "" {
		attrs = append(attrs, slog.String("key", op.Key))
	}
	if op.Len > 1 {
		attrs = append(attrs, slog.Int("commands", op.Len), slog.Int("error_replies", op.ErrorReplies))
	}
	if op.Err != nil {
		attrs = append(attrs, slog.String("error", op.Err.Error()))
	}
	h.logger.LogAttrs(ctx, level, text, attrs...)
}

// Dialed writes a connection.
func (h *hook) Dialed(ctx context.Context, d *respb.Dialed) {
	attrs := []slog.Attr{slog.String("addr", d.Addr), slog.Duration("took", d.Took)}
	if d.Err != nil {
		h.logger.LogAttrs(ctx, slog.LevelError, "no connection", append(attrs, slog.String("error", d.Err.Error()))...)
		return
	}
	attrs = append(attrs, slog.String("protocol", d.Connected.Protocol.String()))
	if d.Connected.FellBack != nil {
		attrs = append(attrs, slog.String("fell_back", d.Connected.FellBack.Error()))
	}
	h.logger.LogAttrs(ctx, slog.LevelInfo, "connected", attrs...)
}
