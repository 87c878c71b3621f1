package rounds

// This file owns the tests of judging, and of putting it on a page.

import (
	"os"
	"path/filepath"
	"testing"
)

func TestVerdict(t *testing.T) {
	for want, ratios := range map[string][]float64{
		"reached":        {0.25, 0.26, 0.25, 0.24, 0.25, 0.25},
		"**missed**":     {0.75, 0.76, 0.75, 0.71, 0.75, 0.75},
		"open":           {0.48, 0.54, 0.53, 0.43, 0.55, 0.46},
		"too few rounds": {0.25, 0.25, 0.25, 0.25, 0.25},
	} {
		if low, high, got := Verdict(ratios, 0.5); got != want || low > high {
			t.Errorf("%v: %q (%v to %v), want %q", ratios, got, low, high, want)
		}
	}
}

// TestRatios: what makes whole rounds slow falls on both sides, and a round that only one side has, or in which nothing was counted, is none.
func TestRatios(t *testing.T) {
	ratios := Ratios([]float64{10, 90, 11, 80, 10, 95, 10, 10}, []float64{40, 360, 44, 320, 40, 380, 0})
	if low, high, verdict := Verdict(ratios, 0.25); len(ratios) != 6 || low != 0.25 || high != 0.25 || verdict != "reached" {
		t.Errorf("%v: %v to %v, %s", ratios, low, high, verdict)
	}
}

// TestInterval: it holds the median, and is as wide as the ratios differ.
func TestInterval(t *testing.T) {
	if low, high := Interval([]float64{1, 1, 1, 1, 1}); low != 1 || high != 1 {
		t.Errorf("%v…%v, want 1…1", low, high)
	}
	if low, high := Interval([]float64{0.5, 0.9, 1, 1.1, 2}); low >= 1 || high <= 1 || low < 0.5 || high > 2 {
		t.Errorf("%v…%v does not hold 1", low, high)
	}
}

func TestWriteTable(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("# Page\n\n| a | b |\n|---|---|\n| old | 1 |\n| old | 2 |\n\nText.\n\n| c |\n|---|\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := WriteTable(page, "| a | b |\n|---|---|\n| new | 3 |\n"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if want := "# Page\n\n| a | b |\n|---|---|\n| new | 3 |\n\nText.\n\n| c |\n|---|\n"; err != nil || string(text) != want {
		t.Errorf("%q, %v, want %q", text, err, want)
	}
	if err := WriteTable(page, "| d |\n|---|\n"); err == nil {
		t.Error("a table that the page does not have")
	}
}
