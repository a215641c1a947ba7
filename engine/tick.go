package engine

import (
	"context"
	"time"

	"obelus/engine/internal/sched"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// tickRun carries a tick to its end: it waits for results and for the log, has the tick make steps,
// commits them, and launches the calls that they start. The goroutine with the loop's lock owns it;
// each worker owns one call.
//
// A step takes the results that have come, makes messages of them, finds the calls that they
// unblock, and commits all of it, the starts of the next calls included, in one append. Only then
// do those calls run, except a single call without visible effects: the step goes on with its
// result. The starts of calls without visible effects are not recorded, unless the calls turn out
// to take long. If another append comes in between, the step is undone and made again on the log as
// it is then. Where several calls are under way the next step is made while one is being written;
// see [pendingCommit].
type tickRun struct {
	*tick
	begun bool // the plan is in the log
	over  bool // it has ended, and the planner is asked again

	polling    bool           // the goroutine of the loop polls the log
	journalled int64          // the journal's position up to which decisions were read
	pending    *pendingCommit // the step before, while it is being written
	spare      made           // room for another step's
	pauseTimer *time.Timer    // brings the end of the first pause; nil before there was one
}

// tick is one round of the execution loop while it runs. It makes the content of steps: what has
// happened to its calls comes in, messages, records and starts come out. It appends nothing, starts
// nothing and waits for nothing: a [tickRun] does.
type tick struct {
	values
	loop    *loop
	problem error // why its planner gave no valid plan

	repeated bool // the planner repeated the solution that had just been refused

	// Starts of calls that pause between attempts, by their places.
	attempts       map[int]start
	recordedStarts []start           // starts of a recorded run, to be answered one by one
	stopping       bool              // the run is to end early
	ended          *journal.RunEvent // its end, once that is staged; nil again if the step is undone
	stale          []string          // see [journal.Outcome.Stale]
	givenResults   []*result         // results that a person gives, see [Resume.Result]

	made           // by the step
	reading reading // what its calls read, while one is evaluated
	text    []byte  // to write records to, again and again
}

// made is the content of a step, to be committed.
type made struct {
	entries  []store.Entry
	places   []int            // by entry, the number of messages before it
	observed []journal.Record // records in the entries, for observers
	resumes  bool             // an entry says that the run is under way again
	starts   []start          // to be launched then
	pauses   bool             // a call pauses before another attempt
	code     []*store.Code    // scripts of started calls that the log may lack

	entriesBefore, observedBefore int // numbers of both before the step
}

// start is a call that is about to run.
type start struct {
	index int
	// The step that made it; distinguishes it from the call's other starts, undone ones included.
	step       int
	activity   *plan.Registered // the current version
	doer       string           // its name
	invocation plan.Invocation
	// Runs the call while the log lacks its start; nil where that must be recorded first.
	speculative plan.Speculative
	child       *childRun // run of a delegate
	slot        slot      // of any other
}

func newTick(l *loop, compiled *plan.Plan, event journal.PlanEvent) *tickRun {
	t := &tick{
		values: values{runner: l.runner, context: l.context, plan: compiled, view: l.view, event: event, declarations: l.declared},
		loop:   l,
	}
	config := sched.Config{Plan: compiled, Approve: event.Approve, Parallel: l.runner.parallel()}
	if l.runner.script.Recorded() {
		config.Order = t
	}
	t.state = sched.New(config, t.newRecord)
	t.preallocate()
	if l.runner.script.Recorded() {
		t.takeRecorded()
	}
	return &tickRun{tick: t, journalled: l.n}
}

// Span implements [sched.Order] for a recorded run.
func (t *tick) Span(call string) journal.Span { return t.runner.script.Span(t.context, call) }

// maxPreallocated bounds the calls for which a tick preallocates.
const maxPreallocated = 16

// preallocate allocates the space for the steps of a short plan at once.
func (t *tick) preallocate() {
	n := min(len(t.state.Calls), maxPreallocated)
	t.view.Grow(n + 1)
	t.entries, t.places = make([]store.Entry, 0, 2*n+2), make([]int, 0, 2*n+2)
}

func (t *tick) newRecord(i int) journal.Record {
	c := t.plan.Calls[i]
	return journal.Record{
		Call: journal.CallID(t.event.Tick, c.Position), Tick: t.event.Tick, Position: c.Position,
		Tool: c.Tool, Instance: c.Instance, Status: journal.Blocked, Unstored: c.FireAndForget(),
	}
}

// run carries the tick to its end, or as far as it gets. There is no outcome
// where the planner is to be asked again.
func (t *tickRun) run(ctx context.Context) (*journal.Outcome, error) {
	kept := context.WithoutCancel(ctx) // results are recorded even if the run is to end
	if t.problem != nil {
		if err := t.endTick(kept); err != nil {
			return nil, err
		}
		return t.outcome(kept)
	}
	if held, err := t.isHeldWhole(kept); held || err != nil {
		return t.recordLazy(kept, err)
	}
	t.state.Restore()
	t.loop.current = t
	looking := time.NewTicker(pollInterval)
	defer looking.Stop()
	for {
		jobs, err := t.step(kept, ctx, t.givenResults, false)
		if err != nil {
			return nil, err
		}
		t.givenResults = nil
		t.loop.launch(jobs)
		for t.isActive() {
			if err := t.await(ctx, kept, looking.C); err != nil {
				return nil, err
			}
			if ctx.Err() != nil && t.ended == nil {
				return t.interrupted(ctx)
			}
		}
		if t.ended != nil {
			return t.outcome(kept)
		}
		if t.state.AwaitsOutside() {
			if err := t.poll(kept); err != nil {
				return nil, err
			}
		}
		if t.state.HasQueued() {
			if ctx.Err() != nil {
				return t.interrupted(ctx)
			}
			continue
		}
		if err := t.endTick(kept); err != nil {
			return nil, err
		}
		if t.ended != nil {
			return t.outcome(kept)
		}
	}
}

// isActive reports whether results or decisions are to come before the tick as a whole can end.
func (t *tickRun) isActive() bool {
	s := t.state
	return t.ended == nil && (s.Running()+s.In(sched.Paused) > 0 || s.Detached() > 0 && s.HasQueued() || t.isInteractive())
}

// await waits for something to happen, and goes on from there.
func (t *tickRun) await(ctx, kept context.Context, looking <-chan time.Time) error {
	t.deliverRecorded(ctx)
	if t.polling = t.state.AwaitsOutside(); !t.polling {
		looking = nil
	}
	res, err := t.loop.wait(ctx, looking)
	var jobs []task
	switch {
	case err != nil:
		return err
	case res != nil:
		jobs, err = t.stepWith(kept, ctx, res, true)
	case ctx.Err() == nil && t.isActive() && t.state.AwaitsOutside():
		if err := t.poll(kept); err != nil {
			return err
		}
		jobs, err = t.step(kept, ctx, nil, false)
	}
	t.loop.launch(jobs)
	return err
}

// isHeldWhole reports whether the plan waits for its release.
func (t *tickRun) isHeldWhole(ctx context.Context) (bool, error) {
	// Else there is nothing to approve.
	lazy := t.event.Mode == plan.ModeLazy && (len(t.state.Calls) > 0 || t.plan.Output == nil)
	if !lazy || !t.begun {
		return lazy, nil
	}
	last, err := journal.In(t.runner.Log, t.context).LastRun(ctx)
	return last.Held, err
}

// recordLazy ends a run whose plan is lazy as soon as the plan is recorded.
func (t *tickRun) recordLazy(ctx context.Context, err error) (*journal.Outcome, error) {
	if err == nil {
		err = t.commitStep(ctx, func() error {
			t.appendEntry(store.Entry{Event: journal.EventRun, Data: string(store.EncodeJSON(journal.RunEvent{Tick: t.event.Tick, Status: journal.RunWaiting, Detached: t.hasDetached()}))})
			return nil
		})
	}
	if err == nil && t.hasDetached() {
		err = t.loop.drain(ctx, nil, (*tickRun).detachedCalls)
	}
	return &journal.Outcome{Context: t.context, Status: journal.RunWaiting, Lazy: t.plan, Calls: t.all()}, err
}

// pollInterval is the time between polls of the log for foreign messages, while calls wait for them
// and others run.
const pollInterval = 100 * time.Millisecond

// poll reads foreign messages and decisions, and requeues the calls that wait for them.
func (t *tickRun) poll(ctx context.Context) error {
	news, err := t.view.Refresh(ctx)
	if err != nil {
		return err
	}
	for _, m := range news {
		op, ok := m.Op()
		if !ok {
			continue
		}
		for _, path := range op.Touches() {
			t.state.ApplyMessage(path)
		}
	}
	if err := t.readDecisions(ctx); err != nil {
		return err
	}
	return t.requeueParents(ctx)
}

// all gives the calls as they stand.
func (t *tick) all() []journal.Record {
	all := make([]journal.Record, len(t.state.Calls))
	for i := range t.state.Calls {
		all[i] = t.state.Calls[i].Record
		all[i].Context = t.context
	}
	return all
}
