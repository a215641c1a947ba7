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

	// Schema is the JSON Schema of values in requests; nil for none that says more than the type.
	Schema map[string]any

	// Read returns what is kept of a value, which is converted to the type of the field; nil leaves it
	// alone.
	Read func(v any) (any, error)

	// Table is set in place of the others for a table whose type has no tags: a struct with the same
	// fields and the tags.
	Table reflect.Type
}

// errUnfit is the error of Kind.Read that says what the kind wants.
var errUnfit = errors.New("it does not fit")

// Unfit returns the error of a Read whose kind says by itself what it wants.
func Unfit() (any, error) { return nil, errUnfit }

// Of returns the kind of values of one type.
func Of[T any](want, annotation string, read func(v T) (any, error)) Kind {
	return Kind{Want: want, Type: annotation, Read: func(v any) (any, error) {
		if of, ok := v.(T); ok {
			return read(of)
		}
		return Unfit()
	}}
}

// Same returns the value itself.
func Same[T any](v T) (any, error) { return v, nil }

// Match returns the kind of texts that are not empty and that fits accepts.
func Match(want string, fits func(text string) bool) Kind {
	return Of(want, "string", func(text string) (any, error) {
		if text == "" || !fits(text) {
			return Unfit()
		}
		return text, nil
	})
}

// Words returns the kind of texts that are one of some words.
func Words(words ...string) Kind { return Choice(words, words...) }

// Choice returns the kind of words that stand for values.
func Choice[T any](values []T, words ...string) Kind {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = strconv.Quote(word)
	}
	last := len(quoted) - 1
	want := strings.Join(quoted[:last], ", ") + " or " + quoted[last]
	return Of(want, strings.Join(quoted, "|"), func(text string) (any, error) {
		if i := slices.Index(words, text); i >= 0 {
			return values[i], nil
		}
		return nil, Errorf("%s%s", WrongType(want, text), spell.DidYouMean(text, words))
	})
}

// Lower returns a kind of texts that may have capital letters too.
func Lower(kind Kind) Kind {
	read := kind.Read
	kind.Read = func(v any) (any, error) {
		if text, ok := v.(string); ok {
			if got, err := read(strings.ToLower(text)); err == nil {
				return got, nil
			}
		}
		return read(v)
	}
	return kind
}

// whole returns the kind of integers from least on.
func whole(want string, least int) Kind {
	kind := Of(want, "integer", func(number json.Number) (any, error) {
		if n, err := strconv.Atoi(string(number)); err == nil && n >= least {
			return n, nil
		}
		return Unfit()
	})
	kind.Schema = map[string]any{"type": "integer", "minimum": least}
	return kind
}

// Range returns the kind of numbers between two.
func Range(least, most float64) Kind {
	return Of(fmt.Sprintf("a number from %g to %g", least, most), "number", func(number json.Number) (any, error) {
		if n, err := number.Float64(); err == nil && n >= least && n <= most {
			return n, nil
		}
		return Unfit()
	})
}

// Kinds that others are made of.
var (
	NonEmpty = Match("a string", func(string) bool { return true })
	Positive = whole("a whole number above 0", 1)
	Size     = Kind{Want: `a size: a number of bytes or text like "64MB"`, Type: "integer|string", Read: readSize}
	Texts    = Kind{Want: "a list of strings", Type: "string[]", Read: readTexts}
)

// wantDuration is what a duration must be.
const wantDuration = `a duration: a number of seconds or text like "5s"`

// common are the kinds that every form has.
var common = map[string]Kind{
	"any":      {Type: "any", Read: Same[any]},
	"bool":     Of("true or false", "boolean", Same[bool]),
	"count":    whole("a whole number, not negative", 0),
	"depth":    {Want: Positive.Want, Type: "integer", Read: readDepth},
	"duration": {Want: wantDuration, Type: "number|string", Read: readDuration},
	"integer":  Of("a whole number", "integer", readInteger),
	"not":      Of("true or false", "boolean", func(b bool) (any, error) { return !b, nil }), // kept negated
	"positive": Positive,
	"raw":      {Type: "any", Read: func(v any) (any, error) { return json.RawMessage(store.EncodeJSON(v)), nil }},
	"size":     Size,
	"string":   Of("a string", "string", Same[string]),
	"table":    Of("a table", "table", Same[map[string]any]),
	"text":     NonEmpty,
	"texts":    Texts,
	"time":     {Want: wantDuration, Type: "number|string", Read: readTime},
}

// readDepth reads a depth of values that a log can hold together with the message around them.
func readDepth(v any) (any, error) {
	n, err := Positive.Read(v)
	if err == nil && n.(int) > 200 {
		return nil, WrongType("at most 200", v)
	}
	return n, err
}

func readInteger(number json.Number) (any, error) {
	n, err := number.Int64()
	if err != nil {
		return nil, Errorf("must be a whole number, written in at most 18 digits and nothing else")
	}
	return n, nil
}

// readDuration reads a number of seconds, or text like "5s", "1m30s" or "3d".
func readDuration(v any) (any, error) {
	d, err := duration.Read(v)
	if err != nil {
		return Unfit()
	}
	return d, nil
}

// readTime reads a duration above 0.
func readTime(v any) (any, error) {
	d, err := readDuration(v)
	if d == time.Duration(0) {
		return nil, WrongType("a duration above 0", v)
	}
	return d, err
}

// readSize reads a number of bytes, or text like "64MB".
func readSize(v any) (any, error) {
	text, isText := v.(string)
	if !isText {
		return Positive.Read(v)
	}
	if n, ok := ParseSize(text); ok {
		return n, nil
	}
	return Unfit()
}

// readTexts reads a list of texts. One of Lua that is empty may be a table.
func readTexts(v any) (any, error) {
	list, ok := v.([]any)
	if object, isObject := v.(map[string]any); isObject && len(object) == 0 {
		ok = true
	}
	texts := make([]string, len(list))
	for i, e := range list {
		text, isText := e.(string)
		texts[i], ok = text, ok && isText
	}
	if !ok {
		return Unfit()
	}
	return texts, nil
}

// KindOf returns the kind of the values of a field; ok is false for tables and lists that have
// none.
func (f *Form) KindOf(field Field) (kind Kind, ok bool) { return f.kindOf(field.Type, field.Kind) }

// kindOf returns the kind of the values of a Go type, or that of a tag; ok is false for tables and
// lists that have none.
func (f *Form) kindOf(t reflect.Type, tag string) (kind Kind, ok bool) {
	switch {
	case tag != "":
	case t == rawMessage:
		tag = "raw"
	case t == reflect.TypeFor[time.Duration]():
		tag = "time"
	case t == reflect.TypeFor[map[string]any]():
		tag = "table"
	case t == reflect.TypeFor[[]string]() && !f.JSON:
		tag = "texts"
	case t.Kind() == reflect.String:
		tag = f.word("text", "string")
	case t.Kind() == reflect.Bool:
		tag = "bool"
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		tag = "positive"
	case t.Kind() == reflect.Interface:
		tag = "any"
	default:
		return Kind{}, false
	}
	if kind, ok = f.Kinds[tag]; !ok {
		kind, ok = common[tag]
	}
	if !ok {
		panic(fmt.Sprintf("there is no kind %q of values", tag)) // the first use of the table finds it
	}
	return kind, true
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
