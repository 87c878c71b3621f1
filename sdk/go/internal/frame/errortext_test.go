package frame

// This file owns the comparison of the errors' texts with the specification's.

import (
	"slices"
	"testing"

	"github.com/weft-db/weft/sdk/go/internal/vectors"
)

func TestTexts(t *testing.T) {
	var file struct {
		Errors []struct {
			Name, Text string
			Wires      []string
		}
	}
	if err := vectors.Read("spec/errors.json", &file); err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, e := range file.Errors {
		if !slices.Contains(e.Wires, "respb") {
			continue
		}
		count++
		if got := (&WireError{Name: e.Name}).Text(); got != e.Text {
			t.Errorf("%s: %q, want %q", e.Name, got, e.Text)
		}
	}
	if count != len(texts) {
		t.Errorf("%d texts, the specification has %d", len(texts), count)
	}
}
