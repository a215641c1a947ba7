package expr

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"reflect"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/expr-lang/expr/builtin"

	"obelus/engine/internal/jsonvalue"
)

// The names under which programs reach the evaluation. None can be written.
const (
	evalName     = "ǂ"
	refName      = "ǂref"
	unitName     = "ǂunit"
	memberName   = "ǂmember"
	optionalName = "ǂoptional"
	elementName  = "ǂelement"
	testName     = "ǂtest"
	elementsName = "ǂelements"
	truthName    = "ǂtruth"
	mapName      = "ǂmap"
	addName      = "ǂadd"
	inName       = "ǂin"
	ownSuffix    = "ǂ"
)

// callbacks are the functions behind those names. Each gets the evaluation
// first.
var callbacks = []*builtin.Function{
	callback(refName, func(ev *evaluation, args []any) (any, error) { return ev.reference(args[0].(int)) }),
	callback(unitName, func(ev *evaluation, args []any) (any, error) { return ev.plain(ev.expr.units[args[0].(int)]) }),
	callback(memberName, func(ev *evaluation, args []any) (any, error) {
		v, ok := member(args[0], args[1])
		if err := ev.spend(extent(args[1])); err != nil {
			return nil, err
		}
		if !ok {
			return nil, &Missing{Member: &noMember{ev.expr, args[0], args[1]}}
		}
		return v, nil
	}),
	callback(optionalName, func(ev *evaluation, args []any) (any, error) {
		v, _ := member(args[0], args[1])
		return v, ev.spend(extent(args[1]))
	}),
	// It checks the array that a predicate goes through: expr would go through the bytes of a string.
	callback(elementsName, func(_ *evaluation, args []any) (any, error) {
		if args[0] == nil || reflect.TypeOf(args[0]).Kind() != reflect.Slice {
			return fail("%s takes an array, not %s", args[1], describe(args[0]))
		}
		return args[0], nil
	}),
	callback(elementName, func(ev *evaluation, args []any) (any, error) {
		if args[0].(bool) {
			return ev.index, nil
		}
		return ev.element, nil
	}),
	boolCallback(testName, func(ev *evaluation, args []any) (any, error) { return ev.test(args) }),
	truth,
	callback(mapName, func(ev *evaluation, args []any) (any, error) { return ev.each(args) }),
	callback(addName, add),
	callback("concat"+ownSuffix, concatArrays),
	boolCallback(inName, in),
	callback("findLast"+ownSuffix, findLast),
	callback("findLastIndex"+ownSuffix, findLastIndex),
	callback("format"+ownSuffix, formatted),
	callback("fromJSON"+ownSuffix, jsonValue),
	callback("join"+ownSuffix, join),
	callback("keys"+ownSuffix, keys),
	callback("replace"+ownSuffix, replace),
	callback("sort"+ownSuffix, sorted),
	callback("sortBy"+ownSuffix, sortedBy),
	callback("split"+ownSuffix, split),
	callback("sum"+ownSuffix, sum),
	callback("toJSON"+ownSuffix, jsonText),
	callback("type"+ownSuffix, func(_ *evaluation, args []any) (any, error) {
		if len(args) != 1 {
			return fail("type takes one value")
		}
		return typeName(args[0]), nil
	}),
	callback("uniq"+ownSuffix, unique),
	callback("values"+ownSuffix, values),
}

// programFunctions are all that programs call, by name. Nothing writes there.
var programFunctions = func() map[string]*builtin.Function {
	all := map[string]*builtin.Function{}
	for _, f := range callbacks {
		all[f.Name] = f
	}
	for name, f := range exactFunctions {
		all[evalName+name] = &builtin.Function{Name: evalName + name, Func: f}
	}
	for name, f := range countedFunctions {
		all[evalName+name] = callback(evalName+name, f)
	}
	return all
}()

