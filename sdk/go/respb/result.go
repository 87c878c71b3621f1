package respb

// This file owns turning replies into Go values, over RESPB and RESP3 alike.

import (
	"context"
	"strconv"

	"github.com/weft-db/weft/sdk/go/internal/frame"
	"github.com/weft-db/weft/sdk/go/resp"
)

// Commands are the helpers that a Conn and each Channel have: a method for each command that any number of callers may share.
type Commands struct{ ch *Channel }

// ChannelCommands are the helpers that only a Channel has: those that change what it is, hold it up, or belong to a transaction. What they change
// comes back after a break, but for WATCH and MULTI; see [ErrStateLost].
type ChannelCommands struct{ ch *Channel }

// None is the result of commands that answer OK, or anything that is not an error.
type None struct{}

// run sends a command and converts its reply.
func run[T any](ctx context.Context, ch *Channel, args []string, convert func(v *Value) (T, error)) (T, error) {
	call, err := exchange(ctx, ch, args)
	if err != nil {
		var none T
		return none, err
	}
	result, err := convert(&call.one[0])
	call.free()
	return result, err
}

// runOK is run for commands whose reply says nothing.
func runOK(ctx context.Context, ch *Channel, args []string) error {
	call, err := exchange(ctx, ch, args)
	if err != nil {
		return err
	}
	err = call.one[0].Err()
	call.free()
	return err
}

// queue adds a command to a pipeline.
func queue[T any](p *Pipeline, args []string, convert func(v *Value) (T, error)) *Result[T] {
	p.add(args)
	return &Result[T]{p, len(p.counts) - 1, convert}
}

func unexpected(want string, v *Value) error {
	if err := v.Err(); err != nil {
		return err
	}
	if v.Kind == resp.Null {
		return ErrNil
	}
	return &ReplyError{want, v.String()}
}

// asValue moves a reply out.
func asValue(v *Value) (Value, error) {
	moved := *v
	*v = Value{}
	return moved, moved.Err()
}

func asNone(v *Value) (None, error) { return None{}, v.Err() }

func asString(v *Value) (string, error) {
	switch v.Kind {
	case resp.Bulk, resp.Status, resp.Verbatim, resp.BigNumber:
		if string(v.Data) == "OK" {
			return "OK", nil // without an allocation
		}
		return string(v.Data), nil
	case resp.Integer:
		return strconv.FormatInt(v.Int, 10), nil
	case resp.Double:
		return string(v.Data), nil
	}
	return "", unexpected("a string", v)
}

func asInt(v *Value) (int64, error) {
	switch v.Kind {
	case resp.Integer, resp.Boolean:
		return v.Int, nil
	case resp.Bulk, resp.Status:
		if n, err := strconv.ParseInt(string(v.Data), 10, 64); err == nil {
			return n, nil
		}
	}
	return 0, unexpected("an integer", v)
}

func asBool(v *Value) (bool, error) {
	switch v.Kind {
	case resp.Integer, resp.Boolean:
		return v.Int != 0, nil
	case resp.Status:
		return true, nil
	case resp.Null:
		return false, nil
	}
	return false, unexpected("a boolean", v)
}

func asFloat(v *Value) (float64, error) {
	switch v.Kind {
	case resp.Double:
		return v.Float, nil
	case resp.Integer:
		return float64(v.Int), nil
	case resp.Bulk, resp.Status:
		if f, err := strconv.ParseFloat(string(v.Data), 64); err == nil {
			return f, nil
		}
	}
	return 0, unexpected("a number", v)
}

// asStrings gives an array or a set; a null among the elements is the empty string, and the whole null an empty slice.
func asStrings(v *Value) ([]string, error) {
	switch v.Kind {
	case resp.Array, resp.Set, resp.Push:
	case resp.Null:
		return nil, nil
	case resp.Bulk: // one where several may be asked for, as SPOP
		return []string{string(v.Data)}, nil
	default:
		return nil, unexpected("an array of strings", v)
	}
	out := make([]string, len(v.Elems))
	for i := range v.Elems {
		if v.Elems[i].Kind == resp.Null {
			continue
		}
		text, err := asString(&v.Elems[i])
		if err != nil {
			return nil, err
		}
		out[i] = text
	}
	return out, nil
}

// asPointers is asStrings where a null must be told from an empty string.
func asPointers(v *Value) ([]*string, error) {
	if v.Kind != resp.Array {
		return nil, unexpected("an array of strings", v)
	}
	out := make([]*string, len(v.Elems))
	for i := range v.Elems {
		if v.Elems[i].Kind == resp.Null {
			continue
		}
		text, err := asString(&v.Elems[i])
		if err != nil {
			return nil, err
		}
		out[i] = &text
	}
	return out, nil
}

func asMap(v *Value) (map[string]string, error) {
	if v.Kind != resp.Map && v.Kind != resp.Array || len(v.Elems)%2 != 0 {
		return nil, unexpected("a map of strings", v)
	}
	out := make(map[string]string, len(v.Elems)/2)
	for i := 0; i < len(v.Elems); i += 2 {
		key, err := asString(&v.Elems[i])
		if err != nil {
			return nil, err
		}
		value, err := asString(&v.Elems[i+1])
		if err != nil && err != ErrNil {
			return nil, err
		}
		out[key] = value
	}
	return out, nil
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// ftoa writes a number as the specification's section E.3 does, so that it fits a binary field.
func ftoa(f float64) string { return string(frame.AppendDouble(nil, f)) }

// option is one thing that a command may have: its place among the arguments, and its words.
type option struct {
	slot int
	args []string
}

// isOption is what the option types of all commands have in common.
type isOption interface{ get() option }

func (o option) get() option { return o }

// appendOptions appends the options of one place.
func appendOptions[O isOption](args []string, slot int, options []O) []string {
	for _, each := range options {
		if o := each.get(); o.slot == slot {
			args = append(args, o.args...)
		}
	}
	return args
}
