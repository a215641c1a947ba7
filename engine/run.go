package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"obelus/engine/internal/script"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/schema"
	"obelus/store"
)

// MissingInput tells what is wrong with a run that gets no input, where the request's messages
// declare the schema of input: a [*plan.MessageError], or nil. Input that those messages give, or that
// the run's context has in a log, is none that is missing; the log is nil for a new context.
func (s *Start) MissingInput(ctx context.Context, log store.Reader, options ...schema.Option) error {
	gives := func(m store.Message) bool { return m.Kind == "input" && m.HasData }
	if s.Input != nil || s.HasInput || slices.ContainsFunc(s.Request.Context, gives) {
		return nil
	}
	schema, path := s.Request.Declared("input", options), store.KindPath("input")
	if schema == nil {
		return nil
	}
	broken := schema.Validate(map[string]any{}, path.String())
	if broken == nil {
		return nil
	}
	if log != nil {
		given, err := store.Resolver{Log: log, Context: s.Context}.Resolve(ctx, path, "")
		if err == nil && given.Exists || err != nil && !errors.Is(err, store.ErrNoContext) {
			return nil // what is wrong with the log is told by the run
		}
	}
	return &plan.MessageError{Input: true, Err: fmt.Errorf("there is none, and it breaks the schema declared for input: %w", broken)}
}

// Runner runs plans over a log. Its fields are set before it is used; one
// Runner may run many contexts at once. It needs a Log and a Registry. A panic of
// one of its functions comes out of whatever the Runner was asked to do.
type Runner struct {
	Log      store.Log
	Registry *plan.Registry // of what a root context runs: from it the delegates are found, and what their calls may name

	Parallel int           // how many calls of one run, and of its delegates, run at once; 0 for DefaultParallel
	Result   int           // how many bytes of JSON a value may have that a call writes; 0 for DefaultResult
	Ticks    int           // how often the planner of one run is asked; 0 for DefaultTicks
	Approve  plan.Policy   // which calls are held for a person, of a run whose start does not say
	Drain    time.Duration // how long calls may go on that a run leaves behind: fire-and-forget ones at its end, all when it is interrupted; 0 for DefaultDrain, less for no time

	// Observe, if it is set, is told of every change of a call's status, once it is
	// recorded, those of delegates' calls among them, and of every failure after which a
	// call is tried again: it runs still then, and rests. That a call runs is told also
	// where its outcome is all that is recorded, and just before that outcome. It is called from
	// one goroutine at a time for each context, but not always from the same, as Attend
	// is. What the record holds is shared with the run by both, and must not be changed.
	Observe func(journal.Record)

	// Attend, if it is set, tells whether a call that is held may be decided
	// about while the run goes on, so that the run waits for it. It is asked
	// again and again. Without it a run with nothing to do but held calls
	// comes to a halt.
	Attend func(journal.Record) bool

	// Acquire, if it is set, is asked before a call's activity begins, each time that it is
	// tried, and may have it wait: its time does not count yet. It gives what is to be
	// called once the outcome is in the log or comes to nothing, or false if ctx ended first.
	// A call that is done within a step of its run, see [plan.Speculative], may not be asked about.
	Acquire func(ctx context.Context) (release func(), ok bool)

	// Interrupted, if it is set, is called once the log has that a run was interrupted, or needs
	// not have it since its host goes ([ErrStopped]). Its calls may come to their end yet.
	Interrupted func()

	// Now is the clock, by which all is dated that a run appends; nil for the
	// system's, by which leases and deadlines go in any case. While it goes back
	// dates stand still.
	Now func() time.Time

	jitter func(time.Duration) time.Duration // below a duration, for the pauses between attempts; nil for chance
	script script.Script                     // what drives the run; nil for a live one
	depth  int                               // how many delegates it runs within
	cut    context.Context                   // ends when the calls around it are cut off; nil at the top
	pool   *pool                             // the run's slots for activities, in whatever depth
	clock  *clock                            // by which the run dates; nil where there is none
}

// Defaults of [Runner].
const (
	DefaultParallel = 8
	DefaultTicks    = 100
	DefaultResult   = 16 << 20
	DefaultDrain    = 5 * time.Second
)

func (r *Runner) parallel() int { return positive(r.Parallel, DefaultParallel) }

// positive is a number that is set, or what stands where it is not.
func positive(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}

// Start is a run to begin.
type Start struct {
	Context string // its name, see [store.CheckContext]; created if it is absent
	Request *plan.Request

	// Input is appended as one input message, unless it is nil and HasInput is
	// not set, which tells null from none. It may be anything that
	// [store.FromGo] takes, a struct or a map of any type; what reads it gets
	// JSON's values. What JSON doesn't have is a [*plan.MessageError]. What is JSON
	// already is not copied, and must not be changed any more; so it is with all
	// values of the request.
	Input    any
	HasInput bool

	// Approve says which calls are held for a person; where it says nothing, the
	// runner's does. It goes for the whole run, its delegates and whoever
	// resumes it.
	Approve plan.Policy

	// Begun, if it is set, is called once the run is in the log: from there on
	// it can be resumed, whatever becomes of the process.
	Begun func()
}

