package codec

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/limits"
	"obelus/host/internal/luatext"
	"obelus/luastd"
	"obelus/store"
)

// Bounds of a value from a script. A table can hold another one twice, and so on thirty times,
// which makes a billion values in very little memory.
const (
	maxValues    = 1 << 20
	maxTextBytes = 64 << 20
)

// Encode returns the JSON value of a value from a script. The schema, which may be nil, decides
// whether the digits of a long integer are text or a number; place names the value in errors:
// "result". An empty table is an object unless it is marked as an array; Lists of package
// engine/schema decides about other empty tables. The error is an [*Error].
func (c *Codec) Encode(v lua.LValue, schema any, place string) (any, error) {
	e := encoder{c: c, place: place, root: schema, maxBytes: maxTextBytes}
	return e.value(v, schema)
}

// FromLua is Encode without a schema, as modules of package luastd use it.
func (c *Codec) FromLua(v lua.LValue, place string) (any, error) {
	return c.Encode(v, nil, place)
}

// EncodeResult is Encode for the result of an activity or a planner, which goes into the log.
func (c *Codec) EncodeResult(v lua.LValue, schema any, place string) (any, error) {
	e := encoder{c: c, place: place, root: schema, maxBytes: c.limits.Result, limited: true}
	return e.value(v, schema)
}

// Error is a value that is not JSON, and its place.
type Error struct {
	place, message string
	TooLong        bool // the value is too large
}

func (e *Error) Error() string { return e.place + ": " + e.message }

type encoder struct {
	c        *Codec
	place    string
	path     []any // string keys and int indices from place to the current value
	tables   []*lua.LTable
	values   int
	bytes    int // of text so far
	maxBytes int // bytes at most

	limited bool // the maximum is a setting
	root    any  // schema that $ref refers to
}

func (e *encoder) fail(format string, args ...any) error {
	place := e.place
	for _, step := range e.path {
		switch step := step.(type) {
		case int:
			place += "[" + strconv.Itoa(step) + "]"
		case string:
			if luatext.IsName(step) {
				place += "." + step
			} else {
				place += "[" + strconv.Quote(step) + "]"
			}
		}
	}
	if len(place) > 150 {
		place = strings.ToValidUTF8(place[:100], "") + "…"
	}
	return &Error{place, fmt.Sprintf(format, args...), false}
}

func (e *encoder) value(v lua.LValue, schema any) (any, error) {
	if e.values++; e.values > maxValues {
		return nil, &Error{e.place, fmt.Sprintf("more than %d values", maxValues), false}
	}
	if e.c.meter.Spent(1) {
		return nil, &Error{e.place, limits.OutOfTime, false}
	}
	switch v := v.(type) {
	case *lua.LNilType:
		return nil, nil
	case lua.LBool:
		return bool(v), nil
	case lua.LNumber:
		return e.number(float64(v))
	case lua.LString:
		return e.text(string(v), schema)
	case *lua.LTable:
		return e.table(v, schema)
	}
	if v == luastd.Null {
		return nil, nil
	}
	if u, ok := v.(*lua.LUserData); ok {
		if value, ok := u.Value.(Opaque); ok {
			return nil, e.fail("%s", value.NotJSON())
		}
		if text, ok := ErrorText(v); ok {
			return e.text(text, schema)
		}
		return nil, e.fail("an object of the host is not a JSON value")
	}
	return nil, e.fail("a %s is not a JSON value", v.Type())
}

func (e *encoder) number(f float64) (any, error) {
	switch {
	case math.IsNaN(f):
		return nil, e.fail("NaN is not a JSON number")
	case math.IsInf(f, 0):
		return nil, e.fail("infinity is not a JSON number")
	}
	return jsonNumber(f), nil
}

// maxPlain is the integer from which on integers are written with an exponent, as JavaScript does
// too. Readers that expect an integer refuse an exponent.
const maxPlain = 1e21

// jsonNumber returns text that reads back as the same number: digits alone for an integer below
// maxPlain, else the shortest text. The next script gets an integer beyond 2^53 as text.
func jsonNumber(f float64) json.Number {
	switch whole := f == math.Trunc(f); {
	case whole && math.Abs(f) <= luatext.MaxExact:
		return json.Number(strconv.FormatInt(int64(f), 10))
	case whole && math.Abs(f) < maxPlain:
		return json.Number(strconv.FormatFloat(f, 'f', 0, 64))
	case whole:
		return json.Number(strconv.FormatFloat(f, 'e', -1, 64))
	}
	text, err := json.Marshal(f)
	if err != nil {
		panic(err) // f is finite
	}
	return json.Number(text)
}

