package expr

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/vm/runtime"

	"obelus/engine/internal/regex"
)

func split(ev *evaluation, args []any) (any, error) {
	limit := -1
	if len(args) < 2 || len(args) > 3 {
		return fail("split takes a string, what stands between its parts, and perhaps how many there may be")
	}
	if len(args) == 3 {
		var ok bool
		if limit, ok = args[2].(int); !ok {
			return fail("how many parts split may make is an integer, and not %s", strings.Replace(describe(args[2]), "a number", "a number with a fraction", 1))
		}
	}
	text, ok := args[0].(string)
	separator, ok2 := args[1].(string)
	if !ok || !ok2 {
		return fail("split takes strings, not %s and %s", describe(args[0]), describe(args[1]))
	}
	if err := ev.spend(extent(text)); err != nil {
		return nil, err
	}
	parts := []any{}
	for _, part := range strings.SplitN(text, separator, limit) {
		parts = append(parts, part)
	}
	return parts, ev.spend(len(parts))
}

func join(ev *evaluation, args []any) (any, error) {
	separator := ""
	if len(args) < 1 || len(args) > 2 {
		return fail("join takes an array of strings, and perhaps what to put between them")
	}
	array, ok := args[0].([]any)
	if !ok {
		return fail("join takes an array of strings, not %s", describe(args[0]))
	}
	if len(args) == 2 {
		if separator, ok = args[1].(string); !ok {
			return fail("join puts a string between strings, not %s", describe(args[1]))
		}
	}
	texts := make([]string, len(array))
	for i, e := range array {
		text, ok := e.(string)
		if !ok {
			return fail("join takes an array of strings, and element %d is %s", i, describe(e))
		}
		if err := ev.spend(len(text) + len(separator)); err != nil {
			return nil, err
		}
		texts[i] = text
	}
	return strings.Join(texts, separator), nil
}

func replace(ev *evaluation, args []any) (any, error) {
	if len(args) != 3 {
		return fail("replace takes a string, what to look for and what to put there")
	}
	texts := make([]string, 3)
	for i, arg := range args {
		text, ok := arg.(string)
		if !ok {
			return fail("replace takes strings, not %s", describe(arg))
		}
		texts[i] = text
	}
	if err := ev.spend(len(texts[0]) + strings.Count(texts[0], texts[1])*len(texts[2])); err != nil {
		return nil, err
	}
	return strings.ReplaceAll(texts[0], texts[1], texts[2]), nil
}

// indexBy finds a string in another and counts the characters before it.
func indexBy(find func(text, part string) int) func(args ...any) (any, error) {
	return func(args ...any) (any, error) {
		text := args[0].(string)
		i := find(text, args[1].(string))
		if i > 0 {
			i = utf8.RuneCountInString(text[:i])
		}
		return i, nil
	}
}

// slice is v[from:to], which counts a string's characters, as len does.
func slice(args ...any) (any, error) {
	var bounds [2]int
	for i, arg := range args[1:] {
		switch arg.(type) {
		case int, float64:
		default:
			return fail("a slice begins and ends at an integer, not %s", describe(arg))
		}
		v, err := toInteger(arg)
		if err != nil {
			return nil, err
		}
		bounds[i] = v.(int)
	}
	if array, ok := args[0].([]any); ok {
		return runtime.Slice(array, bounds[0], bounds[1]), nil
	}
	text, ok := args[0].(string)
	if !ok {
		return fail("arrays and strings have slices, not %s", describe(args[0]))
	}
	if bounds[0] < 0 || bounds[1] < 0 {
		n := utf8.RuneCountInString(text)
		for i, bound := range bounds {
			if bound < 0 {
				bounds[i] = max(bound+n, 0) // as in expr, from the end
			}
		}
	}
	start := byteOf(text, bounds[0])
	return text[start : start+byteOf(text[start:], max(0, bounds[1]-bounds[0]))], nil
}

// byteOf finds where a text's nth character begins.
func byteOf(text string, n int) int {
	for i := range text {
		if n--; n < 0 {
			return i
		}
	}
	return len(text)
}

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
