package expr

import (
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

// inOrder sorts an array by a key for each element, ascending unless its direction is "desc". Equal
// elements keep their order.
func inOrder(ev *evaluation, function string, array, keys, direction []any) (any, error) {
	cost := 0
	for _, key := range keys {
		if text, ok := key.(string); ok {
			cost += extent(text)
		}
	}
	if err := ev.spend(len(array) + cost*bits.Len(uint(len(array)))); err != nil {
		return nil, err
	}
	descending := len(direction) > 0 && direction[0] == "desc"
	if len(direction) > 0 && !descending && direction[0] != "asc" {
		given := describe(direction[0])
		if text, ok := direction[0].(string); ok {
			given = strconv.Quote(phrase.Shorten(text))
		}
		return fail(`%s takes "asc" or "desc" for its order, not %s`, function, given)
	}
	places := make([]int, len(array))
	for i := range places {
		places[i] = i
	}
	var wrong error
	slices.SortStableFunc(places, func(i, j int) int {
		if descending {
			i, j = j, i
		}
		comparison, err := order(keys[i], keys[j])
		if err != nil {
			wrong = err
		}
		return comparison % unordered
	})
	if wrong != nil {
		return nil, wrong
	}
	all := make([]any, len(array))
	for n, i := range places {
		all[n] = array[i]
	}
	return all, nil
}

// take returns the first elements of an array, or all if it has fewer.
func take(_ *evaluation, args []any) (any, error) {
	array := args[0].([]any)
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

func reversed(_ *evaluation, args []any) (any, error) {
	all := slices.Clone(args[0].([]any))
	slices.Reverse(all)
	return all, nil
}
