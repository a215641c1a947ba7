package setting

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"obelus/engine/duration"
	"obelus/engine/lazyregexp"
	"obelus/engine/spell"
	"obelus/store"
)

// Kind is a kind of values.
type Kind struct {
	Want string // what one must be, behind "must be"
	Type string // in annotations for editors

	// Read returns what is kept of a value; it may be converted to the type of the field.
	Read func(v any) (any, error)
}

// errUnfit is the error of Kind.Read that says what the kind wants.
var errUnfit = errors.New("it does not fit")

// Unfit returns the error of a Read whose kind says by itself what it wants.
func Unfit() (any, error) { return nil, errUnfit }

// Match returns the kind of texts that are not empty and that fits accepts.
func Match(want string, fits func(text string) bool) Kind {
	return Kind{want, "string", func(v any) (any, error) {
		if text, _ := v.(string); text != "" && fits(text) {
			return text, nil
		}
		return Unfit()
	}}
}

// Words returns the kind of texts that are one of some words.
func Words(words ...string) Kind {
	return Choice(words, words...)
}

// Choice returns the kind of words that stand for values.
func Choice[T any](values []T, words ...string) Kind {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = strconv.Quote(word)
	}
	last := len(quoted) - 1
	want := strings.Join(quoted[:last], ", ") + " or " + quoted[last]
	return Kind{want, strings.Join(quoted, "|"), func(v any) (any, error) {
		text, _ := v.(string)
		if i := slices.Index(words, text); i >= 0 {
			return values[i], nil
		}
		if near := spell.DidYouMean(text, words); near != "" {
			return nil, Errorf("%s%s", WrongType(want, v), near)
		}
		return Unfit()
	}}
}

// common are the kinds that every form has.
var common = map[string]Kind{
	"bool": {"true or false", "boolean", func(v any) (any, error) {
		if b, ok := v.(bool); ok {
			return b, nil
		}
		return Unfit()
	}},
	"not": {"true or false", "boolean", func(v any) (any, error) { // kept negated
		if b, ok := v.(bool); ok {
			return !b, nil
		}
		return Unfit()
	}},
	"count":    whole("a whole number, not negative", 0),
	"positive": whole("a whole number above 0", 1),
	"depth": {"a whole number above 0", "integer", func(v any) (any, error) {
		n, ok := count(v)
		switch { // a log holds the value with the message around it
		case ok && n > 200:
			return nil, WrongType("at most 200", v)
		case ok && n > 0:
			return n, nil
		}
		return Unfit()
	}},
	"integer": {"a whole number", "integer", func(v any) (any, error) {
		n, ok := v.(json.Number)
		if !ok {
			return Unfit()
		}
		i, err := n.Int64()
		if err != nil {
			return nil, Errorf("must be a whole number, written in at most 18 digits and nothing else")
		}
		return i, nil
	}},
	"size":     {`a size: a number of bytes or text like "64MB"`, "integer|string", readSize},
	"duration": {`a duration: a number of seconds or text like "5s"`, "number|string", readDuration},
	"time": {`a duration: a number of seconds or text like "5s"`, "number|string", func(v any) (any, error) {
		d, err := readDuration(v)
		if d == time.Duration(0) {
			return nil, WrongType("a duration above 0", v)
		}
		return d, err
	}},
	"any":    {"", "any", func(v any) (any, error) { return v, nil }},
	"raw":    {"", "any", func(v any) (any, error) { return json.RawMessage(store.EncodeJSON(v)), nil }},
	"string": {"a string", "string", func(v any) (any, error) { return as[string](v) }},
	"text":   Match("a string", func(string) bool { return true }),
	"table":  {"a table", "table", func(v any) (any, error) { return as[map[string]any](v) }},
}

// as returns a value of a type, and does not fit any other.
func as[T any](v any) (any, error) {
	if t, ok := v.(T); ok {
		return t, nil
	}
	return Unfit()
}

// whole returns the kind of integers from least on.
func whole(want string, least int) Kind {
	return Kind{want, "integer", func(v any) (any, error) {
		if n, ok := count(v); ok && n >= least {
			return n, nil
		}
		return Unfit()
	}}
}

// count reads an integer from 0.
func count(v any) (n int, ok bool) {
	number, _ := v.(json.Number)
	n, err := strconv.Atoi(string(number))
	return n, err == nil && n >= 0
}

// Range returns the kind of numbers between two.
func Range(least, most float64) Kind {
	return Kind{fmt.Sprintf("a number from %g to %g", least, most), "number", func(v any) (any, error) {
		number, _ := v.(json.Number)
		if n, err := number.Float64(); err == nil && n >= least && n <= most {
			return n, nil
		}
		return Unfit()
	}}
}

// readDuration reads a number of seconds, or text like "5s", "1m30s" or "3d".
func readDuration(v any) (any, error) {
	d, err := duration.Read(v)
	if err != nil {
		return Unfit()
	}
	return d, nil
}

// readSize reads a number of bytes, or text like "64MB".
func readSize(v any) (any, error) {
	text, isText := v.(string)
	if n, ok := ParseSize(text); ok && isText {
		return n, nil
	}
	if n, ok := count(v); ok && n > 0 {
		return n, nil
	}
	return Unfit()
}

// kindOf returns the name of the kind of a field: that of its tag or of its type; empty for one
// that holds other values.
func (f *Form) kindOf(t reflect.Type, tag string) string {
	switch {
	case tag != "":
		return tag
	case t == rawMessage:
		return "raw"
	case t == reflect.TypeFor[time.Duration]():
		return "time"
	case t == reflect.TypeFor[map[string]any]():
		return "table"
	}
	switch t.Kind() {
	case reflect.String:
		return f.word("text", "string")
	case reflect.Bool:
		return "bool"
	case reflect.Int, reflect.Int64:
		return "positive"
	case reflect.Interface:
		return "any"
	}
	return ""
}

// kind returns the kind of a name. It panics for a tag without a kind, which the first use finds.
func (f *Form) kind(name string) Kind {
	if kind, ok := f.Kinds[name]; ok {
		return kind
	}
	kind, ok := common[name]
	if !ok {
		panic(fmt.Sprintf("there is no kind %q of values", name))
	}
	return kind
}

// Count reads an integer from 0.
func Count(v any) (int, error) {
	if n, ok := count(v); ok {
		return n, nil
	}
	return 0, WrongType("a whole number, not negative", v)
}

// WrongType returns the error for a value that must be something else, in the words of Lua.
func WrongType(want string, v any) error {
	got := TypeName(v)
	switch v := v.(type) {
	case bool:
		got = strconv.FormatBool(v)
	case json.Number:
		got = string(v)
	case string:
		got = strconv.Quote(v)
	}
	return Errorf("must be %s, not %s", want, got)
}

// TypeName returns the type of a value with its article, in Lua's words.
func TypeName(v any) string {
	switch v.(type) {
	case nil:
		return "nil"
	case []any, map[string]any:
		return "a table"
	}
	return "a " + store.TypeName(v)
}

var sizeText = lazyregexp.New(`^(\d+)\s*([KMG]?)i?B?$`)

// ParseSize reads a number of bytes as the settings have it: "64MB", "500 KB", "100", where a K is
// 1024. It is false for any other text, and for 0.
func ParseSize(text string) (n int, ok bool) {
	m := sizeText().FindStringSubmatch(strings.ToUpper(strings.ReplaceAll(text, "i", "")))
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	factor := map[string]int{"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[m[2]]
	return n * factor, err == nil && n > 0 && n < 1<<40/factor
}
