package cache

// This file owns the tests of keys.

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

type pair struct{ A, B string }

type compound struct {
	Tenant uint16
	Name   string
	UUID   [4]byte
	Nested struct{ On bool }
	List   [2]int8
}

type userID int64

type custom struct{ text string }

func (c *custom) AppendKey(dst []byte) []byte { return append(dst, c.text...) }

func encodedKey[K comparable](t *testing.T, prefix string, version int, key K) string {
	t.Helper()
	k, err := newKeys[K](prefix, version)
	if err != nil {
		t.Fatal(err)
	}
	b, err := k.append(nil, &key)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestKeyText(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{encodedKey(t, "user", 3, "ann"), "user:v3:ann"},
		{encodedKey(t, "user", 0, "a:b"), "user:v0:a:b"},
		{encodedKey(t, "app:user", 1, "x"), "app%3Auser:v1:x"},
		{encodedKey(t, "user", 1, "{x}%"), "user:v1:%7Bx%7D%25"},
		{encodedKey(t, "user", 1, userID(-7)), "user:v1:-7"},
		{encodedKey(t, "user", 1, uint64(1<<63)), "user:v1:9223372036854775808"},
		{encodedKey(t, "user", 1, pair{"a:", "b"}), "user:v1:a%3A:b"},
		{encodedKey(t, "user", 1, compound{7, "é", [4]byte{0xde, 0xad, 0, 1}, struct{ On bool }{true}, [2]int8{-1, 2}}),
			"user:v1:7:é:dead0001:true:-1:2"},
		{encodedKey(t, "user", 1, custom{"own{"}), "user:v1:own%7B"},
		{encodedKey(t, "user", 1, [3]string{"", "", ""}), "user:v1:::"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestKeyTypesThatAreRefused(t *testing.T) {
	refused := func(name string, err error) {
		if err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	_, err := newKeys[float64]("p", 1)
	refused("float64", err)
	_, err = newKeys[*int]("p", 1)
	refused("*int", err)
	_, err = newKeys[any]("p", 1)
	refused("any", err)
	_, err = newKeys[struct{}]("p", 1)
	refused("struct{}", err)
	_, err = newKeys[[65]string]("p", 1)
	refused("[65]string", err)
	_, err = newKeys[string]("p", -1)
	refused("a negative version", err)
	if _, err := newKeys[[64]string]("p", 1); err != nil {
		t.Error(err)
	}
}

func TestKeyBytesMax(t *testing.T) {
	k, err := newKeys[string]("p", 1)
	if err != nil {
		t.Fatal(err)
	}
	fits := strings.Repeat("x", KeyBytesMax-len("p:v1:"))
	if _, err := k.append(nil, &fits); err != nil {
		t.Error(err)
	}
	fits += "x"
	if b, err := k.append([]byte("before"), &fits); err != ErrKeyTooLong || string(b) != "before" {
		t.Error(err)
	}
}

// TestKeysAreInjective looks for two different (prefix, version, key) with the same bytes, among texts that are likely to collide.
func TestKeysAreInjective(t *testing.T) {
	const letters = ":%{}v1A3\\"
	seed := rand.Uint64()
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	text := func() string {
		b := make([]byte, random.IntN(5))
		for i := range b {
			b[i] = letters[random.IntN(len(letters))]
		}
		return string(b)
	}
	one, two := map[string]string{}, map[string]string{}
	check := func(seen map[string]string, encoded, what string) {
		if before, ok := seen[encoded]; ok && before != what {
			t.Fatalf("%q is %s and %s", encoded, before, what)
		}
		seen[encoded] = what
		lease := string(appendLease(nil, []byte(encoded)))
		if _, ok := seen[lease]; ok {
			t.Fatalf("the lease %q is a key", lease)
		}
		if strings.ContainsAny(encoded, "{}") {
			t.Fatalf("%q has a hash tag", encoded)
		}
	}
	for range 100000 {
		prefix, version := text()+"p", random.IntN(3)
		key, both := text(), pair{text(), text()}
		check(one, encodedKey(t, prefix, version, key), fmt.Sprintf("%q %d %q", prefix, version, key))
		check(two, encodedKey(t, prefix, version, both), fmt.Sprintf("%q %d %q", prefix, version, both))
	}
}

func TestKeyAllocates(t *testing.T) {
	k, err := newKeys[compound]("user", 1)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 0, 256)
	key := compound{Name: "n"}
	if n := testing.AllocsPerRun(100, func() {
		copied := key
		if _, err := k.append(buf, &copied); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("a key allocates %v times", n)
	}
	if errors.Is(err, ErrKeyTooLong) {
		t.Error(err)
	}
}
