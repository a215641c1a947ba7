package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"obelus/engine/internal/phrase"
	"obelus/store"
)

// Decode reads a value, as package store has it, into the Go value that into points to, as
// encoding/json does, but an integer also where it is written as 1e2 or 100.0. The schema is that
// of [ForDecoding] for its type. The error names the place in the value.
func Decode(v any, schema map[string]any, into any) error {
	v = integers(v, schema)
	err := decode(v, into)
	if err == nil {
		return nil
	}
	location := undecodable(v, err.Error(), func(part any) error { return decode(part, reflect.New(reflect.TypeOf(into).Elem()).Interface()) })
	return errors.New(phrase.PlacePrefix("", location) + phrase.Shorten(undecodableReason(err)))
}

func decode(v, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(store.EncodeJSON(v)))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// undecodable returns the place of the part of a value that can't be decoded: with it alone the
// decoding gives the same error as with the whole value, and without it another one or none.
func undecodable(v any, wrong string, decode func(part any) error) (location []string) {
	try := func(step string, part any, within func(part any) error) bool {
		err := within(part)
		if err == nil || err.Error() != wrong {
			return false
		}
		location = append([]string{step}, undecodable(part, wrong, within)...)
		return true
	}
	fails := func(part any) bool {
		err := decode(part)
		return err != nil && err.Error() == wrong
	}
	switch v := v.(type) {
	case map[string]any:
		if fails(map[string]any{}) {
			return nil
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if try(name, v[name], func(part any) error { return decode(map[string]any{name: part}) }) {
				break
			}
		}
	case []any:
		if fails([]any{}) {
			return nil
		}
		for i, e := range v {
			if try(strconv.Itoa(i), e, func(part any) error { return decode([]any{part}) }) {
				break
			}
		}
	}
	return location
}

// undecodableReason says without the words of Go why a value can't be decoded.
func undecodableReason(err error) string {
	if errors.As(err, new(*time.ParseError)) {
		return "not a date and time as in 2006-01-02T15:04:05Z"
	}
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err.Error()
	}
	text := fmt.Sprintf("got %s, which does not fit", wrong.Value)
	isNumber := strings.HasPrefix(wrong.Value, "number ") && !strings.Contains(wrong.Value, ".")
	if kind := wrong.Type.Kind(); isNumber && kind >= reflect.Int && kind <= reflect.Float64 {
		text += fmt.Sprintf(" into %d bits", wrong.Type.Bits())
	}
	return text
}

// maxExponent bounds the numbers that integers writes out.
const maxExponent = maxMeasured

// integers returns a value in which each integer is written in digits alone, as encoding/json reads
// one: 100 in place of 1e2 or 100.0. It rewrites only numbers where the schema, one of
// [ForDecoding], has the type integer. The value itself is not changed.
func integers(v any, schema map[string]any) any {
	switch v := v.(type) {
	case json.Number:
		if hasType(schema, "integer") {
			return integer(v)
		}
	case []any:
		items, _ := schema["items"].(map[string]any)
		if items == nil {
			return v
		}
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = integers(e, items)
		}
		return out
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		others, _ := schema["additionalProperties"].(map[string]any)
		out := maps.Clone(v)
		for name, e := range v {
			of, ok := properties[name].(map[string]any)
			if !ok {
				of = others
			}
			out[name] = integers(e, of)
		}
		return out
	}
	return v
}

func hasType(schema map[string]any, name string) bool {
	types, _ := schema["type"].([]any)
	return schema["type"] == name || slices.Contains(types, any(name))
}

// integer writes an integer in digits. It leaves other numbers and very large ones alone.
func integer(n json.Number) json.Number {
	if !strings.ContainsAny(string(n), ".eE") || digits(n) > maxExponent {
		return n
	}
	r, ok := new(big.Rat).SetString(string(n))
	if !ok || !r.IsInt() {
		return n
	}
	return json.Number(r.Num().String())
}
