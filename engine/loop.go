package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"obelus/engine/internal/crash"
	"obelus/engine/internal/declared"
	"obelus/engine/internal/lease"
	"obelus/engine/internal/validate"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// loop is a run: one tick after another, from its beginning or its resumption until it halts. It
// holds the context's lease meanwhile. The goroutine that has its lock owns it: the one that runs
// it, and while that waits a worker that brings a result, so that a step needs no other goroutine.
type loop struct {
	runner     *Runner
	context    string
	origin     store.Origin
	request    *plan.Request // nil if the run is resumed and the plan's file is not at hand
	normalized bool          // it has been received
	initial    []store.Message
	input      bool // the last initial message is the run's input
	view       *store.View
	fresh      bool // the view has just been opened
	policy     plan.Policy
	labels     map[string]string
	once       bool // the run is to make its context

	declared *declared.Schemas

	planUsage  *plan.Usage      // of the model that was asked for the newest plan
	proposed   proposed         // its answer, until the log has it
	plannerSaw map[string]int64 // values granted to the planner when it was asked last
	refused    *journal.Refusal // of the newest tick's solution
	tick       int              // the number of the newest tick, 0 before the first
	first      int              // the tick with which the run began
	bridged    error            // why its input breaks the declared schema, where that is allowed
	begun      bool             // its first append is in the log
	started    func()           // to be called then; may be nil
	timeline   journal.Timeline // of a resumed run, as it was reopened
	halted     bool             // in the journal, the run is not under way
	standing   store.Standing   // as it was appended last; zero if it is not known
	// Status of an early end: [journal.RunCancelled], else [journal.RunInterrupted].
	interruptedAs journal.RunStatus

	opened time.Time // start of the run; durations count from then

	runStarted   time.Time     // when the run began, maybe in another process; zero before that
	workedBefore time.Duration // for how long it was at work before this process took it up

	lease lease.Lease

	interrupt  context.Context // ends once the run is to end early
	working    context.Context // ends after the grace that calls have once the run is to end
	stop       context.CancelFunc
	workers    sync.WaitGroup
	hasWorkers atomic.Bool
	tasks      chan task
	results    chan *result  // results that came while another goroutine had the lock
	closed     chan struct{} // closed once no more results are taken
	// Releases of the results in the current step, for when the log has it.
	releases      []func()
	lock          chan struct{} // holds one token while a goroutine has the lock
	unlocked      chan error    // returns the lock to the goroutine that runs the loop
	current       *tickRun
	detachedTicks []*tickRun          // ticks that are over except for background calls
	delegatesLeft atomic.Int32        // background calls of delegates that have given their result
	givenUp       bool                // a person has told it to stop: no server goes on with its background calls
	broken        atomic.Pointer[any] // panic of one of them
}

func (r *Runner) newLoop(ctx context.Context, name string, isNew bool) (*loop, error) {
	growStack(0) // scripts run on this goroutine too
	view := store.NewView(r.Log, name)
	if !isNew {
		var err error
		if view, err = store.OpenView(ctx, r.Log, name); err != nil {
			return nil, err
		}
	}
	runner := *r
	if runner.pool == nil {
		runner.pool = newSlotPool(ctx, r.parallel())
	}
	if runner.clock == nil {
		runner.clock = &lease.Clock{}
	}
	if runner.account == nil && runner.Registry != nil && runner.Registry.HasModel() {
		runner.account = plan.NewAccount(runner.Budget, plan.Usage{}, runner.Spent)
	}
	if runner.replans == nil {
		runner.replans = &replans{of: map[string]int{}}
	}
	if !view.Absent() {
		if err := runner.clock.Follow(ctx, r.Log, name); err != nil {
			return nil, err
		}
	}
	l := &loop{
		runner: &runner, interrupt: ctx, context: name, view: view, opened: time.Now(), declared: &declared.Schemas{View: view},
		tasks: make(chan task), results: make(chan *result, 64), closed: make(chan struct{}),
		lock: make(chan struct{}, 1), unlocked: make(chan error, 1),
	}
	l.lease = lease.Lease{Log: runner.Log, Context: name, Date: l.runner.date, Busy: busy}
	l.lock <- struct{}{}
	l.working, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	if r.cut != nil { // a delegate does not drain on when its call is cut off
		context.AfterFunc(r.cut, l.stop)
	}
	return l, nil
}

// isInterrupted reports whether the run is to end early.
func (l *loop) isInterrupted() bool { return l.interrupt.Err() != nil }

