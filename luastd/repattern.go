package luastd

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"
)

// Bounds of patterns and of what one state keeps of them.
const (
	maxPattern      = 32 << 10
	maxPatternSteps = 5000
	keptPatterns    = 64
	keptSteps       = 50_000
)

// pattern is a compiled pattern.
type pattern struct {
	whole *regexp.Regexp
	later *regexp.Regexp // finds the next match, see matches
	size  int            // in steps, about
	text  string
}

// patternCache keeps the patterns that were compiled last.
type patternCache struct {
	kept  map[string]*pattern
	steps int
}

// pattern is the pattern at argument n, compiled. One that can't be read
// raises.
func (e *Env) pattern(L *lua.LState, n int) *pattern {
	text := L.CheckString(n)
	cache := &e.patterns
	if p, ok := cache.kept[text]; ok {
		return p
	}
	e.charge(L, len(text)+20)
	p, err := compilePattern(text)
	if err != nil {
		L.ArgError(n, err.Error())
	}
	e.charge(L, p.size)
	if cache.steps += p.size; cache.kept == nil || len(cache.kept) == keptPatterns || cache.steps > keptSteps {
		*cache = patternCache{kept: map[string]*pattern{}, steps: p.size}
	}
	cache.kept[text] = p
	return p
}

func compilePattern(text string) (*pattern, error) {
	if len(text) > maxPattern {
		return nil, fmt.Errorf("the pattern is longer than %d bytes", maxPattern)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, patternError(err)
	}
	size := steps(tree)
	if size > maxPatternSteps {
		return nil, errors.New("the pattern is too large: what is repeated counts as often as it may be")
	}
	p := &pattern{size: size, text: tree.String()}
	if p.whole, err = regexp.Compile(text); err != nil {
		return nil, patternError(err)
	}
	return p, nil
}

// patternError returns the error of a pattern in plain words.
func patternError(err error) error {
	var at *syntax.Error
	if !errors.As(err, &at) {
		return errors.New("the pattern can't be compiled")
	}
	return fmt.Errorf("the pattern can't be read: %s: %s", at.Code, at.Expr)
}

// steps is about how many instructions a pattern compiles to, by which its
// time on a text grows. It is known before anything that large is made.
func steps(tree *syntax.Regexp) int {
	n := 1 + len(tree.Rune)
	if tree.Op == syntax.OpCharClass {
		n = 1
	}
	for _, sub := range tree.Sub {
		n += steps(sub)
	}
	if tree.Op == syntax.OpRepeat {
		n *= max(tree.Min, tree.Max, 1)
	}
	return min(n, maxPatternSteps+1)
}

// atOnce is how much work, in steps times bytes, is done without a look at the
// clock: some ten milliseconds at worst.
const atOnce = 1 << 20

// exec matches, and raises when the time is used up. What may take long is read
// byte by byte, which is slower and counted.
func (e *Env) exec(L *lua.LState, re *regexp.Regexp, size int, s string) []int {
	if size*len(s) <= atOnce {
		found, looked := re.FindStringSubmatchIndex(s), len(s)
		if found != nil { // how far it looked beyond can't be told, and seldom is far
			looked = found[1] + len(s)/64
		}
		e.charge(L, size*looked/64+1)
		return found
	}
	return re.FindReaderSubmatchIndex(&counted{e: e, L: L, size: size, s: s})
}

// counted reads a text and charges for it.
type counted struct {
	e        *Env
	L        *lua.LState
	s        string
	size, at int
	work     int
}

// ReadRune implements [io.RuneReader].
func (c *counted) ReadRune() (rune, int, error) {
	if c.work += c.size; c.work >= atOnce/64 {
		c.e.charge(c.L, c.work/64)
		c.work = 0
	}
	if c.at == len(c.s) {
		return 0, 0, io.EOF
	}
	r, n := utf8.DecodeRuneInString(c.s[c.at:])
	c.at += n
	return r, n, nil
}

// matches finds one match after another, as regexp's FindAll does, which can't
// be stopped between two of them.
type matches struct {
	e  *Env
	L  *lua.LState
	p  *pattern
	s  string
	at int // where to look from; -1 before the first
	to int // the end of the last match
}

func (e *Env) matches(L *lua.LState, p *pattern, s string) *matches {
	return &matches{e: e, L: L, p: p, s: s, at: -1, to: -1}
}

// next is the next match, as pairs of positions, or nil. An empty one that
// touches the last is passed over.
func (m *matches) next() []int {
	for m.at <= len(m.s) {
		found := m.find()
		if found == nil {
			m.at = len(m.s) + 1
			return nil
		}
		from, to := found[0], found[1]
		if m.at = to; from == to {
			_, n := utf8.DecodeRuneInString(m.s[to:])
			m.at += max(n, 1)
		}
		if from == to && from == m.to {
			continue
		}
		m.to = to
		return found
	}
	return nil
}

// find finds the first match that begins at or after m.at. For what looks at
// the character before it (^, \b), later begins one earlier, takes that
// character and as few as it must, and has the pattern as its first group.
func (m *matches) find() []int {
	if m.at <= 0 {
		return m.e.exec(m.L, m.p.whole, m.p.size, m.s)
	}
	if m.p.later == nil {
		later, err := regexp.Compile(`\A(?s:.)(?s:.*?)(` + m.p.text + `)`)
		if err != nil {
			m.L.ArgError(2, patternError(err).Error())
		}
		m.p.later = later
	}
	_, n := utf8.DecodeLastRuneInString(m.s[:m.at])
	before := m.at - n
	found := m.e.exec(m.L, m.p.later, m.p.size+4, m.s[before:])
	if found == nil {
		return nil
	}
	found = found[2:]
	for i := range found {
		if found[i] >= 0 {
			found[i] += before
		}
	}
	return found
}
