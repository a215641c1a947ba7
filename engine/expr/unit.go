package expr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/expr-lang/expr/vm"

	"obelus/engine/internal/phrase"
	"obelus/engine/internal/regex"
	"obelus/store"
)

// Lookup returns the value of a path to an evaluation. Where it is missing, open reports whether it
// may still come.
type Lookup func(path store.Path) (value any, exists, open bool, err error)

// LookupIn returns a lookup in the values of a context, by kind.
func LookupIn(kinds map[string]any) Lookup {
	return func(path store.Path) (value any, exists, open bool, err error) {
		if value, exists = kinds[path.Kind()]; exists {
			value, exists = store.Dig(value, path)
		}
		return value, exists, false, nil
	}
}

// Missing is an expression that has no value.
type Missing struct {
	Paths []store.Path // missing references; none if a member of a value is missing
	Open  bool         // the value may exist once the open ones of them come

	Member error // a member that can't come, and that no || stands in for
}

func (m *Missing) Error() string {
	if m.Member != nil {
		return m.Member.Error()
	}
	return "nothing is at " + strings.Join(m.Names(), " or ")
}

// maxMember is how much of a member's name an error shows, in characters.
const maxMember = 60

// noMember is a member that a value in an expression does not have.
type noMember struct {
	expr   *Expr
	of     any
	member any
}

func (e *noMember) Error() string { return e.expr.source.errorAt(0, "%s", e.description()).Error() }

// description returns the error without the expression.
func (e *noMember) description() string {
	shown := e.member
	if text, ok := shown.(string); ok { // it is shown for each element, of any length
		shown = phrase.Shorten(text)
	}
	member := string(store.EncodeJSON(shown))
	if runes := []rune(member); len(runes) > maxMember {
		member = string(runes[:maxMember]) + "…"
	}
	i, isIndex := integral(e.member)
	switch of := e.of.(type) {
	case []any:
		return fmt.Sprintf("an array of %d has no element %s", len(of), member)
	case string:
		if isIndex {
			return "a string has no elements" + CharacterAt(of, "", i)
		}
	}
	return fmt.Sprintf("%s has no %s", describe(e.of), member)
}

// CharacterAt is a hint at how the character of a string at an index is written, behind the name of
// the string; empty where the string has none there.
func CharacterAt(text, name string, i int) string {
	if n := utf8.RuneCountInString(text); i < -n || i >= n {
		return ""
	}
	end := strconv.Itoa(i + 1)
	if i == -1 {
		end = ""
	}
	return fmt.Sprintf(": write %s[%d:%s] for its character at %[2]d", cmp.Or(name, "…"), i, end)
}

// Reason is why a member is missing, without the expression; empty if a reference is missing.
func (m *Missing) Reason() string {
	if e, ok := m.Member.(*noMember); ok {
		return e.description()
	}
	return ""
}

