package host

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

// meter counts the work of converting. Charge raises in L once there is too much of it; Spent
// reports that, where nothing may be raised.
type meter interface {
	Charge(L *lua.LState, units int)
	Spent(units int) bool
}

// valueCodec carries values between JSON, as package store has it, and Lua. It belongs to one
// state.
type valueCodec struct {
	state  *lua.LState
	thread func() *lua.LState // that runs now, in which a conversion raises
	meter  meter
	limits *limits.Limits

	arrayMark *lua.LTable // metatable of tables that are arrays even if empty
	lazyMeta  *lua.LTable // model of the metatables of tables not filled yet
}

// newCodec returns a codec for the state of L.
func newCodec(L *lua.LState, thread func() *lua.LState, meter meter, limits *limits.Limits) *valueCodec {
	c := &valueCodec{state: L, thread: thread, meter: meter, limits: limits, arrayMark: L.CreateTable(0, 0), lazyMeta: L.CreateTable(0, 2)}
	c.lazyMeta.RawSetString("__index", L.NewFunction(c.lazyIndex))
	c.lazyMeta.RawSetString("__newindex", L.NewFunction(c.lazyNewIndex))
	return c
}

// field is one entry of a library table. Libraries are kept as lists, sorted
// by name, from which each run makes tables of its own.
type field struct {
	name  string
	value lua.LValue
}

// opaque is a value behind userdata that says itself why it is no JSON value.
type opaque interface{ NotJSON() string }

// eager is how many values are converted at once. What lies deeper in a large
// value becomes tables that fill themselves when a script touches them: an
// activity that reads one field of a context of a megabyte pays for the fields
// that lead to it.
const eager = 64

// toLua makes Lua's own copy of a JSON value. The value is kept and read
// later, and must not change. Tables get their keys in sorted order, so that
// pairs is the same every time.
func (c *valueCodec) toLua(v any) lua.LValue {
	left := eager
	return c.value(v, &left)
}

// toLuaLater is toLua for what is seldom looked at.
func (c *valueCodec) toLuaLater(v any) lua.LValue {
	left := 0
	return c.value(v, &left)
}

func (c *valueCodec) value(v any, left *int) lua.LValue {
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
			return c.lazy(v)
		}
		t := c.state.CreateTable(0, len(v))
		c.fillObject(t, v, left)
		return t
	case []any:
		if *left < len(v) {
			return c.lazy(v)
		}
		t := c.state.CreateTable(len(v), 0)
		c.fillArray(t, v, left)
		return t
	}
	panic("host: not a JSON value") // a fault of whoever made it: no script can
}

func (c *valueCodec) fillObject(t *lua.LTable, object map[string]any, left *int) {
	*left -= len(object)
	var few [16]string
	keys := slices.AppendSeq(few[:0], maps.Keys(object))
	long := len(keys) > eager // only a script can ask for it, which may be out of time
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
		made := c.value(v, left)
		t.RawSetString(key, made)
		if n, ok := v.(json.Number); ok && !holds(n) {
			k := c.keeping(t)
			k.numbers = append(k.numbers, keptNumber{lua.LString(key), made, n})
		}
	}
	if len(nulls) > 0 {
		c.keeping(t).nulls = nulls
	}
	if k := keptOf(t); k != nil {
		k.size = len(object) - len(nulls)
	}
}

func (c *valueCodec) fillArray(t *lua.LTable, array []any, left *int) {
	*left -= len(array)
	if len(array) >= maxArray-1 {
		c.thread().RaiseError("an array of %d elements is too long for a script (at most %d)", len(array), maxArray-2)
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
		made := c.value(v, left)
		t.RawSetInt(i+1, made)
		if n, ok := v.(json.Number); ok && !holds(n) {
			k := c.keeping(t)
			k.size, k.numbers = len(array), append(k.numbers, keptNumber{lua.LNumber(i + 1), made, n})
		}
	}
}

