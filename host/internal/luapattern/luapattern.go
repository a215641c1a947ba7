// Package luapattern matches Lua's patterns, counting every step.
package luapattern

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// Bounds of a match, as in Lua's own lstrlib.c.
const (
	maxCaptures     = 32
	maxPatternDepth = 200
)

// Lengths of captures without text.
const (
	captureOpen     = -1
	capturePosition = -2
)

// Budget counts the steps of a match. Charge raises in L once there are too many.
type Budget interface {
	Charge(L *lua.LState, units int)
}

// Matcher matches a Lua pattern; it is a port of lstrlib.c. It counts its steps, so that a deadline
// ends a pattern that backtracks for hours.
type Matcher struct {
	Anchored bool // the pattern began with ^, which is taken off

	budget   Budget
	L        *lua.LState
	Subject  string
	pattern  string
	Captures int // number of captures so far
	depth    int
	steps    int
	capture  [maxCaptures]struct{ start, length int }
}

// New returns a matcher of subject with pattern. If anchors is set, a ^ that the pattern begins
// with is an anchor.
func New(L *lua.LState, budget Budget, subject, pattern string, anchors bool) *Matcher {
	m := &Matcher{budget: budget, L: L, Subject: subject, pattern: pattern}
	if anchors {
		m.pattern, m.Anchored = strings.CutPrefix(pattern, "^")
	}
	return m
}

// Match returns the end of the match that begins at an offset of the subject, or -1 if there is
// none.
func (m *Matcher) Match(at int) (end int) {
	m.Captures = 0
	return m.matchFrom(at, 0)
}

// Find returns the first match that begins at from or, unless the pattern is anchored, after it.
// start is -1 if there is none.
func (m *Matcher) Find(from int) (start, end int) {
	for at := from; at <= len(m.Subject); at++ {
		if end = m.Match(at); end >= 0 {
			return at, end
		}
		if m.Anchored {
			break
		}
	}
	return -1, -1
}

func (m *Matcher) step() {
	if m.steps++; m.steps&255 == 0 {
		m.budget.Charge(m.L, 256)
	}
}

func (m *Matcher) malformed(what string) { m.L.RaiseError("malformed pattern (%s)", what) }

// classEnd returns the end of the single-character class at p.
func (m *Matcher) classEnd(p int) int {
	switch m.pattern[p] {
	case '%':
		if p+1 >= len(m.pattern) {
			m.malformed("ends with '%'")
		}
		return p + 2
	case '[':
		return m.setEnd(p)
	}
	return p + 1
}

func (m *Matcher) setEnd(p int) int {
	p++
	if p < len(m.pattern) && m.pattern[p] == '^' {
		p++
	}
	for first := true; ; first = false {
		if p >= len(m.pattern) {
			m.malformed("missing ']'")
		}
		c := m.pattern[p]
		if c == ']' && !first {
			return p + 1
		}
		p++
		if c == '%' {
			if p >= len(m.pattern) {
				m.malformed("missing ']'")
			}
			p++
		}
	}
}

