package respb

// This file owns hooks: who is told of commands, pipelines and connections, and what. It owns no tracing and no metrics; those are adapters,
// in hooks/weftotel and hooks/weftslog.

import (
	"context"
	"iter"
	"time"

	"github.com/weft-db/weft/sdk/go/internal/commands"
	"github.com/weft-db/weft/sdk/go/resp"
)

// Hook is told what a Conn and its Channels do; see Options.Hooks. Before and After run on the goroutine of the caller, Dialed on the one that
// connects, any number at once, and what they take is added to the call. Embed [NoHook] to have only some of them, and to keep compiling when there are more.
//
// What the client does by itself, PING, CANCEL, what it sends again after a break, is not told; a command that is sent twice is told once.
type Hook interface {
	// Before is called with a command or pipeline that is about to be sent. The context that it returns is the call's, and After's; where several
	// hooks are set, the next one gets it too.
	Before(ctx context.Context, op *Operation) context.Context
	// After is called when the call is about to return, with the context that this hook's Before has returned. The last hook comes first.
	After(ctx context.Context, op *Operation)
	// Dialed is called when a connection has been made, or could not be: HELLO is part of it. The context has the values of the call that needed it,
	// and not its end; others wait meanwhile: it must not use the Conn.
	Dialed(ctx context.Context, dial *Dialed)
}

// NoHook is a Hook that does nothing.
type NoHook struct{}

// Before returns the context as it is.
func (NoHook) Before(ctx context.Context, _ *Operation) context.Context { return ctx }

// After does nothing.
func (NoHook) After(context.Context, *Operation) {}

// Dialed does nothing.
func (NoHook) Dialed(context.Context, *Dialed) {}

// Operation is one call: a command, or a pipeline. A hook may not keep it.
type Operation struct {
	// Name is the command's in the table, as "GET" or "CLIENT LIST", and "UNKNOWN" for what the table does not have; so there are not more of
	// them than the table has. Of a pipeline it is "PIPELINE", or "PIPELINE GET" if all its commands are the same; of ExecTx "MULTI" likewise.
	Name string
	// Key is the first key of a command, if the table knows where it stands. Other arguments are not told: they are data, or secrets.
	Key string
	// Len is how many commands these are; MULTI and EXEC that ExecTx adds do not count. Bytes is the size of their arguments.
	Len, Bytes int
	// Network, Addr and DB say where they go.
	Network, Addr string
	DB            int
	Began         time.Time

	// What follows is known in After.

	// Protocol is what was spoken at last, Auto if there was no connection.
	Protocol Protocol
	Took     time.Duration
	// Err is what the caller gets: of a command its error reply, or why there is none; of a pipeline only why replies are missing. A null is no error.
	Err error
	// ErrorReplies is how many of the replies are errors.
	ErrorReplies int

	pipeline *Pipeline
}

// Dialed is a connection that was made, or an attempt that failed.
type Dialed struct {
	Network, Addr string
	Began         time.Time
	Took          time.Duration
	// Connected is empty if Err says why there is none.
	Connected Connected
	Err       error
}

// unknownName is the Name of commands that the table does not have.
const unknownName = "UNKNOWN"

// Commands iterates over the commands, each as Name and Key say it of one.
func (op *Operation) Commands() iter.Seq2[string, string] {
	return func(yield func(name, key string) bool) {
		if op.pipeline == nil {
			yield(op.Name, op.Key)
			return
		}
		op.pipeline.each(func(args [][]byte) bool { return yield(nameAndKey(args)) })
	}
}

// each calls fn with the arguments of each command, but not with the MULTI and EXEC of ExecTx, until it returns false. They are valid until it
// returns.
func (p *Pipeline) each(fn func(args [][]byte) bool) {
	var scratch [][]byte
	at := 0
	for i, count := range p.counts {
		count := max(count, 1)
		scratch = p.argv(scratch, at, count)
		at += count
		if p.wrapped && (i == 0 || i == len(p.counts)-1) {
			continue
		}
		args := scratch
		if p.counts[i] == 0 {
			args = decodeCommand(scratch[0])
		}
		if !fn(args) {
			return
		}
	}
}

