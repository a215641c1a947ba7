package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"obelus/engine/internal/lease"
	"obelus/engine/internal/sched"
	"obelus/engine/journal"
	"obelus/store"
)

// stepWith takes a step with a result and all others that have come.
func (t *tickRun) stepWith(ctx context.Context, first *result, pipelined bool) ([]task, error) {
	results, err := t.loop.drainResults(ctx, t, first)
	if err != nil || t.ended != nil {
		return nil, err
	}
	return t.step(ctx, results, pipelined)
}

// step takes one step of the tick (see tick), and returns the calls that it starts, to be launched.
// A pipelined step is followed by others, with the results that come while each is being written.
func (t *tickRun) step(ctx context.Context, results []*result, pipelined bool) ([]task, error) {
	t.save()
	err := t.apply(ctx, results)
	for err == nil && pipelined && t.canPipeline() {
		if results, pipelined, err = t.commitPipelined(ctx, results); pipelined && len(results) == 0 {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	return t.finishStep(ctx, results)
}

// apply has a step take results, and start and settle what can be after that.
func (t *tick) apply(ctx context.Context, results []*result) error {
	if err := t.receive(ctx, results); err != nil || t.loop.isInterrupted() {
		return err
	}
	if err := t.advance(ctx); err != nil {
		return err
	}
	t.recordResumed()
	return nil
}

// finishStep commits a step that has taken results, with what else can be in it.
func (t *tickRun) finishStep(ctx context.Context, results []*result) ([]task, error) {
	if err := t.advanceFurther(ctx, t.speculateUntil(results)); err != nil {
		return nil, err
	}
	err := t.commitOrRemake(ctx, func() error {
		if err := t.apply(ctx, results); err != nil {
			return err
		}
		return t.advanceFurther(ctx, time.Time{}) // nothing is speculated on again
	})
	if err != nil {
		return nil, err
	}
	tasks, unbegun := t.committed(&t.made)
	if len(unbegun) > 0 {
		err = t.commitStep(ctx, func() error { return t.receive(ctx, unbegun) })
	}
	return tasks, err
}

// advanceFurther adds to a step all that can follow at once: speculated calls, and the end of the
// tick.
func (t *tickRun) advanceFurther(ctx context.Context, until time.Time) error {
	for res, ran := t.speculate(until); ran; res, ran = t.speculate(until) {
		if err := t.apply(ctx, []*result{res}); err != nil {
			return err
		}
	}
	if t.over || t.loop.isInterrupted() || !t.state.IsOver() {
		return nil
	}
	return t.concludeTick(ctx)
}

// committed gives the calls of a step in the log that have begun, to be launched. Of a run that was
// stopped meanwhile none has begun.
func (t *tickRun) committed(m *made) (tasks []task, unbegun []*result) {
	if m.pauses {
		t.setTimer()
	}
	starts := m.starts
	m.pauses, m.starts = false, nil
	if !t.loop.isInterrupted() {
		return t.tasksOf(starts), nil
	}
	for _, s := range starts {
		unbegun = append(unbegun, &result{tick: t, index: s.index, err: errUnbegun})
	}
	return nil, unbegun
}

// tasksOf asks for slots in the order in which calls start: which worker runs first is left
// to chance.
func (t *tickRun) tasksOf(starts []start) []task {
	tasks := make([]task, 0, len(starts))
	for _, s := range starts {
		if joinTask(tasks, s, t.groupAsOf(s.index)) {
			continue
		}
		if s.child == nil {
			call := t.plan.Calls[s.index]
			s.slot = t.runner.pool.Request(call.Activity, call.FireAndForget())
		}
		tasks = append(tasks, task{tick: t, start: s})
	}
	return tasks
}

// groupAsOf returns the calls that one request answers together with a call. Each is shown what the
// scopes of any of them grant: of those that run again, and read as of another seq, none is among
// them where either has scopes.
func (t *tickRun) groupAsOf(i int) []int {
	group := t.plan.Group(i)
	apart := func(k int) bool {
		sameSeq := t.state.Calls[k].Record.Before == t.state.Calls[i].Record.Before
		return !sameSeq && len(t.plan.Calls[i].ScopePaths)+len(t.plan.Calls[k].ScopePaths) > 0
	}
	if !slices.ContainsFunc(group, apart) {
		return group
	}
	return slices.DeleteFunc(slices.Clone(group), apart)
}

// commitStep runs a function as a step, and commits it.
func (t *tickRun) commitStep(ctx context.Context, do func() error) error {
	t.save()
	if err := do(); err != nil {
		return err
	}
	return t.commitOrRemake(ctx, do)
}

// commitOrRemake commits a step. If another append has come in between, the step is undone and made
// again.
func (t *tickRun) commitOrRemake(ctx context.Context, again func() error) error {
	for range journal.MaxConflicts {
		err := t.commit(ctx)
		if _, conflict := errors.AsType[*store.ConflictError](err); !conflict || !t.begun {
			return err
		}
		if err := t.remake(ctx, again); err != nil {
			return err
		}
	}
	return journal.TooManyConflicts(t.context)
}

// remake undoes a step, and the pending one, and makes them again as one, on the log as it is now.
func (t *tickRun) remake(ctx context.Context, again func() error) error {
	t.undo()
	if err := t.poll(ctx); err != nil {
		return err
	}
	t.save()
	return again()
}

// recordResumed records that a run that had halted or ended is under way again, so that this is
// known after a crash; not if only the input that it waits for is new.
func (t *tick) recordResumed() {
	moves := func(r journal.Record) bool { return r.Status != journal.Waiting && r.Status != journal.Held }
	if t.resumes || !t.loop.halted || t.over {
		return
	}
	if len(t.starts) == 0 && !slices.ContainsFunc(t.observed, moves) {
		return
	}
	t.resumes = true
	appendRunEvent(t, journal.RunEvent{Tick: t.event.Tick, Status: journal.RunRunning})
}

// save begins a step.
func (t *tickRun) save() {
	t.resumes = false
	t.entriesBefore, t.observedBefore = len(t.entries), len(t.observed)
	t.newestBefore, t.endedBefore = t.newest, t.ended
	t.state.Begin(t.begun) // in a tick that has not begun nothing is undone: it begins anew
}

// undo has the step, and the one that is being written, never have been made.
func (t *tickRun) undo() {
	steps := []sched.Undo{t.state.Undo()}
	if p := t.pending; p != nil {
		t.made, t.pending = p.made, nil
		steps = append(steps, p.changed)
	}
	t.entries, t.places = t.entries[:t.entriesBefore], t.places[:t.entriesBefore]
	t.observed, t.starts, t.pauses = t.observed[:t.observedBefore], nil, false
	t.newest, t.ended = t.newestBefore, t.endedBefore
	t.view.Drop()
	t.writers.DropAfter(t.view.Committed())
	t.state.Revert(steps...)
}

// appendEntry places an entry after the messages so far: a fork may separate the entries of a step
// about different calls.
func (t *tick) appendEntry(e store.Entry) {
	e.Date = t.runner.date()
	t.entries, t.places = append(t.entries, e), append(t.places, len(t.view.Staged()))
}

// appendRunEvent places an event of the run.
func appendRunEvent(t *tick, e journal.RunEvent) {
	l := t.loop
	worked := l.workedBefore
	if e.Status != journal.RunRunning && e.Status != journal.RunContinued {
		worked += time.Since(l.opened)
	}
	e.Worked = journal.Milliseconds(worked)
	t.newest = e
	t.appendEntry(e.Entry())
}

// recordCall writes a call's record to the journal.
func (t *tick) recordCall(i int) {
	r := &t.state.Calls[i].Record
	t.notify(r)
	var e store.Entry
	e, t.text = r.TakeEntry(t.text[:0])
	t.appendEntry(e)
}

// notify has the observers of the run notified of a record once the step is in the log.
func (t *tick) notify(r *journal.Record) {
	if t.runner.Observe != nil || t.loop.halted {
		t.observed = append(t.observed, *r)
	}
}

// commit appends the step, keeps the lease for a while unless the run ends with it, and notifies
// the observers.
func (t *tickRun) commit(ctx context.Context) error {
	hold := lease.For
	if t.endsRun() {
		hold = 0
	}
	if len(t.entries)+len(t.view.Staged()) > 0 {
		if err := t.loop.append(ctx, t.batch(), hold); err != nil {
			return err
		}
		t.code = nil
		t.appended()
	}
	t.notifyObservers(&t.made)
	return nil
}

// notifyObservers notifies the observers of a step that is in the log.
func (t *tickRun) notifyObservers(m *made) {
	if t.runner.Observe != nil {
		for _, r := range m.observed {
			r.Context = t.context
			t.runner.Observe(r)
		}
	}
	m.entries, m.places, m.observed = m.entries[:0], m.places[:0], m.observed[:0]
}

// batch is the step's content, to be appended.
func (t *tickRun) batch() store.Batch {
	b := store.Batch{Journal: t.entries, Code: t.code}
	b.Messages, b.ExpectSeq = t.view.Send()
	if t.problem == nil { // faults of a refused plan stay with its event
		for i, place := range t.places {
			b.Journal[i].Ahead = len(b.Messages) - place
		}
	}
	if t.over { // only outcomes of fire-and-forget calls are left
		b.ExpectSeq = store.AnySeq
	}
	if t.ended != nil && t.state.In(sched.Held) > 0 {
		b.ExpectN = t.journalled // decisions up to here have been read
	}
	if standing := standingOf(t); !standing.Equal(t.loop.standing) {
		b.Standing = &standing
	}
	t.sent = b.Standing
	if !t.loop.begun {
		b.Create, b.Once = &t.loop.origin, t.loop.once
	}
	return b
}

// appended takes the batch for appended.
func (t *tickRun) appended() {
	if !t.begun { // not by detached calls of an earlier tick
		t.loop.tick, t.loop.refused = t.event.Tick, t.event.Refused
	}
	t.begun, t.loop.begun = true, true
	if !t.over {
		t.loop.halted = t.newest.Status == journal.RunWaiting
	}
	t.view.Commit()
	if t.sent != nil {
		t.loop.standing = *t.sent
	}
	if t.loop.started != nil {
		t.loop.started()
		t.loop.started = nil
	}
}
