package repl

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine/lazyregexp"
	"obelus/host/internal/luatext"
)

// Places in a line for something other than a name of Lua, up to the cursor; the last group is its
// beginning. A line of a terminal may say "call tool key=value" and "run plan" without any Lua.
var (
	withinRequire   = lazyregexp.New(`\brequire\s*\(?\s*["']([^"']*)$`)
	withinCall      = lazyregexp.New(`(?:^\s*call\s+|\bcall\s*\(?\s*["'])([^\s"']*)$`)
	withinRun       = lazyregexp.New(`(?:^\s*run\s+|\brun\s*\(?\s*["'])([^\s"']*)$`)
	withinParameter = lazyregexp.New(`(?:^\s*call\s+|\bcall\s*\(?\s*["'])([\w.-]+)(?:["']\s*,?\s*\{(?:.*[,{\s])?|\s(?:.*\s)?)(\w*)$`)
	withinName      = lazyregexp.New(`((?:[A-Za-z_]\w*\s*[.:]\s*)*)((?:[A-Za-z_]\w*)?)$`)
)

// Complete returns the words that can stand at the end of a line with this beginning, sorted. Each
// replaces line[from:].
func (r *Session) Complete(line string) (from int, words []string) {
	defer func() { recover() }() // a table can be too large to be read
	for _, place := range []struct {
		within func() *regexp.Regexp
		names  func(m []string) []string
	}{
		{withinRequire, func([]string) []string { return r.s.Project.ModuleNames() }},
		{withinCall, func([]string) []string { return r.toolNames() }},
		{withinRun, func([]string) []string { return r.gen.PlanFiles() }},
		{withinParameter, func(m []string) []string { return r.parameterNames(m[1]) }},
		{withinName, func(m []string) []string { return r.names(m[1]) }},
	} {
		if m := place.within().FindStringSubmatch(line); m != nil {
			begun := m[len(m)-1]
			words = beginningWith(place.names(m), begun)
			if len(words) == 1 && words[0] == begun && slices.Contains(luatext.Keywords, begun) {
				words[0] += " " // a tab after it may come from pasted text
			}
			return len(line) - len(begun), words
		}
	}
	return len(line), nil
}

func beginningWith(names []string, begun string) []string {
	var words []string
	for _, name := range names {
		if strings.HasPrefix(name, begun) {
			words = append(words, name)
		}
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// names returns the fields of the expression before a name: "a.b:" or nothing, which is the
// globals. It calls no metamethod of a script.
func (r *Session) names(before string) []string {
	s := r.s
	if before == "" {
		names := append(slices.Collect(maps.Keys(s.Globals)), slices.Collect(maps.Keys(s.Libs))...)
		names = append(names, luatext.Keywords...)
		names = append(names, tableNames(s.Run.Env)...)
		return slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, "\x00") })
	}
	var at lua.LValue = s.Run.Env
	for _, name := range strings.FieldsFunc(before, func(c rune) bool { return strings.ContainsRune(" \t.:", c) }) {
		t, ok := at.(*lua.LTable)
		if !ok {
			return nil
		}
		s.Fill(t)
		if at = t.RawGetString(name); at == lua.LNil && t == s.Run.Env {
			at = s.Lookup(name)
		}
	}
	switch v := at.(type) {
	case *lua.LTable:
		s.Fill(v)
		return append(tableNames(v), inheritedNames(v, 0)...)
	case lua.LString:
		return tableNames(s.StringLib)
	}
	return nil
}

// inheritedNames returns the names that a table has by __index.
func inheritedNames(t *lua.LTable, depth int) []string {
	meta, ok := t.Metatable.(*lua.LTable)
	if !ok || depth > 10 {
		return nil
	}
	index, ok := meta.RawGetString("__index").(*lua.LTable)
	if !ok {
		return nil
	}
	return append(tableNames(index), inheritedNames(index, depth+1)...)
}

func tableNames(t *lua.LTable) (names []string) {
	for key, _ := t.Next(lua.LNil); key != lua.LNil; key, _ = t.Next(key) {
		if name, ok := key.(lua.LString); ok && luatext.IsName(string(name)) {
			names = append(names, string(name))
		}
	}
	return names
}

func (r *Session) toolNames() []string {
	registry := r.gen.Registry()
	return append(slices.Collect(maps.Keys(registry.Tools)), slices.Collect(maps.Keys(registry.Activities))...)
}

// parameterNames returns the parameters of a tool as they are given: name=.
func (r *Session) parameterNames(tool string) (names []string) {
	known, ok := r.gen.Registry().Tool(tool)
	if !ok {
		return nil
	}
	for name := range propertiesOf(known.Schema) {
		names = append(names, name+"=")
	}
	return names
}

// propertiesOf returns a schema's properties that are not part of the protocol.
func propertiesOf(schema any) map[string]any {
	object, _ := schema.(map[string]any)
	properties, _ := object["properties"].(map[string]any)
	properties = maps.Clone(properties)
	maps.DeleteFunc(properties, func(name string, _ any) bool { return strings.HasPrefix(name, "_") })
	return properties
}
