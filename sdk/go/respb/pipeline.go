package respb

// This file owns pipelines: several commands sent as one, and transactions.

import (
	"bytes"
	"context"
	"errors"

	"github.com/weft-db/weft/sdk/go/internal/deadline"
	"github.com/weft-db/weft/sdk/go/resp"
)

// Pipeline gathers commands and sends them together. Its helpers are those of a Channel, but give a [Result] that can be read after Exec. It
// belongs to one goroutine.
type Pipeline struct {
	ch     *Channel
	data   []byte
	ends   []int    // of each argument in data
	lent   [][]byte // the arguments, once there are any that are lent
	counts []int    // arguments of each command; 0 for one that is RESP already, whose bytes stand for one
	values []Value
	err    error
	done   bool
	inTx   bool // between MULTI and EXEC, while it is sent
	own    bool // the client's own: anything is allowed
	kept   bool // a command has an effect that is to be noted

	wrapped bool // its first command is ExecTx's MULTI, its last the EXEC
}

// Pipeline returns an empty pipeline.
func (ch *Channel) Pipeline() *Pipeline { return &Pipeline{ch: ch} }

// Len returns the number of commands.
func (p *Pipeline) Len() int { return len(p.counts) }

// Do adds a command; its arguments are copied.
func (p *Pipeline) Do(args ...string) *Result[Value] {
	p.add(args)
	return &Result[Value]{p, len(p.counts) - 1, asValue}
}

// Lend adds a command whose arguments are lent until Exec has returned: they are encoded into what is sent, and copied nowhere else.
func (p *Pipeline) Lend(args ...[]byte) *Result[Value] {
	p.LendMany(args)
	return &Result[Value]{p, len(p.counts) - 1, asValue}
}

// LendMany is Lend for several commands, whose replies are then found by ExecInto.
func (p *Pipeline) LendMany(commands ...[][]byte) {
	if len(p.ends) > 0 { // what came before was copied
		from := 0
		for _, end := range p.ends {
			p.lent = append(p.lent, p.data[from:end:end])
			from = end
		}
		p.data, p.ends = nil, nil
	}
	for _, args := range commands {
		if len(args) == 0 {
			args = nameless
		}
		p.lent = append(p.lent, args...)
		p.counts = append(p.counts, len(args))
	}
}

// Passthrough adds a command that is already encoded as RESP, an array of bulk strings; its bytes are copied and sent as they are,
// over RESPB in a frame of their own. It is for programs that have such bytes, as proxies and other clients do. Over RESP3 it is not for
// (un)subscribing, and a context that ends does not end what blocks.
func (p *Pipeline) Passthrough(command []byte) *Result[Value] {
	if len(p.lent) > 0 {
		p.lent = append(p.lent, bytes.Clone(command))
	} else {
		p.data = append(p.data, command...)
		p.ends = append(p.ends, len(p.data))
	}
	p.counts = append(p.counts, 0)
	return &Result[Value]{p, len(p.counts) - 1, asValue}
}

// nameless stands for a command without any argument, which Exec refuses with ErrCommand.
var nameless = [][]byte{{}}

func (p *Pipeline) add(args []string) {
	if len(args) == 0 {
		args = []string{""}
	}
	if len(p.lent) > 0 {
		for _, arg := range args {
			p.lent = append(p.lent, []byte(arg))
		}
		p.counts = append(p.counts, len(args))
		return
	}
	for _, arg := range args {
		p.data = append(p.data, arg...)
		p.ends = append(p.ends, len(p.data))
	}
	p.counts = append(p.counts, len(args))
}

// Reset empties the pipeline, so that it can be used again; Results of before are void.
func (p *Pipeline) Reset() {
	clear(p.lent)
	p.data, p.ends, p.counts, p.lent, p.values, p.err, p.done = p.data[:0], p.ends[:0], p.counts[:0], p.lent[:0], nil, nil, false
	p.kept = false
}

// Exec sends the commands and waits for all replies, which are the caller's. Commands beyond Options.InFlightMax leave when replies of
// those before have come; to run as one they need ExecTx. The error says that replies are missing; an error reply is
// found in its Value or Result. A pipeline that broke off is never sent again by itself.
func (p *Pipeline) Exec(ctx context.Context) ([]Value, error) { return p.ExecInto(ctx, nil) }

// ExecInto is Exec into values that are used again with their memory. After an error they are not the caller's any more: replies may
// still be written to them.
func (p *Pipeline) ExecInto(ctx context.Context, values []Value) ([]Value, error) {
	if len(p.counts) == 0 {
		return nil, nil
	}
	if len(p.ch.conn.opts.Hooks) > 0 {
		return p.execHooked(ctx, values)
	}
	return p.exec(ctx, values)
}

