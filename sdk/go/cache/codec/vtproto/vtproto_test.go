package vtproto

// This file owns the tests of the codec with a message whose methods are written here; sdk/go/cache/bench has those with generated ones.

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/weft-db/weft/sdk/go/cache/codec/codectest"
)

// text is a message with one string as field 1.
type text struct {
	Text string
	lies bool // about its size
}

var errText = errors.New("no text")

func (m *text) SizeVT() int {
	if m.lies {
		return 1000
	}
	return 1 + len(binary.AppendUvarint(nil, uint64(len(m.Text)))) + len(m.Text)
}

func (m *text) MarshalToSizedBufferVT(dst []byte) (int, error) {
	head := binary.AppendUvarint([]byte{1<<3 | 2}, uint64(len(m.Text)))
	at := len(dst) - len(m.Text)
	copy(dst[at:], m.Text)
	copy(dst[at-len(head):], head)
	return len(head) + len(m.Text), nil
}

func (m *text) UnmarshalVT(data []byte) error {
	if len(data) < 2 || data[0] != 1<<3|2 {
		return errText
	}
	size, n := binary.Uvarint(data[1:])
	if n <= 0 || size != uint64(len(data)-1-n) {
		return errText
	}
	m.Text = string(data[1+n:])
	return nil
}

func texts() (messages []*text) {
	for _, s := range codectest.Texts() {
		messages = append(messages, &text{Text: s})
	}
	return messages
}

func TestCodec(t *testing.T) {
	codectest.Run(t, New[text](), texts(), func(a, b *text) bool { return *a == *b })
}

func TestRefuses(t *testing.T) {
	codectest.Refuses(t, New[text](), nil)
	codectest.Refuses(t, New[text](), &text{Text: "a", lies: true})
}

func FuzzDecode(f *testing.F) { codectest.Fuzz(f, New[text](), texts()[:12]) }
