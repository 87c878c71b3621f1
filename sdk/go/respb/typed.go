package respb

// This file owns the shapes of arguments and replies that are more than a string or a number: times, bounds, entries of streams, members with
// scores, places.

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weft-db/weft/sdk/go/resp"
)

// NoExpiry is the time to live of a key that has no end. That of a key that does not exist is ErrNil.
const NoExpiry time.Duration = -1

// NoField is the time to live of a field that does not exist.
const NoField time.Duration = -2

// inSeconds writes a time in whole seconds, rounded up: what should end never becomes what ends at once or never.
func inSeconds(d time.Duration) string { return itoa(ceil(d, time.Second)) }

func inMilliseconds(d time.Duration) string { return itoa(ceil(d, time.Millisecond)) }

func inSecondsFloat(d time.Duration) string { return ftoa(d.Seconds()) }

func ceil(d, unit time.Duration) int64 {
	n := int64(d / unit)
	if d > 0 && d%unit != 0 {
		n++
	}
	return n
}

// atSeconds writes a point in time in whole seconds, rounded up like a time that lasts.
func atSeconds(t time.Time) string { return itoa(t.Add(time.Second - 1).Unix()) }

func atMilliseconds(t time.Time) string { return itoa(t.Add(time.Millisecond - 1).UnixMilli()) }

// Bound is an end of a range of scores.
type Bound string

// Lowest and Highest are the ends of all scores.
const (
	Lowest  Bound = "-inf"
	Highest Bound = "+inf"
)

// Including is a bound that belongs to the range.
func Including(score float64) Bound { return Bound(ftoa(score)) }

// Excluding is a bound that does not.
func Excluding(score float64) Bound { return Bound("(" + ftoa(score)) }

// lasting makes a Duration of the reply of TTL and its like.
func lasting(v *Value, unit time.Duration) (time.Duration, error) {
	n, err := asInt(v)
	switch {
	case err != nil:
		return 0, err
	case n == -2:
		return 0, ErrNil
	case n < 0:
		return NoExpiry, nil
	case n > int64(math.MaxInt64/unit):
		return math.MaxInt64, nil
	}
	return time.Duration(n) * unit, nil
}

func asSeconds(v *Value) (time.Duration, error) { return lasting(v, time.Second) }

func asMilliseconds(v *Value) (time.Duration, error) { return lasting(v, time.Millisecond) }

// asUnixSeconds makes a Time; that of no expiry is the zero Time.
func asUnixSeconds(v *Value) (time.Time, error) {
	return unixTime(v, func(n int64) time.Time { return time.Unix(n, 0) })
}

func asUnixMilliseconds(v *Value) (time.Time, error) { return unixTime(v, time.UnixMilli) }

func unixTime(v *Value, at func(n int64) time.Time) (time.Time, error) {
	n, err := asInt(v)
	switch {
	case err != nil:
		return time.Time{}, err
	case n == -2:
		return time.Time{}, ErrNil
	case n < 0:
		return time.Time{}, nil
	}
	return at(n), nil
}

// asLasting makes the times to live of fields.
func asLasting(unit time.Duration) func(v *Value) ([]time.Duration, error) {
	return func(v *Value) ([]time.Duration, error) {
		return each(v, func(v *Value) (time.Duration, error) {
			d, err := lasting(v, unit)
			if err == ErrNil {
				return NoField, nil
			}
			return d, err
		})
	}
}

func asLastingSeconds(v *Value) ([]time.Duration, error) { return asLasting(time.Second)(v) }

func asLastingMilliseconds(v *Value) ([]time.Duration, error) { return asLasting(time.Millisecond)(v) }

// asServerTime makes a Time of the reply of TIME: seconds and microseconds.
func asServerTime(v *Value) (time.Time, error) {
	if len(v.Elems) != 2 {
		return time.Time{}, unexpected("seconds and microseconds", v)
	}
	seconds, err := asInt(&v.Elems[0])
	if err != nil {
		return time.Time{}, err
	}
	micros, err := asInt(&v.Elems[1])
	return time.Unix(seconds, micros*1000), err
}

func asBytes(v *Value) ([]byte, error) {
	switch v.Kind {
	case resp.Bulk, resp.Status, resp.Verbatim:
		if v.Data == nil {
			return []byte{}, nil
		}
		return bytes.Clone(v.Data), nil
	}
	return nil, unexpected("a string", v)
}

