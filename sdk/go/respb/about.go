package respb

// This file owns what servers tell about themselves, streams and clients, as Go types.

import (
	"math"
	"time"

	"github.com/weft-db/weft/sdk/go/resp"
)

// fields reads a map, or the flat array that RESP2 has for one, by names. What is not there is the zero value; the first error is kept.
type fields struct {
	of  *Value
	err error
}

func fieldsOf(v *Value) *fields {
	f := &fields{of: v}
	if v.Kind != resp.Map && v.Kind != resp.Array || len(v.Elems)%2 != 0 {
		f.err = unexpected("a map", v)
		f.of = &Value{}
	}
	return f
}

// field converts one field; null is the zero value.
func field[T any](f *fields, name string, convert func(v *Value) (T, error)) (t T) {
	v, ok := lookup(f.of, name)
	if !ok || v.Kind == resp.Null || f.err != nil {
		return t
	}
	t, f.err = convert(v)
	return t
}

func (f *fields) int(name string) int64 { return field(f, name, asInt) }

// intOr is int where null has a meaning.
func (f *fields) intOr(name string, null int64) int64 {
	if v, ok := lookup(f.of, name); ok && v.Kind == resp.Null {
		return null
	}
	return f.int(name)
}

func (f *fields) text(name string) string { return field(f, name, asString) }

func (f *fields) texts(name string) []string { return field(f, name, asStrings) }

// row reads an array by places, of which servers may have more and old ones less.
type row struct {
	of  []Value
	err error
}

func rowOf(v *Value, least int) *row {
	if v.Kind != resp.Array || len(v.Elems) < least {
		return &row{err: unexpected("an array", v)}
	}
	return &row{of: v.Elems}
}

func at[T any](r *row, i int, convert func(v *Value) (T, error)) (t T) {
	if i < len(r.of) && r.err == nil && r.of[i].Kind != resp.Null {
		t, r.err = convert(&r.of[i])
	}
	return t
}

func asSecond(v *Value) (time.Time, error) {
	n, err := asInt(v)
	return time.Unix(n, 0), err
}

// lapse makes a Duration of a number of units.
func lapse(unit time.Duration) func(v *Value) (time.Duration, error) {
	return func(v *Value) (time.Duration, error) {
		n, err := asInt(v)
		if n > int64(math.MaxInt64/unit) {
			return math.MaxInt64, err
		}
		return time.Duration(n) * unit, err
	}
}

// asValues makes a map of names to whatever the server has for them.
func asValues(v *Value) (map[string]Value, error) {
	if v.Kind != resp.Map && v.Kind != resp.Array || len(v.Elems)%2 != 0 {
		return nil, unexpected("a map", v)
	}
	out := make(map[string]Value, len(v.Elems)/2)
	for i := 0; i < len(v.Elems); i += 2 {
		key, err := asString(&v.Elems[i])
		if err != nil {
			return nil, err
		}
		out[key], v.Elems[i+1] = v.Elems[i+1], Value{} // the memory is the caller's now
	}
	return out, nil
}

func asRecords(v *Value) ([]map[string]Value, error) {
	if v.Kind == resp.Status { // ACL LOG RESET
		return nil, nil
	}
	return each(v, asValues)
}

