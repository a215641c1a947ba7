package expr

import (
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"

	"obelus/engine/internal/jsonvalue"
)

// function is a function without a predicate.
type function struct {
	least, most int     // numbers of arguments; the function counts them itself where most is 0
	takes       []kinds // of each argument, the last also of all that follow
	result      kinds
	do          func(ev *evaluation, args []any) (any, error)
	words       []string // what an error about an argument says that each takes; nil for the usual
}

// functions are those of expr that are as cheap as their arguments are large, and our own. Left out
// are those that multiply (repeat, flatten), that depend on the clock (now) and reduce, whose sums
// of strings nothing bounds.
var functions = map[string]*function{
	"abs":         {least: 1, most: 1, takes: []kinds{numbers}, result: numbers, do: absolute},
	"ceil":        {least: 1, most: 1, takes: []kinds{numbers}, result: numbers, do: whole(math.Ceil)},
	"concat":      {result: anything, do: concatArrays},
	"first":       {least: 1, most: 1, takes: []kinds{anything}, result: anything, do: endOf("first", 0)},
	"float":       {least: 1, most: 1, takes: []kinds{numbers | large | texts}, result: fractions, do: toFloat},
	"floor":       {least: 1, most: 1, takes: []kinds{numbers}, result: numbers, do: whole(math.Floor)},
	"format":      {result: anything, do: formatted},
	"fromJSON":    {result: anything, do: jsonValue},
	"hasPrefix":   {least: 2, most: 2, takes: []kinds{texts}, result: booleans, do: onTexts(func(t []string) any { return strings.HasPrefix(t[0], t[1]) })},
	"hasSuffix":   {least: 2, most: 2, takes: []kinds{texts}, result: booleans, do: onTexts(func(t []string) any { return strings.HasSuffix(t[0], t[1]) })},
	"indexOf":     {least: 2, most: 2, takes: []kinds{texts}, result: integers, do: onTexts(func(t []string) any { return charactersBefore(t[0], strings.Index(t[0], t[1])) })},
	"int":         {least: 1, most: 1, takes: []kinds{numbers | large | texts}, result: integers, do: toInteger},
	"join":        {result: anything, do: join},
	"keys":        {result: anything, do: keys},
	"last":        {least: 1, most: 1, takes: []kinds{anything}, result: anything, do: endOf("last", -1)},
	"lastIndexOf": {least: 2, most: 2, takes: []kinds{texts}, result: integers, do: onTexts(func(t []string) any { return charactersBefore(t[0], strings.LastIndex(t[0], t[1])) })},
	"len":         {least: 1, most: 1, takes: []kinds{texts | arrays | objects}, result: integers, do: length},
	"lower":       {least: 1, most: 1, takes: []kinds{texts}, result: texts, do: onTexts(func(t []string) any { return strings.ToLower(t[0]) })},
	"max":         {least: 1, most: math.MaxInt, takes: []kinds{numbers | large | arrays}, result: anything, do: counted(extreme("max", 1))},
	"mean":        {least: 1, most: math.MaxInt, takes: []kinds{numbers | large | arrays}, result: anything, do: counted(mean)},
	"median":      {least: 1, most: math.MaxInt, takes: []kinds{numbers | large | arrays}, result: anything, do: counted(median)},
	"min":         {least: 1, most: math.MaxInt, takes: []kinds{numbers | large | arrays}, result: anything, do: counted(extreme("min", -1))},
	"replace":     {result: anything, do: replace},
	"reverse":     {least: 1, most: 1, takes: []kinds{arrays}, result: arrays, do: counted(reversed)},
	"round":       {least: 1, most: 1, takes: []kinds{numbers}, result: numbers, do: whole(math.Round)},
	"sort":        {result: anything, do: sorted},
	"split":       {result: anything, do: split},
	"string":      {least: 1, most: 1, takes: []kinds{anything}, result: texts, do: asText},
	"take":        {least: 2, most: 2, takes: []kinds{arrays, anything}, result: arrays, do: take},
	"toJSON":      {result: anything, do: jsonText},
	"trim":        {least: 1, most: 2, takes: []kinds{texts}, result: texts, do: trim},
	"trimPrefix":  {least: 1, most: 2, takes: []kinds{texts}, result: texts, do: onTexts(func(t []string) any { return strings.TrimPrefix(t[0], orSpace(t)) })},
	"trimSuffix":  {least: 1, most: 2, takes: []kinds{texts}, result: texts, do: onTexts(func(t []string) any { return strings.TrimSuffix(t[0], orSpace(t)) })},
	"type":        {result: anything, do: typeOf},
	"uniq":        {result: anything, do: unique},
	"upper":       {least: 1, most: 1, takes: []kinds{texts}, result: texts, do: onTexts(func(t []string) any { return strings.ToUpper(t[0]) })},
	"values":      {result: anything, do: values},
}

