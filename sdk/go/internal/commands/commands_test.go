package commands

// Tests of the look-up by name and by opcode, against the generated table.

import (
	"sort"
	"strings"
	"testing"
)

func TestLookup(t *testing.T) {
	for _, test := range []struct{ name, sub, want string }{
		{"GET", "", "GET"},
		{"get", "mykey", "GET"},
		{"Client", "", "CLIENT"},
		{"client", "list", "CLIENT LIST"},
		{"client", "nothing", ""},
		{"command", "", "COMMAND"},
		{"json.set", "doc", "JSON.SET"},
		{"ft._list", "", "FT._LIST"},
		{"nothing", "", ""},
		{"", "", ""},
		{"client list", "", ""},
		{strings.Repeat("x", 1000), "", ""},
		{"client", strings.Repeat("x", 1000), ""},
	} {
		got := ""
		if command := Lookup(test.name, test.sub); command != nil {
			got = command.FullName()
		}
		if got != test.want {
			t.Errorf("Lookup(%.20q, %.20q) = %q, want %q", test.name, test.sub, got, test.want)
		}
	}
}

func TestLookupFindsEveryCommand(t *testing.T) {
	var names []string
	All(func(command *Command) bool {
		name, sub := command.Name, ""
		if command.Container != "" {
			name, sub = command.Container, command.Name
		}
		if Lookup(strings.ToLower(name), strings.ToLower(sub)) != command {
			t.Errorf("Lookup(%q, %q) does not find it", name, sub)
		}
		names = append(names, command.FullName())
		return true
	})
	if !sort.StringsAreSorted(names) {
		t.Error("the table is not sorted")
	}
	if len(names) < 430 {
		t.Errorf("%d commands, want 430 and more", len(names))
	}
}

func TestFacts(t *testing.T) {
	set := Lookup("SET", "")
	if set.Arity != -3 || set.Flags != FlagWrite|FlagDenyoom || set.First != 1 || set.Last != 1 || set.Step != 1 {
		t.Errorf("SET: %+v", set)
	}
	if set.Categories != CategoryWrite|CategoryString|CategorySlow {
		t.Errorf("SET: categories %b", set.Categories)
	}
	if union := Lookup("ZUNIONSTORE", ""); len(union.KeySpecs) != 2 || union.KeySpecs[1].Find != FindKeyNum {
		t.Errorf("ZUNIONSTORE: %+v", union.KeySpecs)
	}
}

func TestLookupDoesNotAllocate(t *testing.T) {
	allocs := testing.AllocsPerRun(100, func() {
		Lookup("set", "k")
		Lookup("client", "setinfo")
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
