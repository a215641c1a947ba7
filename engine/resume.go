package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"obelus/engine/internal/jsonvalue"
	"obelus/engine/internal/sched"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// decides reports whether it decides about calls.
func (s *Resume) decides() bool { return len(s.Retry)+len(s.Skip)+len(s.Result) > 0 || s.From != "" }

// check refuses what can't all be meant.
func (s *Resume) check() error {
	if s.From == "" && len(s.Set) > 0 {
		return &journal.NoSuchCallError{Message: "there are corrections of arguments, and no call that they are for: name the call that is to run again"}
	}
	named := map[string]bool{s.From: s.From != ""}
	for _, call := range slices.Concat(s.Retry, s.Skip, jsonvalue.SortedKeys(s.Result)) {
		if named[call] {
			return &journal.NoSuchCallError{Message: fmt.Sprintf("call %s is named twice: name it once, to be retried, to be skipped, with its result or to run again", call)}
		}
		named[call] = true
	}
	return nil
}

// leavesAlone reports whether a run is to be left as it is.
func (s *Resume) leavesAlone(last journal.Run) bool {
	return last.Status.Finished() && !s.decides() || last.Unwanted() && s.Unasked
}

// Resume goes on with the newest run of a context: a call with a recorded outcome keeps it, all
// others run. A run that is finished, with nothing to retry, returns its outcome again, once its
// background calls that were interrupted have run again.
func (r *Runner) Resume(ctx context.Context, s Resume) (*journal.Outcome, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	p, err := r.scopeOf(ctx, s.Context)
	if err != nil {
		return nil, err
	}
	s.Request = p.requestOr(s.Request)
	runner := *p.runner
	runner.alone = p.ofDelegate
	var left []string
	var others sync.WaitGroup
	if r.depth == 0 && !s.decides() {
		if left, err = delegatesInBackground(ctx, r.Log, s.Context); err != nil {
			return nil, err
		}
	}
	for _, child := range left {
		inner := *r
		inner.Concluded = nil
		// Its journal says how it ends, or another process has it.
		others.Go(func() { _, _ = inner.Resume(ctx, Resume{Context: child, Unasked: s.Unasked}) })
	}
	outcome, err := runner.resume(ctx, s)
	if err == nil && len(left) > 0 && outcome.Background == 0 && runner.Concluded != nil {
		early := *outcome
		early.Background = len(left)
		runner.Concluded(&early)
	}
	others.Wait()
	return outcome, p.explain(err)
}

func (r *Runner) resume(ctx context.Context, s Resume) (*journal.Outcome, error) {
	last, err := journal.In(r.Log, s.Context).LastRun(ctx)
	if err != nil {
		return nil, err
	}
	if last.Tick == 0 {
		return nil, &journal.NoSuchCallError{Message: fmt.Sprintf("context %s has no run to resume", s.Context)}
	}
	l, err := r.newLoop(ctx, s.Context, false)
	if err != nil {
		return nil, err
	}
	defer l.close()
	if s.leavesAlone(last) {
		return l.resumeFinished(ctx, s, last)
	}
	if err := l.lease.Take(ctx); err != nil {
		return nil, err
	}
	// Whoever had the lease before may have gone on until now.
	if last, err = journal.In(r.Log, s.Context).LastRun(ctx); err != nil {
		return nil, err
	}
	if s.leavesAlone(last) {
		return l.resumeFinished(ctx, s, last)
	}
	if last.Status.Finished() && last.Detached {
		records, err := journal.In(r.Log, s.Context).Records(ctx)
		if err != nil {
			return nil, err
		}
		if s.isAboutBackground(records) {
			l.resumes(s, last)
			return l.goOnInBackground(ctx, s, last)
		}
	}
	inherited, err := last.IsInherited(ctx, journal.In(r.Log, s.Context))
	if err != nil {
		return nil, err
	}
	if inherited { // who started the run may have chosen to hold less, which counts there
		last.Event.Approve = last.Event.Approve.With(r.Approve)
		if last.Event.Released {
			last.Event.Mode, last.Event.Released = plan.ModeLazy, false
		}
	}
	l.resumes(s, last)
	if err := l.countSpent(ctx, last.Event.First); err != nil {
		return nil, err
	}
	t, err := l.reopenTick(ctx, s, last, inherited)
	if err != nil {
		return nil, err
	}
	a := &amendment{tickRun: t}
	s = s.only(func(call string) bool { return !l.isOfDetachedTick(call) }) // the others are decided
	if err := a.decide(ctx, s); err != nil {
		return nil, err
	}
	if t.writers == nil && a.hasOvertaken() {
		if err := t.readWriters(ctx, &l.timeline); err != nil {
			return nil, err
		}
	}
	// Again, in a tick that was over.
	runs := func(c sched.Call) bool { return !c.Record.Status.Settled() }
	if last.Over && !s.decides() && !slices.ContainsFunc(t.state.Calls, runs) {
		t = nil
	}
	if s.Begun != nil {
		s.Begun()
	}
	return l.run(ctx, t)
}