// Functions that are written by signs.
var (
	memberOf       = &function{least: 2, most: 2, takes: []kinds{anything}, result: anything, do: findMember(false)}
	optionalMember = &function{least: 2, most: 2, takes: []kinds{anything}, result: anything, do: findMember(true)}
	sliceOf        = &function{3, 3, []kinds{arrays | texts, numbers | large}, anything, slice, []string{"arrays and strings have slices", "a slice begins and ends at an integer"}}
	newArray       = &function{result: arrays, do: func(ev *evaluation, args []any) (any, error) { return args, ev.spend(len(args)) }}
	newObject      = &function{result: objects, do: func(ev *evaluation, args []any) (any, error) {
		object := make(map[string]any, len(args)/2)
		for i := len(args) - 2; i >= 0; i -= 2 { // of two members with a name the first counts
			key, ok := args[i].(string)
			if !ok {
				return fail("a string is needed here, not %s", describe(args[i]))
			}
			object[key] = args[i+1]
		}
		return object, ev.spend(len(args))
	}}
)

// findMember makes a function for the member of a value. One that is optional is null where it is
// missing.
func findMember(optional bool) func(ev *evaluation, args []any) (any, error) {
	return func(ev *evaluation, args []any) (any, error) {
		if err := ev.spend(extent(args[1])); err != nil {
			return nil, err
		}
		v, ok := member(args[0], args[1])
		if !ok && !optional {
			return nil, &Missing{Member: &noMember{ev.expr, args[0], args[1]}}
		}
		return v, nil
	}
}

// Functions lists the functions that an expression may call, sorted.
func Functions() []string {
	return slices.Sorted(slices.Values(slices.AppendSeq(slices.Collect(maps.Keys(functions)), maps.Keys(predicateKinds))))
}

// acceptsCount returns the error of a function that does not take a number of arguments, or an
// empty text.
func (f *function) acceptsCount(name string, n int) string {
	switch {
	case f.most == 0 || n >= f.least && n <= f.most:
		return ""
	case n < f.least:
		return "there are too few arguments"
	}
	return fmt.Sprintf("%s takes %d values at most, not %d", name, f.most, n)
}

// accepts returns the error of a function that does not take an argument of a type, or an empty
// text.
func (f *function) accepts(name string, i int, kind kinds) string {
	if f.most == 0 {
		return ""
	}
	takes := f.takes[min(i, len(f.takes)-1)]
	if kind&takes != 0 {
		return ""
	}
	if kind == large && takes&numbers != 0 {
		return errLargeOperand
	}
	words := name + " takes " + (takes &^ large).inWords()
	if f.words != nil {
		words = f.words[min(i, len(f.words)-1)]
	}
	return words + ", not " + kind.describe()
}

// onTexts makes a function of texts, which are charged for.
func onTexts(do func(texts []string) any) func(ev *evaluation, args []any) (any, error) {
	return func(ev *evaluation, args []any) (any, error) {
		texts, cost := make([]string, len(args)), 0
		for i, arg := range args {
			texts[i] = arg.(string)
			cost += extent(arg)
		}
		if err := ev.spend(cost); err != nil {
			return nil, err
		}
		return do(texts), nil
	}
}

