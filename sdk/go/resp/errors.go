package resp

// This file owns the errors that are replies, and those that a connection ends with.

import (
	"errors"
	"fmt"
	"strconv"
)

// Error is an error reply: a prefix that programs act on and a message for people. A [Handler] returns one to answer
// with it; [Writer.WriteError] writes one; the [Reader] of replies gives one back.
type Error struct {
	// Prefix is the first word of the reply, such as "ERR", "WRONGTYPE" or "MOVED". Empty means "ERR".
	Prefix string
	// Message is the rest of the line. Line breaks in it are written as blanks.
	Message string
}

// Error returns the reply's text without its type byte.
func (e *Error) Error() string {
	if e.Message == "" {
		return e.prefix()
	}
	return e.prefix() + " " + e.Message
}

// Is reports whether target is an [Error] of the same prefix whose message is empty or equal, so that
// errors.Is(err, &Error{Prefix: "MOVED"}) asks for the kind alone.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.prefix() == e.prefix() && (t.Message == "" || t.Message == e.Message)
}

func (e *Error) prefix() string {
	if e.Prefix == "" {
		return "ERR"
	}
	return e.Prefix
}

// Replies that most servers need, with the texts that client libraries know.
var (
	ErrWrongType    = &Error{"WRONGTYPE", "Operation against a key holding the wrong kind of value"}
	ErrNoAuth       = &Error{"NOAUTH", "Authentication required."}
	ErrWrongPass    = &Error{"WRONGPASS", "invalid username-password pair or user is disabled."}
	ErrNoProto      = &Error{"NOPROTO", "unsupported protocol version"}
	ErrSyntax       = &Error{"ERR", "syntax error"}
	ErrNotInteger   = &Error{"ERR", "value is not an integer or out of range"}
	ErrNotFloat     = &Error{"ERR", "value is not a valid float"}
	ErrLoading      = &Error{"LOADING", "Redis is loading the dataset in memory"}
	ErrShuttingDown = &Error{"ERR", "server is shutting down"}
	// ErrCancelled answers a command that its client took back with RESPB's CANCEL.
	ErrCancelled = &Error{"CANCELLED", "the client cancelled the command"}
)

// Errorf returns an [Error] with a prefix of its own and a formatted message.
func Errorf(prefix, format string, args ...any) *Error {
	return &Error{Prefix: prefix, Message: fmt.Sprintf(format, args...)}
}

// Moved returns the redirection that sends a cluster client to addr for good.
func Moved(slot int, addr string) *Error {
	return &Error{Prefix: "MOVED", Message: strconv.Itoa(slot) + " " + addr}
}

// Ask returns the redirection that sends a cluster client to addr for one command.
func Ask(slot int, addr string) *Error {
	return &Error{Prefix: "ASK", Message: strconv.Itoa(slot) + " " + addr}
}

// ProtocolError says that the bytes received are not RESP. The stream cannot be followed any further: answer with
// [Writer.WriteError] if you like, then close the connection. A [Server] does both.
type ProtocolError struct {
	// Reason is what Redis calls the fault, such as "invalid bulk length".
	Reason string
}

func (e *ProtocolError) Error() string { return "Protocol error: " + e.Reason }

// LimitError says which of the [Limits] a peer passed. Like a [ProtocolError] it ends the connection.
type LimitError struct {
	// Limit is the name of the field of [Limits], or of [ReaderLimits] on the client's side.
	Limit string
	// Max is the limit's value, Got what the peer sent or announced.
	Max, Got int64
	// Reason is what Redis calls the fault.
	Reason string
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("Protocol error: %s: %s is %d, got %d; raise it if that is meant", e.Reason, e.Limit, e.Max, e.Got)
}

var (
	// errNegativeCount is returned by header methods; RESP2's negative counts are WriteNull and WriteNullArray.
	errNegativeCount = errors.New("resp: a count below zero was given to a header method; use WriteNull or WriteNullArray")
	// errOddPairs is returned by the methods that write whole maps.
	errOddPairs = errors.New("resp: keys and values must come in pairs, the last key has no value")
)
