package expr

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"obelus/store"
)

// foreign is a value of expr's, whose numbers are int and float64. A reference
// by itself never becomes one, and so keeps the text of its numbers.
type foreign struct{ value any }

// plainValue is a value that may be foreign.
func plainValue(v any) any {
	if f, ok := v.(foreign); ok {
		return f.value
	}
	return v
}

// describe names a value's type as JSON does, for errors.
func describe(v any) string {
	if _, ok := v.(json.Number); ok {
		return "an integer too large to calculate with"
	}
	return store.DescribeType(typeName(v))
}

// typeName is what JSON calls the type of a value of expr's.
func typeName(v any) string {
	switch reflect.ValueOf(v).Kind() {
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.Map:
		return "object"
	}
	return store.TypeName(v)
}

// toExpr gives a value the numbers that expr computes with. An integer that
// int can't hold stays as it is: it can be handed on, not computed with.
func toExpr(v any, ev *evaluation) any {
	if ev.spend(1) != nil {
		return nil // the caller reports it
	}
	switch v := v.(type) {
	case json.Number:
		if i, err := strconv.Atoi(string(v)); err == nil {
			return i
		}
		if strings.ContainsAny(string(v), ".eE") {
			if f, err := v.Float64(); err == nil {
				return f
			}
		}
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = toExpr(e, ev)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, e := range v {
			out[key] = toExpr(e, ev)
		}
		return out
	}
	return v
}

var (
	errTooMuch = errors.New("the expression makes too much: its result is past the budget")
	errTooLong = fmt.Errorf("the expression takes longer than %s", maxEvaluation)
)

// fromExpr makes JSON of a program's result.
func fromExpr(v any, budget *int) (any, error) {
	if *budget--; *budget < 0 {
		return nil, errTooMuch
	}
	switch v := v.(type) {
	case string: // a text may exist once and be returned many times
		if *budget -= len(v) / 4; *budget < 0 {
			return nil, errTooMuch
		}
		return v, nil
	case nil, bool, json.Number:
		return v, nil
	case int:
		return json.Number(strconv.Itoa(v)), nil
	case float64:
		return fromFloat(v)
	case foreign:
		return fromExpr(v.value, budget)
	case map[any][]any:
		object, err := grouped(v)
		if err != nil {
			return nil, err
		}
		return fromExpr(object, budget)
	}
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Slice, reflect.Array:
		out := make([]any, r.Len())
		for i := range out {
			e, err := fromExpr(r.Index(i).Interface(), budget)
			if err != nil {
				return nil, err
			}
			out[i] = e
		}
		return out, nil
	case reflect.Map:
		out := make(map[string]any, r.Len())
		for _, key := range r.MapKeys() {
			e, err := fromExpr(r.MapIndex(key).Interface(), budget)
			if err != nil {
				return nil, err
			}
			out[fmt.Sprint(key.Interface())] = e
		}
		return out, nil
	}
	return nil, errors.New("the expression gives no JSON value")
}

func fromFloat(f float64) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, errors.New("the expression gives a number that JSON does not have")
	}
	return json.Number(store.EncodeJSON(f)), nil
}
