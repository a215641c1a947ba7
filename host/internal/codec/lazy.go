package codec

import (
	"encoding/json"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/limits"
	"obelus/luastd"
)

// lazyValue is the source of a table that is not filled yet: a map, an array or a library. It hides
// in the place of the metatable of the table's metatable.
type lazyValue struct {
	value any
	peeks int
	made  []peeked
}

func (*lazyValue) String() string { return "" }

func (*lazyValue) Type() lua.LValueType { return lua.LTUserData }

// peeked is a table that a script got from one that is not filled yet.
type peeked struct {
	key   lua.LValue
	table *lua.LTable
}

// maxPeeks is the number of fields that are read from a table before it is filled.
const maxPeeks = 8

// Lazy returns a table that fills one level of itself when it is touched. Its metatable is a copy
// of the model, whose entries it shares.
func (c *Codec) Lazy(v any) *lua.LTable {
	made := &struct {
		table, meta lua.LTable
		lazyValue   lazyValue
	}{meta: *c.lazyMeta, lazyValue: lazyValue{value: v}}
	made.meta.Metatable = &made.lazyValue
	made.table.Metatable = &made.meta
	return &made.table
}

// sourceOf returns the source of a table that is not filled yet, or nil.
func sourceOf(t *lua.LTable) *lazyValue {
	meta, ok := t.Metatable.(*lua.LTable)
	if !ok {
		return nil
	}
	v, _ := meta.Metatable.(*lazyValue)
	return v
}

// Untouched returns the JSON value that a table stands for, as long as it cannot have changed.
func Untouched(t *lua.LTable) (any, bool) {
	lazy := sourceOf(t)
	if lazy == nil || len(lazy.made) > 0 {
		return nil, false
	}
	_, isLibrary := lazy.value.(Library)
	return lazy.value, !isLibrary
}

// LibraryOf returns the source of a library's table that is not filled yet; unread is false for any
// other table.
func (c *Codec) LibraryOf(t *lua.LTable) (source Library, unread bool) {
	lazy := sourceOf(t)
	if lazy == nil || len(lazy.made) > 0 {
		return nil, false
	}
	source, unread = lazy.value.(Library)
	return source, unread
}

// Fill fills a table that is not filled yet. Every library function that looks into a table calls
// it first.
func (c *Codec) Fill(t *lua.LTable) {
	lazy := sourceOf(t)
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
	case Library:
		v.FillTable(t)
	}
	for _, p := range lazy.made {
		t.RawSet(p.key, p.table)
	}
	*lazy = lazyValue{} // it stays with the table, and must not keep the value
}

// peek reads one field of a table without filling it, so that reading a field of a megabyte costs
// only that field. It reports false if the table should be filled.
func (c *Codec) peek(t *lua.LTable, key lua.LValue) (lua.LValue, bool) {
	lazy := sourceOf(t)
	if lazy == nil || lazy.peeks >= maxPeeks {
		return nil, false
	}
	lazy.peeks++
	for _, p := range lazy.made {
		if p.key == key {
			return p.table, true
		}
	}
	v := lua.LNil
	left := 0
	switch from := lazy.value.(type) {
	case map[string]any:
		if name, ok := key.(lua.LString); ok {
			v = c.convert(from[string(name)], &left)
		}
	case []any:
		if len(from) >= limits.MaxArray-1 {
			return nil, false // which filling refuses
		}
		if n, ok := key.(lua.LNumber); ok && n >= 1 && n <= lua.LNumber(len(from)) && n == lua.LNumber(int(n)) {
			if v = luastd.Null; from[int(n)-1] != nil {
				v = c.convert(from[int(n)-1], &left)
			}
		}
	case Library:
		v = from.LookupField(key)
	}
	if table, ok := v.(*lua.LTable); ok {
		lazy.made = append(lazy.made, peeked{key, table})
	}
	return v, true
}

func (c *Codec) lazyIndex(L *lua.LState) int {
	t, key := L.CheckTable(1), L.Get(2)
	v, ok := c.peek(t, key)
	if !ok {
		c.Fill(t)
		v = t.RawGet(key)
	}
	L.Push(v)
	return 1
}

func (c *Codec) lazyNewIndex(L *lua.LState) int {
	t := L.CheckTable(1)
	c.Fill(t)
	L.RawSet(t, L.Get(2), L.Get(3))
	return 0
}

// kept has the parts of a JSON value that a table can't hold: null fields, and numbers whose text
// in Lua is another one. Encoding restores them, so that reading a value does not change it: a
// number while its entry is still the one made for it, null fields while the table has at least as
// many other fields as it had, and in an array all numbers or none. It hides where a lazyValue
// does.
type kept struct {
	nulls   []string
	numbers []keptNumber
	size    int // number of entries that the table had
	array   bool
}

type keptNumber struct {
	key, made lua.LValue
	was       json.Number
}

func (*kept) String() string { return "" }

func (*kept) Type() lua.LValueType { return lua.LTUserData }

// keptFor returns the kept parts of a table that is being filled, and makes them at first use.
func (c *Codec) keptFor(t *lua.LTable) *kept {
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

// keptOf returns the kept parts of a table, or nil.
func keptOf(t *lua.LTable) *kept {
	meta, ok := t.Metatable.(*lua.LTable)
	if !ok {
		return nil
	}
	k, _ := meta.Metatable.(*kept)
	return k
}

// unchanged returns the kept numbers whose entries have not been assigned since.
func (k *kept) unchanged(t *lua.LTable) (numbers []keptNumber) {
	for _, n := range k.numbers {
		if t.RawGet(n.key) == n.made {
			numbers = append(numbers, n)
		}
	}
	return numbers
}
