package frame

// This file owns the comparison of the errors' texts with the specification's.

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

func TestTexts(t *testing.T) {
	raw, err := os.ReadFile("../../../../spec/errors.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Errors []struct {
			Name, Text string
			Wires      []string
		}
	}
	if err := json.Unmarshal(raw, &file); err != nil {
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
