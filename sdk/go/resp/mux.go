package resp

// This file owns finding the handler of a command, and its arity.

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/weft-db/weft/sdk/go/internal/commands"
	"github.com/weft-db/weft/sdk/go/internal/frame"
)

// DefaultStreamBytes is the length from which a command of [Mux.HandleStream] gets its last argument as a stream.
const DefaultStreamBytes = 1 << 20

// Mux is a [Handler] that finds the handler of each command by its name, in capital or small letters, after checking the number of
// arguments. Register everything before the server starts: a Mux is not locked.
type Mux struct {
	// NotFound answers commands that nothing is registered for; nil means an error in Redis's words.
	NotFound Handler
	// StreamBytes is the length from which HandleStream's commands get a stream, zero meaning DefaultStreamBytes.
	StreamBytes int

	entries  []muxEntry
	slots    []uint16 // open addressing by nameHash; index into entries plus one
	core     []uint16 // by RESPB opcode, the same
	streamed bool
}

type muxEntry struct {
	name   string // all capitals
	arity  int
	stream bool
	serve  HandlerFunc
}

// muxMax bounds the commands of one Mux, so that a slot fits 16 bits. Redis has about 250.
const muxMax = 1 << 14

// NewMux returns an empty Mux.
func NewMux() *Mux { return &Mux{} }

// Handle registers h for a command. arity counts the name: 2 means exactly two, -2 two or more, as in Redis's command table. It
// panics if the name is empty, taken, or arity is zero, because that is a mistake in the program.
func (m *Mux) Handle(name string, arity int, h Handler) { m.add(name, arity, h.ServeCommand, false) }

// HandleFunc is Handle for a function.
func (m *Mux) HandleFunc(name string, arity int, f func(s *Session, r *Request) error) {
	m.add(name, arity, f, false)
}

// HandleStream is HandleFunc for a command whose last argument may be too large to be held. From StreamBytes on it is missing from
// the arguments, though the arity counts it, and comes from [Request.Body]; below that, and always over RESPB, whose frames are held
// whole, Body is nil and it is the last argument as usual.
func (m *Mux) HandleStream(name string, arity int, f func(s *Session, r *Request) error) {
	m.add(name, arity, f, true)
}

func (m *Mux) add(name string, arity int, f HandlerFunc, stream bool) {
	upper := []byte(name)
	for i, c := range upper {
		if c >= 'a' && c <= 'z' {
			upper[i] = c - ('a' - 'A')
		}
	}
	switch {
	case name == "" || arity == 0 || f == nil:
		panic("resp: a command needs a name, an arity and a handler")
	case m.find(upper) != nil:
		panic("resp: " + name + " is registered twice")
	case len(m.entries) == muxMax:
		panic(fmt.Sprintf("resp: a Mux holds at most %d commands", muxMax))
	}
	m.entries = append(m.entries, muxEntry{string(upper), arity, stream, f})
	m.streamed = m.streamed || stream
	m.rebuild()
}

// rebuild fills slots at a quarter or less, so that most searches look at one.
func (m *Mux) rebuild() {
	m.slots = make([]uint16, max(16, 1<<bits.Len(uint(4*len(m.entries)))))
	for i := range m.entries {
		at := nameHash([]byte(m.entries[i].name)) & (len(m.slots) - 1)
		for m.slots[at] != 0 {
			at = (at + 1) & (len(m.slots) - 1)
		}
		m.slots[at] = uint16(i + 1)
	}
	for i := len(m.entries) - 1; i >= 0; i-- {
		c := commands.Lookup(m.entries[i].name, "")
		if c == nil || c.Opcode > frame.CoreLast {
			continue
		}
		if m.core == nil {
			m.core = make([]uint16, frame.CoreLast+1)
		}
		m.core[c.Opcode] = uint16(i + 1)
	}
}

// nameHash hashes a name regardless of case. It reads at most sixteen bytes; names that only differ elsewhere share a slot.
func nameHash(name []byte) int {
	const fold = 0x2020202020202020
	var k uint64
	switch n := len(name); {
	case n >= 8:
		k = binary.LittleEndian.Uint64(name) ^ bits.RotateLeft64(binary.LittleEndian.Uint64(name[n-8:]), 9)
		k |= bits.RotateLeft64(fold, 9)
	case n >= 4:
		k = uint64(binary.LittleEndian.Uint32(name)) | uint64(binary.LittleEndian.Uint32(name[n-4:]))<<32
	default:
		for _, c := range name {
			k = k<<8 | uint64(c)
		}
	}
	k = (k | fold) + uint64(len(name))
	return int(k * 0x9e3779b97f4a7c15 >> 33)
}

// find returns the entry of a name in any case, or nil.
func (m *Mux) find(name []byte) *muxEntry {
	if at := m.place(name); at < len(m.entries) {
		return &m.entries[at]
	}
	return nil
}

// place returns where the entry of a name stands, or how many there are.
func (m *Mux) place(name []byte) int {
	if len(m.slots) == 0 {
		return len(m.entries)
	}
	for at := nameHash(name); ; at++ {
		slot := m.slots[at&(len(m.slots)-1)]
		if slot == 0 {
			return len(m.entries)
		}
		if equalFold(name, m.entries[slot-1].name) {
			return int(slot - 1)
		}
	}
}

// ServeCommand implements [Handler].
func (m *Mux) ServeCommand(s *Session, r *Request) error {
	var e *muxEntry
	if r.opcode == 0 {
		e = m.find(r.args[0])
	} else if m.core != nil && m.core[r.opcode-1] != 0 {
		e = &m.entries[m.core[r.opcode-1]-1]
	}
	if e == nil {
		return m.notFound(s, r)
	}
	n := len(r.args)
	if r.body != nil {
		n++
	}
	if n != e.arity && (e.arity > 0 || n < -e.arity) {
		return wrongArity(lower(r.args[0]))
	}
	return e.serve(s, r)
}

func (m *Mux) notFound(s *Session, r *Request) error {
	if m.NotFound != nil {
		return m.NotFound.ServeCommand(s, r)
	}
	const shown = 128 // as much of the name, and of the arguments together, as Redis shows
	text := fmt.Sprintf("unknown command '%.*s', with args beginning with: ", shown, r.args[0])
	args := 0
	for _, a := range r.args[1:] {
		if args >= shown {
			break
		}
		part := a[:min(len(a), shown-args)]
		text += fmt.Sprintf("'%s' ", part)
		args += len(part) + 3
	}
	return &Error{Message: text}
}

// Streams implements [Streamer]: it tells which commands are handed out before their last argument has arrived.
func (m *Mux) Streams() (from int, commands func(name []byte) bool) {
	if !m.streamed {
		return 0, nil
	}
	from = m.StreamBytes
	if from <= 0 {
		from = DefaultStreamBytes
	}
	return from, func(name []byte) bool {
		e := m.find(name)
		return e != nil && e.stream
	}
}