func asCounts(v *Value) (map[string]int64, error) {
	if v.Kind != resp.Map && v.Kind != resp.Array || len(v.Elems)%2 != 0 {
		return nil, unexpected("a map of numbers", v)
	}
	out := make(map[string]int64, len(v.Elems)/2)
	for i := 0; i < len(v.Elems); i += 2 {
		key, err := asString(&v.Elems[i])
		if err != nil {
			return nil, err
		}
		if out[key], err = asInt(&v.Elems[i+1]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// asLine is asLines for one.
func asLine(v *Value) (map[string]string, error) {
	all, err := asLines(v)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0], nil
}

// asKilled is how many connections CLIENT KILL has ended, which says OK for one in its old form.
func asKilled(v *Value) (int64, error) {
	if v.Kind == resp.Status {
		return 1, nil
	}
	return asInt(v)
}

// StreamInfo is the reply of XINFO STREAM.
type StreamInfo struct {
	Length, RadixTreeKeys, RadixTreeNodes, EntriesAdded, Groups int64
	LastGeneratedID, MaxDeletedEntryID, RecordedFirstEntryID    string
	FirstEntry, LastEntry                                       Entry
	// Reply is all of it, with what FULL adds.
	Reply Value
}

func asStreamInfo(v *Value) (StreamInfo, error) {
	f := fieldsOf(v)
	groups := func(v *Value) (int64, error) {
		if v.Kind == resp.Array { // FULL
			return int64(len(v.Elems)), nil
		}
		return asInt(v)
	}
	s := StreamInfo{
		Length: f.int("length"), RadixTreeKeys: f.int("radix-tree-keys"), RadixTreeNodes: f.int("radix-tree-nodes"),
		EntriesAdded: f.int("entries-added"), Groups: field(f, "groups", groups), LastGeneratedID: f.text("last-generated-id"),
		MaxDeletedEntryID: f.text("max-deleted-entry-id"), RecordedFirstEntryID: f.text("recorded-first-entry-id"),
		FirstEntry: field(f, "first-entry", asEntry), LastEntry: field(f, "last-entry", asEntry),
	}
	if f.err == nil {
		s.Reply, f.err = asValue(v)
	}
	return s, f.err
}

// GroupInfo is a consumer group of a stream. EntriesRead and Lag are -1 where the server cannot tell.
type GroupInfo struct {
	Name                                 string
	Consumers, Pending, EntriesRead, Lag int64
	LastDeliveredID                      string
}

func asGroups(v *Value) ([]GroupInfo, error) {
	return each(v, func(v *Value) (GroupInfo, error) {
		f := fieldsOf(v)
		return GroupInfo{f.text("name"), f.int("consumers"), f.int("pending"), f.intOr("entries-read", -1), f.intOr("lag", -1),
			f.text("last-delivered-id")}, f.err
	})
}

// ConsumerInfo is a consumer of a group. Inactive is how long ago it last got something, and -1ms if it never did.
type ConsumerInfo struct {
	Name           string
	Pending        int64
	Idle, Inactive time.Duration
}

func asConsumers(v *Value) ([]ConsumerInfo, error) {
	return each(v, func(v *Value) (ConsumerInfo, error) {
		f := fieldsOf(v)
		return ConsumerInfo{f.text("name"), f.int("pending"), field(f, "idle", lapse(time.Millisecond)), field(f, "inactive", lapse(time.Millisecond))}, f.err
	})
}

// Pending is the reply of XPENDING: of the short form how many, from where to where and of whom; of the long form each entry.
type Pending struct {
	Count       int64
	First, Last string
	Consumers   map[string]int64
	Entries     []PendingEntry
}

// PendingEntry is an entry that a consumer has not acknowledged.
type PendingEntry struct {
	ID, Consumer string
	Idle         time.Duration
	Deliveries   int64
}

func asPending(v *Value) (p Pending, err error) {
	if v.Kind == resp.Array && len(v.Elems) == 4 && v.Elems[0].Kind == resp.Integer {
		r := rowOf(v, 4)
		p = Pending{Count: at(r, 0, asInt), First: at(r, 1, asString), Last: at(r, 2, asString)}
		consumers := at(r, 3, func(v *Value) ([][2]string, error) {
			return each(v, func(v *Value) ([2]string, error) {
				r := rowOf(v, 2)
				return [2]string{at(r, 0, asString), at(r, 1, asString)}, r.err
			})
		})
		p.Consumers = make(map[string]int64, len(consumers))
		for _, pair := range consumers {
			n, err := asInt(&Value{Kind: resp.Bulk, Data: []byte(pair[1])})
			if err != nil {
				return p, err
			}
			p.Consumers[pair[0]] = n
		}
		return p, r.err
	}
	p.Entries, err = each(v, func(v *Value) (PendingEntry, error) {
		r := rowOf(v, 4)
		return PendingEntry{at(r, 0, asString), at(r, 1, asString), at(r, 2, lapse(time.Millisecond)), at(r, 3, asInt)}, r.err
	})
	p.Count = int64(len(p.Entries))
	return p, err
}

// LogEntry is an entry of SLOWLOG or COMMANDLOG: a command that took long, or was large. Amount is its microseconds or bytes.
type LogEntry struct {
	ID           int64
	At           time.Time
	Amount       int64
	Args         []string
	Addr, Client string
}

// Took is Amount as a time, of a command that was slow.
func (e *LogEntry) Took() time.Duration { return time.Duration(e.Amount) * time.Microsecond }

func asLog(v *Value) ([]LogEntry, error) {
	return each(v, func(v *Value) (LogEntry, error) {
		r := rowOf(v, 4)
		return LogEntry{at(r, 0, asInt), at(r, 1, asSecond), at(r, 2, asInt), at(r, 3, asStrings), at(r, 4, asString), at(r, 5, asString)}, r.err
	})
}

// LatencyEvent is what LATENCY LATEST tells of one event.
type LatencyEvent struct {
	Name        string
	At          time.Time
	Latest, Max time.Duration
}

func asLatencies(v *Value) ([]LatencyEvent, error) {
	return each(v, func(v *Value) (LatencyEvent, error) {
		r := rowOf(v, 4)
		return LatencyEvent{at(r, 0, asString), at(r, 1, asSecond), at(r, 2, lapse(time.Millisecond)), at(r, 3, lapse(time.Millisecond))}, r.err
	})
}

// LatencySample is one time that an event took long.
type LatencySample struct {
	At   time.Time
	Took time.Duration
}

func asSamples(v *Value) ([]LatencySample, error) {
	return each(v, func(v *Value) (LatencySample, error) {
		r := rowOf(v, 2)
		return LatencySample{at(r, 0, asSecond), at(r, 1, lapse(time.Millisecond))}, r.err
	})
}

// Role is the reply of ROLE. Of a "master" the replicas are told, of a "slave" the rest.
type Role struct {
	Role     string
	Offset   int64
	Replicas []RoleReplica
	Host     string
	Port     int64
	State    string
	// Masters are those that a "sentinel" watches.
	Masters []string
}

// RoleReplica is a replica of a master.
type RoleReplica struct {
	Host         string
	Port, Offset int64
}

func asRole(v *Value) (Role, error) {
	r := rowOf(v, 2)
	role := Role{Role: at(r, 0, asString)}
	switch role.Role {
	case "master":
		role.Offset = at(r, 1, asInt)
		role.Replicas = at(r, 2, func(v *Value) ([]RoleReplica, error) {
			return each(v, func(v *Value) (RoleReplica, error) {
				r := rowOf(v, 3)
				return RoleReplica{at(r, 0, asString), at(r, 1, asInt), at(r, 2, asInt)}, r.err
			})
		})
	case "slave":
		role.Host, role.Port, role.State, role.Offset = at(r, 1, asString), at(r, 2, asInt), at(r, 3, asString), at(r, 4, asInt)
	default:
		role.Masters = at(r, 1, asStrings)
	}
	return role, r.err
}

// TrackingInfo is the reply of CLIENT TRACKINGINFO.
type TrackingInfo struct {
	Flags    []string
	Redirect int64
	Prefixes []string
}

func asTrackingInfo(v *Value) (TrackingInfo, error) {
	f := fieldsOf(v)
	return TrackingInfo{f.texts("flags"), f.int("redirect"), f.texts("prefixes")}, f.err
}

// Library is a library of functions.
type Library struct {
	Name, Engine, Code string
	Functions          []Function
}

// Function is one of its functions.
type Function struct {
	Name, Description string
	Flags             []string
}

func asLibraries(v *Value) ([]Library, error) {
	return each(v, func(v *Value) (Library, error) {
		f := fieldsOf(v)
		return Library{f.text("library_name"), f.text("engine"), f.text("library_code"), field(f, "functions", func(v *Value) ([]Function, error) {
			return each(v, func(v *Value) (Function, error) {
				f := fieldsOf(v)
				return Function{f.text("name"), f.text("description"), f.texts("flags")}, f.err
			})
		})}, f.err
	})
}

// SlotRange is a range of slots and the nodes that have it, the primary first.
type SlotRange struct {
	From, To int64
	Nodes    []SlotNode
}

// SlotNode is a node of a cluster.
type SlotNode struct {
	Host string
	Port int64
	ID   string
}

func asSlots(v *Value) ([]SlotRange, error) {
	return each(v, func(v *Value) (SlotRange, error) {
		r := rowOf(v, 2)
		s := SlotRange{From: at(r, 0, asInt), To: at(r, 1, asInt)}
		for i := 2; i < len(r.of); i++ {
			s.Nodes = append(s.Nodes, at(r, i, func(v *Value) (SlotNode, error) {
				r := rowOf(v, 2)
				return SlotNode{at(r, 0, asString), at(r, 1, asInt), at(r, 2, asString)}, r.err
			}))
		}
		return s, r.err
	})
}

// CommandKey is a key of a command and what the command does with it.
type CommandKey struct {
	Key   string
	Flags []string
}

func asCommandKeys(v *Value) ([]CommandKey, error) {
	return each(v, func(v *Value) (CommandKey, error) {
		r := rowOf(v, 2)
		return CommandKey{at(r, 0, asString), at(r, 1, asStrings)}, r.err
	})
}

// Common is the reply of LCS with IDX: where two strings agree, from the end.
type Common struct {
	Len     int64
	Matches []CommonMatch
}

// CommonMatch is a run that both have: its first and last byte in each, and its length if WITHMATCHLEN asked for it.
type CommonMatch struct {
	First, Second [2]int64
	Len           int64
}

func asCommon(v *Value) (Common, error) {
	ends := func(v *Value) ([2]int64, error) {
		r := rowOf(v, 2)
		return [2]int64{at(r, 0, asInt), at(r, 1, asInt)}, r.err
	}
	f := fieldsOf(v)
	return Common{f.int("len"), field(f, "matches", func(v *Value) ([]CommonMatch, error) {
		return each(v, func(v *Value) (CommonMatch, error) {
			r := rowOf(v, 2)
			return CommonMatch{at(r, 0, ends), at(r, 1, ends), at(r, 2, asInt)}, r.err
		})
	})}, f.err
}
