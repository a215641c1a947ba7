package expr

// predicate does for an array what a function with a predicate does.
type predicate func(ev *evaluation, u *predicateUnit, array []any) (any, error)

// predicates are the functions that take a condition, or a value, for each element of an array.
var predicates = map[string]predicate{
	"all":           search(false, false, func(_ []any, i int) any { return i < 0 }),
	"any":           search(true, false, func(_ []any, i int) any { return i >= 0 }),
	"count":         countElements,
	"filter":        filterElements,
	"find":          search(true, false, elementAt),
	"findIndex":     search(true, false, placeOrNull),
	"findLast":      search(true, true, elementAt),
	"findLastIndex": search(true, true, placeOrNull),
	"groupBy":       groupElements,
	"map":           mapElements,
	"none":          search(true, false, func(_ []any, i int) any { return i < 0 }),
	"one": func(ev *evaluation, u *predicateUnit, array []any) (any, error) {
		n, err := countElements(ev, u, array)
		return n == 1, err
	},
	"sortBy": sortElements,
	"sum":    sumElements,
}

// predicateKinds are the types of their values.
var predicateKinds = map[string]kinds{
	"all": booleans, "any": booleans, "count": integers, "filter": arrays, "find": anything, "findIndex": anything, "findLast": anything,
	"findLastIndex": anything, "groupBy": objects, "map": arrays, "none": booleans, "one": booleans, "sortBy": anything, "sum": anything,
}

// each evaluates the predicate for an element.
func (ev *evaluation) each(u *predicateUnit, element any, index int) (any, error) {
	if err := ev.spend(1); err != nil {
		return nil, err
	}
	if u.body == nil {
		return element, nil
	}
	if ev.looked == nil {
		ev.looked = map[int]found{}
	}
	ev.element, ev.index = element, index
	v, err := u.body.eval(ev)
	if text, ok := v.(string); ok && err == nil { // groupBy looks at it again
		err = ev.spend(extent(text))
	}
	return v, err
}

// holds evaluates a condition for an element, which is false where a member is missing.
func (ev *evaluation) holds(u *predicateUnit, element any, index int) (bool, error) {
	v, err := ev.each(u, element, index)
	if m, ok := err.(*Missing); ok && len(m.Paths) == 0 {
		return false, nil
	}
	yes, ok := v.(bool)
	if err == nil && !ok {
		_, err = fail("a predicate must be true or false, not %s", describe(v))
	}
	return yes, err
}

// search makes a function of the index of the first element, or the last, for which the condition
// is as wanted; of -1 without any.
func search(want, last bool, result func(array []any, i int) any) predicate {
	return func(ev *evaluation, u *predicateUnit, array []any) (any, error) {
		for n := range array {
			i := n
			if last {
				i = len(array) - 1 - n
			}
			holds, err := ev.holds(u, array[i], i)
			if err != nil {
				return nil, err
			}
			if holds == want {
				return result(array, i), nil
			}
		}
		return result(array, -1), nil
	}
}

func elementAt(array []any, i int) any {
	if i < 0 {
		return nil
	}
	return array[i]
}

func placeOrNull(_ []any, i int) any {
	if i < 0 {
		return nil
	}
	return i
}

func countElements(ev *evaluation, u *predicateUnit, array []any) (any, error) {
	kept, err := filterElements(ev, u, array)
	if err != nil {
		return nil, err
	}
	return len(kept.([]any)), nil
}

func filterElements(ev *evaluation, u *predicateUnit, array []any) (any, error) {
	all := []any{}
	for i, element := range array {
		holds, err := ev.holds(u, element, i)
		if err != nil {
			return nil, err
		}
		if holds {
			all = append(all, element)
		}
	}
	return all, nil
}

func mapElements(ev *evaluation, u *predicateUnit, array []any) (any, error) {
	all := make([]any, len(array))
	for i, element := range array {
		var err error
		if all[i], err = ev.each(u, element, i); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func groupElements(ev *evaluation, u *predicateUnit, array []any) (any, error) {
	all := groups{}
	for i, element := range array {
		key, err := ev.each(u, element, i)
		if err != nil {
			return nil, err
		}
		if kind := kindOf(key); kind&(arrays|objects) != 0 {
			return fail("a group goes by a scalar, not by %s", kind.describe())
		}
		key = plain(key)
		all[key] = append(all[key], element)
	}
	return all, nil
}

func sortElements(ev *evaluation, u *predicateUnit, array []any) (any, error) {
	keys, err := mapElements(ev, u, array)
	if err != nil {
		return nil, err
	}
	var direction []any
	if u.order != nil {
		given, err := u.order.eval(ev)
		if err != nil {
			return nil, err
		}
		direction = []any{given}
	}
	return inOrder(ev, "sortBy", array, keys.([]any), direction)
}

func sumElements(ev *evaluation, u *predicateUnit, array []any) (any, error) {
	var total any = 0
	for i, element := range array {
		v, err := ev.each(u, element, i)
		if err == nil {
			total, err = addNumbers(total, v)
		}
		if err != nil {
			return nil, err
		}
	}
	return total, nil
}
