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

// MissingInput checks a run that gets no input against the schema of input that the request's
// messages declare: its error is a [*plan.MessageError]. Input among those messages, or in the
// run's context in a log, is not missing; the log is nil for a new context.
func (s *Start) MissingInput(ctx context.Context, log store.Reader, options ...schema.Option) error {
	gives := func(m store.Message) bool { return m.Kind == "input" && m.Data.Set }
	if s.bringsInput() || slices.ContainsFunc(s.Request.Context, gives) {
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
			return nil // the run reports errors of the log
		}
	}
	return &plan.MessageError{Input: true, Err: fmt.Errorf("there is none, and it breaks the schema declared for input: %w", broken)}
}

// bringsInput reports whether the start has input. A value that is not set counts too: the check of
// its message refuses it.
func (s *Start) bringsInput() bool { return s.Input.Set || s.Input.Value != nil }

// Runner runs plans over a log. Its fields are set before it is used; one
// Runner may run many contexts at once. It needs a Log and a Registry. A panic of
// one of its functions comes out of whatever the Runner was asked to do.
type Runner struct {
	Log store.Log
	// For a root context: its delegates, and the names for their calls, are found from it.
	Registry *plan.Registry

	// Number of calls of one run, with its delegates, that run at once; 0 for DefaultParallel.
	Parallel int
	Result   int         // bytes of JSON of a value that a call may write; 0 for DefaultResult
	Ticks    int         // how often the planner of one run is asked; 0 for DefaultTicks
	Approve  plan.Policy // calls to hold for a person, in runs whose start has no policy
	// How long calls may go on after their run: fire-and-forget ones after its end, all after an
	// interruption; 0 for DefaultDrain, less for no time.
	Drain time.Duration

	// Observe, if it is set, is called with the record of a call at every change of its status,
	// once that is in the log, calls of delegates included, and at every failure after which the
	// call is retried: it is still running then, and pauses. It is also called with the start of a
	// call whose outcome alone is recorded, just before that outcome. It is called from one
	// goroutine at a time for each context, but not always from the same, as Attend is. The
	// record's values are shared with the run by both, and must not be changed.
	Observe func(journal.Record)

	// Attend, if it is set, reports whether a held call may be decided about while the run goes on,
	// so that the run waits for it. It is called again and again. Without it a run with only held
	// calls left halts.
	Attend func(journal.Record) bool

	// Acquire, if it is set, is called before each attempt of a call's activity, and may block: the
	// call's time does not count yet. It returns a function that is called once the outcome is in
	// the log or is dropped, or false if ctx ended first. It may not be called for a call that is
	// speculated on within a step, see [plan.Speculative].
	Acquire func(ctx context.Context) (release func(), ok bool)

	// Interrupted, if it is set, is called once nothing is left to record of a run that ends early
	// but the outcomes of calls that are still at work: from then on a second interrupt may end the
	// process. It may be called several times.
	Interrupted func()

	// Now is the clock, by which all is dated that a run appends; nil for the
	// system's, by which leases and deadlines go in any case. While it goes back
	// dates stand still.
	Now func() time.Time

	// Chooses below a duration, for the pauses between attempts; nil for a random one.
	jitter func(time.Duration) time.Duration
	script script.Script // drives the run; nil for a live one
	depth  int           // how many delegates it runs within
	// Ends when the calls around it are cut off; nil at the top.
	cut   context.Context
	pool  *pool  // slots for activities of the whole run, at any depth
	clock *clock // gives the dates of the run; nil outside of runs
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

	// Input is appended as one input message, if it is set. Its value may be anything that
	// [store.FromGo] takes, a struct or a map of any type; its readers get JSON's values. A value
	// that JSON lacks gives a [*plan.MessageError]. A value that is JSON already is not copied, and
	// must not be changed any more, as all values of the request. A value that is not set is refused.
	Input store.Optional

	// Approve selects the calls that are held for a person; the zero Policy leaves it to the
	// runner's. It applies to the whole run, its delegates and its resumptions.
	Approve plan.Policy

	// Begun, if it is set, is called once the run is in the log: from there on
	// it can be resumed, whatever becomes of the process.
	Begun func()
}

// Causes of a run's context that is done, see [context.Cause]. With any other the run is
// interrupted, and goes on only if it is resumed.
var (
	// ErrStopped is the cause for a run's interruption where its host stops: a later host may
	// resume the run ([journal.Run.Stopped]).
	ErrStopped = errors.New("the host was stopped")

	// ErrCancelled is the cause for a run's cancellation.
	ErrCancelled = errors.New("it was cancelled")
)

// CancelledError is [ErrCancelled] with its author.
type CancelledError struct{ journal.Who }

func (*CancelledError) Error() string { return ErrCancelled.Error() }

func (*CancelledError) Unwrap() error { return ErrCancelled }

// UnfinishedError is a run in a context whose last tick has not ended.
type UnfinishedError struct {
	Context string
	Status  journal.RunStatus
}

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("context %s has an unfinished run (%s)", e.Context, e.Status)
}

// Class implements the interface of [store.ClassOf].
func (e *UnfinishedError) Class() store.Class { return store.Refused }

// BusyError is a context that another process runs: it is refused, or was taken over after its
// lease had lapsed. The records of the other one stand.
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

// Class implements the interface of [store.ClassOf].
func (e *BusyError) Class() store.Class { return store.Busy }

// DelegateError is a context that a delegate's call made: its run is part of another one.
type DelegateError struct{ Context, Root string }

func (e *DelegateError) Error() string {
	return fmt.Sprintf("context %s is a delegate's: cancel the run of %s, which it is part of", e.Context, e.Root)
}

// Class implements the interface of [store.ClassOf].
func (e *DelegateError) Class() store.Class { return store.Refused }

// Run appends a request's messages, its input and its plan to a context, and runs the plan; a
// planner is asked for one plan after another, until it gives an output. A plan that is refused
// gives a [*plan.PlanError], a message that is refused a [*plan.MessageError], and either leaves no
// trace. So does a context with another holder, a [*BusyError], and one whose last run has not
// ended, an [*UnfinishedError].
//
// When ctx is done no call starts, running calls have the time that Drain allows, and the run can
// be resumed: calls that had not begun run then, and calls that were cut off run again, except
// fire-and-forget calls. An activity that does not heed its context is abandoned two seconds later,
// and may still be at work when its call runs again; a planner is waited for. An error of the log
// ends the run at once, and the part in the log can be resumed; where the end can't be recorded,
// its context is held for half a minute.
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
	l.prepare(s)
	l.origin, l.fresh = origin, true
	return l.run(ctx, nil)
}

func (l *loop) prepare(s Start) {
	l.request, l.policy, l.started = s.Request, s.Approve.Or(l.runner.Approve), s.Begun
	l.initial = append(l.initial, s.Request.Context...)
	if l.input = s.bringsInput(); l.input {
		l.initial = append(l.initial, store.Message{Type: store.TypeData, Kind: "input", Data: s.Input})
	}
}

// Check compiles a plan as Run would, on the values of the context now (or of an empty one, without
// a context), and runs and writes nothing. Calls for every instance stand for themselves where
// there are no instances. A planner is not asked: its solution is not known before.
func (r *Runner) Check(ctx context.Context, s Start) (*plan.Plan, error) {
	return r.check(ctx, s, true)
}

// Accepts reports whether Run would take the start's plan and messages: its error is Run's.
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
	l.prepare(s)
	if err := l.stageInitial(ctx); err != nil {
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