// close releases the loop's resources, whatever its end.
func (l *loop) close() {
	l.stop()
	close(l.closed)
	l.dropResults()
	l.releaseAll()
	if l.current != nil {
		l.current.pauseEnd.stop()
	}
	giveBack(&l.lease)
	if l.runner.Logs != nil && l.runner.depth == 0 {
		l.runner.Logs.Flush()
	}
}

// giveBack gives back a lease, unless the last append has, with a standing that has all entries of
// the journal. A lease that can't be given back lapses.
func giveBack(l *lease.Lease) {
	defer l.Close()
	if l.StopRenewal(); !l.IsTaken() {
		return
	}
	ctx, c := context.Background(), journal.In(l.Log, l.Context)
	_ = journal.Amend(ctx, c, func(n int64) error {
		standing, err := journal.StandingLeft(ctx, c)
		if err != nil {
			return err
		}
		return l.Append(ctx, store.Batch{ExpectSeq: store.AnySeq, ExpectN: n, Standing: standing, Wake: standing != nil}, 0)
	})
}

// append adds a batch that has the results taken so far, keeps the lease for a while or, for none,
// gives it back, and releases the results.
func (l *loop) append(ctx context.Context, b store.Batch, hold time.Duration) error {
	err := l.lease.Append(ctx, b, hold)
	if err == nil {
		l.releaseFirst(len(l.releases))
	}
	return err
}

// holdRelease keeps the release of a result that a step takes until the log has it.
func (l *loop) holdRelease(res *result) {
	if res.release != nil {
		l.releases = append(l.releases, res.release)
		res.release = nil
	}
}

// releaseFirst calls the first n releases.
func (l *loop) releaseFirst(n int) {
	for _, release := range l.releases[:n] {
		release()
	}
	l.releases = slices.Delete(l.releases, 0, n)
}

// releaseAll calls the releases where nothing is recorded any more.
func (l *loop) releaseAll() {
	l.releaseFirst(len(l.releases))
	for {
		select {
		case res := <-l.results:
			res.drop()
		default:
			return
		}
	}
}

// next waits for a result, until it is time, or for the end of ctx: then there is
// none. Results come before all else, so that chance decides nothing.
func (l *loop) next(ctx context.Context, until <-chan time.Time) *result {
	select {
	case res := <-l.results:
		return res
	default:
	}
	select {
	case res := <-l.results:
		return res
	case <-until:
	case <-ctx.Done():
	}
	return nil
}

// wait gives the lock away until a result comes that no worker could take itself, the tick needs
// this goroutine, something was heard of the log, or the run is to end. A result and news may come
// together. An error is a worker's step's.
func (l *loop) wait(heard <-chan struct{}) (res *result, news bool, err error) {
	select {
	case res = <-l.results:
		return res, false, nil
	default:
	}
	<-l.lock
	select {
	case res = <-l.results:
	case <-heard:
		news = true
	case <-l.interrupt.Done():
	case err = <-l.unlocked:
		return nil, false, err
	}
	// Chance must not decide which of two is first that came at one instant.
	if res == nil {
		select {
		case res = <-l.results:
		default:
		}
	} else {
		select {
		case <-heard:
			news = true
		default:
		}
	}
	select {
	case l.lock <- struct{}{}:
	case err = <-l.unlocked:
	}
	if err != nil && res != nil {
		res.drop()
		res = nil
	}
	return res, news, err
}

// drainResults returns the results of a tick that have come, first among them, so that one append
// commits them together. Those of other ticks are recorded; results of undone starts are dropped,
// and so are pauses that ended after the last retry.
func (l *loop) drainResults(ctx context.Context, t *tickRun, first *result) ([]*result, error) {
	var mine, others []*result
	for res, more := first, true; more; {
		switch {
		case res.tick.undone(res), res.retryDue && res.tick.over:
			res.drop()
		case res.tick == t:
			l.holdRelease(res)
			mine = append(append(mine, res), res.others...)
		default:
			l.holdRelease(res)
			others = append(append(others, res), res.others...)
		}
		select {
		case res = <-l.results:
		default:
			more = false
		}
	}
	for len(others) > 0 {
		of := others[0].tick
		var its, rest []*result
		for _, res := range others {
			if res.tick == of {
				its = append(its, res)
			} else {
				rest = append(rest, res)
			}
		}
		if err := of.commitStep(ctx, func() error { return of.receive(ctx, its) }); err != nil {
			return nil, err
		}
		others = rest
	}
	return mine, nil
}

