package sandbox

import (
	"fmt"
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/limits"
	"obelus/host/internal/luapattern"
)

// stringFuncs is Lua 5.1's string: the same results as Lua's own, with every loop counted and every
// string bounded.
var stringFuncs = []StateEntry{
	{"byte", stringByte},
	{"char", stringChar},
	{"find", stringFind},
	{"format", stringFormat},
	{"gmatch", stringGmatch},
	{"gsub", stringGsub},
	{"len", stringLen},
	{"lower", stringLower},
	{"match", stringMatch},
	{"rep", stringRep},
	{"reverse", stringReverse},
	{"sub", stringSub},
	{"upper", stringUpper},
}

// intervalOf converts the arguments from and to of sub and byte to an interval, from 0, of a string
// of the given length. It may be empty.
func intervalOf(from, to, length int) (int, int) {
	if from < 0 {
		from = max(length+from+1, 1)
	}
	if to < 0 {
		to = length + to + 1
	}
	from, to = max(from, 1), min(to, length)
	if from > to {
		return 0, 0
	}
	return from - 1, to
}

func stringByte(s *State, L *lua.LState) int {
	text := s.checkText(L, 1)
	from := optional(L, 2, 1)
	from, to := intervalOf(from, optional(L, 3, from), len(text))
	if to-from > 8000 {
		L.RaiseError("string slice too long")
	}
	for i := from; i < to; i++ {
		L.Push(lua.LNumber(text[i]))
	}
	return to - from
}

func stringChar(s *State, L *lua.LState) int {
	text := make([]byte, L.GetTop())
	for i := range text {
		c := integer(L, i+1)
		if c < 0 || c > 255 {
			L.ArgError(i+1, "invalid value")
		}
		text[i] = byte(c)
	}
	return Push(L, lua.LString(text))
}

func stringFind(s *State, L *lua.LState) int { return findPattern(s, L, true) }

func stringMatch(s *State, L *lua.LState) int { return findPattern(s, L, false) }

func findPattern(s *State, L *lua.LState, find bool) int {
	subject, pattern := s.checkText(L, 1), s.checkText(L, 2)
	from := optional(L, 3, 1)
	if from < 0 {
		from = len(subject) + from + 1
	}
	from = min(max(from-1, 0), len(subject))
	if find && (L.ToBool(4) || !strings.ContainsAny(pattern, "^$*+?.([%-")) {
		i := strings.Index(subject[from:], pattern)
		if i < 0 {
			s.Budget.Charge(L, (len(subject)-from)/64+1)
			return Push(L, lua.LNil)
		}
		s.Budget.Charge(L, (i+len(pattern))/64+1)
		return Push(L, lua.LNumber(from+i+1), lua.LNumber(from+i+len(pattern)))
	}
	m := s.Matcher(L, subject, pattern)
	start, end := m.Find(from)
	switch {
	case start < 0:
		return Push(L, lua.LNil)
	case !find:
		return m.Push(start, end, true)
	}
	L.Push(lua.LNumber(start + 1))
	L.Push(lua.LNumber(end))
	return m.Push(start, end, false) + 2
}

func stringGmatch(s *State, L *lua.LState) int {
	subject, pattern := s.checkText(L, 1), s.checkText(L, 2)
	at := 0
	L.Push(L.NewFunction(func(L *lua.LState) int {
		m := luapattern.New(L, &s.Budget, subject, pattern, false)
		start, end := m.Find(at)
		if start < 0 {
			at = len(subject) + 1
			return 0
		}
		if at = end; end == start {
			at++
		}
		return m.Push(start, end, true)
	}))
	return 1
}

func stringGsub(s *State, L *lua.LState) int {
	subject, most := s.checkText(L, 1), optional(L, 4, math.MaxInt)
	L.CheckTypes(3, lua.LTString, lua.LTNumber, lua.LTTable, lua.LTFunction)
	m := s.Matcher(L, subject, s.checkText(L, 2))
	var b strings.Builder
	count, at := 0, 0
	for count < most {
		e := m.Match(at)
		if e >= 0 {
			count++
			with := gsubReplacement(s, m, at, e)
			b.WriteString(with)
			s.checkGrowth(L, b.Len(), len(with))
		}
		switch {
		case e > at:
			at = e
		case at < len(subject):
			b.WriteByte(subject[at])
			at++
		default:
			most = 0
		}
		if m.Anchored {
			break
		}
	}
	s.checkGrowth(L, b.Len()+len(subject)-at, len(subject)-at)
	b.WriteString(subject[at:])
	return Push(L, lua.LString(b.String()), lua.LNumber(count))
}