func (e *encoder) tooLong() error {
	if e.limited {
		return &Error{e.place, limits.Over("it is too long", "result", e.maxBytes), true}
	}
	return &Error{e.place, fmt.Sprintf("more than %d bytes of text", e.maxBytes), false}
}

// text encodes a string. The digits of an integer too large for a Lua number become that integer
// again at a place for a number.
func (e *encoder) text(v string, schema any) (any, error) {
	if e.bytes += e.textSize(v); e.bytes > e.maxBytes {
		return nil, e.tooLong()
	}
	if !utf8.ValidString(v) {
		return nil, e.fail("the text is not valid UTF-8")
	}
	if len(v) >= 16 && isBigInteger(v) {
		if s, ok := schemaAt(schema, e.root, nil); ok && s.wantsNumber() {
			return json.Number(v), nil
		}
	}
	return v, nil
}

// isBigInteger reports whether text is an integer beyond ±2^53, written as JSON does.
func isBigInteger(v string) bool {
	digits := v
	if v[0] == '-' {
		digits = v[1:]
	}
	if digits == "" || digits[0] == '0' || !luatext.IsDigits(digits) {
		return false
	}
	n, err := strconv.ParseInt(v, 10, 64)
	return err != nil || n > luatext.MaxExact || n < -luatext.MaxExact
}

func (e *encoder) table(t *lua.LTable, schema any) (any, error) {
	if v, ok := Untouched(t); ok { // unchanged since it was made
		values, bytes := e.measure(v)
		if e.values += values; e.values > maxValues {
			return nil, &Error{e.place, fmt.Sprintf("more than %d values", maxValues), false}
		}
		if e.bytes += bytes; e.bytes > e.maxBytes {
			return nil, e.tooLong()
		}
		return v, nil
	}
	e.c.Fill(t)
	if len(e.tables) >= e.c.limits.Depth {
		if i := slices.Index(e.tables, t); i >= 0 {
			e.path = e.path[:min(len(e.path), cycleEnd(e.tables, i))]
			return nil, e.fail("the table contains itself")
		}
		return nil, e.fail("%s", limits.Over("it is nested too deep", "depth", e.c.limits.Depth))
	}
	e.tables = append(e.tables, t)
	value, err := e.contents(t, schema)
	e.tables = e.tables[:len(e.tables)-1]
	return value, err
}

// cycleEnd returns the number of steps to the first table that is inside itself: the shortest place
// that shows the cycle.
func cycleEnd(tables []*lua.LTable, first int) int {
	for i, t := range tables {
		if j := slices.Index(tables[:i], t); j >= 0 {
			return i
		}
	}
	return len(tables) - first
}

func (e *encoder) contents(t *lua.LTable, schema any) (any, error) {
	at, _ := schemaAt(schema, e.root, t)
	n, key := BeyondArray(t)
	marked := e.c.isArray(t)
	switch k := key.(type) {
	case *lua.LNilType:
		if n > 0 || marked {
			return e.array(t, n, at)
		}
		return e.object(t, at)
	case lua.LString:
		if n > 0 {
			return nil, e.fail("the table has the keys 1 to %d and also %q: it is neither an array nor an object", n, string(k))
		}
		return e.object(t, at)
	case lua.LNumber:
		return nil, e.fail("the table has the key %s: the keys of an array are 1, 2, 3 …, those of an object are strings", luatext.FormatNumber(k))
	}
	return nil, e.fail("the table has a %s for a key: keys are strings", key.Type())
}

// BeyondArray returns the number of elements of a table, and its first key besides theirs, or nil.
func BeyondArray(t *lua.LTable) (n int, key lua.LValue) {
	last := lua.LValue(lua.LNil)
	if n = t.Len(); n > 0 {
		last = lua.LNumber(n)
	}
	key, _ = t.Next(last)
	return n, key
}

func (e *encoder) array(t *lua.LTable, n int, at schemaNode) (any, error) {
	array := make([]any, n)
	e.path = append(e.path, 0)
	for i := range array {
		e.path[len(e.path)-1] = i + 1
		v := t.RawGetInt(i + 1)
		if v == lua.LNil {
			return nil, e.fail("a hole in an array: put json.null there")
		}
		var err error
		if array[i], err = e.value(v, at.item(i)); err != nil {
			return nil, err
		}
	}
	e.path = e.path[:len(e.path)-1]
	if k := keptOf(t); k != nil && k.array && k.size == n {
		// Otherwise some would be numbers, and others text.
		if numbers := k.unchanged(t); len(numbers) == len(k.numbers) {
			for _, was := range numbers {
				i := int(was.key.(lua.LNumber)) - 1
				var err error
				if array[i], err = e.restore(array[i], was.was, at.item(i)); err != nil {
					return nil, err
				}
			}
		}
	}
	return array, nil
}