// resumeFinished gives the outcome of a run that is finished, once the background calls that it has
// left have ended, unless another process has them at work. A server leaves alone those that a
// person has interrupted.
func (l *loop) resumeFinished(ctx context.Context, s Resume, last journal.Run) (*journal.Outcome, error) {
	l.resumes(s, last)
	c := journal.In(l.runner.Log, l.context)
	records, err := c.Records(ctx)
	if err != nil || !last.Detached {
		return last.Outcome(l.context, records), err
	}
	goesOn := func(r journal.Record) bool {
		isInterrupted := r.InBackground() && r.Status == journal.Interrupted
		return r.LeftBehind() || isInterrupted && !s.Unasked
	}
	if last.Status.Finished() && slices.ContainsFunc(records, goesOn) {
		switch err := l.lease.Take(ctx); {
		case err == nil:
			return l.goOnInBackground(ctx, s, last)
		case !errors.As(err, new(*BusyError)): // else they are at work
			return nil, err
		}
	}
	return last.Outcome(l.context, records), nil
}

// ReadOutcome returns the status of the newest run of a context, as [journal.Context.CurrentRun]
// has it, with the calls of a run that has failed or waits. A context in which nothing has run
// gives an Outcome without a status. Its error may be a [*journal.DamagedError].
func ReadOutcome(ctx context.Context, log store.Reader, name string) (*journal.Outcome, error) {
	last, err := journal.In(log, name).CurrentRun(ctx)
	var records []journal.Record
	switch {
	case err != nil:
	case last.Detached: // background calls of any tick are counted
		records, err = journal.In(log, name).CurrentRecords(ctx)
	case last.Status == journal.RunFailed || last.Status == journal.RunWaiting:
		records, err = journal.In(log, name).RecordsFrom(ctx, last.Tick, last.After-1, nil)
	}
	if err != nil {
		return nil, err
	}
	return last.Outcome(name, records), nil
}

// resumes takes over what goes for the whole run.
func (l *loop) resumes(s Resume, last journal.Run) {
	l.runner.replans.count(l.context, last.Tick-last.Event.First)
	l.begun, l.tick, l.first, l.policy = true, last.Tick, last.Event.First, last.Event.Approve
	l.refused, l.labels = last.Event.Refused, last.Event.Labels
	l.halted = last.Status != journal.RunRunning
	l.runStarted, l.workedBefore = last.Started, last.Worked
	if s.Request != nil {
		request := *s.Request
		request.Outcomes = last.Event.Outcomes
		request.Name, request.Mode, request.Released = last.Plan, last.Event.Mode, last.Event.Released
		l.request = &request
	}
}

// reopenTick builds a recorded tick as it stood. An inherited one began in the context that this
// one was forked from.
func (l *loop) reopenTick(ctx context.Context, s Resume, last journal.Run, inherited bool) (*tickRun, error) {
	if _, err := l.view.Refresh(ctx); err != nil {
		return nil, err
	}
	newest, _, err := store.Newest(ctx, l.runner.Log, store.JournalFilter{Context: l.context})
	if err != nil {
		return nil, err
	}
	head, err := l.runner.Log.Head(ctx, l.context)
	if err == nil {
		err = journal.In(l.runner.Log, l.context).EndsAfter(ctx, newest, head)
	}
	if err != nil {
		return nil, err
	}
	records, timeline, err := journal.In(l.runner.Log, l.context).RecordsAndTimeline(ctx, last.Event.First)
	if err != nil {
		return nil, err
	}
	l.timeline = timeline
	t, err := l.restoreTick(ctx, last, inherited, records)
	if err != nil {
		return nil, err
	}
	t.journalled = newest.N // decisions up to here are in the records
	l.current = t
	if last.Event.First < last.Tick {
		_, err = l.revive(ctx, s, last, false, inherited, records)
	}
	return t, err
}