// Matcher returns a matcher of a pattern. It raises if the pattern is too long.
func (s *State) Matcher(L *lua.LState, subject, pattern string) *luapattern.Matcher {
	if len(pattern) > s.Project.Limits.Pattern {
		L.RaiseError("%s", limits.Over(fmt.Sprintf("the pattern has %d bytes", len(pattern)), "pattern", s.Project.Limits.Pattern))
	}
	return luapattern.New(L, &s.Budget, subject, pattern, true)
}

// gsubReplacement returns the replacement of a match.
func gsubReplacement(s *State, m *luapattern.Matcher, from, to int) string {
	L := m.L
	var v lua.LValue
	switch r := L.Get(3).(type) {
	case *lua.LFunction:
		L.Push(r)
		L.Call(m.Push(from, to, true), 1)
		v = L.Get(-1)
		L.Pop(1)
	case *lua.LTable:
		v = L.GetTable(r, m.Captured(0, from, to))
	default:
		return gsubTemplate(s, m, s.toText(L, r), from, to)
	}
	if lua.LVIsFalse(v) {
		return m.Subject[from:to]
	}
	if !lua.LVCanConvToString(v) {
		L.RaiseError("invalid replacement value (a %s)", v.Type())
	}
	return s.toText(L, v)
}

func gsubTemplate(s *State, m *luapattern.Matcher, text string, from, to int) string {
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
		case c == '0':
			b.WriteString(m.Subject[from:to])
		case c >= '1' && c <= '9':
			b.WriteString(s.toText(m.L, m.Captured(int(c-'1'), from, to)))
		default:
			b.WriteByte(c)
		}
		if b.Len() > s.Project.Limits.String {
			s.checkLength(m.L, b.Len())
		}
	}
	return b.String()
}

func stringLen(s *State, L *lua.LState) int {
	return Push(L, lua.LNumber(len(s.checkText(L, 1))))
}

// mapBytes pushes its text with some bytes changed. Lua's own lower and upper know only ASCII.
func mapBytes(s *State, L *lua.LState, change func(text []byte)) int {
	text := []byte(s.checkText(L, 1))
	s.checkLength(L, len(text))
	change(text)
	return Push(L, lua.LString(text))
}

func stringLower(s *State, L *lua.LState) int {
	return mapBytes(s, L, func(text []byte) {
		for i, c := range text {
			if c >= 'A' && c <= 'Z' {
				text[i] = c + 'a' - 'A'
			}
		}
	})
}

func stringRep(s *State, L *lua.LState) int {
	text, n := s.checkText(L, 1), integer(L, 2)
	if n <= 0 || text == "" {
		return Push(L, lua.LString(""))
	}
	if n > s.Project.Limits.String/len(text) {
		s.checkLength(L, s.Project.Limits.String+1)
	}
	s.checkLength(L, n*len(text))
	return Push(L, lua.LString(strings.Repeat(text, n)))
}

func stringReverse(s *State, L *lua.LState) int {
	return mapBytes(s, L, func(text []byte) {
		for i, j := 0, len(text)-1; i < j; i, j = i+1, j-1 {
			text[i], text[j] = text[j], text[i]
		}
	})
}

func stringSub(s *State, L *lua.LState) int {
	text := s.checkText(L, 1)
	from, to := intervalOf(integer(L, 2), optional(L, 3, -1), len(text))
	return Push(L, lua.LString(text[from:to]))
}

func stringUpper(s *State, L *lua.LState) int {
	return mapBytes(s, L, func(text []byte) {
		for i, c := range text {
			if c >= 'a' && c <= 'z' {
				text[i] = c - ('a' - 'A')
			}
		}
	})
}
