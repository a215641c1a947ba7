// Package codec converts values between JSON, as package store has them, and Lua. Large values
// become tables that fill themselves when a script reads them, and a value that a script has not
// changed keeps its text. codec.go and lazy.go lead into Lua, encode.go out of it.
package codec

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/limits"
	"obelus/host/internal/luatext"
	"obelus/luastd"
)

// Meter counts the work of converting values. Charge raises in L once there is too much of it;
// Spent reports that instead, for code that must not raise.
type Meter interface {
	Charge(L *lua.LState, units int)
	Spent(units int) bool
}

// Codec converts values between JSON, as package store has them, and Lua. It belongs to one state.
type Codec struct {
	state  *lua.LState
	thread func() *lua.LState // thread that runs now, in which a conversion raises
	meter  Meter
	limits *limits.Limits

	arrayMark *lua.LTable // metatable of tables that are arrays even if empty
	lazyMeta  *lua.LTable // model of the metatables of tables that are not filled yet
}

// New returns a codec for the state of L.
func New(L *lua.LState, thread func() *lua.LState, meter Meter, limits *limits.Limits) *Codec {
	c := &Codec{state: L, thread: thread, meter: meter, limits: limits, arrayMark: L.CreateTable(0, 0), lazyMeta: L.CreateTable(0, 2)}
	c.lazyMeta.RawSetString("__index", L.NewFunction(c.lazyIndex))
	c.lazyMeta.RawSetString("__newindex", L.NewFunction(c.lazyNewIndex))
	return c
}

// Library is the source of a table without a JSON value behind it.
type Library interface {
	FillTable(t *lua.LTable)
	LookupField(key lua.LValue) lua.LValue
}

// Opaque is a value behind userdata that is not JSON. NotJSON returns the error for it.
type Opaque interface{ NotJSON() string }

// Owns reports whether a metatable is the codec's own or one that [NewMark] made. Scripts do not
// see them.
func (c *Codec) Owns(meta *lua.LTable) bool {
	switch meta.Metatable.(type) {
	case *lazyValue, *kept:
		return true
	}
	return c.IsMark(meta)
}

// IsMark reports whether a metatable is one that all tables of a kind share: that of arrays, or one
// that [NewMark] made.
func (c *Codec) IsMark(meta *lua.LTable) bool {
	_, made := meta.Metatable.(*mark)
	return made || meta == c.arrayMark
}

// mark is the metatable of a metatable that is hidden from scripts.
type mark struct{}

func (*mark) String() string { return "" }

func (*mark) Type() lua.LValueType { return lua.LTUserData }

// NewMark returns a metatable that scripts do not see, by which the host recognises tables.
func NewMark() *lua.LTable { return &lua.LTable{Metatable: &mark{}} }

// eager is the number of values that are converted at once. Deeper parts of a large value become
// tables that fill themselves when a script touches them: an activity that reads one field of a
// context of a megabyte pays for the fields that lead to it.
const eager = 64

// ToLua returns Lua's own copy of a JSON value. The value is kept and read later, and must not
// change. Tables get their keys in sorted order, so that pairs is the same every time.
func (c *Codec) ToLua(v any) lua.LValue {
	left := eager
	return c.convert(v, &left)
}

// ToLuaLater is ToLua for a value that is rarely looked at.
func (c *Codec) ToLuaLater(v any) lua.LValue {
	left := 0
	return c.convert(v, &left)
}

func (c *Codec) convert(v any, left *int) lua.LValue {
	switch v := v.(type) {
	case nil:
		return lua.LNil
	case bool:
		return lua.LBool(v)
	case string:
		return lua.LString(v)
	case json.Number:
		return numberToLua(v)
	case float64:
		return lua.LNumber(v)
	case int:
		return numberToLua(json.Number(strconv.Itoa(v)))
	case int64:
		return numberToLua(json.Number(strconv.FormatInt(v, 10)))
	case map[string]any:
		if len(v) == 0 {
			return c.state.CreateTable(0, 0)
		}
		if *left < len(v) {
			return c.Lazy(v)
		}
		t := c.state.CreateTable(0, len(v))
		c.fillObject(t, v, left)
		return t
	case []any:
		if *left < len(v) {
			return c.Lazy(v)
		}
		t := c.state.CreateTable(len(v), 0)
		c.fillArray(t, v, left)
		return t
	}
	panic("host: not a JSON value") // a bug of the caller: scripts can't cause it
}

