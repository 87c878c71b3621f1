package frame

// This file owns the test that straight encoding writes what the matcher would.

import (
	"bytes"
	"strings"
	"testing"
)

// TestStraightEncoding compares the two for commands with no option and with each one, in either case, with numbers and with what is none.
func TestStraightEncoding(t *testing.T) {
	straight := 0
	for i := range core {
		l := &core[i]
		if l.Name == "" || l.Args {
			continue
		}
		argv := []string{l.Name}
		for j := range l.Fields {
			switch f := &l.Fields[j]; f.Kind {
			case Opts8:
				for _, b := range f.Bits {
					for _, number := range []string{"1000", "-1", "01", "none", "9223372036854775808"} {
						word := strings.Join(b.Token, " ")
						straight += compare(t, append(argv[:len(argv):len(argv)], word, number))
						straight += compare(t, append(argv[:len(argv):len(argv)], strings.ToLower(word), number))
						straight += compare(t, append(argv[:len(argv):len(argv)], word, number, word, number))
					}
				}
			default:
				argv = append(argv, "17")
			}
		}
		straight += compare(t, argv)
	}
	if straight < 200 {
		t.Errorf("only %d commands took the straight way", straight)
	}
}

// compare returns 1 if the straight way was taken.
func compare(t *testing.T, argv []string) (straight int) {
	t.Helper()
	for _, mode := range []Mode{Exact, Fold} {
		got, ok := appendStraight([]byte("before"), 7, argv, mode)
		if !ok {
			if string(got) != "before" {
				t.Errorf("%q: %q was left behind", argv, got)
			}
			continue
		}
		straight = 1
		want, ok := appendTyped([]byte("before"), 7, argv, mode)
		if !ok || !bytes.Equal(got, want) {
			t.Errorf("%q, mode %d: straight %x, matcher %x, %v", argv, mode, got, want, ok)
		}
	}
	return straight
}
