package respb

// This file owns iterators: over what the SCAN family finds, over a stream, over the messages of a subscription.

import (
	"context"
	"errors"
	"iter"
	"strconv"

	"github.com/weft-db/weft/sdk/go/resp"
)

// ScanOptions says what an iteration asks for. Its zero value is everything.
type ScanOptions struct {
	// Match is a pattern, Type the type of the keys; Type is for Keys only.
	Match, Type string
	// Count is how much the server looks at for each reply; 0 leaves that to the server.
	Count int
}

func (o ScanOptions) args(head ...string) []string {
	if o.Match != "" {
		head = append(head, "MATCH", o.Match)
	}
	if o.Count > 0 {
		head = append(head, "COUNT", strconv.Itoa(o.Count))
	}
	if o.Type != "" {
		head = append(head, "TYPE", o.Type)
	}
	return head
}

// EachKey iterates over the keys, with SCAN: what is there from beginning to end comes at least once, and may come twice. An error ends the
// iteration, and is its last pair.
//
//	for key, err := range conn.EachKey(ctx, respb.ScanOptions{Match: "user:*"}) {
//		if err != nil {
//			return err
//		}
//		...
//	}
func (c Commands) EachKey(ctx context.Context, o ScanOptions) iter.Seq2[string, error] {
	return first(c.scan(ctx, 1, func(cursor string) []string { return o.args("SCAN", cursor) }))
}

// EachMember is EachKey for the members of a set, with SSCAN.
func (c Commands) EachMember(ctx context.Context, key string, o ScanOptions) iter.Seq2[string, error] {
	return first(c.scan(ctx, 1, func(cursor string) []string { return o.args("SSCAN", key, cursor) }))
}

// Field is a field of a hash.
type Field struct{ Name, Value string }

// EachField is EachKey for the fields of a hash, with HSCAN.
func (c Commands) EachField(ctx context.Context, key string, o ScanOptions) iter.Seq2[Field, error] {
	return func(yield func(Field, error) bool) {
		for pair, err := range c.scan(ctx, 2, func(cursor string) []string { return o.args("HSCAN", key, cursor) }) {
			if !yield(Field{pair[0], pair[1]}, err) {
				return
			}
		}
	}
}

// EachFieldName is EachField without the values, which are then not sent, with HSCAN NOVALUES.
func (c Commands) EachFieldName(ctx context.Context, key string, o ScanOptions) iter.Seq2[string, error] {
	return first(c.scan(ctx, 1, func(cursor string) []string { return append(o.args("HSCAN", key, cursor), "NOVALUES") }))
}

// Scored is a member of a sorted set.
type Scored struct {
	Member string
	Score  float64
}

// EachScored is EachKey for the members of a sorted set, with ZSCAN.
func (c Commands) EachScored(ctx context.Context, key string, o ScanOptions) iter.Seq2[Scored, error] {
	return func(yield func(Scored, error) bool) {
		for pair, err := range c.scan(ctx, 2, func(cursor string) []string { return o.args("ZSCAN", key, cursor) }) {
			s := Scored{Member: pair[0]}
			if err == nil {
				s.Score, err = strconv.ParseFloat(pair[1], 64)
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// first iterates over the first of each pair.
func first(pairs iter.Seq2[[2]string, error]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for pair, err := range pairs {
			if !yield(pair[0], err) {
				return
			}
		}
	}
}

// scan runs a command of the SCAN family until its cursor is 0 again, and yields width elements at a time.
func (c Commands) scan(ctx context.Context, width int, command func(cursor string) []string) iter.Seq2[[2]string, error] {
	return func(yield func([2]string, error) bool) {
		var v Value
		for cursor := "0"; ; {
			err := doInto(ctx, c.ch, &v, command(cursor))
			if err == nil && (len(v.Elems) != 2 || len(v.Elems[1].Elems)%width != 0) {
				err = &ReplyError{"a cursor and elements", v.String()}
			}
			if err != nil {
				yield([2]string{}, err)
				return
			}
			found := v.Elems[1].Elems
			cursor = string(v.Elems[0].Data)
			for i := 0; i < len(found); i += width {
				var pair [2]string
				for j := range width {
					pair[j] = string(found[i+j].Data)
				}
				if !yield(pair, nil) {
					return
				}
			}
			if cursor == "0" {
				return
			}
		}
	}
}

// Entry is an entry of a stream.
type Entry struct {
	ID     string
	Fields []Field
}

// entryBatch is how many entries one XRANGE asks for.
const entryBatch = 100

// EachEntry iterates over the entries of a stream from one ID to another, both included, as XRANGE takes them: "-" and "+" are the ends, and "("
// before an ID leaves it out. It asks for a hundred at a time, so what is added meanwhile comes too. For what is added later there is
// [ChannelCommands.Follow].
func (c Commands) EachEntry(ctx context.Context, key, from, to string) iter.Seq2[Entry, error] {
	return c.entries(ctx, from, func(from string) []string { return []string{"XRANGE", key, from, to} })
}

// EachEntryBack is EachEntry from the later ID back to the earlier.
func (c Commands) EachEntryBack(ctx context.Context, key, from, to string) iter.Seq2[Entry, error] {
	return c.entries(ctx, from, func(from string) []string { return []string{"XREVRANGE", key, from, to} })
}

func (c Commands) entries(ctx context.Context, from string, command func(from string) []string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		var v Value
		for from := from; ; {
			err := doInto(ctx, c.ch, &v, append(command(from), "COUNT", strconv.Itoa(entryBatch)))
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for i := range v.Elems {
				e, err := asEntry(&v.Elems[i])
				if !yield(e, err) || err != nil {
					return
				}
				from = "(" + e.ID
			}
			if len(v.Elems) < entryBatch {
				return
			}
		}
	}
}

// asEntry turns an ID and a list of fields and values into an Entry; one that was deleted has no fields.
func asEntry(v *Value) (Entry, error) {
	if len(v.Elems) != 2 || v.Elems[1].Kind != resp.Null && len(v.Elems[1].Elems)%2 != 0 {
		return Entry{}, unexpected("an entry of a stream", v)
	}
	e := Entry{ID: string(v.Elems[0].Data)}
	fields := v.Elems[1].Elems
	for i := 0; i < len(fields); i += 2 {
		e.Fields = append(e.Fields, Field{string(fields[i].Data), string(fields[i+1].Data)})
	}
	return e, nil
}

// Messages iterates over the messages until the context ends or the Subscription is closed, which is no error. ErrMessagesLost is yielded
// where messages may be missing, and the iteration goes on; any other error is its last pair.
func (s *Subscription) Messages(ctx context.Context) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for {
			m, err := s.Receive(ctx)
			if err != nil && (ctx.Err() != nil || errors.Is(err, ErrClosed)) {
				return
			}
			if !yield(m, err) || err != nil && !errors.Is(err, ErrMessagesLost) {
				return
			}
		}
	}
}
