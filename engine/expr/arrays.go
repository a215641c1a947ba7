package expr

import (
	"fmt"
	"math/big"
	"math/bits"
	"slices"
	"strconv"

	"obelus/engine/internal/phrase"
)

// sorted is expr's sort, exact where integers are large.
func sorted(ev *evaluation, args []any) (any, error) {
	if len(args) < 1 || len(args) > 2 {
		return fail("sort takes an array, and perhaps its order")
	}
	array, ok := args[0].([]any)
	if !ok {
		return fail("sort takes an array, not %s", describe(args[0]))
	}
	return inOrder(ev, "sort", array, array, args[1:])
}

// sortedBy is expr's sortBy, as sorted is its sort.
func sortedBy(ev *evaluation, args []any) (any, error) {
	array, ok := args[0].([]any)
	if !ok {
		return fail("sortBy takes an array, not %s", describe(args[0]))
	}
	keys := make([]any, len(array))
	for i, e := range array {
		var err error
		if keys[i], err = ev.each([]any{args[1], e}); err != nil {
			return nil, err
		}
	}
	return inOrder(ev, "sortBy", array, keys, args[2:])
}

// inOrder sorts an array by a key for each element, ascending unless order is "desc". Equal
// elements keep their order.
func inOrder(ev *evaluation, function string, array, keys, order []any) (any, error) {
	cost := 0
	for _, key := range keys {
		if text, ok := key.(string); ok {
			cost += extent(text)
		}
	}
	if err := ev.spend(len(array) + cost*bits.Len(uint(len(array)))); err != nil {
		return nil, err
	}
	descending := len(order) > 0 && order[0] == "desc"
	if len(order) > 0 && !descending && order[0] != "asc" {
		given := describe(order[0])
		if text, ok := order[0].(string); ok {
			given = strconv.Quote(phrase.Shorten(text))
		}
		return fail(`%s takes "asc" or "desc" for its order, not %s`, function, given)
	}
	places := make([]int, len(array))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(i, j int) int {
		if descending {
			i, j = j, i
		}
		return ordered(keys[i], keys[j])
	})
	all := make([]any, len(array))
	for n, i := range places {
		all[n] = array[i]
	}
	return all, nil
}

// ordered is less for a sort: below 0 where a is less than b, and above where b is.
func ordered(a, b any) int {
	switch {
	case less(a, b):
		return -1
	case less(b, a):
		return 1
	}
	return 0
}

// take returns the first elements of an array, or all if it has fewer.
func take(args ...any) (any, error) {
	array, ok := args[0].([]any)
	if !ok {
		return fail("take takes an array, not %s", describe(args[0]))
	}
	n, ok := integral(args[1])
	switch {
	case !ok && isNumber(args[1]):
		return fail("take takes an integer: write int(…) around a number that may have a fraction")
	case !ok:
		return fail("take takes a number of elements, not %s", describe(args[1]))
	case n < 0:
		return fail("take takes 0 elements or more, not %d: write [%[1]d:] for the last ones", n)
	}
	return array[:min(n, len(array))], nil
}

// sum adds up an array, or the results of a unit for each element.
func sum(ev *evaluation, args []any) (any, error) {
	array, ok := args[0].([]any)
	if !ok {
		return fail("sum takes an array, not %s", describe(args[0]))
	}
	var total any = 0
	for _, e := range array {
		var err error
		if len(args) > 1 {
			e, err = ev.each([]any{args[1], e})
		}
		if err == nil {
			total, err = addNumbers(total, e)
		}
		if err != nil {
			return nil, err
		}
	}
	return total, nil
}

// findLast returns the last element for which a predicate holds; null without any.
func findLast(ev *evaluation, args []any) (any, error) {
	array, i, err := lastPlace(ev, "findLast", args)
	if i < 0 || err != nil {
		return nil, err
	}
	return array[i], nil
}

// findLastIndex returns the index of that element; null without any.
func findLastIndex(ev *evaluation, args []any) (any, error) {
	_, i, err := lastPlace(ev, "findLastIndex", args)
	if i < 0 || err != nil {
		return nil, err
	}
	return i, nil
}

// lastPlace returns an array, and the index of its last element for which a predicate holds, or -1.
func lastPlace(ev *evaluation, function string, args []any) (array []any, i int, err error) {
	array, ok := args[0].([]any)
	if !ok {
		_, err = fail("%s takes an array, not %s", function, describe(args[0]))
		return nil, -1, err
	}
	for i = len(array) - 1; i >= 0; i-- {
		if holds, err := ev.test([]any{args[1], array[i]}); holds || err != nil {
			return array, i, err
		}
	}
	return array, -1, nil
}

// eachNumber walks over the numbers in the arguments, in nested arrays too.
func eachNumber(function string, args []any, do func(v any)) error {
	for _, arg := range args {
		switch v := arg.(type) {
		case int, float64:
			do(v)
		case []any:
			if err := eachNumber(function, v, do); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%s does not take %s", function, describe(v))
		}
	}
	return nil
}

// largest makes a function that returns the argument that is less than no other, if any.
func largest(function string, less func(a, b any) bool) func(args ...any) (any, error) {
	return func(args ...any) (found any, err error) {
		err = eachNumber(function, args, func(v any) {
			if found == nil || less(found, v) {
				found = v
			}
		})
		return found, err
	}
}

func mean(args ...any) (any, error) {
	var m meaning
	if err := eachNumber("mean", args, m.add); err != nil {
		return nil, err
	}
	return m.mean()
}

func median(args ...any) (any, error) {
	var all []any
	if err := eachNumber("median", args, func(v any) { all = append(all, v) }); err != nil {
		return nil, err
	}
	slices.SortFunc(all, ordered)
	if len(all) > 0 {
		all = all[(len(all)-1)/2 : len(all)/2+1]
	}
	var m meaning
	for _, v := range all {
		m.add(v)
	}
	return m.mean()
}

// meaning adds numbers up for their mean, integers exactly.
type meaning struct {
	n        int64
	integers big.Int
	floats   float64
	float    bool // one of them is
}

func (m *meaning) add(v any) {
	m.n++
	switch v := v.(type) {
	case int:
		m.integers.Add(&m.integers, big.NewInt(int64(v)))
		m.floats += float64(v)
	case float64:
		m.floats += v
		m.float = true
	}
}

// mean is 0 of nothing, as in expr.
func (m *meaning) mean() (any, error) {
	if m.float || m.n == 0 {
		return m.floats / float64(max(1, m.n)), nil
	}
	return ofRatio(new(big.Rat).SetFrac(&m.integers, big.NewInt(m.n)))
}
