package msgp

// This file owns the tests of the codec with a type whose methods are written here; sdk/go/cache/bench has those with generated ones.

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/weft-db/weft/sdk/go/cache/codec/codectest"
)

// user is an array of a string and a number in MessagePack.
type user struct {
	Name string
	Age  uint32
}

var errUser = errors.New("no user")

func (u *user) MarshalMsg(dst []byte) ([]byte, error) {
	if uint64(len(u.Name)) > math.MaxUint32 {
		return dst, errUser
	}
	dst = append(dst, 0x92, 0xdb)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(u.Name)))
	dst = append(dst, u.Name...)
	return binary.BigEndian.AppendUint32(append(dst, 0xce), u.Age), nil
}

// UnmarshalMsg makes room for what the header says, as generated code does.
func (u *user) UnmarshalMsg(data []byte) ([]byte, error) {
	if len(data) < 6 || data[0] != 0x92 || data[1] != 0xdb {
		return data, errUser
	}
	name := make([]byte, binary.BigEndian.Uint32(data[2:]))
	data = data[6:]
	if len(data) < len(name)+5 || data[len(name)] != 0xce {
		return data, errUser
	}
	copy(name, data)
	u.Name, u.Age = string(name), binary.BigEndian.Uint32(data[len(name)+1:])
	return data[len(name)+5:], nil
}

func users() []user {
	values := []user{{}}
	for i, text := range codectest.Texts() {
		values = append(values, user{text, uint32(i)})
	}
	return values
}

func TestCodec(t *testing.T) {
	t.Run("values", func(t *testing.T) { codectest.Run(t, New[user](), users(), codectest.Equal) })
	t.Run("pointers", func(t *testing.T) {
		codectest.Run(t, NewPointers[user](), append(codectest.Pointers(users()), nil), codectest.Equal)
	})
}

func TestNoAllocations(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes pools forget on purpose")
	}
	codectest.NoAllocations(t, New[user](), users()[:10])
	codectest.NoAllocations(t, NewPointers[user](), codectest.Pointers(users()[:10]))
}

func TestTrailing(t *testing.T) {
	data, err := New[user]().AppendEncode(nil, user{"a", 1})
	if err != nil {
		t.Fatal(err)
	}
	var u user
	if err := New[user]().Decode(append(data, 0xc0), &u); err == nil {
		t.Error("a value with something behind it was taken")
	}
}

func FuzzDecode(f *testing.F) { codectest.Fuzz(f, New[user](), users()[:12]) }
