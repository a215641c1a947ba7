package engine

import (
	"context"
	"math"
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

	unreleased bool            // it has halted, since its plan waits to be released
	sent       *store.Standing // with the batch that is being appended; nil where it is unchanged

	listener   *listener      // while calls wait for appends of others, and some are at work; else nil
	journalled int64          // the journal's position up to which decisions were read
	pending    *pendingCommit // the step before, while it is being written
	pauseEnd   pauseTimer     // brings the end of the first pause; nil before there was one
}

func newTick(l *loop, compiled *plan.Plan, event journal.PlanEvent) *tickRun {
	l.declared.Options = l.runner.Registry.Schemas
	t := &tickRun{journalled: l.lease.N}
	t.tick = &tick{
		values: values{
			context: l.context, log: l.runner.Log, schemas: l.runner.Registry.Schemas,
			plan: compiled, view: l.view, event: event, declared: l.declared,
		},
		loop: l, runner: l.runner,
	}
	config := sched.Config{Plan: compiled, Approve: event.Approve.For(event.ByModel), Parallel: l.runner.parallel()}
	t.state = sched.New(config, t.newRecord)
	return t
}

// run carries the tick to its end, or as far as it gets. There is no outcome
// where the planner is to be asked again.
func (t *tickRun) run(ctx context.Context) (*journal.Outcome, error) {
	ctx = context.WithoutCancel(ctx) // results are recorded even if the run is to end
	if outcome, err := t.runLazy(ctx); outcome != nil || err != nil {
		return outcome, err
	}
	t.state.Restore()
	t.loop.current = t
	defer func() { t.listener.Stop() }()
	for {
		tasks, err := t.step(ctx, t.givenResults, false)
		if err != nil {
			return nil, err
		}
		t.givenResults = nil
		t.loop.launch(tasks)
		for t.isActive() {
			if err := t.await(ctx); err != nil {
				return nil, err
			}
			if t.loop.isInterrupted() && t.ended == nil {
				return t.interrupted()
			}
		}
		if t.isOver() {
			return t.outcome(ctx)
		}
		if t.ended != nil {
			t.linger()
			continue
		}
		if t.state.AwaitsOutside() {
			if err := t.poll(ctx); err != nil {
				return nil, err
			}
		}
		if t.state.HasQueued() {
			if t.loop.isInterrupted() {
				return t.interrupted()
			}
			continue
		}
		if err := t.endTick(ctx); err != nil {
			return nil, err
		}
		if t.isOver() {
			return t.outcome(ctx)
		}
		if t.ended != nil {
			t.linger()
		}
	}
}

// isOver reports whether the tick has ended, and does not linger.
func (t *tickRun) isOver() bool { return t.ended != nil && !t.isLingering() }

// isActive reports whether results or decisions are to come before the tick as a whole can end.
func (t *tickRun) isActive() bool {
	s := t.state
	isWaited := s.Running()+s.In(sched.Paused) > 0
	hasNoRoom := s.Detached() > 0 && s.HasQueued()
	return t.ended == nil && (isWaited || hasNoRoom || t.isInteractive() || t.isLingering())
}

// await waits for something to happen, and goes on from there.
func (t *tickRun) await(ctx context.Context) error {
	t.listen(ctx)
	var res *result
	news := false
	if !isDue(t.state, t.loop.opened) {
		var err error
		if res, news, err = t.loop.wait(t.listener.Heard()); err != nil {
			return err
		}
	}
	if res == nil && isDue(t.state, t.loop.opened) { // also if its timer is about to tell so
		res = &result{tick: t, retryDue: true}
	}
	polled := (news || res == nil) && !t.loop.isInterrupted() && t.isActive() && t.state.AwaitsOutside()
	if polled {
		if err := t.poll(ctx); err != nil {
			if res != nil {
				res.drop()
			}
			return err
		}
	}
	var tasks []task
	var err error
	switch {
	case res != nil:
		tasks, err = t.stepWith(ctx, res, true)
	case polled:
		tasks, err = t.step(ctx, nil, false)
	}
	t.loop.launch(tasks)
	return err
}

