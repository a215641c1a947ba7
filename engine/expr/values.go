package expr

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"obelus/store"
)

var (
	errTooMuch = ownError("the expression makes too much: its result is past the budget")
	errTooLong = ownError(fmt.Sprintf("the expression takes longer than %s", maxEvaluation))
)

// settle makes JSON of a value that was calculated: numbers are written as JSON has them. Each
// value that it looks at is charged.
func (ev *evaluation) settle(v any) (any, error) {
	if err := ev.spend(1); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case string: // a text may exist once and be returned many times
		return v, ev.spend(len(v) / 4)
	case int:
		return json.Number(strconv.Itoa(v)), nil
	case float64:
		return writeFloat(v)
	case json.Number: // so may digits
		if err := ev.spend(len(v) / 16); err != nil {
			return nil, err
		}
		return settleNumber(v)
	case groups:
		object, err := grouped(v)
		if err != nil {
			return nil, err
		}
		return ev.settle(object)
	case []any:
		return ev.settleArray(v)
	case map[string]any:
		return ev.settleObject(v)
	}
	return v, nil
}

func (ev *evaluation) settleArray(array []any) (any, error) {
	all := make([]any, len(array))
	for i, e := range array {
		var err error
		if all[i], err = ev.settle(e); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (ev *evaluation) settleObject(object map[string]any) (any, error) {
	all := make(map[string]any, len(object))
	for key, e := range object {
		err := ev.spend(len(key) / 16) // and names
		if err == nil {
			all[key], err = ev.settle(e)
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// settleNumber writes a number that was handed on as if it had been calculated: 1.50 is 1.5.
func settleNumber(text json.Number) (any, error) {
	n, ok := numberOf(text)
	switch {
	case !ok:
		return text, nil
	case n.isInt:
		return json.Number(strconv.Itoa(n.i)), nil
	}
	return writeFloat(n.f)
}

func writeFloat(f float64) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return fail("the expression gives a number that JSON does not have")
	}
	return json.Number(store.EncodeJSON(f)), nil
}
