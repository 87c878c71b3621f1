package cache

// This file owns how the fields of a struct become the texts of a hash, and back.

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// hashFieldsMax bounds the fields of a struct that is a hash.
const hashFieldsMax = 1000

// hashPlan is how one type is mapped.
type hashPlan struct {
	of     reflect.Type
	fields []*hashField
	byName map[string]*hashField
}

type hashField struct {
	name      []byte
	index     []int
	omitEmpty bool
	as        hashForm
}

// hashForm is how a field is written.
type hashForm uint8

const (
	asString hashForm = iota
	asBytes
	asInt
	asUint
	asFloat
	asBool
	asTime
	asText // encoding.TextMarshaler
	asJSON
)

var (
	timeType   = reflect.TypeFor[time.Time]()
	textWriter = reflect.TypeFor[encoding.TextMarshaler]()
	textReader = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func planOf(t reflect.Type) (*hashPlan, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("cache: a Hash is of structs, and %v is none", t)
	}
	p := &hashPlan{of: t, byName: map[string]*hashField{}}
	for _, sf := range reflect.VisibleFields(t) {
		tag, tagged := sf.Tag.Lookup("cache")
		if tag == "-" || !sf.IsExported() || throughPointer(t, sf.Index) || sf.Anonymous && !tagged && sf.Type.Kind() == reflect.Struct {
			continue
		}
		name, rest, _ := strings.Cut(tag, ",")
		if name == "" {
			name = sf.Name
		}
		f := &hashField{name: []byte(name), index: sf.Index, omitEmpty: rest == "omitempty", as: formOf(sf.Type)}
		if rest != "" && rest != "omitempty" {
			return nil, fmt.Errorf("cache: the tag of %s is none: %q", sf.Name, tag)
		}
		if p.byName[name] != nil {
			return nil, fmt.Errorf("cache: two fields of %v have the name %q", t, name)
		}
		p.byName[name] = f
		p.fields = append(p.fields, f)
	}
	if len(p.fields) == 0 || len(p.fields) > hashFieldsMax {
		return nil, fmt.Errorf("cache: %v has %d fields; a Hash has 1 to %d", t, len(p.fields), hashFieldsMax)
	}
	return p, nil
}

// throughPointer reports whether a field lies behind an embedded pointer, which may be nil.
func throughPointer(t reflect.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		if t = t.Field(i).Type; t.Kind() == reflect.Pointer {
			return true
		}
	}
	return false
}

func formOf(t reflect.Type) hashForm {
	switch {
	case t == timeType:
		return asTime
	case t.Implements(textWriter) && reflect.PointerTo(t).Implements(textReader) && t.Kind() != reflect.Pointer:
		return asText
	}
	switch t.Kind() {
	case reflect.String:
		return asString
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return asInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return asUint
	case reflect.Float32, reflect.Float64:
		return asFloat
	case reflect.Bool:
		return asBool
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return asBytes
		}
	}
	return asJSON
}

// encode returns names and texts in turns: the marker and all fields, or just those that are named.
func (p *hashPlan) encode(v reflect.Value, names []string) ([][]byte, error) {
	fields := p.fields
	var out [][]byte
	if names == nil {
		out = make([][]byte, 0, 2*len(fields)+2)
		out = append(out, hashMarker, hashMark)
	} else {
		fields = nil
		for _, name := range names {
			f := p.byName[name]
			if f == nil {
				return nil, fmt.Errorf("cache: %v has no field %q", p.of, name)
			}
			fields = append(fields, f)
		}
	}
	// Texts share memory. It may move while it grows: what was cut off before stays valid where it was.
	arena := make([]byte, 0, 16*len(fields))
	for _, f := range fields {
		value := v.FieldByIndex(f.index)
		if f.omitEmpty && names == nil && value.IsZero() {
			continue
		}
		from := len(arena)
		var err error
		if arena, err = f.append(arena, value); err != nil {
			return nil, &EncodeError{fmt.Errorf("field %s: %w", f.name, err)}
		}
		out = append(out, f.name, arena[from:len(arena):len(arena)])
	}
	return out, nil
}

func (f *hashField) append(dst []byte, v reflect.Value) ([]byte, error) {
	switch f.as {
	case asString:
		return append(dst, v.String()...), nil
	case asBytes:
		return append(dst, v.Bytes()...), nil
	case asInt:
		return strconv.AppendInt(dst, v.Int(), 10), nil
	case asUint:
		return strconv.AppendUint(dst, v.Uint(), 10), nil
	case asFloat:
		return strconv.AppendFloat(dst, v.Float(), 'g', -1, v.Type().Bits()), nil
	case asBool:
		return strconv.AppendBool(dst, v.Bool()), nil
	case asTime:
		return v.Interface().(time.Time).AppendFormat(dst, time.RFC3339Nano), nil
	case asText:
		text, err := v.Interface().(encoding.TextMarshaler).MarshalText()
		return append(dst, text...), err
	default:
		text, err := json.Marshal(v.Interface())
		return append(dst, text...), err
	}
}

var errRange = errors.New("out of range")

func (f *hashField) parse(v reflect.Value, text []byte) error {
	switch f.as {
	case asString:
		v.SetString(string(text))
	case asBytes:
		v.SetBytes(append(make([]byte, 0, len(text)), text...))
	case asInt:
		n, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil || v.OverflowInt(n) {
			return errors.Join(errRange, err)
		}
		v.SetInt(n)
	case asUint:
		n, err := strconv.ParseUint(string(text), 10, 64)
		if err != nil || v.OverflowUint(n) {
			return errors.Join(errRange, err)
		}
		v.SetUint(n)
	case asFloat:
		n, err := strconv.ParseFloat(string(text), v.Type().Bits())
		if err != nil {
			return err
		}
		v.SetFloat(n)
	case asBool:
		b, err := strconv.ParseBool(string(text))
		if err != nil {
			return err
		}
		v.SetBool(b)
	case asTime:
		at, err := time.Parse(time.RFC3339Nano, string(text))
		if err != nil {
			return err
		}
		v.Set(reflect.ValueOf(at))
	case asText:
		return v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText(text)
	default:
		return json.Unmarshal(text, v.Addr().Interface())
	}
	return nil
}
