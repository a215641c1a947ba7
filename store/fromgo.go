package store

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// FromGo returns the JSON value of a Go value, as a log returns it. It takes anything that
// encoding/json writes, so structs with their tags, maps and slices of any type, [time.Time] and
// every [json.Marshaler]. Numbers become [json.Number], and nil maps, slices and pointers become
// nil. A value that is JSON already is returned as it is, and not copied. It refuses NaN and
// infinities, channels, functions, text that is not valid UTF-8 and nesting beyond [MaxDepth]; the
// error says where, from name on: "result.items[3].price".
func FromGo(v any, name string) (any, error) {
	v, _, wrong := fromGo(v, 0)
	if wrong != nil {
		return nil, wrong.under(name)
	}
	return v, nil
}

// notJSON is what JSON doesn't have, and the way to it within a value.
type notJSON struct{ place, message string }

func notJSONf(format string, args ...any) *notJSON {
	return &notJSON{message: fmt.Sprintf(format, args...)}
}

// maxPlace bounds the way that an error shows, in bytes.
const maxPlace = 100

func (e *notJSON) under(name string) error {
	place := strings.TrimPrefix(name+e.place, ".")
	if len(place) > maxPlace {
		place = strings.ToValidUTF8(place[:maxPlace], "") + "…"
	}
	if place == "" {
		return errors.New(e.message)
	}
	return fmt.Errorf("%s: %s", place, e.message)
}

func (e *notJSON) inArray(i int) *notJSON {
	e.place = "[" + strconv.Itoa(i) + "]" + e.place
	return e
}

func (e *notJSON) inObject(key string) *notJSON {
	var b strings.Builder
	appendSegment(&b, key)
	e.place = b.String() + e.place
	return e
}

// fromGo also reports whether the value differs from the given one: most do not, and checking them
// must cost next to nothing. depth is the number of arrays and objects around the value.
func fromGo(given any, depth int) (v any, changed bool, wrong *notJSON) {
	switch v := given.(type) {
	case nil, bool:
		return given, false, nil
	case string:
		return given, false, checkText(v)
	case json.Number:
		if isNumber(string(v)) {
			return given, false, nil
		}
	case int:
		return json.Number(strconv.Itoa(v)), true, nil
	case int64:
		return json.Number(strconv.FormatInt(v, 10)), true, nil
	case float64:
		if wrong := checkNumber(v); wrong != nil {
			return nil, false, wrong
		}
		return json.Number(AppendJSON(nil, v)), true, nil
	case []any:
		if v != nil {
			return fromArray(given, v, depth+1)
		}
	case map[string]any:
		if v != nil {
			return fromObject(given, v, depth+1)
		}
	}
	v, wrong = marshalled(given, depth)
	return v, true, wrong
}

func fromArray(given any, array []any, depth int) (v any, changed bool, wrong *notJSON) {
	if depth > MaxDepth {
		return nil, false, tooDeep()
	}
	out := array
	for i, e := range array {
		e, other, wrong := fromGo(e, depth)
		if wrong != nil {
			return nil, false, wrong.inArray(i)
		}
		if other && !changed {
			out, changed = slices.Clone(array), true
		}
		if other {
			out[i] = e
		}
	}
	if !changed {
		return given, false, nil
	}
	return out, true, nil
}

func fromObject(given any, object map[string]any, depth int) (v any, changed bool, wrong *notJSON) {
	if depth > MaxDepth {
		return nil, false, tooDeep()
	}
	out := object
	for key, e := range object {
		if wrong := checkKey(key); wrong != nil {
			return nil, false, wrong
		}
		e, other, wrong := fromGo(e, depth)
		if wrong != nil {
			return nil, false, wrong.inObject(key)
		}
		if other && !changed {
			out, changed = maps.Clone(object), true
		}
		if other {
			out[key] = e
		}
	}
	if !changed {
		return given, false, nil
	}
	return out, true, nil
}

func tooDeep() *notJSON { return notJSONf("nested deeper than %d", MaxDepth) }

func checkText(text string) *notJSON {
	if !utf8.ValidString(text) {
		return notJSONf("the text is not valid UTF-8")
	}
	return nil
}

func checkKey(key string) *notJSON {
	if !utf8.ValidString(key) {
		return notJSONf("the key %q is not valid UTF-8", key)
	}
	return nil
}

func checkNumber(f float64) *notJSON {
	switch {
	case math.IsNaN(f):
		return notJSONf("NaN is not a JSON number")
	case math.IsInf(f, 0):
		return notJSONf("infinity is not a JSON number")
	}
	return nil
}

