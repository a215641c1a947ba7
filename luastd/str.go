package luastd

import (
	"context"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// str: text, without patterns. In Lua:
//
//	local str = require("str")
//	local first, second = unpack(str.split("key=value", "="))
var strFuncs = []Func{
	{"contains", strContains},
	{"ends", strEnds},
	{"lines", strLines},
	{"replace", strReplace},
	{"split", strSplit},
	{"starts", strStarts},
	{"trim", strTrim},
}

// str.contains(s, part) → boolean; part is plain text
func strContains(e *Env, L *lua.LState) int {
	s, part := L.CheckString(1), L.CheckString(2)
	e.charge(L, len(s)/64+1)
	L.Push(lua.LBool(strings.Contains(s, part)))
	return 1
}

// str.ends(s, suffix) → boolean
func strEnds(e *Env, L *lua.LState) int {
	L.Push(lua.LBool(strings.HasSuffix(L.CheckString(1), L.CheckString(2))))
	return 1
}

// str.lines(s) → array of the lines, without their ends
func strLines(e *Env, L *lua.LState) int {
	s := L.CheckString(1)
	e.charge(L, len(s)/16+1)
	e.limitArray(L, strings.Count(s, "\n"))
	var lines []string
	for line := range strings.Lines(s) {
		lines = append(lines, strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"))
	}
	L.Push(e.stringArray(L, lines))
	return 1
}

// str.replace(s, old, new, [count]) → s with old replaced, all of it or the
// first count; old is plain text
func strReplace(e *Env, L *lua.LState) int {
	s, old, with, count := L.CheckString(1), L.CheckString(2), L.CheckString(3), L.OptInt(4, -1)
	if old == "" {
		L.ArgError(2, "must not be empty")
	}
	found := strings.Count(s, old)
	if count >= 0 {
		found = min(found, count)
	}
	size := len(s) + found*max(len(with)-len(old), 0)
	if size > e.maxString() {
		e.limit(L, size)
	}
	e.aside(L, size/16+1, func(context.Context) { s = strings.Replace(s, old, with, count) })
	L.Push(lua.LString(s))
	return 1
}

// str.split(s, [separator]) → array of the parts; without a separator the
// words between white space
func strSplit(e *Env, L *lua.LState) int {
	s := L.CheckString(1)
	e.charge(L, len(s)/16+1)
	if L.Get(2) == lua.LNil {
		e.limitArray(L, len(s)/2)
		L.Push(e.stringArray(L, strings.Fields(s)))
		return 1
	}
	separator := L.CheckString(2)
	if separator == "" {
		L.ArgError(2, "must not be empty")
	}
	e.limitArray(L, strings.Count(s, separator)+1)
	L.Push(e.stringArray(L, strings.Split(s, separator)))
	return 1
}

// str.starts(s, prefix) → boolean
func strStarts(e *Env, L *lua.LState) int {
	L.Push(lua.LBool(strings.HasPrefix(L.CheckString(1), L.CheckString(2))))
	return 1
}

// str.trim(s, [characters]) → s without white space, or those characters, at
// both ends
func strTrim(e *Env, L *lua.LState) int {
	s := L.CheckString(1)
	if L.Get(2) == lua.LNil {
		e.charge(L, len(s)/64+1)
		L.Push(lua.LString(strings.TrimSpace(s)))
		return 1
	}
	characters := L.CheckString(2)
	e.aside(L, (len(s)+len(characters))/16+1, func(context.Context) {
		set := map[rune]bool{} // a search in characters for each of s would take hours
		for _, r := range characters {
			set[r] = true
		}
		s = strings.TrimFunc(s, func(r rune) bool { return set[r] })
	})
	L.Push(lua.LString(s))
	return 1
}
