package resp

// This file owns Request, a command as handlers see it.

import (
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/weft-db/weft/sdk/go/internal/frame"
)

// Request is one command and its arguments. It hides how they came: a protocol that sends numbers as numbers can serve the same
// handlers. A Request and everything it returns is valid until the handler returns; copy what is to be kept.
type Request struct {
	args   [][]byte
	body   *Body
	typed  []frame.Arg // RESPB: what the arguments behind the name were on the wire, if they were typed
	opcode int         // RESPB: the core opcode plus one
	waiter waiter
	ctx    context.Context
}

// NewRequest returns a command that comes from no client: what a transaction has queued, or a program runs. Its Context never ends.
func NewRequest(args ...string) *Request {
	r := &Request{args: make([][]byte, len(args))}
	for i, arg := range args {
		r.args[i] = []byte(arg)
	}
	return r
}

// waiter is what a request needs of its connection when it is going to wait.
type waiter interface{ wait() context.Context }

// Context returns a context that is cancelled when the client takes the command back, closes its channel or is gone.
//
// A handler that is going to wait calls it first, and waits for the context as well: over RESPB the connection's other channels go
// on from that call, while without it they would wait too. Over RESP, replies before this one are sent by the call, and the connection is
// watched while the handler runs, so that the end of it is seen; what the client sends behind the command is read up to
// Limits.QueueBytesMax for that.
//
// Its cause says why it has ended, and a handler that then returns the context's error answers with that: [ErrCancelled] when a RESPB client took
// the command back with CANCEL, [ErrShuttingDown] when the server begins to shut down, [ErrClientGone] when nobody reads the answer.
func (r *Request) Context() context.Context {
	if r.ctx == nil {
		if r.waiter == nil {
			return context.Background()
		}
		r.ctx = r.waiter.wait()
	}
	return r.ctx
}

// because turns an error that only says that the request's context has ended into why it has.
func (r *Request) because(err error) error {
	if r.ctx == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	if cause := context.Cause(r.ctx); cause != nil {
		return cause
	}
	return err
}

// Len returns the number of arguments, the command's name included; it is at least one. A streamed argument does not count.
func (r *Request) Len() int { return len(r.args) }

// Name returns the command's name as the client wrote it.
func (r *Request) Name() []byte { return r.args[0] }

// Arg returns argument i; Arg(0) is the name. Its capacity ends with it.
func (r *Request) Arg(i int) []byte { return r.args[i] }

// Args returns the name and the arguments. The slices' capacities end with them.
func (r *Request) Args() [][]byte { return r.args }

// String returns argument i as a string, which is a copy and may be kept.
func (r *Request) String(i int) string { return string(r.args[i]) }

// Int returns argument i as an integer, or [ErrNotInteger], which a handler can return as it is.
func (r *Request) Int(i int) (int64, error) {
	if r.typed != nil && i > 0 && r.typed[i-1].Kind == frame.Int {
		return r.typed[i-1].Int(), nil
	}
	n, ok := integer(r.args[i])
	if !ok || r.args[i][0] == '+' {
		return 0, ErrNotInteger
	}
	return n, nil
}

// Float returns argument i as a float, or [ErrNotFloat]; NaN is refused, infinities are not.
func (r *Request) Float(i int) (float64, error) {
	if r.typed != nil && i > 0 && r.typed[i-1].Kind == frame.Double {
		return r.typed[i-1].Double(), nil
	}
	f, err := strconv.ParseFloat(string(r.args[i]), 64)
	if f != f || err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, ErrNotFloat
	}
	return f, nil
}

// Body returns the last argument as a stream if it is one, and nil otherwise, as always over RESPB; see [Mux.HandleStream]. What the handler does not read is
// skipped.
func (r *Request) Body() io.Reader {
	if r.body == nil {
		return nil
	}
	return r.body
}

// BodyLen returns the length of the streamed argument, and -1 if there is none.
func (r *Request) BodyLen() int {
	if r.body == nil {
		return -1
	}
	return r.body.size
}

// Handler answers commands. It writes exactly one reply to s, or returns an error instead: an [*Error] is sent with its prefix, any other
// error with "ERR". If it had begun a reply that can still be taken back, that is dropped in favour of the error; if not, the
// connection is closed.
type Handler interface {
	ServeCommand(s *Session, r *Request) error
}

// HandlerFunc is a function that is a [Handler].
type HandlerFunc func(s *Session, r *Request) error

// ServeCommand calls f.
func (f HandlerFunc) ServeCommand(s *Session, r *Request) error { return f(s, r) }
