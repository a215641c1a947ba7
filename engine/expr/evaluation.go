package expr

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

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
	v, m, err := evalOrMissing(ev, e.root)
	if m == &ev.lack { // it goes on without the evaluation
		m = &Missing{Paths: []store.Path{ev.lackPath[0]}, Open: m.Open}
	}
	if m == nil || !m.Open {
		return v, m, err
	}
	// It stopped there, and the references beyond may never come.
	hopeless, err := (&evaluation{expr: e, ctx: ctx, place: ev.place, lookup: lookup, budget: maxProduced}).hopeless(e.root)
	if err != nil {
		return nil, nil, err
	}
	return nil, m.And(hopeless), nil
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
	looked   map[int]found             // references by number; nil before the first predicate
	patterns map[string]*regex.Pattern // compiled during the evaluation, by their texts
	element  any
	index    any
	lack     Missing // the first reference without a value
	lackPath [1]store.Path
	unlike   []any // a text and a number that were compared, and are not noted yet
}

// lacks returns what is said of a reference without a value. The first comes without an allocation:
// most often || has another value for it.
func (ev *evaluation) lacks(path store.Path, open bool) *Missing {
	if ev.lack.Paths != nil {
		return &Missing{Paths: []store.Path{path}, Open: open}
	}
	ev.lackPath[0] = path
	ev.lack = Missing{Paths: ev.lackPath[:], Open: open}
	return &ev.lack
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
		return err
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
