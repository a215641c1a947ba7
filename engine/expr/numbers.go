package expr

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"obelus/engine/internal/phrase"
)

// errTooLarge is the result that no int holds. Integers are refused before they are rounded or wrap
// around.
const errTooLarge ownError = "the result is an integer too large to calculate with"

// number is a number that can be calculated with.
type number struct {
	isInt bool
	i     int
	f     float64 // where it is no integer
}

// numberOf returns the number that a value is; ok is false for any other, and for an integer that
// no int holds.
func numberOf(v any) (n number, ok bool) {
	switch v := v.(type) {
	case int:
		return number{isInt: true, i: v}, true
	case float64:
		return number{f: v}, true
	case json.Number:
		if i, err := strconv.Atoi(string(v)); err == nil {
			return number{isInt: true, i: i}, true
		}
		if strings.ContainsAny(string(v), ".eE") {
			f, err := strconv.ParseFloat(string(v), 64)
			return number{f: f}, err == nil
		}
	}
	return n, false
}

func (n number) float() float64 {
	if n.isInt {
		return float64(n.i)
	}
	return n.f
}

// value returns the number as a value.
func (n number) value() any {
	if n.isInt {
		return n.i
	}
	return n.f
}

// plain returns a value whose number, if it is one, is an int or a float64.
func plain(v any) any {
	if text, ok := v.(json.Number); ok {
		if n, ok := numberOf(text); ok {
			return n.value()
		}
	}
	return v
}

// maxSmall bounds the integers that a float64 distinguishes.
const maxSmall = 1 << 53

func plus(a, b number) (any, error) {
	if !a.isInt || !b.isInt {
		return a.float() + b.float(), nil
	}
	if sum := a.i + b.i; (sum > a.i) == (b.i > 0) {
		return sum, nil
	}
	return nil, errTooLarge
}

func minus(a, b number) (any, error) {
	if !a.isInt || !b.isInt {
		return a.float() - b.float(), nil
	}
	if difference := a.i - b.i; (difference < a.i) == (b.i > 0) {
		return difference, nil
	}
	return nil, errTooLarge
}

func times(a, b number) (any, error) {
	if !a.isInt || !b.isInt {
		return a.float() * b.float(), nil
	}
	if p, ok := multiply(a.i, b.i); ok {
		return p, nil
	}
	return nil, errTooLarge
}

func multiply(a, b int) (int, bool) {
	if b == 0 || b == -1 {
		return a * b, b == 0 || a != math.MinInt
	}
	p := a * b
	return p, p/b == a
}

// quotient is an integer where it can be.
func quotient(x, y number) (any, error) {
	if !x.isInt || !y.isInt {
		return x.float() / y.float(), nil
	}
	a, b := x.i, y.i
	isExactAsFloat := max(a, b) < maxSmall && min(a, b) > -maxSmall
	switch {
	case b == 0, isExactAsFloat && a%b != 0:
		return float64(a) / float64(b), nil
	case a%b == 0 && b != -1:
		return a / b, nil
	}
	return ofRatio(big.NewRat(int64(a), int64(b)))
}

func ofRatio(r *big.Rat) (any, error) {
	switch f, _ := r.Float64(); {
	case !r.IsInt():
		return f, nil
	case !r.Num().IsInt64():
		return nil, errTooLarge
	}
	return int(r.Num().Int64()), nil
}

func remainder(a, b number) (any, error) {
	if b.i == 0 {
		return fail("a division by zero")
	}
	return a.i % b.i, nil
}

func power(x, y number) (any, error) {
	if !x.isInt || !y.isInt || y.i < 0 {
		return math.Pow(x.float(), y.float()), nil
	}
	result, ok := 1, true
	for a, n := x.i, y.i; n > 0 && ok; n >>= 1 {
		if n&1 == 1 {
			result, ok = multiply(result, a)
		}
		if n > 1 && ok {
			a, ok = multiply(a, a)
		}
	}
	if !ok {
		return nil, errTooLarge
	}
	return result, nil
}

func negate(n number) (any, error) {
	if n.isInt {
		return minus(number{isInt: true}, n)
	}
	return -n.f, nil
}

// equal reports whether two values are the same, numbers by their values. Each element that it
// compares is charged; once that fails the result is false. It keeps the first text and number that
// it compares.
func (ev *evaluation) equal(a, b any) bool {
	within := func(a, b any) bool { return ev.spend(1) == nil && ev.equal(a, b) }
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, within)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, within)
	case groups:
		return reflect.DeepEqual(a, b)
	case string:
		if text, ok := b.(string); ok {
			return ev.spend(compared(a, text)) == nil && a == text
		}
	case nil:
		return b == nil
	case bool:
		other, ok := b.(bool)
		return ok && a == other
	}
	if isAnyNumber(a) && isAnyNumber(b) {
		return sameNumber(a, b)
	}
	if ev.unlike == nil && (isText(a) && isAnyNumber(b) || isAnyNumber(a) && isText(b)) {
		ev.unlike = []any{a, b}
	}
	return false
}

// sameNumber reports whether two numbers of any size are equal.
func sameNumber(a, b any) bool {
	x, ok := numberOf(a)
	y, ok2 := numberOf(b)
	if ok && ok2 {
		return x.compare(y) == 0
	}
	return wholeText(a) == wholeText(b)
}

// wholeText writes a number of which one with too many digits is compared with: a float without an
// exponent.
func wholeText(v any) string {
	if n, ok := numberOf(v); ok {
		return strconv.FormatFloat(n.float(), 'f', 0, 64)
	}
	return string(v.(json.Number))
}

