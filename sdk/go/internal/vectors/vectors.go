// Package vectors reads the conformance vectors, and what else stands beside the SDK, for tests and as seeds of fuzz targets.
//
// It owns the form of the files (conformance/README.md); what a vector proves belongs to the tests.
package vectors

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Vector is one vector, with what tests look at.
type Vector struct {
	ID            string
	Direction     string
	Limits        map[string]any
	RawWire       json.RawMessage `json:"wire"`
	Value         map[string]json.RawMessage
	Canonical     bool
	CanonicalWire json.RawMessage `json:"canonical_wire"`
	EncodeOnly    bool            `json:"encode_only"`
	Error         string
	Offset        int
}

// Load reads the vectors of a protocol, such as resp2, and a kind, valid or invalid; those of respb, of all profiles.
func Load(protocol, kind string) ([]Vector, error) {
	pattern := filepath.Join(root(), "conformance/vectors", protocol)
	if protocol == "respb" {
		pattern = filepath.Join(pattern, "*")
	}
	pattern = filepath.Join(pattern, kind, "*.json")
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no vectors in %s: %v", pattern, err)
	}
	var all []Vector
	for _, name := range files {
		var file struct{ Vectors []Vector }
		if err := parse(name, &file); err != nil {
			return nil, err
		}
		all = append(all, file.Vectors...)
	}
	return all, nil
}

// Read fills value with a file of JSON, named from the repository's root. Who has only the module has none: fs.ErrNotExist.
func Read(name string, value any) error { return parse(filepath.Join(root(), name), value) }

func parse(path string, value any) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, value); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// root is the repository's folder: tests run in their package's, which is in it. Elsewhere it is this folder, which has no vectors.
func root() string {
	folder := "."
	for range 16 {
		if _, err := os.Stat(filepath.Join(folder, "conformance/vectors")); err == nil {
			return folder
		}
		folder = filepath.Join("..", folder)
	}
	return "."
}

// Seeds returns the wires of all vectors of a protocol and direction, those over max bytes left out.
func Seeds(protocol, direction string, max int) ([][]byte, error) {
	var seeds [][]byte
	for _, kind := range []string{"valid", "invalid"} {
		all, err := Load(protocol, kind)
		if err != nil {
			return nil, err
		}
		for i := range all {
			if wire := all[i].Wire(); all[i].Direction == direction && len(wire) <= max {
				seeds = append(seeds, wire)
			}
		}
	}
	return seeds, nil
}

// Wire returns the bytes of the frame.
func (v *Vector) Wire() []byte { return Bytes(v.RawWire) }

// Bytes reads hex, or an array of hex and repeats. The files are generated, so what is no bytes is a panic.
func Bytes(raw json.RawMessage) []byte {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		b, err := hex.DecodeString(text)
		if err != nil {
			panic(err)
		}
		return b
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		panic(fmt.Sprintf("no bytes: %.100s", raw))
	}
	var out []byte
	for _, item := range list {
		var repeat struct {
			Repeat string
			Count  int
		}
		if json.Unmarshal(item, &repeat) == nil && repeat.Repeat != "" {
			unit, _ := hex.DecodeString(repeat.Repeat)
			out = append(out, bytes.Repeat(unit, repeat.Count)...)
			continue
		}
		out = append(out, Bytes(item)...)
	}
	return out
}

// Text reads {"text": …} or {"bytes": …}.
func Text(raw json.RawMessage) []byte {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		panic(fmt.Sprintf("no text: %.100s", raw))
	}
	if raw, ok := object["bytes"]; ok {
		return Bytes(raw)
	}
	var s string
	if err := json.Unmarshal(object["text"], &s); err != nil {
		panic(fmt.Sprintf("no text: %.100s", raw))
	}
	return []byte(s)
}

// Expand repeats the entries {"repeat": […], "count": n} of an array.
func Expand(raw json.RawMessage) []json.RawMessage {
	var list, out []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		panic(fmt.Sprintf("no array: %.100s", raw))
	}
	for _, item := range list {
		var group struct {
			Repeat []json.RawMessage
			Count  int
		}
		if bytes.HasPrefix(item, []byte(`{`)) && json.Unmarshal(item, &group) == nil && group.Repeat != nil {
			for range group.Count {
				out = append(out, group.Repeat...)
			}
			continue
		}
		out = append(out, item)
	}
	return out
}

// Args returns the arguments of a request of RESP.
func (v *Vector) Args() []string {
	var args []string
	for _, raw := range Expand(v.Value["args"]) {
		args = append(args, string(Text(raw)))
	}
	return args
}

// ReplyText shows a reply of RESP as one line: kinds, quoted texts, counts, elements in order, attributes as "attr n" before the value.
// The two nulls of RESP2 are one.
func (v *Vector) ReplyText() string {
	var b strings.Builder
	writeTree(&b, v.Value["reply"])
	return b.String()
}

func writeTree(b *strings.Builder, raw json.RawMessage) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		panic(fmt.Sprintf("no value: %.100s", raw))
	}
	if nest, ok := object["nest"]; ok {
		writeNest(b, string(nest), object)
		return
	}
	if pairs, ok := object["attribute"]; ok {
		writePairs(b, "attr", pairs)
		writeTree(b, object["value"])
		return
	}
	for name, member := range object {
		writeMember(b, name, member)
	}
}

func writeMember(b *strings.Builder, name string, raw json.RawMessage) {
	switch name {
	case "simple", "error", "bulk", "big":
		fmt.Fprintf(b, " %s %q", name, Text(raw))
	case "verbatim":
		var parts []json.RawMessage
		var format string
		_ = json.Unmarshal(raw, &parts)
		_ = json.Unmarshal(parts[0], &format)
		fmt.Fprintf(b, " verbatim %s %q", format, Text(parts[1]))
	case "int":
		fmt.Fprintf(b, " int %s", strings.Trim(string(raw), `"`))
	case "bits":
		bits, _ := strconv.ParseUint(strings.Trim(string(raw), `"`), 16, 64)
		fmt.Fprintf(b, " double %016x", bits)
	case "double": // its bits stand beside it
	case "bool":
		fmt.Fprintf(b, " bool %s", raw)
	case "null", "null_array":
		b.WriteString(" null")
	case "array", "set", "push":
		items := Expand(raw)
		fmt.Fprintf(b, " %s %d", name, len(items))
		for _, item := range items {
			writeTree(b, item)
		}
	case "map":
		writePairs(b, "map", raw)
	default:
		panic("unknown member " + name)
	}
}

func writePairs(b *strings.Builder, kind string, raw json.RawMessage) {
	items := Expand(raw)
	fmt.Fprintf(b, " %s %d", kind, len(items))
	for _, item := range items {
		for _, half := range Expand(item) {
			writeTree(b, half)
		}
	}
}

func writeNest(b *strings.Builder, kind string, object map[string]json.RawMessage) {
	var depth int
	_ = json.Unmarshal(object["depth"], &depth)
	for range depth {
		switch kind {
		case `"map_value"`:
			b.WriteString(` map 1 bulk "k"`)
		case `"map_key"`:
			b.WriteString(" map 1")
		default:
			fmt.Fprintf(b, " %s 1", strings.Trim(kind, `"`))
		}
	}
	writeTree(b, object["value"])
	if kind == `"map_key"` {
		b.WriteString(strings.Repeat(" null", depth))
	}
}