func (e *encoder) object(t *lua.LTable, at schemaNode) (any, error) {
	object := map[string]any{}
	e.path = append(e.path, "")
	for key, v := t.Next(lua.LNil); key != lua.LNil; key, v = t.Next(key) {
		name, ok := key.(lua.LString)
		if !ok {
			e.path = e.path[:len(e.path)-1]
			return nil, e.fail("the table has string keys and also the key %s", KeyText(key))
		}
		e.path[len(e.path)-1] = string(name)
		if e.bytes += e.textSize(string(name)); e.bytes > e.maxBytes {
			return nil, e.tooLong()
		}
		if !utf8.ValidString(string(name)) {
			e.path = e.path[:len(e.path)-1]
			return nil, e.fail("the key %q is not valid UTF-8", string(name))
		}
		var err error
		if object[string(name)], err = e.value(v, at.property(string(name))); err != nil {
			return nil, err
		}
	}
	e.path = e.path[:len(e.path)-1]
	if k := keptOf(t); k != nil && !k.array {
		nulls := slices.DeleteFunc(slices.Clone(k.nulls), func(name string) bool { _, set := object[name]; return set })
		if len(object)-(len(k.nulls)-len(nulls)) < k.size { // a field was removed
			nulls = nil
		}
		for _, was := range k.unchanged(t) {
			name := string(was.key.(lua.LString))
			var err error
			if object[name], err = e.restore(object[name], was.was, at.property(name)); err != nil {
				return nil, err
			}
		}
		for _, name := range nulls {
			if e.values, e.bytes = e.values+1, e.bytes+e.textSize(name); e.bytes > e.maxBytes {
				return nil, e.tooLong()
			}
			object[name] = nil
		}
	}
	return object, nil
}

// restore returns the original number in place of v, unless v is text and the schema wants text.
func (e *encoder) restore(v any, was json.Number, schema any) (any, error) {
	if _, text := v.(string); text {
		if s, ok := schemaAt(schema, e.root, nil); ok && s.allows("string") && !s.allows("integer", "number") {
			return v, nil
		}
	}
	if e.bytes += numberSize(was); e.bytes > e.maxBytes {
		return nil, e.tooLong()
	}
	return was, nil
}

// KeyText returns a key of a table as messages show it.
func KeyText(key lua.LValue) string {
	if n, ok := key.(lua.LNumber); ok {
		return luatext.FormatNumber(n)
	}
	if b, ok := key.(lua.LBool); ok {
		return b.String()
	}
	if text, ok := key.(lua.LString); ok {
		return strconv.Quote(string(text))
	}
	return "that is a " + key.Type().String()
}

// numberSize returns the bytes that a number counts for: none, unless it is long.
func numberSize(n json.Number) int {
	if len(n) <= 32 {
		return 0
	}
	return len(n)
}

// textSize returns the bytes that a text counts for. For a result these are the bytes that the
// log's JSON takes: six times its length for a text of control characters.
func (e *encoder) textSize(text string) int {
	if e.limited {
		return store.StringSize(text)
	}
	return len(text)
}

// measure counts the values in v and the bytes of their text.
func (e *encoder) measure(v any) (values, bytes int) {
	values = 1
	switch v := v.(type) {
	case string:
		bytes = e.textSize(v)
	case json.Number:
		bytes = numberSize(v)
	case map[string]any:
		for key, element := range v {
			n, b := e.measure(element)
			values, bytes = values+n, bytes+b+e.textSize(key)
		}
	case []any:
		for _, element := range v {
			n, b := e.measure(element)
			values, bytes = values+n, bytes+b
		}
	}
	return values, bytes
}

// ErrorText returns the text of an error that an object of the program gave, which scripts have as
// userdata.
func ErrorText(v lua.LValue) (string, bool) {
	u, ok := v.(*lua.LUserData)
	if !ok {
		return "", false
	}
	err, ok := u.Value.(error)
	if !ok {
		return "", false
	}
	return strings.ToValidUTF8(err.Error(), "\ufffd"), true
}