// truth is what stands on the right of and and or, where expr looks at the left alone. Its
// types have what can be known refused before anything runs.
var truth = &builtin.Function{Name: truthName, Types: types(new(func(any, bool) bool)), Func: func(args ...any) (any, error) {
	if _, ok := args[1].(bool); !ok {
		return fail("true or false is needed here, not %s", describe(args[1]))
	}
	return args[1], nil
}}

func callback(name string, f func(ev *evaluation, args []any) (any, error)) *builtin.Function {
	return &builtin.Function{Name: name, Types: types(new(func(...any) any)), Func: func(args ...any) (any, error) {
		return f(args[0].(*evaluation), args[1:])
	}}
}

func boolCallback(name string, f func(ev *evaluation, args []any) (any, error)) *builtin.Function {
	b := callback(name, f)
	b.Types = types(new(func(...any) bool))
	return b
}

func types(pointer any) []reflect.Type { return []reflect.Type{reflect.TypeOf(pointer).Elem()} }

// reference returns the value of a path to a program. The path is resolved once, since a predicate
// asks for it at every element; each use is charged by the size of the value.
func (ev *evaluation) reference(i int) (any, error) {
	if v, ok := ev.resolved[i]; ok {
		return v, ev.spend(1 + extent(v))
	}
	v, err := ev.plain(refUnit{i, ev.expr.source.paths[i]})
	if err == nil {
		if ev.resolved == nil {
			ev.resolved = map[int]any{}
		}
		ev.resolved[i] = v
	}
	return v, err
}

// extent is how much there is to walk over in a value, next to what each element
// of a predicate costs.
func extent(v any) int {
	switch v := v.(type) {
	case string:
		return len(v) / 64
	case []any:
		return len(v) / 4
	}
	return 0
}

// plain evaluates a unit for a program.
func (ev *evaluation) plain(u unit) (any, error) {
	v, m, err := u.eval(ev)
	switch f, ok := v.(foreign); {
	case err != nil:
		return nil, err
	case m != nil:
		return nil, m
	case ok:
		return f.value, nil
	}
	v = toExpr(v, ev)
	return v, ev.spend(0)
}

// test evaluates a predicate, which is false where a member is missing.
func (ev *evaluation) test(args []any) (holds bool, err error) {
	v, err := ev.each(args)
	if m := (*Missing)(nil); errors.As(err, &m) && len(m.Paths) == 0 {
		return false, nil
	}
	holds, ok := v.(bool)
	if err == nil && !ok {
		_, err = fail("a predicate must be true or false, not %s", describe(v))
	}
	return holds, err
}

func (ev *evaluation) each(args []any) (any, error) {
	if err := ev.spend(1); err != nil {
		return nil, err
	}
	ev.element = args[1]
	if len(args) > 2 {
		ev.index = args[2]
	}
	if ev.looked == nil {
		ev.looked = map[int]found{}
	}
	v, err := ev.plain(ev.expr.units[args[0].(int)])
	if text, ok := v.(string); ok && err == nil { // groupBy looks at it again
		err = ev.spend(extent(text))
	}
	return v, err
}

// spend charges an evaluation for values that it makes or looks at. Once it has failed it fails
// again.
func (ev *evaluation) spend(n int) error {
	if ev.failed == nil {
		ev.failed = ev.afford(n)
	}
	return ev.failed
}

func (ev *evaluation) afford(n int) error {
	if ev.budget -= n; ev.budget < 0 {
		return errTooMuch
	}
	if ev.spent += n + 1; ev.spent < betweenLooks {
		return nil
	}
	ev.spent = 0
	if err := ev.place.take(ev.ctx); err != nil {
		return &lookupError{err}
	}
	if time.Since(ev.place.since) > maxEvaluation {
		return errTooLong
	}
	return nil
}

// evaluationPlace is a place among the evaluations that take long: their number is bounded, and so
// the memory of all of them together.
type evaluationPlace struct {
	since time.Time // zero before it is taken
	among chan struct{}
}

var evaluationPlaces = places(runtime.GOMAXPROCS(0))