// inClass reports whether c is in the class %cl.
func inClass(c, cl byte) bool {
	var in bool
	switch cl | 0x20 {
	case 'a':
		in = isLetter(c)
	case 'c':
		in = c < 32 || c == 127
	case 'd':
		in = c >= '0' && c <= '9'
	case 'l':
		in = c >= 'a' && c <= 'z'
	case 'p':
		in = c > 32 && c < 127 && !isLetter(c) && !(c >= '0' && c <= '9')
	case 's':
		in = c == ' ' || c >= 9 && c <= 13
	case 'u':
		in = c >= 'A' && c <= 'Z'
	case 'w':
		in = isLetter(c) || c >= '0' && c <= '9'
	case 'x':
		in = c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
	case 'z':
		in = c == 0
	default:
		return cl == c
	}
	return in != (cl >= 'A' && cl <= 'Z')
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// inSet reports whether c is in the set whose [ is at p and whose ] is at end.
func (m *Matcher) inSet(c byte, p, end int) bool {
	in := true
	p++
	if m.pattern[p] == '^' {
		in = false
		p++
	}
	for ; p < end; p++ {
		switch {
		case m.pattern[p] == '%':
			p++
			if inClass(c, m.pattern[p]) {
				return in
			}
		case p+2 < end && m.pattern[p+1] == '-':
			if m.pattern[p] <= c && c <= m.pattern[p+2] {
				return in
			}
			p += 2
		case m.pattern[p] == c:
			return in
		}
	}
	return !in
}

// single reports whether the character at s is in the class from p to end.
func (m *Matcher) single(s, p, end int) bool {
	m.step()
	if s >= len(m.Subject) {
		return false
	}
	switch m.pattern[p] {
	case '.':
		return true
	case '%':
		return inClass(m.Subject[s], m.pattern[p+1])
	case '[':
		return m.inSet(m.Subject[s], p, end-1)
	}
	return m.pattern[p] == m.Subject[s]
}

// matchFrom returns the end of a match of the pattern from p at s, or -1 if there is none.
func (m *Matcher) matchFrom(s, p int) int {
	if m.depth++; m.depth > maxPatternDepth {
		m.L.RaiseError("pattern too complex")
	}
	end := m.matchHere(s, p)
	m.depth--
	return end
}

func (m *Matcher) matchHere(s, p int) int {
	for p < len(m.pattern) {
		m.step()
		switch c := m.pattern[p]; {
		case c == '(':
			return m.openCapture(s, p)
		case c == ')':
			return m.closeCapture(s, p)
		case c == '$' && p+1 == len(m.pattern):
			if s == len(m.Subject) {
				return s
			}
			return -1
		case c == '%' && p+1 < len(m.pattern) && (m.pattern[p+1] == 'b' || m.pattern[p+1] == 'f' || m.pattern[p+1] >= '0' && m.pattern[p+1] <= '9'):
			if s, p = m.special(s, p); s < 0 {
				return -1
			}
			continue
		}
		end := m.classEnd(p)
		quantifier := byte(0)
		if end < len(m.pattern) {
			quantifier = m.pattern[end]
		}
		switch quantifier {
		case '?':
			if m.single(s, p, end) {
				if e := m.matchFrom(s+1, end+1); e >= 0 {
					return e
				}
			}
			p = end + 1
		case '*':
			return m.longest(s, p, end, 0)
		case '+':
			return m.longest(s, p, end, 1)
		case '-':
			return m.shortest(s, p, end)
		default:
			if !m.single(s, p, end) {
				return -1
			}
			s, p = s+1, end
		}
	}
	return s
}

func (m *Matcher) longest(s, p, end, least int) int {
	i := 0
	for m.single(s+i, p, end) {
		i++
	}
	for ; i >= least; i-- {
		if e := m.matchFrom(s+i, end+1); e >= 0 {
			return e
		}
	}
	return -1
}

func (m *Matcher) shortest(s, p, end int) int {
	for {
		if e := m.matchFrom(s, end+1); e >= 0 {
			return e
		}
		if !m.single(s, p, end) {
			return -1
		}
		s++
	}
}

func (m *Matcher) openCapture(s, p int) int {
	if m.Captures >= maxCaptures {
		m.L.RaiseError("too many captures")
	}
	length := captureOpen
	p++
	if p < len(m.pattern) && m.pattern[p] == ')' {
		length = capturePosition
		p++
	}
	m.capture[m.Captures].start, m.capture[m.Captures].length = s, length
	m.Captures++
	e := m.matchFrom(s, p)
	if e < 0 {
		m.Captures--
	}
	return e
}

func (m *Matcher) closeCapture(s, p int) int {
	i := m.Captures - 1
	for i >= 0 && m.capture[i].length != captureOpen {
		i--
	}
	if i < 0 {
		m.malformed("')' without '('")
	}
	m.capture[i].length = s - m.capture[i].start
	e := m.matchFrom(s, p+1)
	if e < 0 {
		m.capture[i].length = captureOpen
	}
	return e
}

// special matches %b, %f and %1, which take no quantifier, and returns the offsets to go on from; s
// is -1 for no match.
func (m *Matcher) special(s, p int) (nextS, nextP int) {
	switch c := m.pattern[p+1]; c {
	case 'b':
		if p+3 >= len(m.pattern) {
			m.malformed("missing arguments to '%b'")
		}
		return m.balanced(s, m.pattern[p+2], m.pattern[p+3]), p + 4
	case 'f':
		p += 2
		if p >= len(m.pattern) || m.pattern[p] != '[' {
			m.malformed("missing '[' after '%f'")
		}
		end := m.setEnd(p)
		var before, here byte
		if s > 0 {
			before = m.Subject[s-1]
		}
		if s < len(m.Subject) {
			here = m.Subject[s]
		}
		if m.inSet(before, p, end-1) || !m.inSet(here, p, end-1) {
			return -1, end
		}
		return s, end
	default:
		i := int(c) - '1'
		if i < 0 || i >= m.Captures || m.capture[i].length == captureOpen {
			m.malformed("invalid capture index")
		}
		from, n := m.capture[i].start, m.capture[i].length
		if n == capturePosition { // a position has no text
			return -1, p
		}
		m.budget.Charge(m.L, n/16+1)
		if len(m.Subject)-s < n || m.Subject[from:from+n] != m.Subject[s:s+n] {
			return -1, p
		}
		return s + n, p + 2
	}
}

func (m *Matcher) balanced(s int, open, closing byte) int {
	if s >= len(m.Subject) || m.Subject[s] != open {
		return -1
	}
	depth := 1
	for i := s + 1; i < len(m.Subject); i++ {
		m.step()
		switch m.Subject[i] {
		case closing:
			if depth--; depth == 0 {
				return i + 1
			}
		case open:
			depth++
		}
	}
	return -1
}

// Captured returns capture i of a match from s to e; 0 stands for the whole match if there are no
// captures.
func (m *Matcher) Captured(i, s, e int) lua.LValue {
	if i >= m.Captures {
		if i != 0 {
			m.L.RaiseError("invalid capture index")
		}
		return lua.LString(m.Subject[s:e])
	}
	c := m.capture[i]
	switch c.length {
	case capturePosition:
		return lua.LNumber(c.start + 1)
	case captureOpen:
		m.L.RaiseError("unfinished capture")
	}
	return lua.LString(m.Subject[c.start : c.start+c.length])
}

// Push pushes the captures of a match and returns their number. Without captures it pushes the
// whole match if whole is set.
func (m *Matcher) Push(s, e int, whole bool) int {
	n := m.Captures
	if n == 0 && whole {
		n = 1
	}
	for i := range n {
		m.L.Push(m.Captured(i, s, e))
	}
	return n
}