// exec is ExecInto without hooks.
func (p *Pipeline) exec(ctx context.Context, values []Value) ([]Value, error) {
	if cap(values) < len(p.counts) {
		values = append(values[:cap(values)], make([]Value, len(p.counts)-cap(values))...)
	}
	values = values[:len(p.counts)]
	for attempt := 0; ; attempt++ {
		la, err := p.ch.ready(ctx)
		if err != nil {
			return nil, p.fail(err)
		}
		if !p.ch.keepsTx(la) {
			return nil, p.fail(ErrStateLost)
		}
		if p.ch.isRoot && p.ch.shared && !la.link.binary {
			la = p.ch.conn.aside(ctx, la, p.isSlow())
		}
		err, sent := p.try(ctx, la, values)
		if err == nil {
			p.values, p.done = values, true
			if p.kept {
				p.note(la)
			}
			if la.link.resp2 {
				p.lift(values)
			}
			return values, nil
		}
		if sent && p.kept {
			p.ch.renewIfUnknown(ctx, la)
		}
		if p.ch.losesTx(la, err) || sent || !p.ch.again(err, false, attempt) {
			return nil, p.fail(err)
		}
		p.ch.lane.CompareAndSwap(la, nil)
	}
}

// note notes what the commands have done to the channel. A transaction that has begun and ended among them is nothing: others on the channel
// must not be told that it is lost.
func (p *Pipeline) note(la *lane) {
	at := 0
	var scratch [][]byte
	watches := -1 // the last command that begins or ends a transaction
	var last effect
	var words [][]byte
	for i, count := range p.counts {
		scratch = p.argv(scratch, at, max(count, 1))
		at += max(count, 1)
		args := scratch
		if count == 0 {
			args = decodeCommand(scratch[0])
		}
		switch e := effectOf(args); {
		case e == effectNone:
		case e == effectEnd, e == effectWatch && p.values[i].Err() == nil:
			watches, last, words = i, e, args[:1]
		case e != effectWatch:
			note(p.ch, la, e, args, &p.values[i])
		}
	}
	if watches >= 0 && !p.ch.shared {
		note(p.ch, la, last, words, &p.values[watches])
	}
}

func (p *Pipeline) fail(err error) error {
	p.err, p.done = err, true
	return err
}

// run is Exec on a lane that is not the channel's yet.
func (p *Pipeline) run(ctx context.Context, la *lane) ([]Value, error) {
	values := make([]Value, len(p.counts))
	err, _ := p.try(ctx, la, values)
	return values, err
}

// argv returns the arguments of the next command and how many ends it took.
func (p *Pipeline) argv(scratch [][]byte, at, count int) [][]byte {
	if len(p.lent) > 0 {
		return p.lent[at : at+count : at+count]
	}
	from := 0
	if at > 0 {
		from = p.ends[at-1]
	}
	scratch = scratch[:0]
	for _, end := range p.ends[at : at+count] {
		scratch = append(scratch, p.data[from:end:end])
		from = end
	}
	return scratch
}

// try sends the commands once, and has their replies written to values. A pipeline that is larger than what may be on its way is sent in
// parts, each when there is room for it, so that no server has to hold its replies; but not between MULTI and EXEC.
func (p *Pipeline) try(ctx context.Context, la *lane, values []Value) (err error, sent bool) {
	if err := ctx.Err(); err != nil {
		return deadline.Cause(ctx), false
	}
	var before []*call // the parts that were sent before the last
	for from, at := 0, 0; ; {
		c := newCall()
		write, read, n, args, err := p.addPart(ctx, la, c, values[from:], from, at)
		if err != nil {
			c.free()
			_, _ = waitAll(ctx, before)
			return err, len(before) > 0
		}
		if from, at = from+n, at+args; from == len(values) {
			abandoned := la.link.complete(ctx, c, write, read)
			err, gone := waitAll(ctx, before)
			if abandoned || gone {
				return deadline.Cause(ctx), true
			}
			if err == nil {
				err = c.err
			}
			c.free()
			return err, true
		}
		before = append(before, c)
		if read {
			la.link.giveReading()
		}
		if write {
			la.link.flush(false)
		}
	}
}

// waitAll waits for parts of a pipeline and returns the first error, and whether the context ended first.
func waitAll(ctx context.Context, parts []*call) (err error, abandoned bool) {
	for _, c := range parts {
		if c.wait(ctx) {
			abandoned = true
			continue
		}
		if err == nil {
			err = c.err
		}
		c.free()
	}
	return err, abandoned
}

