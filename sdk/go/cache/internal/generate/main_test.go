package main

// This file owns the tests that what is generated is committed, and that it needs nothing of the inside of another module.

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

func TestGenerated(t *testing.T) {
	differ, err := run(root, false)
	if err != nil {
		t.Fatal(err)
	}
	if len(differ) > 0 {
		t.Error("run `go run ./cache/internal/generate` in sdk/go; these differ:", differ)
	}
}

// TestModulesStandAlone: a module that is published imports no internal package of another one, but in its tests.
func TestModulesStandAlone(t *testing.T) {
	imports := regexp.MustCompile(`"(github\.com/weft-db/weft/sdk/go[^"]*)"`)
	modules := 0
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.Name() != "go.mod" {
			return err
		}
		mod, err := os.ReadFile(path)
		if err != nil || bytes.Contains(mod, []byte("replace ")) {
			return err // not published
		}
		modules++
		name := strings.TrimPrefix(strings.SplitN(string(mod), "\n", 2)[0], "module ")
		return filepath.WalkDir(filepath.Dir(path), func(path string, entry os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, found := range imports.FindAllSubmatch(text, -1) {
				if of := string(found[1]); strings.Contains(of, "/internal/") && !strings.HasPrefix(of, name+"/") {
					t.Errorf("%s imports %s", path, of)
				}
			}
			return err
		})
	})
	if err != nil || modules < 10 {
		t.Error(modules, "modules are published,", err)
	}
}

// TestDifferenceIsSeen changes a copy of what is generated.
func TestDifferenceIsSeen(t *testing.T) {
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(root)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(copied, "transport/goredis/internal/command/watch.go")
	if err := os.WriteFile(path, []byte("package command\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{1, 1, 0} { // seen, mended, gone
		differ, err := run(copied, i == 1)
		if err != nil || len(differ) != want {
			t.Fatal(i, differ, err)
		}
	}
}