// each makes a slice of what an array has.
func each[T any](v *Value, convert func(v *Value) (T, error)) ([]T, error) {
	switch v.Kind {
	case resp.Array, resp.Set:
	case resp.Null:
		return nil, nil
	default:
		return nil, unexpected("an array", v)
	}
	out := make([]T, len(v.Elems))
	for i := range v.Elems {
		var err error
		if out[i], err = convert(&v.Elems[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// orNil makes a null an element that is nil.
func orNil[T any](convert func(v *Value) (T, error)) func(v *Value) (*T, error) {
	return func(v *Value) (*T, error) {
		if v.Kind == resp.Null {
			return nil, nil
		}
		t, err := convert(v)
		return &t, err
	}
}

func asBytesList(v *Value) ([][]byte, error) {
	return each(v, func(v *Value) ([]byte, error) {
		if v.Kind == resp.Null {
			return nil, nil
		}
		return asBytes(v)
	})
}

func asBools(v *Value) ([]bool, error) { return each(v, asBool) }

func asInts(v *Value) ([]int64, error) { return each(v, asInt) }

// asCounters is what BITFIELD answers: nil where an operation would have overflowed.
func asCounters(v *Value) ([]*int64, error) { return each(v, orNil(asInt)) }

// asFields makes fields of pairs, or of names alone.
func asFields(v *Value) ([]Field, error) {
	return each(v, func(v *Value) (f Field, err error) {
		if v.Kind != resp.Array {
			f.Name, err = asString(v)
			return f, err
		}
		r := rowOf(v, 2)
		return Field{at(r, 0, asString), at(r, 1, asString)}, r.err
	})
}

func asFloats(v *Value) ([]*float64, error) { return each(v, orNil(asFloat)) }

// Page is one reply of the SCAN family: where to go on, "0" at the end, and what was found; of HSCAN and ZSCAN names and values in turn. To
// iterate over all there is [Commands.EachKey] and its like.
type Page struct {
	Cursor string
	Found  []string
}

func asScan(v *Value) (Page, error) {
	if len(v.Elems) != 2 {
		return Page{}, unexpected("a cursor and elements", v)
	}
	cursor, err := asString(&v.Elems[0])
	if err != nil {
		return Page{}, err
	}
	found, err := asStrings(&v.Elems[1])
	return Page{cursor, found}, err
}

func asEntries(v *Value) ([]Entry, error) {
	if len(v.Elems) > 0 && v.Elems[0].Kind == resp.Bulk { // JUSTID
		return each(v, func(v *Value) (Entry, error) { id, err := asString(v); return Entry{ID: id}, err })
	}
	return each(v, asEntry)
}

// Stream is what was read of one stream.
type Stream struct {
	Key     string
	Entries []Entry
}

// asStreams makes a slice of the reply of XREAD, a map or pairs; null, when nothing came in time, is an empty one.
func asStreams(v *Value) ([]Stream, error) {
	one := func(key, entries *Value) (s Stream, err error) {
		if s.Key, err = asString(key); err == nil {
			s.Entries, err = asEntries(entries)
		}
		return s, err
	}
	if v.Kind != resp.Map {
		return each(v, func(v *Value) (Stream, error) {
			if len(v.Elems) != 2 {
				return Stream{}, unexpected("a stream and its entries", v)
			}
			return one(&v.Elems[0], &v.Elems[1])
		})
	}
	out := make([]Stream, 0, len(v.Elems)/2)
	for i := 0; i+1 < len(v.Elems); i += 2 {
		s, err := one(&v.Elems[i], &v.Elems[i+1])
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// Claimed is the reply of XAUTOCLAIM: where to go on, what is the consumer's now, and the IDs of entries that are gone.
type Claimed struct {
	Next    string
	Entries []Entry
	Deleted []string
}

func asClaimed(v *Value) (c Claimed, err error) {
	if len(v.Elems) < 2 {
		return c, unexpected("what was claimed", v)
	}
	if c.Next, err = asString(&v.Elems[0]); err != nil {
		return c, err
	}
	if c.Entries, err = asEntries(&v.Elems[1]); err == nil && len(v.Elems) > 2 {
		c.Deleted, err = asStrings(&v.Elems[2])
	}
	return c, err
}

// asScored makes members of a reply: with scores as pairs, or one after the other where there is one pair only, or without.
func asScored(v *Value) ([]Scored, error) {
	if v.Kind == resp.Bulk { // ZRANDMEMBER without a count
		return []Scored{{Member: string(v.Data)}}, nil
	}
	if len(v.Elems) == 2 && v.Elems[1].Kind == resp.Double {
		s, err := scored(v.Elems)
		return []Scored{s}, err
	}
	return each(v, func(v *Value) (Scored, error) {
		if v.Kind == resp.Array {
			return scored(v.Elems)
		}
		member, err := asString(v)
		return Scored{Member: member}, err
	})
}

func scored(pair []Value) (s Scored, err error) {
	if len(pair) != 2 {
		return s, &ReplyError{"a member and its score", strconv.Itoa(len(pair)) + " elements"}
	}
	if s.Member, err = asString(&pair[0]); err == nil {
		s.Score, err = asFloat(&pair[1])
	}
	return s, err
}

// Popped is what was taken out of a sorted set.
type Popped struct {
	Key     string
	Members []Scored
}

func asPopped(v *Value) (p Popped, err error) {
	if v.Kind != resp.Array || len(v.Elems) < 2 {
		return p, unexpected("a key and members", v)
	}
	if p.Key, err = asString(&v.Elems[0]); err != nil {
		return p, err
	}
	if len(v.Elems) == 3 { // BZPOPMIN has one member, not in a list
		s, err := scored(v.Elems[1:])
		p.Members = []Scored{s}
		return p, err
	}
	p.Members, err = asScored(&v.Elems[1])
	return p, err
}

// ListPopped is what was taken out of a list.
type ListPopped struct {
	Key    string
	Values []string
}

func asListPopped(v *Value) (p ListPopped, err error) {
	if v.Kind != resp.Array || len(v.Elems) != 2 {
		return p, unexpected("a key and values", v)
	}
	if p.Key, err = asString(&v.Elems[0]); err == nil {
		p.Values, err = asStrings(&v.Elems[1])
	}
	return p, err
}

// Rank is a place in a sorted set, from 0, and the score if that was asked for.
type Rank struct {
	Rank  int64
	Score float64
}

func asRank(v *Value) (r Rank, err error) {
	if v.Kind != resp.Array || len(v.Elems) != 2 {
		r.Rank, err = asInt(v)
		return r, err
	}
	if r.Rank, err = asInt(&v.Elems[0]); err == nil {
		r.Score, err = asFloat(&v.Elems[1])
	}
	return r, err
}

// Position is a place on earth, in degrees.
type Position struct{ Longitude, Latitude float64 }

func asPosition(v *Value) (p Position, err error) {
	if len(v.Elems) != 2 {
		return p, unexpected("a longitude and a latitude", v)
	}
	if p.Longitude, err = asFloat(&v.Elems[0]); err == nil {
		p.Latitude, err = asFloat(&v.Elems[1])
	}
	return p, err
}

func asPositions(v *Value) ([]*Position, error) { return each(v, orNil(asPosition)) }

// Place is a member that was found, with its distance, hash and position if those were asked for.
type Place struct {
	Member   string
	Distance float64
	Hash     int64
	Position Position
}

func asPlaces(v *Value) ([]Place, error) {
	if v.Kind == resp.Integer { // STORE
		return nil, nil
	}
	return each(v, func(v *Value) (p Place, err error) {
		if v.Kind != resp.Array {
			p.Member, err = asString(v)
			return p, err
		}
		for i := range v.Elems {
			switch e := &v.Elems[i]; {
			case i == 0:
				p.Member, err = asString(e)
			case e.Kind == resp.Integer:
				p.Hash = e.Int
			case e.Kind == resp.Array:
				p.Position, err = asPosition(e)
			default:
				p.Distance, err = asFloat(e)
			}
			if err != nil {
				return p, err
			}
		}
		return p, nil
	})
}

// asLines makes a map of each line of "name=value name=value".
func asLines(v *Value) ([]map[string]string, error) {
	text, err := asString(v)
	if err != nil {
		return nil, err
	}
	var out []map[string]string
	for line := range strings.Lines(text) {
		fields := map[string]string{}
		for _, field := range strings.Fields(line) {
			name, value, _ := strings.Cut(field, "=")
			fields[name] = value
		}
		if len(fields) > 0 {
			out = append(out, fields)
		}
	}
	return out, nil
}