func (c *Codec) fillObject(t *lua.LTable, object map[string]any, left *int) {
	*left -= len(object)
	var few [16]string
	keys := slices.AppendSeq(few[:0], maps.Keys(object))
	long := len(keys) > eager // the script that asks for it may be out of time
	if !long {
		slices.Sort(keys)
	} else {
		slices.SortFunc(keys, func(a, b string) int {
			c.meter.Charge(c.thread(), 1)
			return strings.Compare(a, b)
		})
	}
	var nulls []string
	for _, key := range keys {
		if long {
			c.meter.Charge(c.thread(), 1)
		}
		v := object[key]
		if v == nil {
			nulls = append(nulls, key)
			continue
		}
		made := c.convert(v, left)
		t.RawSetString(key, made)
		if n, ok := v.(json.Number); ok && !keepsText(n) {
			k := c.keptFor(t)
			k.numbers = append(k.numbers, keptNumber{lua.LString(key), made, n})
		}
	}
	if len(nulls) > 0 {
		c.keptFor(t).nulls = nulls
	}
	if k := keptOf(t); k != nil {
		k.size = len(object) - len(nulls)
	}
}

func (c *Codec) fillArray(t *lua.LTable, array []any, left *int) {
	*left -= len(array)
	if len(array) >= limits.MaxArray-1 {
		c.thread().RaiseError("an array of %d elements is too long for a script (at most %d)", len(array), limits.MaxArray-2)
	}
	t.Metatable = c.arrayMark
	long := len(array) > eager
	for i, v := range array {
		if long {
			c.meter.Charge(c.thread(), 1)
		}
		if v == nil {
			t.RawSetInt(i+1, luastd.Null)
			continue
		}
		made := c.convert(v, left)
		t.RawSetInt(i+1, made)
		if n, ok := v.(json.Number); ok && !keepsText(n) {
			k := c.keptFor(t)
			k.size, k.numbers = len(array), append(k.numbers, keptNumber{lua.LNumber(i + 1), made, n})
		}
	}
}

// keepsText reports whether a number gets the same text again from Lua.
func keepsText(n json.Number) bool {
	if isPlain(string(n)) {
		return true
	}
	f, ok := numberToLua(n).(lua.LNumber)
	return ok && jsonNumber(float64(f)) == n
}

// isPlain reports whether a number's text is surely the text that Lua gives for it, as most are.
func isPlain(n string) bool {
	whole, fraction, decimal := strings.Cut(strings.TrimPrefix(n, "-"), ".")
	if len(whole)+len(fraction) > 15 || !luatext.IsDigits(whole) || !luatext.IsDigits(fraction) || whole[0] == '0' && whole != "0" {
		return false
	}
	if !decimal {
		return n != "-0"
	}
	// Such a number has an exponent.
	return !strings.HasSuffix(fraction, "0") && !strings.HasPrefix(fraction, "000000")
}

// isArray reports whether a table is an array even if it is empty.
func (c *Codec) isArray(t *lua.LTable) bool {
	k := keptOf(t)
	return t.Metatable == c.arrayMark || k != nil && k.array
}

// numberToLua converts a number. An integer that a Lua number can't hold becomes its digits.
func numberToLua(n json.Number) lua.LValue {
	text := string(n)
	if len(text) <= 15 || strings.ContainsAny(text, ".eE") {
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return lua.LNumber(f)
		}
		return lua.LString(text)
	}
	if i, err := strconv.ParseInt(text, 10, 64); err == nil && i >= -luatext.MaxExact && i <= luatext.MaxExact {
		return lua.LNumber(i)
	}
	return lua.LString(text)
}

// MarkArray makes a table an array even while it is empty.
func (c *Codec) MarkArray(t *lua.LTable) {
	c.Fill(t)
	if k := keptOf(t); k != nil {
		k.array = true
	} else if t.Metatable == lua.LNil {
		t.Metatable = c.arrayMark
	}
}