// counted makes a function that charges for the values that it walks over.
func counted(do func(ev *evaluation, args []any) (any, error)) func(ev *evaluation, args []any) (any, error) {
	return func(ev *evaluation, args []any) (any, error) {
		for _, arg := range args {
			if err := ev.spend(walked(arg)); err != nil {
				return nil, err
			}
		}
		return do(ev, args)
	}
}

// walked is the cost of a function that walks over a value, nested arrays included.
func walked(v any) int {
	n := extent(v)
	array, _ := v.([]any)
	for _, e := range array {
		if inner, ok := e.([]any); ok {
			n += walked(inner)
		}
	}
	return n
}

func member(v, property any) (any, bool) {
	switch c := v.(type) {
	case map[string]any:
		key, ok := property.(string)
		e, exists := c[key]
		return e, ok && exists
	case []any:
		i, ok := integral(property)
		if i < 0 {
			i += len(c) // as in expr, from the end
		}
		if !ok || i < 0 || i >= len(c) {
			return nil, false
		}
		return c[i], true
	case groups:
		switch key := plain(property).(type) {
		case string, int, float64, bool:
			e, ok := c[key]
			return e, ok
		}
	}
	return nil, false
}

func typeOf(_ *evaluation, args []any) (any, error) {
	if len(args) != 1 {
		return fail("type takes one value")
	}
	return typeName(args[0]), nil
}

func concatArrays(ev *evaluation, args []any) (any, error) {
	all := []any{}
	for _, arg := range args {
		array, ok := arg.([]any)
		if !ok {
			return fail("concat joins arrays, not %s", describe(arg))
		}
		if err := ev.spend(len(array)); err != nil {
			return nil, err
		}
		all = append(all, array...)
	}
	return all, nil
}

func keys(ev *evaluation, args []any) (any, error) {
	object, err := soleObject("keys", args)
	if err == nil {
		err = ev.spend(len(object) + costOfKeys(object))
	}
	if err != nil {
		return nil, err
	}
	all := make([]any, 0, len(object))
	for _, key := range jsonvalue.SortedKeys(object) {
		all = append(all, key)
	}
	return all, nil
}

func values(ev *evaluation, args []any) (any, error) {
	object, err := soleObject("values", args)
	if err == nil {
		err = ev.spend(len(object) + costOfKeys(object))
	}
	if err != nil {
		return nil, err
	}
	all := make([]any, 0, len(object))
	for _, key := range jsonvalue.SortedKeys(object) {
		all = append(all, object[key])
	}
	return all, nil
}

// costOfKeys is the cost of comparing the keys of an object while they are sorted.
func costOfKeys(object map[string]any) (cost int) {
	for key := range object {
		cost += extent(key)
	}
	return cost * bits.Len(uint(len(object)))
}

func soleObject(function string, args []any) (map[string]any, error) {
	if len(args) == 1 {
		switch object := args[0].(type) {
		case map[string]any:
			return object, nil
		case groups:
			return grouped(object)
		}
	}
	return nil, ownError(fmt.Sprintf("%s takes an object, not %s", function, describeAll(args)))
}

// grouped is what groupBy gives as an object.
func grouped(groups groups) (map[string]any, error) {
	object := make(map[string]any, len(groups))
	for key, group := range groups {
		text := "null"
		if key != nil {
			text = fmt.Sprint(key)
		}
		if _, ok := object[text]; ok {
			return nil, ownError(fmt.Sprintf("groupBy: the keys of an object are strings, and there are two keys %s of different types", text))
		}
		object[text] = group
	}
	return object, nil
}

func describeAll(args []any) string {
	if len(args) != 1 {
		return fmt.Sprintf("%d values", len(args))
	}
	return describe(args[0])
}

// endOf makes first and last, which give null for what has no elements. A text would have a byte.
func endOf(function string, i int) func(ev *evaluation, args []any) (any, error) {
	return func(_ *evaluation, args []any) (any, error) {
		if isText(args[0]) {
			return fail("%s takes an array, not a string", function)
		}
		v, _ := member(args[0], i)
		return v, nil
	}
}