// Names are the references that it lacks, for people.
func (m *Missing) Names() (names []string) {
	for _, path := range m.Paths {
		if name := path.String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Eval returns the expression's value. The value is missing if a reference that it reached is
// missing and no || caught it. An error is about the expression or the types in it, an [*Error], as
// for an evaluation that has taken too long; or it is the lookup's own, or that of a context that
// has ended.
func (e *Expr) Eval(ctx context.Context, lookup Lookup) (any, *Missing, error) {
	ev := &evaluation{expr: e, ctx: ctx, lookup: lookup, budget: maxProduced}
	ev.place = &ev.ownPlace
	defer ev.ownPlace.leave()
	v, m, err := e.root.eval(ev)
	if unread, ok := errors.AsType[*lookupError](err); ok {
		return nil, nil, unread.err
	}
	if err != nil {
		return nil, nil, err
	}
	if m != nil {
		if m.Open { // it stopped there, and the references beyond may never come
			hopeless, err := e.root.hopeless(&evaluation{expr: e, ctx: ctx, place: ev.place, lookup: lookup, budget: maxProduced})
			if err != nil {
				return nil, nil, err
			}
			m = m.And(hopeless)
		}
		return nil, m, nil
	}
	if plain, ok := v.(foreign); ok {
		if v, err = fromExpr(plain.value, &ev.budget); err != nil {
			return nil, nil, e.source.errorAt(0, "%s", err)
		}
	}
	return v, nil, nil
}

// maxProduced bounds the values that one evaluation may make and look at: bytes of text that it
// makes, elements of arrays, and the text that it compares or searches, 64 bytes for one.
var maxProduced = 8 << 20

// maxEvaluation is the time that one evaluation may take. A full budget takes some 2 s.
var maxEvaluation = 5 * time.Second

// evaluation is one run of an expression.
type evaluation struct {
	expr     *Expr
	ctx      context.Context
	lookup   Lookup
	budget   int
	spent    int              // since it looked at the time and at ctx
	place    *evaluationPlace // its place; a part of an evaluation shares that of the whole
	ownPlace evaluationPlace
	failed   error                     // its budget or its time is spent, or its context has ended
	resolved map[int]any               // references, by number
	looked   map[int]found             // references that are units; nil before the first predicate
	patterns map[string]*regex.Pattern // compiled during the evaluation, by their texts
	element  any
	index    any
	unlike   []any // a text and a number that were compared, and are not noted yet
}

// found is the result of a lookup.
type found struct {
	value        any
	exists, open bool
}

// look looks a reference up: once, where a predicate does so at every element.
func (ev *evaluation) look(u refUnit) (f found, err error) {
	if f, ok := ev.looked[u.index]; ok {
		return f, nil
	}
	f.value, f.exists, f.open, err = ev.lookup(u.path)
	if ev.looked != nil && err == nil {
		ev.looked[u.index] = f
	}
	return f, err
}

func (u refUnit) eval(ev *evaluation) (any, *Missing, error) {
	f, err := ev.look(u)
	if err != nil {
		return nil, nil, &lookupError{err}
	}
	if !f.exists {
		return nil, &Missing{Paths: []store.Path{u.path}, Open: f.open}, nil
	}
	return f.value, nil, nil
}

func (u refUnit) hopeless(ev *evaluation) (*Missing, error) {
	_, exists, open, err := ev.lookup(u.path)
	if err != nil || exists || open {
		return nil, err
	}
	return &Missing{Paths: []store.Path{u.path}}, nil
}

func (u orUnit) hopeless(ev *evaluation) (*Missing, error) {
	return bothHopeless(ev, u.left, u.right)
}

func (u andUnit) hopeless(ev *evaluation) (*Missing, error) {
	return oneHopeless(ev, u.left, u.right)
}

func (u condUnit) hopeless(ev *evaluation) (*Missing, error) {
	if m, err := u.cond.hopeless(ev); m != nil || err != nil {
		return m, err
	}
	decided, now := true, *ev // unless an open reference changes it
	now.lookup = func(path store.Path) (any, bool, bool, error) {
		v, exists, open, err := ev.lookup(path)
		decided = decided && (exists || !open)
		return v, exists, open, err
	}
	if v, m, err := u.cond.eval(&now); m == nil && err == nil && decided {
		switch plainValue(v) {
		case true:
			return u.then.hopeless(ev)
		case false:
			return u.otherwise.hopeless(ev)
		}
	}
	return bothHopeless(ev, u.then, u.otherwise)
}

func (u *programUnit) hopeless(ev *evaluation) (*Missing, error) {
	return oneHopeless(ev, u.always...)
}

func bothHopeless(ev *evaluation, one, other unit) (*Missing, error) {
	left, err := one.hopeless(ev)
	if left == nil || err != nil {
		return nil, err
	}
	right, err := other.hopeless(ev)
	if right == nil || err != nil {
		return nil, err
	}
	return left.And(right), nil
}

func oneHopeless(ev *evaluation, units ...unit) (*Missing, error) {
	for _, u := range units {
		if m, err := u.hopeless(ev); m != nil || err != nil {
			return m, err
		}
	}
	return nil, nil
}

func (u orUnit) eval(ev *evaluation) (any, *Missing, error) {
	v, left, err := u.left.eval(ev)
	if err != nil || left == nil {
		return v, nil, err
	}
	v, right, err := u.right.eval(ev)
	if err != nil || right == nil {
		return v, nil, err
	}
	switch { // only what may still come helps
	case left.Open && !right.Open:
		return nil, left, nil
	case right.Open && !left.Open:
		return nil, right, nil
	}
	both := left.And(right)
	if len(both.Paths) > 0 { // another writer could have brought it
		both.Member = nil
	}
	return nil, both, nil
}

func (u andUnit) eval(ev *evaluation) (any, *Missing, error) {
	_, left, err := u.left.eval(ev)
	if err != nil || left != nil && !left.Open {
		return nil, left, err
	}
	v, right, err := u.right.eval(ev)
	switch {
	case err != nil || left == nil:
		return v, right, err
	case right == nil:
		return nil, left, nil
	}
	return nil, left.And(right), nil
}

func (u condUnit) eval(ev *evaluation) (any, *Missing, error) {
	v, m, err := u.cond.eval(ev)
	if err != nil || m != nil {
		return nil, m, err
	}
	v = plainValue(v)
	yes, ok := v.(bool)
	if !ok {
		return nil, nil, ev.expr.source.errorAt(0, "the condition before ? must be true or false, not %s", store.Describe(v))
	}
	if yes {
		return u.then.eval(ev)
	}
	return u.otherwise.eval(ev)
}

func (u *programUnit) eval(ev *evaluation) (any, *Missing, error) {
	machine := vm.VM{}
	v, err := machine.Run(u.program, map[string]any{evalName: ev})
	if err == nil {
		return foreign{v}, nil, nil
	}
	var m *Missing
	var own *Error
	var unread *lookupError
	switch {
	case errors.As(err, &m):
		return nil, m, nil
	case errors.As(err, &own):
		return nil, nil, own
	case errors.As(err, &unread):
		return nil, nil, unread
	}
	return nil, nil, ev.expr.source.wrap(err)
}

// lookupError is a lookup that failed, as opposed to a thing that the
// expression did wrong.
type lookupError struct{ err error }

func (e *lookupError) Error() string { return e.err.Error() }

// ownError is what functions of ours say, for people as it stands.
type ownError string

func (e ownError) Error() string { return string(e) }

func fail(format string, args ...any) (any, error) {
	return nil, ownError(fmt.Sprintf(format, args...))
}