// run runs tick after tick. t, if it is not nil, is a tick that was under way. A panic of a
// worker's step continues here; a panic of this goroutine gets its place.
func (l *loop) run(ctx context.Context, t *tickRun) (*journal.Outcome, error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			panic(crash.WithPlace(panicked))
		}
	}()
	outcome, err := l.ticks(ctx, t)
	if broken, ok := errors.AsType[*brokenStep](err); ok {
		panic(broken.panicked)
	}
	if outcome != nil && l.begun {
		outcome.First, outcome.Tick = l.first, l.tick
	}
	return outcome, err
}

func (l *loop) ticks(ctx context.Context, t *tickRun) (*journal.Outcome, error) {
	for conflicts := 0; conflicts < journal.MaxConflicts; conflicts++ {
		if t == nil {
			var err error
			if t, err = l.beginTick(ctx); err != nil {
				if ctx.Err() != nil && l.request != nil && l.request.Planner != nil {
					return l.cut()
				}
				return nil, err
			}
		}
		before := l.current
		outcome, err := t.run(ctx)
		var conflict *store.ConflictError
		switch {
		case !t.begun && errors.As(err, &conflict):
			t, l.current = nil, before
			if l.begun {
				continue
			}
			if err := l.reopenView(ctx); err != nil {
				return nil, err
			}
			continue
		case err != nil || outcome != nil:
			return outcome, err
		}
		if t.state.Detached() > 0 {
			l.detachedTicks = append(l.detachedTicks, t)
		}
		t, conflicts = nil, 0
	}
	return nil, journal.TooManyConflicts(l.context)
}

// reopenView reads the context anew for a run that has not begun: it may have been pruned, and made
// anew, since it was read.
func (l *loop) reopenView(ctx context.Context) (err error) {
	if l.view, err = store.OpenView(ctx, l.runner.Log, l.context); err != nil {
		return err
	}
	l.declared = &declared.Schemas{View: l.view, Options: l.declared.Options}
	l.fresh = true
	l.proposed.asked = 0 // the seqs of what the model was shown may be others now
	return nil
}

// beginTick stages the append of the next tick: the initial messages of the run, and the plan.
func (l *loop) beginTick(ctx context.Context) (*tickRun, error) {
	if !l.fresh {
		if _, err := l.view.Refresh(ctx); err != nil {
			return nil, err
		}
	}
	l.fresh = false
	l.halted = false // a plan's event says so too
	if !l.begun {
		if err := l.stageStart(ctx); err != nil {
			return nil, err
		}
	}
	number := l.tick + 1
	request, problem, err := solver{l}.nextSolution(ctx, number)
	if err != nil {
		return nil, err
	}
	if wrong := request.Choose(); problem == nil && wrong != nil {
		if problem = wrong; request.Planner == nil {
			return nil, wrong
		}
	}
	start := l.view.Seq()
	var compiled *plan.Plan
	if problem == nil {
		compiled, err = l.compile(ctx, request, false)
		var refused *plan.PlanError
		if errors.As(err, &refused) && request.Planner != nil {
			problem, err = refused, nil
		}
		if err != nil {
			return nil, err
		}
	}
	if problem != nil {
		compiled = plan.Empty()
	}
	if number == l.first {
		l.runStarted = l.runner.date().Truncate(time.Millisecond)
	}
	event := l.event(number, start, compiled, request)
	event.Warnings = warningsOf(compiled, problem)
	if l.bridged != nil && number == l.first {
		event.Warnings = slices.Insert(event.Warnings, 0, "the arguments of the call break the schema of the input, and stand as they are (bridge): "+l.bridged.Error())
	}
	if problem == nil {
		l.view.Stage(plan.Message(request))
		event.Seq = l.view.Seq()
	}
	event.Refused = refusalOf(problem, request, start)
	event.Refused.Count(l.refused)
	if event.Refused != nil && event.ByModel && request.Calls != nil {
		event.Refused.Solution = store.EncodeJSON(map[string]any{"calls": plan.Message(request).Data.Value, "output": request.Output.Value})
	}
	t := newTick(l, compiled, event)
	t.problem, t.repeated = problem, !event.ByModel && event.Refused.Repeats(l.refused, start)
	entry := event.Entry()
	if number == l.first {
		entry.Date = l.runStarted
	}
	t.appendEntry(entry)
	return t, nil
}

// stageStart stages the messages that a run begins with.
func (l *loop) stageStart(ctx context.Context) error {
	var last journal.Run
	if !l.view.Absent() {
		var err error
		if last, err = l.finished(ctx); err != nil {
			return err
		}
		superseded, err := journal.In(l.runner.Log, l.context).Superseded(ctx)
		if err != nil {
			return err
		}
		superseded.HideFrom(l.view)
	}
	l.tick, l.first = last.Tick, last.Tick+1
	if last.Detached {
		if err := l.lease.Take(ctx); err != nil {
			return err
		}
		left, err := last.HasBackground(ctx, journal.In(l.runner.Log, l.context))
		if err != nil {
			return err
		}
		inDelegates, err := delegatesInBackground(ctx, l.runner.Log, l.context)
		if err != nil {
			return err
		}
		if left || len(inDelegates) > 0 {
			return &UnfinishedError{Context: l.context, Status: last.Status, Background: true}
		}
	}
	return l.stageInitial(ctx)
}