// compare returns -1, 0 or 1 as the number is less than the other, equals it or is greater. Neither
// is rounded for it. It is 2 where one of them is no number that can be compared.
func (n number) compare(other number) int {
	switch {
	case n.isInt && other.isInt:
		return compareInts(n.i, other.i)
	case n.isInt:
		return -other.compareInt(n.i)
	case other.isInt:
		return n.compareInt(other.i)
	case n.f < other.f:
		return -1
	case n.f > other.f:
		return 1
	case n.f == other.f:
		return 0
	}
	return unordered
}

// unordered is the comparison with a float64 that is no number.
const unordered = 2

// compareInt is compare of a float with an integer.
func (n number) compareInt(i int) int {
	switch {
	case n.f != n.f:
		return unordered
	case n.f >= -math.MinInt:
		return 1
	case n.f < math.MinInt:
		return -1
	case math.Abs(n.f) >= maxSmall: // it has no fraction
		return compareInts(int(n.f), i)
	}
	return number{f: n.f}.compare(number{f: float64(i)})
}

func compareInts(a, b int) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// compared is the cost of comparing two texts.
func compared(a, b string) int { return min(extent(a), extent(b)) }

// order compares two numbers or two texts as [number.compare] does.
func order(a, b any) (int, error) {
	x, ok := numberOf(a)
	y, ok2 := numberOf(b)
	if ok && ok2 {
		return x.compare(y), nil
	}
	text, ok := a.(string)
	other, ok2 := b.(string)
	if ok && ok2 {
		return strings.Compare(text, other), nil
	}
	_, err := fail("< compares two numbers or two strings, not %s and %s", describe(a), describe(b))
	return 0, err
}

// isNumber reports whether a value can be calculated with.
func isNumber(v any) bool {
	_, ok := numberOf(v)
	return ok
}

// integral is the integer that a number is, as 2.0 is 2.
func integral(v any) (i int, ok bool) {
	n, ok := numberOf(v)
	if n.isInt || !ok {
		return n.i, ok
	}
	return int(n.f), n.f == math.Trunc(n.f) && math.Abs(n.f) < maxSmall
}

// whole makes a function that rounds numbers, and leaves integers as they are.
func whole(rounded func(float64) float64) func(ev *evaluation, args []any) (any, error) {
	return func(_ *evaluation, args []any) (any, error) {
		n, _ := numberOf(args[0])
		if n.isInt {
			return n.i, nil
		}
		return rounded(n.f), nil
	}
}

func absolute(_ *evaluation, args []any) (any, error) {
	n, _ := numberOf(args[0])
	switch {
	case n.isInt && n.i < 0:
		return negate(n)
	case !n.isInt:
		return math.Abs(n.f), nil
	}
	return n.i, nil
}

// toInteger is int, which cuts off a fraction.
func toInteger(_ *evaluation, args []any) (any, error) {
	if text, ok := args[0].(string); ok {
		i, err := strconv.Atoi(text)
		switch {
		case err == nil:
			return i, nil
		case errors.Is(err, strconv.ErrRange):
			return nil, errTooLarge
		}
		return fail("int finds no integer in %q", phrase.Shorten(text))
	}
	n, ok := numberOf(args[0])
	switch {
	case !ok:
		return nil, errTooLarge
	case n.isInt:
		return n.i, nil
	case n.f >= math.MinInt && n.f < -math.MinInt:
		return int(n.f), nil
	}
	return nil, errTooLarge
}

func toFloat(_ *evaluation, args []any) (any, error) {
	if text, ok := args[0].(string); ok {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fail("float finds no number in %q", phrase.Shorten(text))
		}
		return f, nil
	}
	n, ok := numberOf(args[0])
	if !ok {
		return nil, errTooLarge
	}
	return n.float(), nil
}

// eachNumber walks over the numbers in the arguments, in nested arrays too.
func eachNumber(function string, args []any, do func(n number)) error {
	for _, arg := range args {
		if array, ok := arg.([]any); ok {
			if err := eachNumber(function, array, do); err != nil {
				return err
			}
			continue
		}
		n, ok := numberOf(arg)
		if !ok {
			return ownError(fmt.Sprintf("%s does not take %s", function, describe(arg)))
		}
		do(n)
	}
	return nil
}

// extreme makes a function that returns the number of its arguments that compares so with all
// others, if there is any.
func extreme(function string, comparison int) func(ev *evaluation, args []any) (any, error) {
	return func(_ *evaluation, args []any) (found any, err error) {
		var best number
		err = eachNumber(function, args, func(n number) {
			if found == nil || n.compare(best) == comparison {
				best, found = n, n.value()
			}
		})
		return found, err
	}
}

func mean(_ *evaluation, args []any) (any, error) {
	var m meaning
	if err := eachNumber("mean", args, m.add); err != nil {
		return nil, err
	}
	return m.mean()
}

func median(_ *evaluation, args []any) (any, error) {
	var all []number
	if err := eachNumber("median", args, func(n number) { all = append(all, n) }); err != nil {
		return nil, err
	}
	slices.SortFunc(all, number.compare)
	if len(all) > 0 {
		all = all[(len(all)-1)/2 : len(all)/2+1]
	}
	var m meaning
	for _, n := range all {
		m.add(n)
	}
	return m.mean()
}

// meaning adds numbers up for their mean, integers exactly.
type meaning struct {
	n        int64
	integers big.Int
	floats   float64
	hasFloat bool
}

func (m *meaning) add(n number) {
	m.n++
	m.floats += n.float()
	if n.isInt {
		m.integers.Add(&m.integers, big.NewInt(int64(n.i)))
	} else {
		m.hasFloat = true
	}
}

// mean is 0 of nothing.
func (m *meaning) mean() (any, error) {
	if m.hasFloat || m.n == 0 {
		return m.floats / float64(max(1, m.n)), nil
	}
	return ofRatio(new(big.Rat).SetFrac(&m.integers, big.NewInt(m.n)))
}
