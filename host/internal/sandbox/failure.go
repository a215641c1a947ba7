package sandbox

import (
	"fmt"
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"

	"obelus/store"
)

// FailureFields returns the fields of a failure for a value that a script returned after nil, or
// raised: text, or a table, which gets a message if it has none.
func FailureFields(s *State, v lua.LValue) (map[string]any, error) {
	value, err := s.FromLua(v, "error")
	if err != nil { // perhaps for bytes that are not UTF-8
		m := textMapper{s: s, of: visibleText, charge: func() {}, made: map[*lua.LTable]*lua.LTable{}}
		v = m.value(v, 0)
		value, err = s.FromLua(v, "error")
	}
	if err != nil {
		return nil, err
	}
	t, isTable := v.(*lua.LTable)
	if !isTable {
		message := "failed"
		if value != nil {
			message = s.PlainText(v)
		}
		return map[string]any{"message": message}, nil
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return map[string]any{"message": string(store.EncodeJSON(value))}, nil
	}
	if _, ok := fields["message"].(string); ok {
		return fields, nil
	}
	copied := map[string]any{}
	for name, field := range fields {
		copied[name] = field
	}
	copied["message"], err = s.FromLua(lua.LString(visibleText(tableMessage(s, t, fields))), "error")
	return copied, err
}

// visibleText returns a text in which bytes that are not UTF-8 are escaped as in Lua.
func visibleText(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, "\\%03d", text[i])
		} else {
			b.WriteString(text[i : i+n])
		}
		i += n
	}
	return b.String()
}

// tableMessage returns a message for an error table without one: the result of __tostring, its
// code, or all of it.
func tableMessage(s *State, t *lua.LTable, fields map[string]any) string {
	if s.L.GetMetaField(t, "__tostring") != lua.LNil {
		if text := s.PlainText(t); text != "" {
			return text
		}
	}
	if code, ok := fields["code"].(string); ok {
		return code
	}
	if len(fields) == 0 {
		return "failed"
	}
	return string(store.EncodeJSON(fields))
}

// PlainText is tostring outside of a protected call; empty if it fails.
func (s *State) PlainText(v lua.LValue) string {
	L := s.L
	top := L.GetTop()
	defer L.SetTop(top)
	err := L.CallByParam(lua.P{Fn: s.Globals["tostring"], NRet: 1, Protect: true}, v)
	if err != nil {
		return ""
	}
	return lua.LVAsString(L.Get(-1))
}

// MapTexts pushes the first argument with every text in it mapped.
func MapTexts(s *State, L *lua.LState, of func(string) string) int {
	m := textMapper{s: s, of: of, charge: func() { s.Budget.Charge(L, 1) }, made: map[*lua.LTable]*lua.LTable{}}
	L.Push(m.value(L.CheckAny(1), 0))
	return 1
}

// textMapper copies a value with every text in it mapped. Keys stay as they are, and so do tables
// deeper than a value may be.
type textMapper struct {
	s      *State
	of     func(string) string
	charge func() // called for each value
	made   map[*lua.LTable]*lua.LTable
}

func (m *textMapper) value(v lua.LValue, depth int) lua.LValue {
	m.charge()
	switch v := v.(type) {
	case lua.LString:
		return lua.LString(m.of(string(v)))
	case *lua.LTable:
		if made, ok := m.made[v]; ok {
			return made
		}
		if depth > m.s.Project.Limits.Depth {
			return v
		}
		m.s.Fill(v)
		made := m.s.L.CreateTable(v.Len(), 0)
		made.Metatable = v.Metatable // has the mark of an array, and kept numbers
		m.made[v] = made
		for key, e := v.Next(lua.LNil); key != lua.LNil; key, e = v.Next(key) {
			made.RawSet(key, m.value(e, depth+1))
		}
		return made
	}
	return v
}
