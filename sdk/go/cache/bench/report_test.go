package main

// This file owns the tests of the raw figures' file, of rows that are merged, and of the report.

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRowsAreMerged(t *testing.T) {
	var r report
	key := row{Shape: "small", Codec: codecJSON, Op: opSet, Target: targetRedis, Mode: modeOne}
	timed, again, counted, elsewhere := key, key, key, key
	timed.Nanos, again.Nanos, counted.Calls, elsewhere.Placement = 5, 6, &[5]float64{1}, "apart"
	for _, one := range []*row{&timed, &counted, &again, &elsewhere} {
		r.add(one)
	}
	if len(r.Rows) != 2 || r.Rows[0].Nanos != 6 || r.Rows[0].Calls == nil || r.Rows[1].Calls != nil {
		t.Errorf("%+v", r.Rows)
	}
}

func TestFileComesBack(t *testing.T) {
	r := report{Machine: `a "machine"`, Rows: []*row{{Shape: "small"}, {Shape: "large"}}, Codecs: []*codecRow{{Shape: "small"}}}
	name := filepath.Join(t.TempDir(), "raw.json")
	if err := r.save(name); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if err != nil || strings.Count(string(text), "\n") < 5 {
		t.Errorf("%v, not a line for each row:\n%s", err, text)
	}
	back, err := load(name)
	if err != nil || back.Machine != r.Machine || len(back.Rows) != 2 || back.Rows[1].Shape != "large" {
		t.Errorf("%+v, %v", back, err)
	}
}

// TestReport writes the report of the figures in the repository, and of none.
func TestReport(t *testing.T) {
	committed, err := load("../../../../docs/benchmarks/data/go-cache.json")
	if errors.Is(err, os.ErrNotExist) {
		committed, err = &report{}, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*report{committed, {}} {
		dir := t.TempDir()
		if err := r.write(filepath.Join(dir, "page.md")); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "page.md"))
		if err != nil || !strings.HasPrefix(string(text), "# ") || strings.Contains(string(text), "NaN") || strings.Contains(string(text), "%!") {
			t.Errorf("%v\n%.500s", err, text)
		}
		for _, plot := range []string{"modes", "codecs", "memory", "calls"} {
			svg, err := os.Open(filepath.Join(dir, "page", plot+".svg"))
			if err != nil {
				t.Fatal(err)
			}
			for decoder := xml.NewDecoder(svg); err == nil; {
				_, err = decoder.Token()
			}
			if !errors.Is(err, io.EOF) {
				t.Errorf("%s.svg: %v", plot, err)
			}
			_ = svg.Close()
		}
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{0: "", 0.25: "0.2", 3: "3", 9.96: "10.0", 12.6: "13", 73845: "73845"} {
		if got := number(x); got != want && got+".0" != want {
			t.Errorf("%v is %q, not %q", x, got, want)
		}
	}
}

func TestWrap(t *testing.T) {
	long := strings.Repeat("word ", 40)
	got := wrap("# " + long + "\n\n" + long + "\n- " + long + "\n- item\n\n| " + long + "|\n```\n" + long + "\n```\nend\n")
	for _, line := range strings.Split(got, "\n") {
		prose := !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "|") && !strings.HasSuffix(line, " ")
		if prose && len(line) > lineCharsMax {
			t.Errorf("%d characters: %s", len(line), line)
		}
	}
	if !strings.Contains(got, "\n  word") || !strings.HasSuffix(got, "```\nend\n") || !strings.Contains(got, "\n- item\n\n|") {
		t.Errorf("%s", got)
	}
	if again := wrap(got); again != got {
		t.Errorf("breaking again changes\n%s\nto\n%s", got, again)
	}
}
