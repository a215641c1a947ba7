package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"obelus/store"
)

// Planner gives the calls of one tick after another (protocol §7, the loop). A
// Lua function, a Go function and a model are planners; a static list of calls
// is one that answers once, and needs no Planner.
type Planner interface {
	// Plan is asked when a tick begins. An error ends the run as failed, as does a
	// solution with what JSON doesn't have. A solution that is refused otherwise, or
	// a [*PlanError] in its place, becomes error messages in the context, and the
	// planner is asked again. It has all the time that it takes until ctx is done,
	// which it must heed: the run waits for it.
	Plan(ctx context.Context, ask Ask) (*Solution, error)
}

// PlannerFunc makes a planner of a Go function.
type PlannerFunc func(ctx context.Context, ask Ask) (*Solution, error)

// Plan calls f.
func (f PlannerFunc) Plan(ctx context.Context, ask Ask) (*Solution, error) { return f(ctx, ask) }

// Ask is what a planner is asked with. Its values are those of an [Invocation],
// shared, and must not be changed. Texts are as they are: one that begins with † and goes
// into a solution becomes an expression there, wherever it came from, unless it passes
// through [Literal].
type Ask struct {
	Context string // its name
	Tick    int    // the tick that is to be planned

	// Kinds holds the value of every kind of the context, or what the request's
	// scopes grant. Where the context has instances, "_instances" holds the same
	// for each of them.
	Kinds map[string]any
}

// Solution is what a planner answers: calls, and the final output once it is
// known. Its values may be anything that [store.FromGo] takes.
type Solution struct {
	Calls []Source

	// Output ends the loop when it is not null once the tick has settled. It
	// may hold references.
	Output any
}

// NoPlannerError is a run whose planner is to be asked again and is not at hand.
type NoPlannerError struct{ Context string }

func (e *NoPlannerError) Error() string {
	return fmt.Sprintf("the function that plans context %s is to be asked again, and is not there", e.Context)
}

// instancesKey is where a planner finds what instances hold.
const instancesKey = "_instances"

// ask builds what a planner is asked with from what the view holds.
func (l *loop) ask(ctx context.Context, tick int) (Ask, error) {
	ask := Ask{Context: l.context, Tick: tick, Kinds: map[string]any{}}
	l.saw = map[string]int64{}
	held, err := l.view.Kinds(ctx)
	if err != nil {
		return ask, err
	}
	instances := map[string]any{}
	kinds := kindsOf(held)
	for _, instance := range instancesOf(held) {
		scopes := l.request.Scopes
		if scopes == nil {
			scopes = slices.Concat(kinds[""], kinds[instance])
		}
		granted, err := grant(ctx, l.view.Resolver(), scopes, instance, l.saw)
		switch {
		case err != nil:
			return ask, err
		case instance == "":
			ask.Kinds = granted
		default:
			instances[instance] = granted
		}
	}
	if len(instances) > 0 {
		ask.Kinds[instancesKey] = instances
	}
	return ask, nil
}

// solve gives the request with the calls and the output of the next tick. A
// problem is one of the planner's that the run ends with.
func (l *loop) solve(ctx context.Context, number int) (request *Request, problem, err error) {
	if l.request == nil {
		return nil, nil, &NoPlannerError{l.context}
	}
	solved, err := l.received()
	if err != nil || solved.Planner == nil {
		return solved, nil, err
	}
	ask, err := l.ask(ctx, number)
	if err != nil {
		return nil, nil, err
	}
	solution, err := consult(ctx, solved.Planner, ask)
	if err != nil {
		awaitEnd(ctx)
	}
	var refused *PlanError
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, nil, err
	case errors.As(err, &refused) && len(refused.Problems) > 0:
		return solved, refused, nil
	case err != nil:
		return solved, &plannerError{err}, nil
	}
	solved.Calls, solved.Output, solved.HasOutput = solution.Calls, solution.Output, solution.Output != nil
	if l.runner.replay != nil { // it was accepted once, maybe by an older version
		solved.Calls = slices.Clone(solved.Calls)
		for i := range solved.Calls {
			solved.Calls[i].accepted = true
		}
	}
	return solved, nil, nil
}

// awaitEnd waits for the end of a context whose time is over: a script looks at the clock
// itself, and may give up before the context does.
func awaitEnd(ctx context.Context) {
	if until, ok := ctx.Deadline(); ok && !time.Now().Before(until) {
		<-ctx.Done()
	}
}

// received is the run's request for one tick. JSON is made of what it holds once,
// not at every tick anew.
func (l *loop) received() (*Request, error) {
	if !l.made {
		made, err := l.request.received()
		if err != nil {
			return nil, err
		}
		l.request, l.made = made, true
	}
	request := *l.request
	return &request, nil
}

// consult asks a planner. A panic of one in Go is its own fault, and nobody
// else's, as is a solution that is not JSON.
func consult(ctx context.Context, p Planner, ask Ask) (solution *Solution, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = broken("the planner broke down", panicked)
		}
	}()
	solution, err = p.Plan(ctx, ask)
	switch {
	case err != nil:
		err, wrong := receivedError(err)
		return nil, cmp.Or(wrong, err)
	case solution == nil:
		return nil, errors.New("the planner gave no solution")
	}
	return solution.received()
}

// refusalOf is the refusal of a solution with a problem; nil for one without, or where
// the planner broke down. start is the seq before the messages that tell of the problem.
func refusalOf(problem error, request *Request, start int64) *refusal {
	var refused *PlanError
	if !errors.As(problem, &refused) {
		return nil
	}
	calls := planOf(request).Data
	digest := sha256.Sum256(store.EncodeJSON([]any{calls, request.Output, refused.Error()}))
	return &refusal{hex.EncodeToString(digest[:]), start + int64(len(refused.Problems))}
}

// repeats reports whether a solution is refused that equals the one refused before it, where
// nothing but that refusal has been appended meanwhile. start is the seq as the planner was
// asked.
func (r *refusal) repeats(before *refusal, start int64) bool {
	return r != nil && before != nil && r.Digest == before.Digest && start == before.Next
}

// Literal returns a value of an [Ask] as a [Solution] says it: a text that begins with †,
// here or within, comes with a second one, so that it is not taken for an expression. Keys
// stay as they are, and what holds no such text is not copied.
func Literal(v any) any {
	made, _ := escape(v)
	return made
}

// escape reports whether it changes anything.
func escape(v any) (made any, changed bool) {
	switch v := v.(type) {
	case nil, bool, json.Number, float64, int, int64:
		return v, false
	case string:
		if strings.HasPrefix(v, store.Dagger) {
			return store.Dagger + v, true
		}
		return v, false
	case []any:
		list := v
		for i, e := range v {
			if made, changed := escape(e); changed {
				if &list[0] == &v[0] {
					list = slices.Clone(v)
				}
				list[i] = made
			}
		}
		return list, len(v) > 0 && &list[0] != &v[0]
	case map[string]any:
		var object map[string]any
		for key, e := range v {
			if made, changed := escape(e); changed {
				if object == nil {
					object = maps.Clone(v)
				}
				object[key] = made
			}
		}
		if object == nil {
			return v, false
		}
		return object, true
	}
	other, err := store.FromGo(v, "")
	if err != nil {
		return v, false // a solution with it is refused
	}
	made, _ = escape(other)
	return made, true
}

// plannerError is a planner that broke down, and is not asked again.
type plannerError struct{ err error }

func (e *plannerError) Error() string { return mendText(e.err.Error()) }
func (e *plannerError) Unwrap() error { return e.err }
