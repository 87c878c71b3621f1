package main

// This file owns the row of Redis hashes: a field for each field of the struct, and dotted names for items.

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/weft-db/weft/sdk/go/cache/bench/fixture"
	"github.com/weft-db/weft/sdk/go/cache/codec/codectest"
	"github.com/weft-db/weft/sdk/go/respb"
)

// hashed is a subject that is stored as fields.
type hashed interface {
	// fields are the arguments of go-redis's HSet, and scan reads its HGetAll.
	fields(i int) []any
	scan(reply *redis.MapStringStringCmd, i int) error
	// words are the whole command, and pairs reads a reply of names and values.
	words(name, key string, i int) []string
	pairs(reply *respb.Value, i int) error
}

// hash is a hashed subject. Structs without items go through go-redis's own mapping, as one would have it.
type hash[T any] struct {
	*typed[T]
	flat bool
}

func newHash[T any](next func(s *fixture.Source) T) subject {
	h := &hash[T]{typed: newTyped[T](codecHash, next, nil, codectest.Equal, nil, nil)}
	_, nested := reflect.TypeFor[T]().FieldByName("Items")
	h.flat = !nested
	return h
}

func (h *hash[T]) fields(i int) []any {
	if h.flat {
		return []any{&h.current[i]}
	}
	var list []any
	flatten(reflect.ValueOf(&h.current[i]).Elem(), "", func(name, value string) { list = append(list, name, value) })
	return list
}

func (h *hash[T]) scan(reply *redis.MapStringStringCmd, i int) error {
	if h.flat {
		return reply.Scan(&h.slots[i])
	}
	fields, err := reply.Result()
	if err != nil {
		return err
	}
	for name, value := range fields {
		if err := assign(reflect.ValueOf(&h.slots[i]).Elem(), name, value); err != nil {
			return err
		}
	}
	return nil
}

func (h *hash[T]) words(name, key string, i int) []string {
	list := []string{name, key}
	flatten(reflect.ValueOf(&h.current[i]).Elem(), "", func(name, value string) { list = append(list, name, value) })
	return list
}

func (h *hash[T]) pairs(reply *respb.Value, i int) error {
	if err := reply.Err(); err != nil {
		return err
	}
	for j := 0; j+1 < len(reply.Elems); j += 2 {
		name, value := string(reply.Elems[j].Data), string(reply.Elems[j+1].Data)
		if err := assign(reflect.ValueOf(&h.slots[i]).Elem(), name, value); err != nil {
			return err
		}
	}
	return nil
}

func (h *hash[T]) payload() (float64, error) {
	var sum int
	for i := range h.current {
		flatten(reflect.ValueOf(&h.current[i]).Elem(), "", func(name, value string) { sum += len(name) + len(value) })
	}
	return float64(sum) / float64(len(h.current)), nil
}

// flatten calls visit for each field of a struct.
func flatten(v reflect.Value, prefix string, visit func(name, value string)) {
	t := v.Type()
	for i := range t.NumField() {
		name, field := prefix+t.Field(i).Tag.Get("json"), v.Field(i)
		switch value := field.Interface().(type) {
		case int64:
			visit(name, strconv.FormatInt(value, 10))
		case float64:
			visit(name, strconv.FormatFloat(value, 'g', -1, 64))
		case bool:
			visit(name, strconv.FormatBool(value))
		case string:
			visit(name, value)
		case time.Time:
			visit(name, value.Format(time.RFC3339Nano))
		default:
			for j := range field.Len() {
				flatten(field.Index(j), name+"."+strconv.Itoa(j)+".", visit)
			}
		}
	}
}

// assign sets the field of a struct that has a name.
func assign(v reflect.Value, name, text string) (err error) {
	head, rest, deeper := strings.Cut(name, ".")
	n := fieldNamed(v.Type(), head)
	if n < 0 {
		return fmt.Errorf("there is no field %q", name)
	}
	field := v.Field(n)
	switch place := field.Addr().Interface().(type) {
	case *int64:
		*place, err = strconv.ParseInt(text, 10, 64)
	case *float64:
		*place, err = strconv.ParseFloat(text, 64)
	case *bool:
		*place, err = strconv.ParseBool(text)
	case *string:
		*place = text
	case *time.Time:
		*place, err = time.Parse(time.RFC3339Nano, text)
	default:
		number, inner, _ := strings.Cut(rest, ".")
		n, err := strconv.Atoi(number)
		if err != nil || !deeper || n < 0 || n >= batch {
			return fmt.Errorf("the field %q is no item's", name)
		}
		for field.Len() <= n {
			field.Set(reflect.Append(field, reflect.Zero(field.Type().Elem())))
		}
		return assign(field.Index(n), inner, text)
	}
	return err
}

// fieldNamed returns the number of a field, -1 if there is none of that name.
func fieldNamed(t reflect.Type, name string) int {
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("json") == name {
			return i
		}
	}
	return -1
}
