package valkeygo_test

// This file owns the test that the transport is that of rueidis, of which valkey-go is a fork, with the names changed.

import (
	"os"
	"strings"
	"testing"
)

// TestSameAsRueidis is for who changes one of the two: SAME=write go test -run Same . writes this one from the other.
func TestSameAsRueidis(t *testing.T) {
	source, err := os.ReadFile("../rueidis/rueidis.go")
	if err != nil {
		t.Skip("the module stands alone:", err)
	}
	want := strings.NewReplacer("Package rueidis", "Package valkeygo", "package rueidis", "package valkeygo", "over rueidis", "over valkey-go",
		"redis/rueidis", "valkey-io/valkey-go", "rueidis.", "valkey.", "IsRedis", "IsValkey", "RedisResult", "ValkeyResult",
		"NonRedisError", "NonValkeyError").Replace(string(source))
	if os.Getenv("SAME") == "write" {
		if err := os.WriteFile("valkeygo.go", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("valkeygo.go")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("valkeygo.go is not rueidis.go with the names changed")
	}
}
