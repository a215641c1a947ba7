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