// addPart appends the commands from a place on to what is sent, as one call: as many as may be on their way. It returns the roles of the
// caller, and how many commands and arguments it took.
func (p *Pipeline) addPart(ctx context.Context, la *lane, c *call, values []Value, from, at int) (write, read bool, n, args int, err error) {
	l := la.link
	l.mu.Lock()
	defer l.mu.Unlock()
	err = l.admit(ctx, la, c)
	start := len(l.out)
	p.inTx = false
	more := func() bool {
		return n == 0 || n < l.conn.opts.InFlightMax-l.pending && len(l.out) < l.conn.opts.WriteBytesMax
	}
	var scratch [][]byte
	for err == nil && n < len(values) && (p.inTx || more()) {
		count := max(p.counts[from+n], 1)
		scratch = p.argv(scratch, at+args, count)
		err = p.appendOne(la, c, scratch, from+n)
		n, args = n+1, args+count
	}
	if err == nil && p.inTx && p.ch.shared {
		err = &UseError{"MULTI", "without EXEC in the same pipeline changes what all users of a Conn share; use ExecTx, or a Channel of your own"}
	}
	if err != nil {
		l.out = l.out[:min(start, len(l.out))]
		return false, false, 0, 0, err
	}
	c.values, values[0].Kind = values[:n], 0
	write, read = l.begin(la, c, n)
	return write, read, n, args, nil
}

// appendOne appends one command. link.mu is held.
func (p *Pipeline) appendOne(la *lane, c *call, args [][]byte, i int) (err error) {
	l := la.link
	encoded := p.counts[i] == 0
	command := args[0]
	if encoded {
		args = nil
		if name := nameOf(command); mayAffect(name) || mayBlock(name) {
			args = decodeCommand(command)
		}
	}
	if e := effectOf(args); e != effectNone && !p.own {
		p.kept = true
		p.ch.changed.Store(true)
		begins, ends := isWord(args[0], "MULTI"), isWord(args[0], "EXEC") || isWord(args[0], "DISCARD")
		if !begins && !(ends && p.inTx) {
			if err := allow(p.ch, la, e, args); err != nil {
				return err
			}
		}
		p.inTx = begins || p.inTx && !ends
	}
	c.waits(blocksFor(args))
	if encoded {
		l.out, err = appendPassthrough(l, l.out, la.id, command)
		return err
	}
	l.out, err = appendCommand(l, l.out, la.id, args)
	if err == nil && !l.binary {
		if err = plainKind(c, args); err == nil && c.confirms > 0 && len(p.counts) > 1 {
			err = errNames
		}
	}
	return err
}

// ErrTxAborted is returned by ExecTx when a watched key was changed.
var ErrTxAborted = errors.New("respb: the transaction was not executed, a watched key was changed")

// ExecTx is Exec as a transaction: MULTI before the commands and EXEC behind them. The values are those of EXEC's reply. Nobody else may
// use the Channel meanwhile, or their commands become part of it.
func (p *Pipeline) ExecTx(ctx context.Context) ([]Value, error) {
	tx := &Pipeline{ch: p.ch, wrapped: true}
	tx.add([]string{"MULTI"})
	if len(p.lent) > 0 {
		tx.LendMany() // MULTI becomes one of those
		tx.lent = append(tx.lent, p.lent...)
	}
	tx.data = append(tx.data, p.data...)
	for _, end := range p.ends {
		tx.ends = append(tx.ends, end+len("MULTI"))
	}
	tx.counts = append(tx.counts, p.counts...)
	tx.add([]string{"EXEC"})
	values, err := tx.Exec(ctx)
	if err != nil {
		return nil, p.fail(err)
	}
	last := &values[len(values)-1]
	if err := last.Err(); err != nil {
		for i := range values[:len(values)-1] { // the command that was refused says more than EXECABORT
			if first := values[i].Err(); first != nil {
				err = first
				break
			}
		}
		return nil, p.fail(err)
	}
	if last.Kind == resp.Null {
		return nil, p.fail(ErrTxAborted)
	}
	if len(last.Elems) != len(p.counts) {
		return nil, p.fail(&ReplyError{"a reply for each command", last.String()})
	}
	p.values, p.done = last.Elems, true
	return last.Elems, nil
}

// Result is what a command of a pipeline will give.
type Result[T any] struct {
	p       *Pipeline
	i       int
	convert func(v *Value) (T, error)
}

// Get returns the result. Before Exec it is ErrNotExecuted.
func (r *Result[T]) Get() (T, error) {
	var none T
	switch {
	case !r.p.done || r.p.err == nil && r.i >= len(r.p.values):
		return none, ErrNotExecuted
	case r.p.err != nil:
		return none, r.p.err
	}
	return r.convert(&r.p.values[r.i])
}