// runLazy ends a run whose plan waits for its release, as soon as the plan is recorded. There is no
// outcome where it does not wait for that.
func (t *tickRun) runLazy(ctx context.Context) (*journal.Outcome, error) {
	nothing := t.problem != nil || len(t.state.Calls) == 0 && t.plan.Output != nil
	if nothing || !t.event.IsLazy() {
		return nil, nil // there is nothing to release
	}
	if !t.begun && t.event.Released {
		return nil, nil
	}
	if t.begun {
		last, err := journal.In(t.runner.Log, t.context).LastRun(ctx)
		switch {
		case err != nil:
			return nil, err
		case last.Event.IsRejected():
			return nil, t.reject(ctx, last.Event.Decision)
		case !last.Held:
			return nil, nil
		}
	}
	t.unreleased, t.loop.current = true, t
	err := t.commitStep(ctx, func() error {
		appendRunEvent(t.tick, journal.RunEvent{Tick: t.event.Tick, Status: journal.RunWaiting, Detached: t.countBackground() > 0})
		return nil
	})
	outcome := func() *journal.Outcome {
		return &journal.Outcome{Context: t.context, Status: journal.RunWaiting, Lazy: t.plan, Calls: t.all(), Background: t.countBackground()}
	}
	if err == nil && t.hasBackground() {
		t.loop.concluded(outcome())
		err = t.awaitBackground(ctx)
	}
	return outcome(), err
}

// lookEvery is how often the log is looked at for foreign messages and decisions though nothing was
// appended, while calls wait for them and others run.
const lookEvery = 5 * time.Second

// listen begins or ends listening for appends of others.
func (t *tickRun) listen(ctx context.Context) {
	switch waits := t.state.AwaitsOutside(); {
	case waits && t.listener == nil:
		every := lookEvery
		if t.runner.Attend != nil { // a person who leaves a call held appends nothing
			every = gatheringTime
		}
		t.listener = newListener(ctx, t.runner.Log, every)
	case !waits:
		t.listener.Stop()
		t.listener = nil
	}
}

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

// readDecisions finds what people have decided about held calls while the tick
// runs.
func (t *tickRun) readDecisions(ctx context.Context) error {
	if t.state.In(sched.Held) == 0 {
		return nil
	}
	for entry, err := range t.runner.Log.Journal(ctx, store.JournalFilter{Context: t.context, After: t.journalled}) {
		if err != nil {
			return err
		}
		t.journalled = entry.N
		if entry.Event != string(journal.Ready) {
			continue
		}
		r, err := journal.ReadRecord(entry)
		if err != nil {
			return err
		}
		if i := r.Position - 1; r.Tick == t.event.Tick && t.isHeld(i) {
			t.state.Apply(sched.Event{Kind: sched.Decided, Call: i, Hold: r.Hold})
		}
	}
	return nil
}

// isHeld reports whether there is a call at a place, and a person is to decide about it.
func (vs *values) isHeld(i int) bool {
	return i >= 0 && i < len(vs.state.Calls) && vs.state.Calls[i].Phase == sched.Held
}

// isInteractive reports whether a held call may be decided about while the run waits.
func (t *tickRun) isInteractive() bool {
	if t.runner.Attend == nil || t.state.In(sched.Held) == 0 {
		return false
	}
	for i := range t.state.Calls {
		if !t.isHeld(i) {
			continue
		}
		r := t.state.Calls[i].Record
		r.Context = t.context
		if t.runner.Attend(r) {
			return true
		}
	}
	return false
}

// requeueParents requeues calls whose delegates wait, once something has happened in the delegates'
// contexts, or in those of their own delegates.
func (t *tickRun) requeueParents(ctx context.Context) error {
	if len(t.state.Parents()) == 0 {
		return nil
	}
	after := int64(math.MaxInt64)
	for _, i := range t.state.Parents() {
		after = min(after, t.state.Calls[i].WaitsSince)
	}
	for entry, err := range t.runner.Log.Journal(ctx, store.JournalFilter{After: after}) {
		if err != nil {
			return err
		}
		for child, i := range t.state.Parents() {
			if entry.N <= t.state.Calls[i].WaitsSince {
				continue
			}
			t.state.Calls[i].WaitsSince = entry.N
			within, err := journal.In(t.runner.Log, entry.Context).IsWithin(ctx, child)
			if err != nil {
				return err
			}
			if within {
				t.state.Apply(sched.Event{Kind: sched.Arrived, Call: i})
			}
		}
	}
	return nil
}

// setTimer has the end of the first pause noticed.
func (t *tickRun) setTimer() {
	due, ok := t.state.NextDue()
	if !ok {
		return
	}
	t.pauseEnd.stop()
	if left := due - time.Since(t.loop.opened); left > 0 { // else the loop knows
		t.pauseEnd.timer = time.AfterFunc(left, func() { t.loop.send(&result{tick: t, retryDue: true}) })
	}
}

// isDue reports whether a pause of a call is over, or the time of a waiting one has come.
func isDue(s *sched.State, opened time.Time) bool {
	due, ok := s.NextDue()
	return ok && due <= time.Since(opened)
}

// untilDue returns when it will be a time, since the run was opened.
func (l *loop) untilDue(due time.Time) time.Duration {
	return time.Since(l.opened) + max(due.Sub(l.runner.now()), 1)
}

// pauseTimer is the timer of the first pause that ends; its zero value has none.
type pauseTimer struct{ timer *time.Timer }

func (p pauseTimer) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
}
