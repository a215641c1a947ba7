package expr

import (
	"fmt"
	"math/big"
	"slices"
)

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
