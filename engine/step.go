package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"obelus/store"
)

// take takes a step with a result and all others that have come.
func (t *tick) take(ctx, run context.Context, first *result) ([]job, error) {
	results, err := t.loop.come(ctx, t, first)
	if err != nil || t.ending != nil {
		return nil, err
	}
	return t.step(ctx, run, results)
}

// step is one step of the tick; see there. It gives the calls that it starts, to
// be launched.
func (t *tick) step(ctx, run context.Context, results []*result) ([]job, error) {
	until := t.aheadUntil(results)
	err := t.record(ctx, func() error {
		goes := false
		for results := results; ; {
			if err := t.receive(ctx, results); err != nil {
				return err
			}
			if run.Err() != nil {
				return nil
			}
			if err := t.advance(ctx); err != nil {
				return err
			}
			if !goes {
				goes = t.goesOn()
			}
			res, ran := t.runAhead(run, until)
			if !ran {
				break
			}
			results = []*result{res}
		}
		until = time.Time{} // nothing runs ahead again, if somebody else has appended meanwhile
		if !t.settled() {
			return nil
		}
		return t.conclude(ctx)
	})
	if err != nil {
		return nil, err
	}
	t.setTimers()
	jobs := t.starting(run)
	if run.Err() == nil || len(jobs) == 0 {
		t.askSlots(jobs)
		return jobs, nil
	}
	// The run was stopped while their starts were recorded.
	return nil, t.record(ctx, func() error {
		for _, j := range jobs {
			t.putBack(j.index)
		}
		return nil
	})
}

// starting takes the calls whose starts have been committed, to be launched;
// not those that are replayed.
func (t *tick) starting(run context.Context) []job {
	starts := t.starts
	t.starts = nil
	if t.runner.replay != nil {
		t.unanswered = append(t.unanswered, starts...)
		return nil
	}
	jobs := make([]job, len(starts))
	for i, s := range starts {
		jobs[i] = job{t, run, s}
	}
	return jobs
}

// askSlots asks for slots in the order in which calls start: which worker runs first
// is left to chance.
func (t *tick) askSlots(jobs []job) {
	for i := range jobs {
		if j := &jobs[i]; j.room == nil {
			call := t.plan.Calls[j.index]
			j.slot = t.runner.pool.ask(call.activity, call.fireAndForget())
		}
	}
}

// record does something and commits what it makes. If somebody else has
// appended in between, it is undone and done again.
func (t *tick) record(ctx context.Context, do func() error) error {
	for range maxConflicts {
		t.save()
		if err := do(); err != nil {
			return err
		}
		err := t.commit(ctx, t.leased())
		if _, conflict := errors.AsType[*store.ConflictError](err); !conflict || !t.begun {
			return err
		}
		t.undo()
		if err := t.takeIn(ctx); err != nil {
			return err
		}
	}
	return errors.New("context " + t.context + " is appended to by others all the time")
}

// goesOn notes that a run that had come to a halt or to its end is under way
// again, also if this process dies; not if all that is new is what it waits for. It tells
// whether it noted that.
func (t *tick) goesOn() bool {
	moves := func(r Record) bool { return r.Status != Waiting && r.Status != Held }
	if !t.loop.halted || len(t.starts) == 0 && !slices.ContainsFunc(t.noted, moves) {
		return false
	}
	t.journal(store.Entry{Event: eventRun, Data: text(runEvent{Tick: t.event.Tick, Status: RunRunning})})
	return true
}

func (t *tick) save() {
	t.saved = undo{step: t.saved.step + 1, calls: t.saved.calls[:0], entries: len(t.entries), noted: len(t.noted)}
}

func (t *tick) undo() {
	t.ending = nil
	for _, c := range t.saved.calls {
		t.calls[c.index] = c.was
	}
	t.entries, t.places = t.entries[:t.saved.entries], t.places[:t.saved.entries]
	t.noted, t.starts, t.rests = t.noted[:t.saved.noted], nil, nil
	t.view.Drop()
	t.authors.forget(t.view.Committed())
	t.recount()
	t.rebuild()
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
	t.busy[t.plan.Calls[i].activity] += n
	if t.calls[i].record.Unstored {
		t.detached += n
	} else {
		t.running += n
	}
}

// change gives a call's state to be changed within the step.
func (t *tick) change(i int) *callState {
	c := &t.calls[i]
	if c.saved != t.saved.step && t.begun { // else nothing is undone: the tick begins anew
		t.saved.calls = append(t.saved.calls, savedCall{i, *c})
		c.saved = t.saved.step
	}
	return c
}

// journal has an entry come after the messages so far: a fork may part what a step
// records of one call from what it records of another.
func (t *tick) journal(e store.Entry) {
	t.entries, t.places = append(t.entries, e), append(t.places, len(t.view.Staged()))
}

// note writes a call's record to the journal.
func (t *tick) note(i int) { t.tell(&t.calls[i].record) }

// tell writes a record to the journal, also of a call that is not the tick's.
func (t *tick) tell(r *Record) {
	t.observe(r)
	t.text = r.append(t.text[:0])
	t.journal(store.Entry{Call: r.Call, Event: string(r.Status), Data: string(t.text)})
}

// observe has those who watch the run told of a record once the step is in the log.
func (t *tick) observe(r *Record) {
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
		if err := t.append(ctx, hold); err != nil {
			return err
		}
		t.code = nil
	}
	if t.runner.Observe != nil {
		for _, r := range t.noted {
			r.Context = t.context
			t.runner.Observe(r)
		}
	}
	t.entries, t.places, t.noted = t.entries[:0], t.places[:0], t.noted[:0]
	return nil
}

func (t *tick) append(ctx context.Context, hold time.Duration) error {
	b := store.Batch{ExpectSeq: t.view.Committed(), Messages: t.view.Staged(), Journal: t.entries, Code: t.code}
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
	if err := t.loop.append(ctx, b, hold); err != nil {
		return err
	}
	if !t.begun { // not by what is left of an earlier tick
		t.loop.tick = t.event.Tick
	}
	t.begun, t.loop.begun, t.loop.halted = true, true, false
	t.view.Commit()
	if t.loop.started != nil {
		t.loop.started()
		t.loop.started = nil
	}
	return nil
}
