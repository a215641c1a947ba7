package codec

import (
	"encoding/json"

	lua "github.com/yuin/gopher-lua"
)

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