// holds tells whether a number of Lua comes back with the same text.
func holds(n json.Number) bool {
	if isPlain(string(n)) {
		return true
	}
	f, ok := numberToLua(n).(lua.LNumber)
	return ok && jsonNumber(float64(f)) == n
}

// isPlain tells of the text of a number that it is surely the one that the number is
// written as; most are.
func isPlain(n string) bool {
	whole, fraction, decimal := strings.Cut(strings.TrimPrefix(n, "-"), ".")
	if len(whole)+len(fraction) > 15 || !luatext.IsDigits(whole) || !luatext.IsDigits(fraction) || whole[0] == '0' && whole != "0" {
		return false
	}
	if !decimal {
		return n != "-0"
	}
	return !strings.HasSuffix(fraction, "0") && !strings.HasPrefix(fraction, "000000") // which has an exponent
}

// kept is what a table can't hold as it was: null fields, and numbers of which Lua has
// another text or none. They come back as they were, so that to look at a value changes
// nothing: a number while its entry is what was made of it, null fields as long as the
// table has at least as many others as it had, and of an array all or none. It hides
// where a [lazyValue] does.
type kept struct {
	nulls   []string
	numbers []keptNumber
	size    int // how many entries the table had
	array   bool
}

type keptNumber struct {
	key, made lua.LValue
	was       json.Number
}

func (*kept) String() string { return "" }

func (*kept) Type() lua.LValueType { return lua.LTUserData }

// keeping gives what is kept of a table that is being filled.
func (c *valueCodec) keeping(t *lua.LTable) *kept {
	k := keptOf(t)
	if k == nil {
		made := &struct {
			meta lua.LTable
			kept kept
		}{kept: kept{array: t.Metatable == c.arrayMark}}
		made.meta.Metatable = &made.kept
		t.Metatable, k = &made.meta, &made.kept
	}
	return k
}

// keptOf gives what is kept of a table, nil if nothing is.
func keptOf(t *lua.LTable) *kept {
	meta, ok := t.Metatable.(*lua.LTable)
	if !ok {
		return nil
	}
	k, _ := meta.Metatable.(*kept)
	return k
}

