package expr

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"obelus/engine/internal/regex"
)

// operator is an operator with two sides, both of which it looks at.
type operator struct {
	sides  kinds  // what both may be
	alike  bool   // both have to be of one type
	needs  string // of a wrong side: "takes two numbers"
	result kinds
	do     func(ev *evaluation, a, b any) (any, error)
}

// operators are those of expressions but for || and &&, which [exprCompiler.existence] compiles,
// and the lazy ones.
var operators = map[string]*operator{
	"+":          {sides: anything, result: anything, do: add},
	"-":          arithmetic(anything, minus),
	"*":          arithmetic(anything, times),
	"/":          arithmetic(numbers, quotient),
	"**":         arithmetic(numbers, power),
	"^":          arithmetic(numbers, power),
	"%":          {sides: integers, needs: "takes two integers", result: integers, do: calculation(remainder)},
	"==":         equality(true),
	"!=":         equality(false),
	"<":          ordering(func(c int) bool { return c == -1 }),
	"<=":         ordering(func(c int) bool { return c == -1 || c == 0 }),
	">":          ordering(func(c int) bool { return c == 1 }),
	">=":         ordering(func(c int) bool { return c == 1 || c == 0 }),
	"in":         {sides: anything, needs: "compares values of one type", result: booleans, do: in},
	"contains":   ofTexts(strings.Contains),
	"startsWith": ofTexts(strings.HasPrefix),
	"endsWith":   ofTexts(strings.HasSuffix),
	"matches":    {sides: texts | nulls, needs: "takes two strings", result: booleans, do: matches},
}

var unaryOperators = map[string]*function{
	"!":   {least: 1, most: 1, takes: []kinds{booleans}, result: booleans, do: not},
	"not": {least: 1, most: 1, takes: []kinds{booleans}, result: booleans, do: not},
	"+":   {least: 1, most: 1, takes: []kinds{numbers | large}, result: anything, do: func(_ *evaluation, args []any) (any, error) { return args[0], nil }},
	"-": {least: 1, most: 1, takes: []kinds{numbers}, result: anything, do: func(_ *evaluation, args []any) (any, error) {
		n, _ := numberOf(args[0])
		return negate(n)
	}},
}

func not(_ *evaluation, args []any) (any, error) { return !args[0].(bool), nil }

// lazyOperators may do without what stands on their right.
var lazyOperators = []string{"??", "and", "or"}

func isComparison(operator string) bool {
	return slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, operator)
}

func arithmetic(result kinds, do func(a, b number) (any, error)) *operator {
	return &operator{sides: numbers, needs: "takes two numbers", result: result, do: calculation(do)}
}

func calculation(do func(a, b number) (any, error)) func(ev *evaluation, a, b any) (any, error) {
	return func(_ *evaluation, a, b any) (any, error) {
		x, _ := numberOf(a)
		y, _ := numberOf(b)
		return do(x, y)
	}
}

func ordering(holds func(comparison int) bool) *operator {
	return &operator{sides: numbers | texts, alike: true, needs: "compares two numbers or two strings", result: booleans, do: func(ev *evaluation, a, b any) (any, error) {
		x, _ := a.(string)
		y, _ := b.(string)
		if err := ev.spend(compared(x, y)); err != nil {
			return nil, err
		}
		comparison, err := order(a, b)
		return holds(comparison), err
	}}
}

func ofTexts(holds func(text, part string) bool) *operator {
	return &operator{sides: texts, needs: "takes two strings", result: booleans, do: func(ev *evaluation, a, b any) (any, error) {
		text, part := a.(string), b.(string)
		if err := ev.spend(extent(text) + extent(part)); err != nil {
			return nil, err
		}
		return holds(text, part), nil
	}}
}

