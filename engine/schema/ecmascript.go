package schema

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/dlclark/regexp2/v2"

	"obelus/engine/internal/regex"
	"obelus/engine/lazyregexp"
)

// A pattern of JSON Schema is a regular expression of ECMA-262 with its flag u. A pattern that Go's
// regexp can express is translated for it, since its time grows with the text alone: a backtracking
// engine takes exponential time for some of them (^(\w+\s?)+$). Patterns beyond it, with lookahead
// for instance, go to regexp2, bounded in time.

// ecmaPattern compiles a pattern: one of the results is nil. A pattern that is not one of
// ECMA-262 but one of Go's regexp, such as (?i)a, is that.
func ecmaPattern(text string) (linear *regex.Pattern, backtracking *regexp2.Regexp, err error) {
	if linear, backtracking, err = strictPattern(text); err == nil {
		return linear, backtracking, nil
	}
	if other, err := regex.Compile(text); err == nil || err == regex.ErrTooLarge {
		return other, nil, err
	}
	return nil, nil, err
}

// strictPattern is ecmaPattern for patterns of ECMA-262 alone.
func strictPattern(text string) (linear *regex.Pattern, backtracking *regexp2.Regexp, err error) {
	tr := translator{rest: text}
	if err := tr.translate(); err != nil {
		return nil, nil, err
	}
	if !tr.beyond {
		if linear, err = regex.Compile(tr.out.String()); err == nil || err == regex.ErrTooLarge {
			return linear, nil, err
		}
	}
	if len(text) > maxBacktracking {
		return nil, nil, fmt.Errorf("a pattern with lookaround, or with what else needs backtracking, may have %d bytes, and not %d", maxBacktracking, len(text))
	}
	if depth := groupDepth(text); depth > maxGroups {
		return nil, nil, fmt.Errorf("a pattern with lookaround, or with what else needs backtracking, may have groups nested %d deep, and not %d", maxGroups, depth)
	}
	backtracking, err = regexp2.Compile(text, regexp2.ECMAScript|regexp2.Unicode, regexp2.OptionMaxBacktrackingStackSize(maxStack))
	return nil, backtracking, err
}

// Bounds of a pattern for which the text is searched by backtracking: its bytes, how deep its
// groups are nested, by whose cube the time grows that it takes to compile, and how many numbers
// the stack may hold.
const (
	maxBacktracking = 4096
	maxGroups       = 50
	maxStack        = 1 << 20
)

// groupDepth is how deep the groups of a pattern are nested.
func groupDepth(text string) (deepest int) {
	depth, class := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '(':
			depth++
			deepest = max(deepest, depth)
		case c == ')':
			depth--
		}
	}
	return deepest
}

// The sets of characters that ECMA-262 has and Go's regexp has not, as they stand in a class.
const (
	ecmaSpace   = `\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`
	ecmaNoSpace = `\x00-\x08\x0e-\x1f!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}` +
		`\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`
	ecmaAny = `[^\n\r\x{2028}\x{2029}]`
)

var group = lazyregexp.New(`^\(\?([:=!]|<[=!\pL$_\\]|[ims-]+:)`)

var repeat = lazyregexp.New(`^\{[0-9]+(,[0-9]*)?\}`)

// translator writes a pattern of ECMA-262 for Go's regexp.
type translator struct {
	rest   string // of the pattern
	out    strings.Builder
	beyond bool // it has a construct that Go's regexp lacks, or defines differently
}

// translate goes through the pattern. The error is an escape or a group that ECMA-262 does not
// have; what else may be wrong with the pattern is left to the engine that compiles it.
func (t *translator) translate() error {
	class := false // within [ ]
	for t.rest != "" {
		c := t.rest[0]
		switch {
		case c == '\\':
			if err := t.escape(class); err != nil {
				return err
			}
			continue
		case class && c == '[':
			t.out.WriteByte('\\') // [: has a meaning
		case class:
			class = c != ']'
		case c == '[':
			class = true
			if strings.HasPrefix(t.rest, "[]") || strings.HasPrefix(t.rest, "[^]") {
				t.beyond = true // none and any: ] is not one of the class
				class = false
			}
		case c == '.':
			t.write(1, ecmaAny)
			continue
		case c == '(' && strings.HasPrefix(t.rest, "(?"):
			if group().FindString(t.rest) == "" {
				return fmt.Errorf("%.3q is no beginning of a group of ECMA-262", t.rest)
			}
			t.beyond = t.beyond || !strings.HasPrefix(t.rest, "(?:")
		case c == '{' || c == '}' || c == ']':
			if n := len(repeat().FindString(t.rest)); n > 0 {
				t.write(n, t.rest[:n])
				continue
			}
			t.beyond = true
		}
		t.write(1, t.rest[:1])
	}
	return nil
}

// write writes a text for the next n bytes of the pattern.
func (t *translator) write(n int, text string) {
	t.out.WriteString(text)
	t.rest = t.rest[n:]
}

// escape translates what begins with a backslash.
func (t *translator) escape(class bool) error {
	if len(t.rest) < 2 {
		t.beyond = true
		t.write(1, `\`)
		return nil
	}
	switch c := t.rest[1]; {
	case c == 's' || c == 'S':
		set := ecmaSpace
		if c == 'S' {
			set = ecmaNoSpace
		}
		if !class {
			set = "[" + set + "]"
		} else if strings.HasSuffix(t.out.String(), "-") || strings.HasPrefix(t.rest[2:], "-") {
			t.beyond = true // it must not become the end of a range
		}
		t.write(2, set)
	case c == 'b' && class:
		t.write(2, `\x08`)
	case c == 'c' && len(t.rest) > 2 && isLetter(t.rest[2]):
		t.write(3, fmt.Sprintf(`\x%02x`, t.rest[2]&31))
	case c == 'u' && isHex(t.rest[2:], 4) && !isSurrogate(t.rest[2:4]):
		t.write(6, `\x{`+t.rest[2:6]+`}`)
	case c == 'x' && isHex(t.rest[2:], 2):
		t.write(4, t.rest[:4])
	case c == 'p' && isCategory(t.rest[2:]), c == 'P' && isCategory(t.rest[2:]):
		n := strings.IndexByte(t.rest, '}') + 1
		t.write(n, t.rest[:n])
	case strings.IndexByte("dDwWbBfnrtv", c) >= 0 || c < 0x80 && !isLetter(c) && (c < '0' || c > '9'):
		t.write(2, t.rest[:2])
	case strings.IndexByte("cukxpP0123456789", c) >= 0 || c >= 0x80:
		t.beyond = true
		t.write(2, t.rest[:2])
	default:
		return fmt.Errorf(`\%c is no escape of ECMA-262`, c)
	}
	return nil
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isHex(text string, n int) bool {
	return len(text) >= n && strings.Trim(text[:n], "0123456789abcdefABCDEF") == ""
}

// isSurrogate reports whether \u is followed by the digits of half a character.
func isSurrogate(digits string) bool {
	return strings.EqualFold(digits[:1], "d") && digits[1] >= '8'
}

// isCategory reports whether \p is followed by a category by its short name, which both have.
func isCategory(text string) bool {
	name, _, ok := strings.Cut(strings.TrimPrefix(text, "{"), "}")
	return ok && strings.HasPrefix(text, "{") && len(name) <= 2 && unicode.Categories[name] != nil
}
