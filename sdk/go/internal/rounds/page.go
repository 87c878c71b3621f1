package rounds

// This file owns the place of tables on pages.

import (
	"fmt"
	"os"
	"strings"
)

// WriteTable puts a table of Markdown on a page, in the place of the one that begins with the same line.
func WriteTable(page, table string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	head, _, _ := strings.Cut(table, "\n")
	before, rest, found := strings.Cut(string(text), "\n"+head+"\n")
	if !found {
		return fmt.Errorf("%s has no table that begins with %s: put that line where it belongs", page, head)
	}
	for strings.HasPrefix(rest, "|") {
		_, rest, _ = strings.Cut(rest, "\n")
	}
	return os.WriteFile(page, []byte(before+"\n"+table+rest), 0o644)
}