// Causes of a run's context that is done, see [context.Cause]. With any other the run is
// interrupted, and goes on only if it is resumed.
var (
	// ErrStopped tells that not the run is unwanted, but its host goes: it is interrupted,
	// and who comes after the host may resume it ([journal.Run.Stopped]).
	ErrStopped = errors.New("the host was stopped")

	// ErrCancelled tells that somebody has given the run up: it is cancelled.
	ErrCancelled = errors.New("it was cancelled")
)

// CancelledError is [ErrCancelled] by somebody.
type CancelledError struct{ journal.Who }

func (*CancelledError) Error() string { return ErrCancelled.Error() }

func (*CancelledError) Unwrap() error { return ErrCancelled }

// UnfinishedError is a run in a context whose last tick has not come to its
// end.
type UnfinishedError struct {
	Context string
	Status  journal.RunStatus
}

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("context %s has an unfinished run (%s): go on with it by: obelus resume -c %s", e.Context, e.Status, e.Context)
}

// BusyError is a context that somebody else runs: it is refused, or was taken
// over after its lease had lapsed. What the other one records stands.
type BusyError struct {
	Context string
	Holder  string // in words, empty if it is not known
}

func (e *BusyError) Error() string {
	if e.Holder == "" {
		return fmt.Sprintf("context %s has been taken over by another process: this one has stopped", e.Context)
	}
	return fmt.Sprintf("context %s is in use by %s", e.Context, e.Holder)
}

// DelegateError is a context that a delegate's call made: its run is part of another one.
type DelegateError struct{ Context, Root string }

func (e *DelegateError) Error() string {
	return fmt.Sprintf("context %s is a delegate's: cancel the run of %s, which it is part of", e.Context, e.Root)
}

// Run appends a request's messages, its input and its plan to a context, and
// runs the plan; a planner is asked for one plan after another, until it gives
// an output. A plan that is refused gives a [*plan.PlanError], a message that is
// refused a [*plan.MessageError], and either leaves no trace. So does a context that
// somebody else runs, a [*BusyError], and one whose last run has not come to its
// end, an [*UnfinishedError].
//
// When ctx is done nothing more starts, what runs has the time that Drain allows,
// and the run can be resumed: what had not begun runs then, and what was cut off
// runs again, but for fire-and-forget calls. An activity that does not heed its
// context is left behind two seconds later, and may still be at work when its call
// runs again; a planner is waited for. Where the log gives an error the run ends at
// once with that, and what is in the log can be resumed; where it can't be told that
// it has ended, its context is held for half a minute.
func (r *Runner) Run(ctx context.Context, s Start) (*journal.Outcome, error) {
	if err := store.CheckContext(s.Context); err != nil {
		return nil, err
	}
	if s.Request == nil {
		return nil, errNoRequest
	}
	return r.run(ctx, s, store.Origin{})
}

var errNoRequest = errors.New("there is nothing to run: the start needs a request, with calls or a planner")

func (r *Runner) run(ctx context.Context, s Start, origin store.Origin) (*journal.Outcome, error) {
	l, err := r.newLoop(ctx, s.Context)
	if err != nil {
		return nil, err
	}
	defer l.close()
	l.begins(s)
	l.origin, l.fresh = origin, true
	return l.run(ctx, nil)
}

func (l *loop) begins(s Start) {
	l.request, l.policy, l.started = s.Request, s.Approve.Or(l.runner.Approve), s.Begun
	l.opening = append(l.opening, s.Request.Context...)
	if l.input = s.HasInput || s.Input != nil; l.input {
		l.opening = append(l.opening, store.Message{Type: store.TypeData, Kind: "input", Data: s.Input, HasData: true})
	}
}

// Check compiles a plan as Run would, on what the context holds now (or on an
// empty one, without a context), and runs and writes nothing. Calls for every
// instance stand for themselves where there are no instances. A planner is not
// asked: what it will give is not known before.
func (r *Runner) Check(ctx context.Context, s Start) (*plan.Plan, error) {
	return r.check(ctx, s, true)
}

// Accepts tells whether Run would take the start's plan and messages: its error is Run's.
func (r *Runner) Accepts(ctx context.Context, s Start) error {
	_, err := r.check(ctx, s, false)
	return err
}

func (r *Runner) check(ctx context.Context, s Start, show bool) (*plan.Plan, error) {
	if s.Request == nil {
		return nil, errNoRequest
	}
	if s.Context != "" {
		if err := store.CheckContext(s.Context); err != nil {
			return nil, err
		}
	}
	l, err := r.newLoop(ctx, s.Context)
	if err != nil {
		return nil, err
	}
	defer l.close()
	l.begins(s)
	if err := l.open(ctx); err != nil {
		return nil, err
	}
	request, err := s.Request.Normalize()
	if err != nil {
		return nil, err
	}
	return l.compile(ctx, request, show)
}

func exists(ctx context.Context, resolver store.Resolver) plan.Exists {
	return func(path store.Path, instance string) (bool, error) {
		resolved, err := resolver.Resolve(ctx, path, instance)
		return resolved.Exists, err
	}
}
