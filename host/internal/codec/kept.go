package codec

import (
	"encoding/json"

	lua "github.com/yuin/gopher-lua"
)

// kept has the parts of a JSON value that a table can't hold: null fields, and numbers whose text
// in Lua is another one. Encoding restores them, so that reading a value does not change it: a
// number while its entry is still the one made for it, null fields while the table has at least as
// many other fields as it had, and in an array all numbers or none. It hides where a [lazyValue]
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

// keeping returns the kept parts of a table that is being filled, and makes them at first use.
func (c *Codec) keeping(t *lua.LTable) *kept {
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
