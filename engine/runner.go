package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"obelus/engine/internal/lease"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// Runner runs plans over a log. Its fields are set before it is used; one
// Runner may run many contexts at once. It needs a Log and a Registry. A panic of
// one of its functions comes out of whatever the Runner was asked to do.
type Runner struct {
	Log store.Log
	// For a root context: its delegates, and the names for their calls, are found from it.
	Registry *plan.Registry

	// Number of calls of one run, with its delegates, that run at once; 0 for DefaultParallel.
	Parallel int
	Result   int // bytes of JSON of a value that a call may write; 0 for DefaultResult
	// How often the planner of one run is asked, and how often those of the run and its delegates are
	// asked again in all; 0 for DefaultTicks.
	Ticks   int
	Approve plan.Policy // calls to hold for a person, in runs whose start has no policy
	// How long the calls that are at work may go on once a run is told to stop, background calls too;
	// 0 for DefaultDrain, less for no time.
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

	// Acquire, if it is set, is called before each attempt of a call's activity, of a fire-and-forget
	// call once for all its attempts, and may block: the call's time does not count yet. It returns a
	// function that is called once the outcome is in the log or is dropped, or false if ctx ended
	// first. It may not be called for a call that is speculated on within a step, see
	// [plan.Speculative].
	Acquire func(ctx context.Context) (release func(), ok bool)

	// Logs, if it is set, keeps the lines that calls print and log. A run that ends flushes it.
	Logs plan.Logs

	// Rest is the length from which on a pause between two attempts rests in the log: the call waits,
	// and a run with nothing else to do ends waiting, to be resumed when the call is due. 0 has every
	// run wait by itself. Fire-and-forget calls always pause in their run.
	Rest time.Duration

	// Budget bounds the use of models by a run and its delegates together.
	Budget plan.Budget

	// Spent, if it is set, is called with what each request to a model used, once it has been
	// answered or has failed. It is called from several goroutines at once.
	Spent func(plan.Usage)

	// Watch, if it is set, is called with text as a model writes it: for a call, or for the plan of a
	// tick, which is named by the tick's number alone. An empty text
	// marks the end of an answer: what comes next begins a new one, as where a request is retried.
	// The text is for display: it is not recorded, and the answer may still be refused. Watch is
	// called from several goroutines at once.
	Watch func(context, call, text string)

	// Rehearsal says so to the planners of the runs ([plan.Ask].Rehearsal).
	Rehearsal bool

	// Interrupted, if it is set, is called once nothing is left to record of a run that ends early
	// but the outcomes of calls that are still at work: from then on a second interrupt may end the
	// process. It may be called several times.
	Interrupted func()

	// Concluded, if it is set, is called with the outcome of a run that has ended or halted, once the
	// log has it, where calls are still at work in the background: Run and Resume return once those
	// have ended too. A run that has halted may go on meanwhile, and then has another outcome.
	Concluded func(*journal.Outcome)

	// Now is the clock, by which all is dated that a run appends; nil for the
	// system's, by which leases and deadlines go in any case. While it goes back
	// dates stand still.
	Now func() time.Time

	// Chooses below a duration, for the pauses between attempts; nil for a random one.
	jitter func(time.Duration) time.Duration
	depth  int  // how many delegates it runs within
	alone  bool // it runs a delegate's context by itself, and another run waits for the end
	// Ends when the calls around it are cut off; nil at the top.
	cut  context.Context
	pool *slotPool // slots for activities of the whole run, at any depth
	// Counts the use of models by the run and its delegates; nil outside of runs, and without models.
	account plan.Ledger
	clock   *lease.Clock // gives the dates of the run; nil outside of runs
	replans *replans     // of the run and its delegates; nil outside of runs
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
	// must not be changed any more, as all values of the request. A value that is not set is
	// refused.
	Input store.Optional

	// Approve selects the calls that are held for a person; the zero Policy leaves it to the
	// runner's. It applies to the whole run, its delegates and its resumptions.
	Approve plan.Policy

	// Once refuses the run with [store.ErrExists] if its context exists, or was pruned a while ago
	// ([store.Batch].Once), also if another process makes it first.
	Once bool

	// New says that no log can have the context, since its name has just been made: it is not looked
	// up before the first append. Where it exists all the same, the run goes on as without New.
	New bool

	// Labels are kept with the run, for lists; see [store.CheckLabels].
	Labels map[string]string

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
	Context    string
	Status     journal.RunStatus
	Background bool // the run has ended, and calls of it go on in the background
}

func (e *UnfinishedError) Error() string {
	if e.Background {
		return fmt.Sprintf("the run of context %s is %s, but calls of it that it does not wait for have not ended: resume or cancel them first", e.Context, e.Status)
	}
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

// busy is the error of a context that another holds.
func busy(context, holder string) error { return &BusyError{context, holder} }

// Class implements the interface of [store.ClassOf].
func (e *BusyError) Class() store.Class { return store.Busy }

// DelegateError is a context that a delegate's call made: its run is part of another one.
type DelegateError struct{ Context, Root string }

func (e *DelegateError) Error() string {
	return fmt.Sprintf("context %s is a delegate's: cancel the run of %s, which it is part of", e.Context, e.Root)
}

// Class implements the interface of [store.ClassOf].
func (e *DelegateError) Class() store.Class { return store.Refused }

// Resume is how to go on with a run.
type Resume struct {
	Context string
	// The plan's file as it is now; needed only where a planner is to be asked, and not of a
	// delegate.
	Request *plan.Request
	Retry   []string // calls that failed or are in doubt, to run again
	Skip    []string // calls that failed or are in doubt, to go on without

	// Result holds, by call, the results that a person knows of such calls: they are recorded as if
	// the activities had returned them. They may be of the types of [Start].Input.
	Result map[string]any

	// From is a call that has settled, to run again in a fork with all that is
	// downstream of it, and Set corrections of its arguments, as [journal.Hold.With] takes
	// them. No call is named twice.
	From string
	Set  map[string]any

	// Who decides about the calls that are named.
	journal.Who

	// Unasked marks a resumption that no person requested: a run that was cancelled meanwhile stays
	// cancelled.
	Unasked bool

	// Begun, if it is set, is called once no other process can resume the run.
	Begun func()
}

// NoPlannerError is a run whose planner is to be asked again and is not at hand.
type NoPlannerError struct{ Context string }

func (e *NoPlannerError) Error() string {
	return fmt.Sprintf("the function that plans context %s is to be asked again, and is not there", e.Context)
}

// Class implements the interface of [store.ClassOf].
func (e *NoPlannerError) Class() store.Class { return store.Refused }

// date gives the date of what happens now.
func (r *Runner) date() time.Time { return r.dated(r.now()) }

// dated gives the date of what happened at a time.
func (r *Runner) dated(at time.Time) time.Time {
	if r.clock == nil { // of no run
		return at
	}
	return r.clock.Date(at)
}

func (r *Runner) now() time.Time {
	if r.Now != nil {
		return r.Now()
	}
	return time.Now()
}