// nameAndKey returns what hooks are told of a command.
func nameAndKey[T string | []byte](args []T) (name, key string) {
	if len(args) == 0 {
		return unknownName, ""
	}
	sub := ""
	if len(args) > 1 && len(args[1]) < 32 {
		sub = string(args[1])
	}
	if len(args[0]) > 32 {
		return unknownName, ""
	}
	known := commands.Lookup(string(args[0]), sub)
	if known == nil {
		return unknownName, ""
	}
	if at := int(known.First); at > 0 && at < len(args) {
		key = string(args[at])
	}
	return known.FullName(), key
}

// hooks are those of a Conn.
type hooks []Hook

// begun is an operation that hooks have been told.
type begun struct {
	hooks    hooks
	contexts []context.Context // one for each hook
	op       Operation
}

// begin tells the hooks that op begins, and returns the call's context.
func (h hooks) begin(ctx context.Context, ch *Channel, op Operation) (*begun, context.Context) {
	b := &begun{h, make([]context.Context, len(h)), op}
	b.op.Network, b.op.Addr = ch.conn.opts.Network, ch.conn.opts.Addr
	ch.watched.Lock()
	b.op.DB = ch.opts.DB
	ch.watched.Unlock()
	b.op.Began = time.Now()
	for i, hook := range h {
		ctx = hook.Before(ctx, &b.op)
		b.contexts[i] = ctx
	}
	return b, ctx
}

// end tells the hooks that it has ended.
func (b *begun) end(ch *Channel, err error, errorReplies int) {
	b.op.Took, b.op.Err, b.op.ErrorReplies = time.Since(b.op.Began), err, errorReplies
	if la := ch.lane.Load(); la != nil {
		b.op.Protocol = la.link.protocol()
	}
	for i := len(b.hooks) - 1; i >= 0; i-- {
		b.hooks[i].After(b.contexts[i], &b.op)
	}
}

// exchangeHooked is exchange with hooks. It copies what they are told, so that without hooks arguments need not be on the heap.
func exchangeHooked[T string | []byte](ctx context.Context, ch *Channel, args []T) (*call, error) {
	op := Operation{Len: 1}
	op.Name, op.Key = nameAndKey(args)
	for i := range args {
		op.Bytes += len(args[i])
	}
	b, ctx := hooks(ch.conn.opts.Hooks).begin(ctx, ch, op)
	c, err := exchangeBare(ctx, ch, args)
	told, errorReplies := err, 0
	if err == nil {
		if told = c.one[0].Err(); told != nil {
			errorReplies = 1
		}
	}
	b.end(ch, told, errorReplies)
	return c, err
}

// execHooked is ExecInto with hooks.
func (p *Pipeline) execHooked(ctx context.Context, values []Value) ([]Value, error) {
	op := Operation{Name: "PIPELINE", pipeline: p}
	if p.wrapped {
		op.Name = "MULTI"
	}
	same := ""
	p.each(func(args [][]byte) bool {
		name, _ := nameAndKey(args)
		if op.Len++; op.Len == 1 {
			same = name
		} else if name != same {
			same = ""
		}
		for _, arg := range args {
			op.Bytes += len(arg)
		}
		return true
	})
	if same != "" {
		op.Name += " " + same
	}
	b, ctx := hooks(p.ch.conn.opts.Hooks).begin(ctx, p.ch, op)
	values, err := p.exec(ctx, values)
	replies := values
	if p.wrapped && len(values) > 0 {
		if last := &values[len(values)-1]; last.Kind == resp.Array {
			replies = last.Elems
		}
	}
	errorReplies := 0
	for i := range replies {
		if replies[i].Err() != nil {
			errorReplies++
		}
	}
	b.end(p.ch, err, errorReplies)
	return values, err
}

// dialed tells the hooks of a connection.
func (h hooks) dialed(ctx context.Context, o *Options, began time.Time, connected Connected, err error) {
	d := Dialed{Network: o.Network, Addr: o.Addr, Began: began, Took: time.Since(began), Connected: connected, Err: err}
	for _, hook := range h {
		hook.Dialed(ctx, &d)
	}
}