// finished returns the context's newest run, which must have ended.
func (l *loop) finished(ctx context.Context) (journal.Run, error) {
	before := journal.Run{}
	for {
		last, err := journal.In(l.runner.Log, l.context).LastRun(ctx)
		if err != nil || last.Status.Finished() {
			return last, err
		}
		if last.Tick == before.Tick && last.Status == before.Status { // and it had no holder
			if last.Status == journal.RunRunning {
				last.Status = journal.RunInterrupted
			}
			return last, &UnfinishedError{Context: l.context, Status: last.Status}
		}
		holder, err := l.runner.Log.Holder(ctx, l.context)
		if err != nil {
			return last, err
		}
		if holder != "" {
			return last, &BusyError{l.context, holder}
		}
		before = last // unless it has ended just now
	}
}

// stageInitial stages the messages that the run brings.
func (l *loop) stageInitial(ctx context.Context) error {
	err := validate.Stage(ctx, l.view, l.initial, l.runner.Registry.Schemas)
	refused, ok := errors.AsType[*plan.MessageError](err)
	if !ok {
		return err
	}
	refused.Input = l.input && refused.Number == len(l.initial)
	isDelegate := l.runner.depth > 0
	if !refused.Input || !isDelegate || !l.request.Bridge {
		return err
	}
	input := l.initial[len(l.initial)-1]
	if plan.NormalizeMessage(&input) != nil {
		return err
	}
	if err := validate.Stage(ctx, l.view, l.initial[:len(l.initial)-1], l.runner.Registry.Schemas); err != nil {
		return err
	}
	l.view.Stage(input)
	l.bridged = refused.Err
	return nil
}

// warningsOf returns the warnings about a plan of a model, a line each.
func warningsOf(compiled *plan.Plan, problem error) (lines []string) {
	found := compiled.Warnings
	if refused, ok := errors.AsType[*plan.PlanError](problem); ok {
		found = refused.Problems
	}
	for _, p := range found {
		if p.Severity == plan.SeverityWarning {
			p.File = ""
			lines = append(lines, p.Error())
		}
	}
	return lines
}

// questionOf returns how a model was asked for the plan of a request; nil where it has given none.
func (l *loop) questionOf(number int, request *plan.Request) *journal.Question {
	solution := l.proposed.solution
	if solution == nil || l.proposed.tick != number {
		return nil
	}
	q := &journal.Question{Seq: l.proposed.asked, Model: request.Planner.(*plan.Planning).Model, Cut: solution.Cut, Scopes: pathTexts(request.Scopes)}
	for i, src := range request.Calls {
		if src.ByModel.Every {
			q.Every = append(q.Every, i+1)
		}
	}
	return q
}

// pathTexts returns paths as texts; nil for nil.
func pathTexts(paths []store.Path) []string {
	if paths == nil {
		return nil
	}
	texts := []string{}
	for _, path := range paths {
		texts = append(texts, path.String())
	}
	return texts
}

func (l *loop) event(number int, start int64, compiled *plan.Plan, request *plan.Request) journal.PlanEvent {
	event := journal.PlanEvent{
		Tick: number, First: l.first, Plan: request.Name, Start: start, Calls: len(compiled.Calls),
		Planner: request.Planner != nil, Mode: request.Mode, Released: request.Released, Approve: l.policy, Labels: l.labels,
	}
	if event.Planner {
		event.Saw = l.plannerSaw
		if event.ByModel = request.IsModelPlanned(); event.ByModel {
			event.Model, event.Question = l.planUsage, l.questionOf(number, request)
		}
	}
	event.Worked = journal.Milliseconds(l.workedBefore)
	if number > l.first {
		event.Began = l.runStarted.UTC().Format(time.RFC3339Nano)
	}
	event.Outcomes, event.Choice = request.Outcomes, request.Choice
	if request.Schema != nil {
		event.Schema = store.EncodeJSON(request.Schema)
	}
	if request.Tools != nil {
		event.Tools = store.EncodeJSON(request.Tools)
	}
	if request.Output.Set {
		event.Output = store.EncodeJSON(request.Output.Value)
	}
	return event
}
