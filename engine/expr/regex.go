package expr

import (
	"fmt"

	"obelus/engine/internal/regex"
)

// pattern is the pattern of a text, which is compiled once.
func (ev *evaluation) pattern(text string) (*regex.Pattern, error) {
	if p := ev.patterns[text]; p != nil {
		return p, nil
	}
	if len(text) > MaxExpression {
		return nil, fmt.Errorf("a pattern may have %d bytes, and not %d", MaxExpression, len(text))
	}
	p, err := regex.Compile(text)
	if err != nil {
		return nil, err
	}
	if ev.patterns == nil {
		ev.patterns = map[string]*regex.Pattern{}
	}
	ev.patterns[text] = p
	return p, ev.spend(len(text) + 8*p.Price) // compiling one takes as long
}

// matches reports whether a text matches a pattern, which is compiled already where it is a
// literal. As in expr, null matches nothing.
func matches(ev *evaluation, args []any) (any, error) {
	if args[0] == nil || args[1] == nil {
		return false, nil
	}
	text, ok := args[0].(string)
	p, compiled := args[1].(*regex.Pattern)
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
	if err := ev.spend((len(text) + regex.MaxBytes) * p.Price / regex.MaxBytes); err != nil {
		return nil, err
	}
	return p.MatchString(text), nil
}