func places(n int) *atomic.Pointer[chan struct{}] {
	var p atomic.Pointer[chan struct{}]
	among := make(chan struct{}, max(1, n))
	p.Store(&among)
	return &p
}

// EvaluateAtOnce sets how many expressions that take longer than some milliseconds are evaluated at
// once in this process, in all runs together; the default is one for each processor. Each may make
// values of some 400 MB. A program calls it as it starts: evaluations under way keep the number in
// force when they began.
func EvaluateAtOnce(n int) {
	evaluationPlaces.Store(places(n).Load())
}

// take waits for a place, if there is none yet. It gives the error of a context that has ended.
func (p *evaluationPlace) take(ctx context.Context) error {
	if err := ctx.Err(); err != nil || !p.since.IsZero() {
		return err
	}
	among := *evaluationPlaces.Load()
	select {
	case among <- struct{}{}:
		p.since, p.among = time.Now(), among
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *evaluationPlace) leave() {
	if !p.since.IsZero() {
		<-p.among
		p.since = time.Time{}
	}
}

// betweenLooks is how much is spent until an evaluation looks at the time again: a
// millisecond or so.
const betweenLooks = 4096

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
	case map[any][]any: // of groupBy
		switch property.(type) {
		case string, int, float64, bool:
			e, ok := c[property]
			return e, ok
		}
	}
	return nil, false
}

// integral is the integer that a number is, as 2.0 is 2.
func integral(v any) (i int, ok bool) {
	switch v := v.(type) {
	case int:
		return v, true
	case float64:
		return int(v), v == math.Trunc(v) && math.Abs(v) < maxSmall
	}
	return 0, false
}

// in reports whether an array holds a value or an object a key. Each element that it looks at is
// charged.
func in(ev *evaluation, args []any) (any, error) {
	switch c := args[1].(type) {
	case []any:
		if err := ev.spend(len(c)); err != nil {
			return nil, err
		}
		found := slices.ContainsFunc(c, func(e any) bool { return ev.equal(args[0], e) })
		ev.noteUnlike(!found)
		return found, ev.spend(0)
	case map[string]any:
		key, ok := args[0].(string)
		if isAnyNumber(args[0]) && len(c) > 0 {
			ev.unlike = []any{args[0], slices.Min(slices.Collect(maps.Keys(c)))}
			ev.noteUnlike(true)
		}
		_, exists := c[key]
		return ok && exists, ev.spend(extent(key))
	}
	if groups, ok := args[1].(map[any][]any); ok { // a result of groupBy
		_, exists := member(groups, args[0])
		return exists, nil
	}
	return fail("in looks into an array or an object, not into %s", describe(args[1]))
}

func add(ev *evaluation, args []any) (any, error) {
	if a, ok := args[0].(string); ok {
		if b, ok := args[1].(string); ok {
			return a + b, ev.spend(len(a) + len(b))
		}
	}
	return addNumbers(args[0], args[1])
}

func addNumbers(a, b any) (any, error) {
	switch x := a.(type) {
	case int:
		switch y := b.(type) {
		case int:
			return plus(x, y)
		case float64:
			return float64(x) + y, nil
		}
	case float64:
		switch y := b.(type) {
		case int:
			return x + float64(y), nil
		case float64:
			return x + y, nil
		}
	}
	return fail("can't add %s and %s", describe(a), describe(b))
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
		case map[any][]any:
			return grouped(object)
		}
	}
	return nil, ownError(fmt.Sprintf("%s takes an object, not %s", function, describeAll(args)))
}

// grouped is what groupBy gives as an object.
func grouped(groups map[any][]any) (map[string]any, error) {
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

// endOf makes first and last, which on a string would return a byte.
func endOf(function string, i int) func(args ...any) (any, error) {
	return func(args ...any) (any, error) {
		if _, ok := args[0].(string); ok {
			return fail("%s takes an array, not a string", function)
		}
		v, _ := member(args[0], i)
		return v, nil
	}
}
