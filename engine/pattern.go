package engine

import (
	"fmt"
	"regexp"
	"regexp/syntax"
)

// pattern is a regular expression, and how much of the budget it takes to look at
// patternBytes of a text.
type pattern struct {
	*regexp.Regexp
	price int
}

// patternBytes is how many bytes of a text a pattern of one instruction looks at for a
// unit of the budget: in the worst case an instruction at a byte takes some ten nanoseconds.
const patternBytes = 16

// mostInstructions bounds what patterns take together in a schema: memory for as long as it
// is known. x{1000} is a thousand.
const mostInstructions = 300_000

var errInstructions = fmt.Errorf("it takes too much: with what it repeats, it is more than %d characters", mostInstructions)

func newPattern(text string) (*pattern, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if instructions(parsed) > mostInstructions {
		return nil, errInstructions
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	compiled, err := regexp.Compile(text)
	return &pattern{compiled, len(program.Inst)}, err
}

// instructions is about how many a pattern will have, before it is written out.
func instructions(parsed *syntax.Regexp) int {
	n := 1
	if parsed.Op == syntax.OpLiteral {
		n = len(parsed.Rune)
	}
	for _, sub := range parsed.Sub {
		n = min(n+instructions(sub), mostInstructions+1)
	}
	if parsed.Op == syntax.OpRepeat {
		n *= max(1, parsed.Min, parsed.Max)
	}
	return n
}

// pattern is the pattern of a text, which is compiled once.
func (ev *evaluation) pattern(text string) (*pattern, error) {
	if p := ev.patterns[text]; p != nil {
		return p, nil
	}
	if len(text) > MaxExpression {
		return nil, fmt.Errorf("a pattern may have %d bytes, and not %d", MaxExpression, len(text))
	}
	p, err := newPattern(text)
	if err != nil {
		return nil, err
	}
	if ev.patterns == nil {
		ev.patterns = map[string]*pattern{}
	}
	ev.patterns[text] = p
	return p, ev.spend(len(text) + 8*p.price) // to make one takes as long
}

// matches tells whether a text matches a pattern, which is compiled already where it is
// written out. As in expr, null matches nothing.
func matches(ev *evaluation, args []any) (any, error) {
	if args[0] == nil || args[1] == nil {
		return false, nil
	}
	text, ok := args[0].(string)
	p, compiled := args[1].(*pattern)
	source, ok2 := args[1].(string)
	if !ok || !compiled && !ok2 {
		if compiled {
			return fail("matches takes two strings, not %s and a string", describe(args[0]))
		}
		return fail("matches takes two strings, not %s and %s", describe(args[0]), describe(args[1]))
	}
	if !compiled {
		var err error
		if p, err = ev.pattern(source); err != nil {
			return nil, err
		}
	}
	if err := ev.spend((len(text) + patternBytes) * p.price / patternBytes); err != nil {
		return nil, err
	}
	return p.MatchString(text), nil
}
