package respb

// This file owns the errors of a client.

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/weft-db/weft/sdk/go/resp"
)

// Error is an error reply, such as WRONGTYPE.
type Error = resp.Error

// Value is a reply.
type Value = resp.Value

var (
	// ErrNil is what helpers return for a null where they would return a string or a number.
	ErrNil = errors.New("respb: the reply is null")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("respb: closed")
	// ErrChannels says that the server, or Options.ChannelsMax, allows no further channel.
	ErrChannels = errors.New("respb: all channels are in use")
	// ErrMessagesLost is returned by Subscription.Receive once after the connection was broken: messages may be missing.
	ErrMessagesLost = errors.New("respb: the connection was renewed, messages may have been lost")
	// ErrCommand says that a command has no name.
	ErrCommand = errors.New("respb: a command needs a name")
	// ErrNotExecuted is the result of a pipeline's command before Exec.
	ErrNotExecuted = errors.New("respb: the pipeline has not been executed")
)

// ConnError says that the connection broke before the reply came. Whether the command took effect is not known, unless Err is a
// [*GoAwayError]: then it did not, and may be sent again. With Dialing there was no connection, and nothing was sent.
type ConnError struct {
	Err     error
	Dialing bool
}

func (e *ConnError) Error() string {
	if e.Dialing {
		return "respb: no connection: " + e.Err.Error()
	}
	return "respb: the connection is lost: " + e.Err.Error()
}

// Unwrap returns why.
func (e *ConnError) Unwrap() error { return e.Err }

// TimeoutError says which timeout of [Options] has passed. By itself it says that one command's reply is late and the connection goes on; inside a
// ConnError, that the connection was closed for it.
type TimeoutError struct {
	What   string
	Option string
	After  time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("respb: %s for %v, see Options.%s", e.What, e.After, e.Option)
}

// Timeout is that of a net.Error.
func (e *TimeoutError) Timeout() bool { return true }

// Is makes errors.Is find os.ErrDeadlineExceeded.
func (e *TimeoutError) Is(target error) bool { return target == os.ErrDeadlineExceeded }

// CloseError says that the server closed the channel. What it left without a reply did not run, and may be sent again on another one.
// The codes are those of section 8.4 of the specification.
type CloseError struct {
	Code   uint16
	Reason string
}

func (e *CloseError) Error() string {
	return fmt.Sprintf("respb: the server closed the channel with code %d: %s", e.Code, e.Reason)
}

// GoAwayError says that the server has ended the connection and said so. What it left without a reply did not run. The codes are those of
// section 8.4 of the specification.
type GoAwayError struct {
	Code   uint16
	Reason string
}

func (e *GoAwayError) Error() string {
	return fmt.Sprintf("respb: the server ended the connection with code %d: %s", e.Code, e.Reason)
}

// LimitError says which limit a command passes; nothing was sent.
type LimitError struct {
	// Limit is the name that the specification gives the server's limit.
	Limit    string
	Max, Got int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("respb: %s is %d, the command has %d", e.Limit, e.Max, e.Got)
}

// ReplyError says that a reply is not what the helper expects; the server is of another opinion about the command.
type ReplyError struct {
	Want string
	Got  string
}

func (e *ReplyError) Error() string {
	return fmt.Sprintf("respb: expected %s, got %.100s", e.Want, e.Got)
}