// unchanged gives the numbers that are kept whose entries are still what was made of
// them.
func (k *kept) unchanged(t *lua.LTable) (numbers []keptNumber) {
	for _, n := range k.numbers {
		if t.RawGet(n.key) == n.made {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// isArray tells of a table that it is an array even if it is empty.
func (c *valueCodec) isArray(t *lua.LTable) bool {
	k := keptOf(t)
	return t.Metatable == c.arrayMark || k != nil && k.array
}

// numberToLua keeps an integer that a Lua number can't hold as its digits.
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

// lazyValue is what a table will be filled from: a map, an array or a library's
// fields. It hides in the table's metatable, in the place of the metatable's own.
type lazyValue struct {
	value any
	peeks int
	made  []peeked
}

// peeked is a table that a script has from one that is not filled yet.
type peeked struct {
	key   lua.LValue
	table *lua.LTable
}

func (*lazyValue) String() string { return "" }

func (*lazyValue) Type() lua.LValueType { return lua.LTUserData }

// maxPeeks is how many fields of a table are read before it is filled.
const maxPeeks = 8

// lazy makes a table that fills one level of itself when it is touched. The
// metatable is a copy of the model, with whose entries it shares the memory.
func (c *valueCodec) lazy(v any) *lua.LTable {
	made := &struct {
		table, meta lua.LTable
		lazyValue   lazyValue
	}{meta: *c.lazyMeta, lazyValue: lazyValue{value: v}}
	made.meta.Metatable = &made.lazyValue
	made.table.Metatable = &made.meta
	return &made.table
}

// owns reports whether a metatable is the codec's own or one that [newMark] made, which scripts
// do not get to see.
func (c *valueCodec) owns(meta *lua.LTable) bool {
	switch meta.Metatable.(type) {
	case *lazyValue, *kept, *mark:
		return true
	}
	return meta == c.arrayMark
}

// mark stands in the place of the metatable of a metatable that is hidden from scripts.
type mark struct{}

func (*mark) String() string       { return "" }
func (*mark) Type() lua.LValueType { return lua.LTUserData }

// newMark returns a metatable that scripts do not get to see, by which the host knows tables.
func newMark() *lua.LTable { return &lua.LTable{Metatable: &mark{}} }

// waiting gives what a table is to be filled from, nil if there is nothing.
func waiting(t *lua.LTable) *lazyValue {
	meta, ok := t.Metatable.(*lua.LTable)
	if !ok {
		return nil
	}
	v, _ := meta.Metatable.(*lazyValue)
	return v
}

// untouched gives the JSON value that a table stands for, as long as nobody can
// have changed it.
func untouched(t *lua.LTable) (any, bool) {
	lazy := waiting(t)
	if lazy == nil || len(lazy.made) > 0 {
		return nil, false
	}
	_, library := lazy.value.([]field)
	return lazy.value, !library
}

// fill fills a table that is waiting for it, and does nothing to any other.
// Every library function that looks into a table calls it first.
func (c *valueCodec) fill(t *lua.LTable) {
	lazy := waiting(t)
	if lazy == nil {
		return
	}
	t.Metatable = lua.LNil
	left := eager
	switch v := lazy.value.(type) {
	case map[string]any:
		left += len(v)
		c.fillObject(t, v, &left)
	case []any:
		left += len(v)
		c.fillArray(t, v, &left)
	case []field:
		for _, f := range v {
			t.RawSetString(f.name, f.value)
		}
	}
	for _, p := range lazy.made {
		t.RawSet(p.key, p.table)
	}
	*lazy = lazyValue{} // it stays with the table, and must not keep the value
}

// peek reads one field of a table that is waiting, without filling it: a script
// that reads a field of a megabyte pays for that field. It reports false if the
// table is better filled.
func (c *valueCodec) peek(t *lua.LTable, key lua.LValue) (lua.LValue, bool) {
	lazy := waiting(t)
	if lazy == nil || lazy.peeks >= maxPeeks {
		return nil, false
	}
	lazy.peeks++
	for _, p := range lazy.made {
		if p.key == key {
			return p.table, true
		}
	}
	var v lua.LValue = lua.LNil
	left := 0
	switch from := lazy.value.(type) {
	case map[string]any:
		if name, ok := key.(lua.LString); ok {
			v = c.value(from[string(name)], &left)
		}
	case []any:
		if len(from) >= maxArray-1 {
			return nil, false // and is refused
		}
		if n, ok := key.(lua.LNumber); ok && n >= 1 && n <= lua.LNumber(len(from)) && n == lua.LNumber(int(n)) {
			if v = luastd.Null; from[int(n)-1] != nil {
				v = c.value(from[int(n)-1], &left)
			}
		}
	case []field:
		for _, f := range from {
			if key == lua.LString(f.name) {
				v = f.value
			}
		}
	}
	if table, ok := v.(*lua.LTable); ok {
		lazy.made = append(lazy.made, peeked{key, table})
	}
	return v, true
}

func (c *valueCodec) lazyIndex(L *lua.LState) int {
	t, key := L.CheckTable(1), L.Get(2)
	v, ok := c.peek(t, key)
	if !ok {
		c.fill(t)
		v = t.RawGet(key)
	}
	L.Push(v)
	return 1
}

func (c *valueCodec) lazyNewIndex(L *lua.LState) int {
	t := L.CheckTable(1)
	c.fill(t)
	L.RawSet(t, L.Get(2), L.Get(3))
	return 0
}

// markArray makes a table an array even while it is empty.
func (c *valueCodec) markArray(t *lua.LTable) {
	c.fill(t)
	if k := keptOf(t); k != nil {
		k.array = true
	} else if t.Metatable == lua.LNil {
		t.Metatable = c.arrayMark
	}
}
