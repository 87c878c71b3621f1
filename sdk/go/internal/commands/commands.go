// Package commands is the command table of the SDK: names, flags, ACL categories, key positions and RESPB opcodes.
//
// It owns the types, the constants and [Lookup]. The table itself is generated from spec/commands into table_gen.go.
// Values returned point into the table, live as long as the program and must not be changed.
package commands

// Flags is a set of command flags.
type Flags uint32

// Flags as COMMAND INFO prints them, and after those the ones it does not print.
const (
	FlagWrite Flags = 1 << iota
	FlagReadonly
	FlagDenyoom
	FlagModule
	FlagAdmin
	FlagPubsub
	FlagNoscript
	FlagBlocking
	FlagLoading
	FlagStale
	FlagSkipMonitor
	FlagSkipCommandlog
	FlagAsking
	FlagFast
	FlagNoAuth
	FlagNoMandatoryKeys
	FlagNoAsyncLoading
	FlagNoMulti
	FlagMovablekeys
	FlagAllowBusy
	FlagMayReplicate
	FlagSentinel
	FlagOnlySentinel
	FlagProtected
	FlagTouchesArbitraryKeys
	FlagAllDbs
)

// Categories is a set of ACL categories.
type Categories uint32

// Categories in the order COMMAND INFO prints them.
const (
	CategoryKeyspace Categories = 1 << iota
	CategoryRead
	CategoryWrite
	CategorySet
	CategorySortedset
	CategoryList
	CategoryHash
	CategoryString
	CategoryBitmap
	CategoryHyperloglog
	CategoryGeo
	CategoryStream
	CategoryPubsub
	CategoryAdmin
	CategoryFast
	CategorySlow
	CategoryBlocking
	CategoryDangerous
	CategoryConnection
	CategoryTransaction
	CategoryScripting
	CategoryJSON
	CategoryBloom
	CategorySearch
)

// KeyFlags says what a command does with the keys of a [KeySpec].
type KeyFlags uint16

// One of the first four is set unless KeyNotKey is.
const (
	KeyRO KeyFlags = 1 << iota
	KeyRW
	KeyOW
	KeyRM
	KeyAccess
	KeyUpdate
	KeyInsert
	KeyDelete
	KeyNotKey
	KeyIncomplete
	KeyVariableFlags
)

// BeginSearch says where the search for keys begins.
type BeginSearch uint8

// Ways to begin.
const (
	BeginUnknown BeginSearch = iota // only the server knows
	BeginIndex                      // at argument Pos, the name being 0
	BeginKeyword                    // after Keyword, looked for from argument Pos; a negative Pos counts from the end
)

// FindKeys says how keys are found once the search has begun.
type FindKeys uint8

// Ways to find keys.
const (
	FindUnknown FindKeys = iota // only the server knows
	FindRange                   // every Step-th argument up to Last; a negative Last counts from the end
	FindKeyNum                  // argument KeyNum holds the number of keys, First is the first; both from the begin
)

// KeySpec says where one group of keys stands.
type KeySpec struct {
	Flags   KeyFlags
	Begin   BeginSearch
	Find    FindKeys
	Pos     int8
	Last    int8
	Step    int8
	Limit   int8 // with a negative Last: stop at this fraction of the rest, 2 being half
	KeyNum  int8
	First   int8
	Keyword string
}

// NoOpcode is the Opcode of a command that has none; as an opcode it is the passthrough frame, never a command.
const NoOpcode = 0xFFFF

// ModuleOpcode is the Opcode of all module commands; their Module and Command tell them apart.
const ModuleOpcode = 0xF000

// Command is one command, or one subcommand of a container.
type Command struct {
	Name       string // upper-case; of a subcommand its own word
	Container  string // of a subcommand the command it belongs to, else empty
	Group      string
	Since      string
	Summary    string
	KeySpecs   []KeySpec
	Flags      Flags
	Categories Categories
	Opcode     uint16 // of a subcommand that of its container
	Module     uint16
	Command    uint16
	Arity      int8 // arguments with the name; negative when that is a minimum
	First      int8 // first key, 0 when there is none or no plain range
	Last       int8 // last key; negative counts from the end
	Step       int8
}

// FullName is the name as a user types it, as "GET" or "CLIENT LIST".
func (c *Command) FullName() string {
	if c.Container == "" {
		return c.Name
	}
	return c.Container + " " + c.Name
}

// nameBytesMax is the length of the longest name with its container; a longer one is no command.
const nameBytesMax = 48

// index maps "NAME" and "CONTAINER NAME" to places in the table.
var index = buildIndex()

// isContainer says of each place in the table whether the command has subcommands.
var isContainer [len(table)]bool

func buildIndex() map[string]int {
	places := make(map[string]int, len(table))
	for i := range table {
		places[table[i].FullName()] = i
	}
	for i := range table {
		if table[i].Container != "" {
			isContainer[places[table[i].Container]] = true
		}
	}
	return places
}

// Lookup finds a command by its name and, of a container, by the word after it; case does not matter. For a command
// without subcommands sub is not looked at, so that the second word of a request can always be given. A container with
// an empty sub is the container itself; with a sub it does not have, the result is nil. Lookup does not allocate.
func Lookup(name, sub string) *Command {
	var buf [nameBytesMax]byte
	key, ok := appendUpper(buf[:0], name)
	if !ok {
		return nil
	}
	place, ok := index[string(key)]
	if !ok || table[place].Container != "" {
		return nil
	}
	if sub == "" || !isContainer[place] {
		return &table[place]
	}
	key, ok = appendUpper(append(key, ' '), sub)
	if !ok {
		return nil
	}
	if place, ok = index[string(key)]; !ok {
		return nil
	}
	return &table[place]
}

// All calls yield for every command in the order of the table until it returns false.
func All(yield func(*Command) bool) {
	for i := range table {
		if !yield(&table[i]) {
			return
		}
	}
}

// appendUpper appends word in capitals; it reports false when that would not fit into what dst can hold.
func appendUpper(dst []byte, word string) ([]byte, bool) {
	if len(dst)+len(word) >= cap(dst) {
		return dst, false
	}
	for i := 0; i < len(word); i++ {
		c := word[i]
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst, true
}
