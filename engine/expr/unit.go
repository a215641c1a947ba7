package expr

import (
	"fmt"
	"slices"

	"obelus/store"
)

// unit is a part of an expression. It has a value, or is missing.
type unit interface {
	// eval returns the value of the unit. Its error is a [*Missing], an [*Error] about the expression
	// or the types in it, or that of a lookup or a context.
	eval(ev *evaluation) (any, error)
}

type (
	refUnit struct {
		index int
		path  store.Path
	}
	orUnit      struct{ left, right unit }
	andUnit     struct{ left, right unit }
	condUnit    struct{ cond, then, otherwise unit }
	literalUnit struct{ value any }
	elementUnit struct{ isIndex bool } // of a predicate

	// settledUnit has the value of another one as JSON.
	settledUnit struct{ unit }

	// lazyUnit is an operator of [lazyOperators].
	lazyUnit struct {
		place
		operator    string
		left, right unit
	}
	binaryUnit struct {
		place
		name        string
		operator    *operator
		left, right unit
	}
	functionUnit struct {
		place
		name     string
		function *function
		args     []unit
	}
	predicateUnit struct {
		place
		arrayAt place
		name    string
		do      predicate
		array   unit
		body    unit // nil for the element itself
		order   unit // of sortBy; nil for none
	}
)

// place is where an error of a unit stands.
type place struct {
	source *source
	column int
}

// in gives the error of an operator or a function its place.
func (p place) in(err error) error {
	if own, ok := err.(ownError); ok {
		return p.source.errorAt(p.column, "%s", own)
	}
	return err
}

// settled returns the unit of a whole expression with JSON for its value. That of a reference stays
// as it is, with the text of its numbers.
func settled(u unit) unit {
	switch u := u.(type) {
	case refUnit:
		return u
	case orUnit:
		return orUnit{settled(u.left), settled(u.right)}
	case andUnit:
		return andUnit{u.left, settled(u.right)}
	case condUnit:
		return condUnit{u.cond, settled(u.then), settled(u.otherwise)}
	}
	return settledUnit{u}
}

// kindsOf returns the types that the value of a unit may have, as far as that is known before it is
// evaluated. Whatever is refused for its type then is refused in all plans that were accepted
// before.
func kindsOf(u unit) kinds {
	switch u := u.(type) {
	case literalUnit:
		return kindOf(u.value)
	case settledUnit:
		return kindsOf(u.unit)
	case *binaryUnit:
		return u.operator.result
	case lazyUnit:
		if u.operator != "??" {
			return booleans
		}
	case *functionUnit:
		if u.name == "+" || u.name == "-" {
			return kindsOf(u.args[0])
		}
		return u.function.result
	case *predicateUnit:
		return predicateKinds[u.name]
	}
	return anything
}

// partsOf returns the units in a unit: those that are evaluated whatever the values are, and the
// others.
func partsOf(u unit) (always, perhaps []unit) {
	switch u := u.(type) {
	case orUnit:
		return nil, []unit{u.left, u.right}
	case andUnit:
		return []unit{u.left, u.right}, nil
	case condUnit:
		return []unit{u.cond}, []unit{u.then, u.otherwise}
	case settledUnit:
		return []unit{u.unit}, nil
	case lazyUnit:
		return []unit{u.left}, []unit{u.right}
	case *binaryUnit:
		return []unit{u.left, u.right}, nil
	case *functionUnit:
		return u.args, nil
	case *predicateUnit:
		isAbsent := func(u unit) bool { return u == nil }
		return slices.DeleteFunc([]unit{u.array, u.order}, isAbsent), slices.DeleteFunc([]unit{u.body}, isAbsent)
	}
	return nil, nil
}

// possible reports whether a unit can have a value when only known paths can exist.
func possible(u unit, known func(store.Path) bool) bool {
	switch u := u.(type) {
	case refUnit:
		return known(u.path)
	case orUnit:
		return possible(u.left, known) || possible(u.right, known)
	case condUnit:
		return possible(u.cond, known) && (possible(u.then, known) || possible(u.otherwise, known))
	}
	always, perhaps := partsOf(u)
	isImpossible := func(inner unit) bool { return !possible(inner, known) }
	return !slices.ContainsFunc(always, isImpossible) && !slices.ContainsFunc(perhaps, isImpossible)
}

// needs lists the paths without which a unit has no value.
func needs(u unit) (all []store.Path) {
	if ref, ok := u.(refUnit); ok {
		return []store.Path{ref.path}
	}
	always, _ := partsOf(u)
	for _, inner := range always {
		all = append(all, needs(inner)...)
	}
	return all
}

// hopeless returns the missing references without which a unit never has a value, whatever is still
// to come; nil where it may have one. Only conditions are evaluated for that.
func (ev *evaluation) hopeless(u unit) (*Missing, error) {
	switch u := u.(type) {
	case refUnit:
		_, exists, open, err := ev.lookup(u.path)
		if err != nil || exists || open {
			return nil, err
		}
		return &Missing{Paths: []store.Path{u.path}}, nil
	case orUnit:
		return ev.bothHopeless(u.left, u.right)
	case condUnit:
		return ev.hopelessCondition(u)
	}
	always, _ := partsOf(u)
	for _, inner := range always {
		if m, err := ev.hopeless(inner); m != nil || err != nil {
			return m, err
		}
	}
	return nil, nil
}