// restoreTick builds a recorded tick of a run from the records of the context, as it stood.
func (l *loop) restoreTick(ctx context.Context, run journal.Run, inherited bool, records []journal.Record) (*tickRun, error) {
	superseded, err := l.timeline.SupersededFor(ctx, journal.In(l.runner.Log, l.context), run.Event.First, records)
	if err != nil {
		return nil, err
	}
	superseded.HideFrom(l.view)
	compiled := plan.Empty()
	if run.Event.Seq > 0 {
		if compiled, err = l.compileRecorded(ctx, run.Event, superseded, plan.CompileRequest); err != nil {
			return nil, err
		}
	}
	t := newTick(l, compiled, run.Event)
	t.before = run.Status
	a := &amendment{t, inherited}
	t.begun = true
	undecided, err := journal.In(l.runner.Log, l.context).WithoutInherited(ctx, records)
	if err != nil {
		return nil, err
	}
	for _, record := range journal.ReplaceRecords(records, undecided) {
		if record.Tick != run.Tick {
			continue
		}
		twice, err := l.disownChild(ctx, &record)
		if err != nil {
			return nil, err
		}
		a.restoreCall(record, twice)
	}
	for _, record := range undecided {
		if record.Tick == run.Tick {
			a.recordCall(record.Position - 1)
		}
	}
	return t, a.restoreReported(ctx)
}

// Tick is a tick of a run: its plan as it was compiled when the tick began. One whose planner gave
// no good plan has an empty one.
type Tick struct {
	Tick int
	Plan *plan.Plan

	// Refused is why the plan can't run again by the tools, delegates and models as they are now; nil
	// if it can. The plan is as far as it is understood then.
	Refused *plan.PlanError
}

// TicksOf gives the ticks of the newest run in the history of a context: one, or where its plan is
// a function as many as that was asked. Its error is a [*journal.NoSuchCallError] where nothing has
// run.
func (r *Runner) TicksOf(ctx context.Context, h *journal.History) ([]Tick, error) {
	p, err := r.scopeOf(ctx, h.Context())
	if err != nil {
		return nil, err
	}
	ticks, err := p.runner.ticks(ctx, h)
	return ticks, p.explain(err)
}

func (r *Runner) ticks(ctx context.Context, h *journal.History) (ticks []Tick, err error) {
	run := h.TicksOfRun(0)
	if len(run) == 0 {
		return nil, &journal.NoSuchCallError{Message: fmt.Sprintf("context %s has no run", h.Context())}
	}
	var superseded journal.Superseded
	if h.RanAgain() {
		in := journal.In(r.Log, h.Context())
		records, err := in.Records(ctx)
		if err != nil {
			return nil, err
		}
		if superseded, err = journal.SupersededFor(ctx, in, run[0].First, records); err != nil {
			return nil, err
		}
	}
	for _, event := range run {
		tick := Tick{Tick: event.Tick, Plan: plan.Empty()}
		if event.Seq > 0 {
			tick.Plan, err = (&loop{runner: r, context: h.Context()}).compileRecorded(ctx, event, superseded, plan.CompileAccepted)
			if tick.Refused, _ = errors.AsType[*plan.PlanError](err); err != nil && (tick.Refused == nil || tick.Plan == nil) {
				return nil, err
			}
		}
		ticks = append(ticks, tick)
	}
	return ticks, nil
}

// compileRecorded compiles a plan from the log, as of the start of its tick; superseded messages of
// calls do not count.
func (l *loop) compileRecorded(ctx context.Context, event journal.PlanEvent, superseded journal.Superseded, compile journal.Compiler) (*plan.Plan, error) {
	log := l.runner.Log
	registry, err := event.ContextTools(ctx, journal.In(log, l.context), l.runner.Registry)
	if err != nil {
		return nil, err
	}
	calls, err := journal.In(log, l.context).PlanMessage(ctx, event.MessageSeq())
	if err != nil {
		return nil, err
	}
	there := exists(ctx, store.Resolver{Log: superseded.Without(log), Context: l.context, At: event.Start})
	if event.Start == 0 {
		there = plan.NothingExists
	}
	return event.Compile(calls, registry, there, compile)
}
