package luastd

import (
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// re: regular expressions, in the syntax of RE2, whose time grows with the
// text alone and not with near matches. In Lua:
//
//	local re = require("re")
//	local year, month = re.match("due 2024-05-01", [[(\d{4})-(\d\d)]])
//	local clean = re.gsub(text, [[\s+]], " ")
//	local words = re.split("a, b;c", "[,;] *")
//
// Patterns are best written in [[ ]], where \ is itself. Positions are in
// bytes from 1, as in Lua's string; a group that took no part in the match
// gives false. Where a search begins at init, ^ and \b see the beginning of a
// text there. (?i) ignores case, (?s) lets . match line ends, (?m) lets ^ and $
// match at lines. Backreferences and look-around do not exist.
//
// A pattern that can't be read raises, as does one of more than 32 KiB or one
// that would compile to more than some 5000 steps.
var reFuncs = []Func{
	{"find", reFind},
	{"gsub", reGsub},
	{"match", reMatch},
	{"split", reSplit},
}

// re.find(s, pattern, [init]) → first, last, captures… | nil
func reFind(e *Env, L *lua.LState) int {
	s, found := e.search(L)
	if found == nil {
		L.Push(lua.LNil)
		return 1
	}
	L.Push(lua.LNumber(found[0] + 1))
	L.Push(lua.LNumber(found[1]))
	return 2 + pushCaptures(L, s, found[2:])
}

// re.gsub(s, pattern, replacement, [n]) → s with the matches replaced, all or
// the first n, and how many
//
// The replacement is text, in which %0 is the match, %1 to %9 its captures and
// %% a %; a table, asked for the first capture, or for the match if there is
// none; or a function, called with the captures, or with the match. What gives
// nil or false leaves the match as it is.
func reGsub(e *Env, L *lua.LState) int {
	s, p := L.CheckString(1), e.pattern(L, 2)
	L.CheckTypes(3, lua.LTString, lua.LTNumber, lua.LTTable, lua.LTFunction)
	most := L.OptInt(4, math.MaxInt)
	var b strings.Builder
	count, at := 0, 0
	matches := e.matches(L, p, s)
	for count < most {
		found := matches.next()
		if found == nil {
			break
		}
		count++
		b.WriteString(s[at:found[0]])
		with := e.replacement(L, s, found)
		b.WriteString(with)
		e.grow(L, b.Len(), len(with))
		at = found[1]
	}
	e.grow(L, b.Len()+len(s)-at, len(s)-at)
	b.WriteString(s[at:])
	L.Push(lua.LString(b.String()))
	L.Push(lua.LNumber(count))
	return 2
}

// re.match(s, pattern, [init]) → captures…, the match if there are none | nil
func reMatch(e *Env, L *lua.LState) int {
	s, found := e.search(L)
	switch {
	case found == nil:
		L.Push(lua.LNil)
		return 1
	case len(found) == 2:
		return pushCaptures(L, s, found)
	}
	return pushCaptures(L, s, found[2:])
}

// re.split(s, pattern, [n]) → array of the parts between the matches; of the
// first n at most, the last with all that is left
func reSplit(e *Env, L *lua.LState) int {
	s, p, most := L.CheckString(1), e.pattern(L, 2), L.OptInt(3, math.MaxInt)
	if most < 1 {
		L.ArgError(3, "must not be below 1")
	}
	parts, at := []string{}, 0
	matches := e.matches(L, p, s)
	for len(parts) < most-1 {
		found := matches.next()
		if found == nil {
			break
		}
		if found[1] == 0 || found[0] == len(s) && found[1] == found[0] {
			continue // nothing, at either end, separates nothing
		}
		parts = append(parts, s[at:found[0]])
		at = found[1]
		e.limitArray(L, len(parts)+1)
	}
	L.Push(e.stringArray(L, append(parts, s[at:])))
	return 1
}

// search finds the first match for find and match, as pairs of positions in s.
func (e *Env) search(L *lua.LState) (s string, found []int) {
	s = L.CheckString(1)
	p, from := e.pattern(L, 2), L.OptInt(3, 1)
	if from < 0 {
		from = len(s) + from + 1
	}
	if from = max(from-1, 0); from > len(s) {
		return s, nil
	}
	found = e.exec(L, p.whole, p.size, s[from:])
	for i := range found {
		if found[i] >= 0 {
			found[i] += from
		}
	}
	return s, found
}

func capture(s string, found []int, i int) lua.LValue {
	if found[2*i] < 0 {
		return lua.LFalse
	}
	return lua.LString(s[found[2*i]:found[2*i+1]])
}

func pushCaptures(L *lua.LState, s string, found []int) int {
	for i := range len(found) / 2 {
		L.Push(capture(s, found, i))
	}
	return len(found) / 2
}

// replacement is what gsub puts in the place of a match.
func (e *Env) replacement(L *lua.LState, s string, found []int) string {
	first := min(1, len(found)/2-1) // the match stands for captures if there are none
	var v lua.LValue
	switch r := L.Get(3).(type) {
	case *lua.LFunction:
		L.Push(r)
		L.Call(pushCaptures(L, s, found[2*first:]), 1)
		v = L.Get(-1)
		L.Pop(1)
	case *lua.LTable:
		v = L.GetTable(r, capture(s, found, first))
	default:
		return e.fillIn(L, lua.LVAsString(r), s, found)
	}
	if lua.LVIsFalse(v) {
		return s[found[0]:found[1]]
	}
	if !lua.LVCanConvToString(v) {
		L.RaiseError("invalid replacement value (a %s)", v.Type())
	}
	return lua.LVAsString(v)
}

// fillIn puts captures into a replacement that is text.
func (e *Env) fillIn(L *lua.LState, text, s string, found []int) string {
	if !strings.Contains(text, "%") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		switch c := text[i]; {
		case c == '1' && len(found) == 2:
			b.WriteString(s[found[0]:found[1]])
		case c >= '0' && c <= '9':
			n := int(c - '0')
			if n >= len(found)/2 {
				L.ArgError(3, "there is no capture %"+string(c))
			}
			if found[2*n] >= 0 {
				b.WriteString(s[found[2*n]:found[2*n+1]])
			}
		case c == '%':
			b.WriteByte('%')
		default:
			L.ArgError(3, "% is followed by "+string(rune(c))+": write %% for a % itself")
		}
		if b.Len() > e.maxString() {
			e.limit(L, b.Len())
		}
	}
	return b.String()
}