func (ev *evaluation) hopelessCondition(u condUnit) (*Missing, error) {
	if m, err := ev.hopeless(u.cond); m != nil || err != nil {
		return m, err
	}
	decided, now := true, *ev // unless an open reference changes it
	now.lookup = func(path store.Path) (any, bool, bool, error) {
		v, exists, open, err := ev.lookup(path)
		decided = decided && (exists || !open)
		return v, exists, open, err
	}
	if v, err := u.cond.eval(&now); err == nil && decided {
		switch v {
		case true:
			return ev.hopeless(u.then)
		case false:
			return ev.hopeless(u.otherwise)
		}
	}
	return ev.bothHopeless(u.then, u.otherwise)
}

func (ev *evaluation) bothHopeless(one, other unit) (*Missing, error) {
	left, err := ev.hopeless(one)
	if left == nil || err != nil {
		return nil, err
	}
	right, err := ev.hopeless(other)
	if right == nil || err != nil {
		return nil, err
	}
	return left.And(right), nil
}

func (u refUnit) eval(ev *evaluation) (any, error) {
	f, err := ev.look(u)
	if err != nil {
		return nil, err
	}
	if !f.exists {
		return nil, ev.lacks(u.path, f.open)
	}
	return f.value, nil
}

// evalOrMissing evaluates a unit, and tells what it lacks from its error.
func evalOrMissing(ev *evaluation, u unit) (any, *Missing, error) {
	v, err := u.eval(ev)
	if m, ok := err.(*Missing); ok {
		return nil, m, nil
	}
	return v, nil, err
}

func (u orUnit) eval(ev *evaluation) (any, error) {
	v, left, err := evalOrMissing(ev, u.left)
	if err != nil || left == nil {
		return v, err
	}
	v, right, err := evalOrMissing(ev, u.right)
	if err != nil || right == nil {
		return v, err
	}
	switch { // only what may still come helps
	case left.Open && !right.Open:
		return nil, left
	case right.Open && !left.Open:
		return nil, right
	}
	both := left.And(right)
	if len(both.Paths) > 0 { // another writer could have brought it
		both.Member = nil
	}
	return nil, both
}

func (u andUnit) eval(ev *evaluation) (any, error) {
	_, left, err := evalOrMissing(ev, u.left)
	switch {
	case err != nil:
		return nil, err
	case left != nil && !left.Open:
		return nil, left
	}
	v, right, err := evalOrMissing(ev, u.right)
	switch {
	case err != nil:
		return nil, err
	case left != nil && right != nil:
		return nil, left.And(right)
	case left != nil:
		return nil, left
	case right != nil:
		return nil, right
	}
	return v, nil
}

func (u condUnit) eval(ev *evaluation) (any, error) {
	v, err := u.cond.eval(ev)
	if err != nil {
		return nil, err
	}
	yes, ok := v.(bool)
	switch {
	case !ok:
		return nil, ev.expr.source.errorAt(0, "the condition before ? must be true or false, not %s", store.Describe(v))
	case yes:
		return u.then.eval(ev)
	}
	return u.otherwise.eval(ev)
}

func (u literalUnit) eval(*evaluation) (any, error) { return u.value, nil }

func (u settledUnit) eval(ev *evaluation) (any, error) {
	v, err := u.unit.eval(ev)
	if err != nil {
		return nil, err
	}
	v, err = ev.settle(v)
	return v, place{source: ev.expr.source}.in(err)
}

func (u lazyUnit) eval(ev *evaluation) (any, error) {
	left, err := u.left.eval(ev)
	if err != nil {
		return nil, err
	}
	if u.operator == "??" {
		if left != nil {
			return left, nil
		}
		return u.right.eval(ev)
	}
	yes, ok := left.(bool)
	switch {
	case !ok:
		return nil, u.in(needsCondition(kindOf(left)))
	case yes == (u.operator == "or"):
		return yes, nil
	}
	right, err := u.right.eval(ev)
	if _, ok := right.(bool); !ok && err == nil {
		return nil, u.in(needsCondition(kindOf(right)))
	}
	return right, err
}

func needsCondition(got kinds) error {
	return ownError("true or false is needed here, not " + got.describe())
}

func (u *binaryUnit) eval(ev *evaluation) (any, error) {
	left, err := u.left.eval(ev)
	if err != nil {
		return nil, err
	}
	right, err := u.right.eval(ev)
	if err != nil {
		return nil, err
	}
	if u.operator.sides != anything {
		if wrong := u.operator.accepts(u.name, kindOf(left), kindOf(right)); wrong != "" {
			return nil, u.in(ownError(wrong))
		}
	}
	v, err := u.operator.do(ev, left, right)
	return v, u.in(err)
}

func (u *functionUnit) eval(ev *evaluation) (any, error) {
	args := make([]any, len(u.args))
	for i, arg := range u.args {
		var err error
		if args[i], err = arg.eval(ev); err != nil {
			return nil, err
		}
		if wrong := u.function.accepts(u.name, i, kindOf(args[i])); wrong != "" {
			return nil, u.in(ownError(wrong))
		}
	}
	v, err := u.function.do(ev, args)
	return v, u.in(err)
}

func (u *predicateUnit) eval(ev *evaluation) (any, error) {
	v, err := u.array.eval(ev)
	if err != nil {
		return nil, err
	}
	array, ok := v.([]any)
	if !ok {
		return nil, u.arrayAt.in(ownError(fmt.Sprintf("%s takes an array, not %s", u.name, describe(v))))
	}
	v, err = u.do(ev, u, array)
	return v, u.in(err)
}

func (u elementUnit) eval(ev *evaluation) (any, error) {
	if u.isIndex {
		return ev.index, nil
	}
	return ev.element, nil
}

// ownError says what is wrong with the values of an operator or a function, for people as it
// stands.
type ownError string

func (e ownError) Error() string { return string(e) }

func fail(format string, args ...any) (any, error) {
	return nil, ownError(fmt.Sprintf(format, args...))
}
