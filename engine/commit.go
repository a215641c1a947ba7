package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"obelus/engine/journal"
	"obelus/store"
)

// take takes a step with a result and all others that have come.
func (t *tick) take(ctx, run context.Context, first *result, flies bool) ([]job, error) {
	results, err := t.loop.come(ctx, t, first)
	if err != nil || t.ending != nil {
		return nil, err
	}
	return t.step(ctx, run, results, flies)
}

// step is one step of the tick; see there. It gives the calls that it starts, to
// be launched. One that flies is followed by others, with what comes while each is being
// written.
func (t *tick) step(ctx, run context.Context, results []*result, flies bool) ([]job, error) {
	t.save()
	err := t.move(ctx, run, results)
	for err == nil && flies && t.overlaps(run) {
		if results, flies, err = t.fly(ctx, run, results); flies && len(results) == 0 {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	return t.complete(ctx, run, results)
}

// move has a step take results, and start and settle what can be after that.
func (t *tick) move(ctx, run context.Context, results []*result) error {
	if err := t.receive(ctx, results); err != nil || run.Err() != nil {
		return err
	}
	if err := t.advance(ctx); err != nil {
		return err
	}
	t.goesOn()
	return nil
}

// complete commits a step that has taken results, with what else can be in it.
func (t *tick) complete(ctx, run context.Context, results []*result) ([]job, error) {
	if err := t.goAhead(ctx, run, t.aheadUntil(results)); err != nil {
		return nil, err
	}
	err := t.ensure(ctx, func() error {
		if err := t.move(ctx, run, results); err != nil {
			return err
		}
		return t.goAhead(ctx, run, time.Time{}) // nothing runs ahead again
	})
	if err != nil {
		return nil, err
	}
	jobs, unbegun := t.committed(run, &t.made)
	if len(unbegun) > 0 {
		err = t.record(ctx, func() error { return t.receive(ctx, unbegun) })
	}
	return jobs, err
}

// goAhead does what can be in a step beside what it began with: what runs ahead, and the
// end of the tick.
func (t *tick) goAhead(ctx, run context.Context, until time.Time) error {
	for res, ran := t.runAhead(run, until); ran; res, ran = t.runAhead(run, until) {
		if err := t.move(ctx, run, []*result{res}); err != nil {
			return err
		}
	}
	if run.Err() != nil || !t.settled() {
		return nil
	}
	return t.conclude(ctx)
}

// committed gives the calls of a step in the log that have begun, to be launched; not those
// that are replayed. Of a run that was stopped meanwhile none has begun.
func (t *tick) committed(run context.Context, m *made) (jobs []job, unbegun []*result) {
	t.setTimers(m.rests)
	starts := m.starts
	m.rests, m.starts = nil, nil
	switch {
	case t.runner.script.Recorded():
		t.unanswered = append(t.unanswered, starts...)
	case run.Err() != nil:
		for _, s := range starts {
			unbegun = append(unbegun, &result{tick: t, index: s.index, err: errUnbegun})
		}
	default:
		jobs = t.jobs(run, starts)
	}
	return jobs, unbegun
}

// jobs asks for slots in the order in which calls start: which worker runs first is left
// to chance.
func (t *tick) jobs(run context.Context, starts []start) []job {
	jobs := make([]job, len(starts))
	for i, s := range starts {
		if s.room == nil {
			call := t.plan.Calls[s.index]
			s.slot = t.runner.pool.ask(call.Activity, call.FireAndForget())
		}
		jobs[i] = job{t, run, s}
	}
	return jobs
}

// record does something as a step, and commits what it makes.
func (t *tick) record(ctx context.Context, do func() error) error {
	t.save()
	if err := do(); err != nil {
		return err
	}
	return t.ensure(ctx, do)
}

// ensure commits a step. If somebody else has appended in between, it is undone, and made
// again.
func (t *tick) ensure(ctx context.Context, again func() error) error {
	for range maxConflicts {
		err := t.commit(ctx, t.leased())
		if _, conflict := errors.AsType[*store.ConflictError](err); !conflict || !t.begun {
			return err
		}
		if err := t.remake(ctx, again); err != nil {
			return err
		}
	}
	return errors.New("context " + t.context + " is appended to by others all the time")
}

// remake undoes a step, and the one that is being written, and makes them again as one, on what
// the log holds now.
func (t *tick) remake(ctx context.Context, again func() error) error {
	t.undo()
	if err := t.takeIn(ctx); err != nil {
		return err
	}
	t.save()
	return again()
}

// goesOn notes that a run that had come to a halt or to its end is under way
// again, also if this process dies; not if all that is new is what it waits for.
func (t *tick) goesOn() {
	moves := func(r journal.Record) bool { return r.Status != journal.Waiting && r.Status != journal.Held }
	if t.goes || !t.loop.halted || len(t.starts) == 0 && !slices.ContainsFunc(t.noted, moves) {
		return
	}
	t.goes = true
	t.journal(store.Entry{Event: journal.EventRun, Data: string(store.EncodeJSON(journal.RunEvent{Tick: t.event.Tick, Status: journal.RunRunning}))})
}

// save begins a step.
func (t *tick) save() {
	t.steps++
	t.goes = false
	t.saved = undo{calls: t.saved.calls[:0], entries: len(t.entries), noted: len(t.noted)}
}

// undo has the step, and the one that is being written, never have been made.
func (t *tick) undo() {
	t.ending = nil
	t.revert()
	if f := t.flight; f != nil {
		t.made, t.flight = f.made, nil
		t.revert()
	}
	t.entries, t.places = t.entries[:t.saved.entries], t.places[:t.saved.entries]
	t.noted, t.starts, t.rests = t.noted[:t.saved.noted], nil, nil
	t.view.Drop()
	t.authors.forget(t.view.Committed())
	t.recount()
	t.rebuild()
}

// revert makes calls what they were before the step.
func (t *tick) revert() {
	for _, c := range t.saved.calls {
		t.calls[c.index] = c.was
	}
}

// recount counts the calls that workers have.
func (t *tick) recount() {
	clear(t.busy)
	t.running, t.detached, t.resting = 0, 0, 0
	for i := range t.calls {
		c := &t.calls[i]
		if c.working {
			t.occupy(i, 1)
		}
		if c.again != nil && !c.rested {
			t.resting++
		}
	}
}

// occupy counts a call that a worker gets, or, by -1, gives back.
func (t *tick) occupy(i, n int) {
	t.busy[t.plan.Calls[i].Activity] += n
	if t.calls[i].record.Unstored {
		t.detached += n
	} else {
		t.running += n
	}
}

// change gives a call's state to be changed within the step.
func (t *tick) change(i int) *callState {
	c := &t.calls[i]
	if c.saved != t.steps && t.begun { // else nothing is undone: the tick begins anew
		t.saved.calls = append(t.saved.calls, savedCall{i, *c})
		c.saved = t.steps
	}
	return c
}

// journal has an entry come after the messages so far: a fork may part what a step
// records of one call from what it records of another.
func (t *tick) journal(e store.Entry) {
	e.Date = t.runner.date()
	t.entries, t.places = append(t.entries, e), append(t.places, len(t.view.Staged()))
}

// note writes a call's record to the journal.
func (t *tick) note(i int) { t.tell(&t.calls[i].record) }

// tell writes a record to the journal, also of a call that is not the tick's.
func (t *tick) tell(r *journal.Record) {
	t.observe(r)
	t.text = r.AppendJSON(t.text[:0])
	t.journal(store.Entry{Call: r.Call, Event: string(r.Status), Data: string(t.text)})
}

// observe has those who watch the run told of a record once the step is in the log.
func (t *tick) observe(r *journal.Record) {
	if t.runner.Observe != nil || t.loop.halted {
		t.noted = append(t.noted, *r)
	}
}

// keep notes that what a call runs is to be kept with the log.
func (t *tick) keep(code *store.Code) {
	if !slices.Contains(t.code, code) {
		t.code = append(t.code, code)
	}
}

// commit appends what the step has made, keeping the lease for a while more,
// and tells of it.
func (t *tick) commit(ctx context.Context, hold time.Duration) error {
	if len(t.entries)+len(t.view.Staged()) > 0 {
		if err := t.loop.append(ctx, t.batch(), hold); err != nil {
			return err
		}
		t.code = nil
		t.appended()
	}
	t.watched(&t.made)
	return nil
}

// watched tells those who watch the run of a step that is in the log.
func (t *tick) watched(m *made) {
	if t.runner.Observe != nil {
		for _, r := range m.noted {
			r.Context = t.context
			t.runner.Observe(r)
		}
	}
	m.entries, m.places, m.noted = m.entries[:0], m.places[:0], m.noted[:0]
}

// batch is what the step has made, to be appended.
func (t *tick) batch() store.Batch {
	b := store.Batch{Journal: t.entries, Code: t.code}
	b.Messages, b.ExpectSeq = t.view.Send()
	if t.problem == nil { // what was wrong with a plan that was refused stays with its event
		for i, place := range t.places {
			b.Journal[i].Ahead = len(b.Messages) - place
		}
	}
	if t.over { // only outcomes of fire-and-forget calls are left
		b.ExpectSeq = store.AnySeq
	}
	if !t.loop.begun {
		b.Create = &t.loop.origin
	}
	return b
}

// appended takes the batch for appended.
func (t *tick) appended() {
	if !t.begun { // not by what is left of an earlier tick
		t.loop.tick = t.event.Tick
	}
	t.begun, t.loop.begun, t.loop.halted = true, true, false
	t.view.Commit()
	if t.loop.started != nil {
		t.loop.started()
		t.loop.started = nil
	}
}