// equality makes == or !=, which note a text and a number that were compared.
func equality(want bool) *operator {
	return &operator{sides: anything, alike: true, needs: "compares values of one type", result: booleans, do: func(ev *evaluation, a, b any) (any, error) {
		same := ev.equal(a, b)
		ev.noteUnlike(true)
		return same == want, ev.spend(0)
	}}
}

// accepts returns the error of an operator whose sides have types that it does not take, or an
// empty text. Of a type that is not known before an evaluation it is not told.
func (o *operator) accepts(name string, left, right kinds) string {
	if left&o.sides != 0 && right&o.sides != 0 && !(o.alike && differ(left, right)) {
		return ""
	}
	if (left == large || right == large) && o.sides&numbers != 0 {
		return errLargeOperand
	}
	var got []string
	for _, side := range []kinds{left, right} {
		if text := side.describe(); text != "" {
			if name == "%" && side == fractions {
				text = "a number with a fraction"
			}
			got = append(got, text)
		}
	}
	return fmt.Sprintf("%s %s, not %s", name, o.needs, strings.Join(got, " and "))
}

// differ reports whether two types, if they are known, can have no value in common.
func differ(left, right kinds) bool {
	isNull := left == nulls || right == nulls
	isOfNumbers := left&(numbers|large) != 0 && right&(numbers|large) != 0
	return !isNull && !isOfNumbers && left.isKnown() && right.isKnown() && left != right
}

// in reports whether an array holds a value or an object a key. Each element that it looks at is
// charged.
func in(ev *evaluation, v, within any) (any, error) {
	switch c := within.(type) {
	case []any:
		if err := ev.spend(len(c)); err != nil {
			return nil, err
		}
		found := slices.ContainsFunc(c, func(e any) bool { return ev.equal(v, e) })
		ev.noteUnlike(!found)
		return found, ev.spend(0)
	case map[string]any:
		key, ok := v.(string)
		if isAnyNumber(v) && len(c) > 0 && ev.notes() != nil {
			ev.unlike = []any{v, slices.Min(slices.Collect(maps.Keys(c)))}
			ev.noteUnlike(true)
		}
		_, exists := c[key]
		return ok && exists, ev.spend(extent(key))
	case groups:
		_, exists := member(c, v)
		return exists, nil
	}
	return fail("in looks into an array or an object, not into %s", describe(within))
}

func add(ev *evaluation, a, b any) (any, error) {
	if x, ok := a.(string); ok {
		if y, ok := b.(string); ok {
			return x + y, ev.spend(len(x) + len(y))
		}
	}
	return addNumbers(a, b)
}

func addNumbers(a, b any) (any, error) {
	x, ok := numberOf(a)
	y, ok2 := numberOf(b)
	if !ok || !ok2 {
		return fail("can't add %s and %s", describe(a), describe(b))
	}
	return plus(x, y)
}

// pattern is the pattern of a text, which is compiled once.
func (ev *evaluation) pattern(text string) (*regex.Pattern, error) {
	if p := ev.patterns[text]; p != nil {
		return p, nil
	}
	if len(text) > MaxExpression {
		return nil, ownError(fmt.Sprintf("a pattern may have %d bytes, and not %d", MaxExpression, len(text)))
	}
	p, err := regex.Compile(text)
	if err != nil {
		return nil, ownError(reworded(err.Error()))
	}
	if ev.patterns == nil {
		ev.patterns = map[string]*regex.Pattern{}
	}
	ev.patterns[text] = p
	return p, ev.spend(len(text) + 8*p.Price) // compiling one takes as long
}

// matches reports whether a text matches a pattern. Null matches nothing.
func matches(ev *evaluation, a, b any) (any, error) {
	text, ok := a.(string)
	source, ok2 := b.(string)
	if !ok || !ok2 {
		return false, nil
	}
	p, err := ev.pattern(source)
	if err != nil {
		return nil, err
	}
	if err := ev.spend((len(text) + regex.MaxBytes) * p.Price / regex.MaxBytes); err != nil {
		return nil, err
	}
	return p.MatchString(text), nil
}