// marshalled is the value that encoding/json makes of a type that JSON lacks. Its error has no
// place; text that is not valid UTF-8 gives no error.
func marshalled(v any, depthOf int) (any, *notJSON) {
	text, err := json.Marshal(v)
	if err != nil || bytes.Contains(text, []byte(`\ufffd`)) {
		if wrong := (finder{taken: err == nil}).find(reflect.ValueOf(v), 0); wrong != nil {
			return nil, wrong
		}
	}
	if err != nil {
		return nil, unwritable(err)
	}
	out, err := DecodeWithin(text, math.MaxInt)
	if err != nil {
		return nil, notJSONf("what it writes itself as is %s", err)
	}
	if depthOf+depth(out) > MaxDepth {
		return nil, tooDeep()
	}
	return out, nil
}

func unwritable(err error) *notJSON {
	var own *json.MarshalerError
	if errors.As(err, &own) {
		return notJSONf("it can't be written as JSON: %s", own.Err)
	}
	return notJSONf("it is not a JSON value")
}

// maxSteps bounds the way into a value: a value that contains itself has no end, and a value at
// the greatest depth is reached by at most four steps for each level.
const maxSteps = 4 * MaxDepth

var (
	marshalsItself = reflect.TypeFor[json.Marshaler]()
	writesItself   = reflect.TypeFor[encoding.TextMarshaler]()
	numberType     = reflect.TypeFor[json.Number]()
)

// finder finds what in a value JSON doesn't have; nil if there is nothing. Where
// encoding/json takes the value it is text alone: what else there is it leaves
// out, for reasons of its own.
type finder struct{ taken bool }

func (f finder) find(v reflect.Value, steps int) *notJSON {
	switch {
	case !v.IsValid():
		return nil
	case steps > maxSteps:
		return f.unlessTaken(tooDeep())
	case writes(v.Type()):
		return checkOwn(v)
	case v.CanAddr() && v.Kind() != reflect.Pointer && writes(v.Addr().Type()):
		return checkOwn(v.Addr())
	case v.Kind() == reflect.String && v.Type() != numberType:
		return checkText(v.String())
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return f.find(v.Elem(), steps+1)
	case reflect.Array, reflect.Slice:
		return f.element(v, steps)
	case reflect.Map:
		return f.entry(v, steps)
	case reflect.Struct:
		return f.field(v, steps)
	}
	return f.unlessTaken(checkScalar(v))
}

func (f finder) unlessTaken(wrong *notJSON) *notJSON {
	if f.taken {
		return nil
	}
	return wrong
}

// writes reports whether values of a type encode themselves.
func writes(t reflect.Type) bool { return t.Implements(marshalsItself) || t.Implements(writesItself) }

func checkScalar(v reflect.Value) *notJSON {
	if v.Type() == numberType && v.String() != "" && !isNumber(v.String()) {
		return notJSONf("%q is not a JSON number", v.String())
	}
	switch v.Kind() {
	case reflect.Float32, reflect.Float64:
		return checkNumber(v.Float())
	case reflect.Chan:
		return notJSONf("a channel is not a JSON value")
	case reflect.Func:
		return notJSONf("a function is not a JSON value")
	case reflect.Complex64, reflect.Complex128:
		return notJSONf("a complex number is not a JSON number")
	}
	return nil
}

// checkOwn asks a value that writes itself.
func checkOwn(v reflect.Value) *notJSON {
	if !v.CanInterface() {
		return nil
	}
	if _, err := json.Marshal(v.Interface()); err != nil {
		return unwritable(err)
	}
	return nil
}

func (f finder) element(v reflect.Value, steps int) *notJSON {
	if v.Type().Elem().Kind() == reflect.Uint8 { // encoded as base64
		return nil
	}
	for i := range v.Len() {
		if wrong := f.find(v.Index(i), steps+1); wrong != nil {
			return wrong.inArray(i)
		}
	}
	return nil
}

func (f finder) entry(v reflect.Value, steps int) *notJSON {
	entries := map[string]reflect.Value{}
	for key, e := range v.Seq2() {
		text, ok := keyText(key)
		if !ok && !f.taken {
			return notJSONf("the keys of an object are text")
		}
		entries[text] = e
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if wrong := checkKey(key); wrong != nil {
			return wrong
		}
		if wrong := f.find(entries[key], steps+1); wrong != nil {
			return wrong.inObject(key)
		}
	}
	return nil
}

// keyText is a key as encoding/json writes it, if it does.
func keyText(key reflect.Value) (string, bool) {
	if key.Kind() == reflect.String {
		return key.String(), true
	}
	if key.Type().Implements(writesItself) && key.CanInterface() {
		text, err := key.Interface().(encoding.TextMarshaler).MarshalText()
		return string(text), err == nil
	}
	return fmt.Sprint(key), key.CanInt() || key.CanUint()
}

func (f finder) field(v reflect.Value, steps int) *notJSON {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		tag := field.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		if tag == "-" || !field.IsExported() && !field.Anonymous {
			continue
		}
		wrong := f.find(v.Field(i), steps+1)
		switch {
		case wrong == nil:
			continue
		case name == "" && field.Anonymous:
			return wrong
		case name == "":
			name = field.Name
		}
		return wrong.inObject(name)
	}
	return nil
}
