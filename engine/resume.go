package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"obelus/store"
)

// Resume is how to go on with a run.
type Resume struct {
	Context string
	Request *Request // the plan's file as it is now; needed only where a planner is to be asked, and not of a delegate
	Retry   []string // calls that failed or are in doubt, to run again
	Skip    []string // calls that failed or are in doubt, to go on without

	// Result is, by call, what such calls came to all the same, as a person knows: it
	// is recorded as if they had given it back. It may be what [Start].Input may be.
	Result map[string]any

	// From is a call that has settled, to run again in a fork with all that is
	// downstream of it, and Set corrections of its arguments, as [Hold.With] takes
	// them. No call is named twice.
	From string
	Set  map[string]any

	// Who decides about the calls that are named.
	Who

	// Unasked tells that nobody asks for it: a run that somebody has cancelled
	// meanwhile stays so.
	Unasked bool

	// Begun, if it is set, is called once nobody else can resume it.
	Begun func()
}

// decides tells whether somebody decides about calls.
func (s *Resume) decides() bool { return len(s.Retry)+len(s.Skip)+len(s.Result) > 0 || s.From != "" }

// check refuses what can't all be meant.
func (s *Resume) check() error {
	if s.From == "" && len(s.Set) > 0 {
		return &NoSuchCallError{Message: "there are corrections of arguments, and no call that they are for: name the call that is to run again"}
	}
	named := map[string]bool{s.From: s.From != ""}
	for _, call := range slices.Concat(s.Retry, s.Skip, sortedKeys(s.Result)) {
		if named[call] {
			return &NoSuchCallError{Message: fmt.Sprintf("call %s is named twice: name it once, to be retried, to be skipped, with its result or to run again", call)}
		}
		named[call] = true
	}
	return nil
}

// stays tells whether a run is to be left as it is.
func (s *Resume) stays(last Run) bool {
	return last.Status.Finished() && !s.decides() || last.Unwanted() && s.Unasked
}

// Resume goes on with the newest run of a context: what has a recorded outcome
// keeps it, all else runs. A run that is finished, with nothing to retry,
// gives its outcome again; fire-and-forget calls that it left behind are recorded as
// cut off if their process has died.
func (r *Runner) Resume(ctx context.Context, s Resume) (*Outcome, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	p, err := r.within(ctx, s.Context)
	if err != nil {
		return nil, err
	}
	s.Request = p.own(s.Request)
	outcome, err := p.runner.resume(ctx, s)
	return outcome, p.explain(err)
}

func (r *Runner) resume(ctx context.Context, s Resume) (*Outcome, error) {
	last, err := LastRun(ctx, r.Log, s.Context)
	if err != nil {
		return nil, err
	}
	if last.Tick == 0 {
		return nil, &NoSuchCallError{Message: fmt.Sprintf("context %s has no run to resume", s.Context)}
	}
	l, err := r.newLoop(ctx, s.Context)
	if err != nil {
		return nil, err
	}
	defer l.close()
	if s.stays(last) {
		return l.again(ctx, s, last)
	}
	if err := l.take(ctx); err != nil {
		return nil, err
	}
	// Whoever had the lease before may have gone on until now.
	if last, err = LastRun(ctx, r.Log, s.Context); err != nil {
		return nil, err
	}
	if s.stays(last) {
		return l.again(ctx, s, last)
	}
	l.resumes(s, last)
	t, err := l.reopen(ctx, last)
	if err != nil {
		return nil, err
	}
	if err := t.decide(ctx, s); err != nil {
		return nil, err
	}
	if t.authors == nil && t.outrun() {
		if err := t.readAuthors(ctx); err != nil {
			return nil, err
		}
	}
	runs := func(c callState) bool { return !c.record.Status.Settled() } // again, in a tick that was over
	if last.over && !s.decides() && !slices.ContainsFunc(t.calls, runs) {
		t = nil
	}
	if s.Begun != nil {
		s.Begun()
	}
	return l.run(ctx, t)
}

// again gives the outcome of a run that is finished.
func (l *loop) again(ctx context.Context, s Resume, last Run) (*Outcome, error) {
	l.resumes(s, last)
	records, err := Records(ctx, l.runner.Log, l.context)
	if err == nil && slices.ContainsFunc(records, Record.leftBehind) {
		var busy *BusyError
		switch err = l.take(ctx); {
		case errors.As(err, &busy):
			err = nil // they are still at work
		case err == nil:
			records, err = l.records(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	return last.outcome(l.context, records), nil
}

// outcome is how it stands, by what its context's journal has of calls.
func (r *Run) outcome(name string, records []Record) *Outcome {
	calls := slices.DeleteFunc(records, func(c Record) bool { return c.Tick != r.Tick })
	return &Outcome{Context: name, Status: r.Status, Output: r.Output, Error: unblamed(r.Error, r.plan, calls), Stopped: r.Stopped, Calls: calls}
}

// Stands tells how the newest run of a context stands, as [StandingRun] has it; the calls of
// one that has failed, or waits, with it. A context in which nothing
// has run gives an Outcome without a status. Its error may be a [*DamagedError].
func Stands(ctx context.Context, log store.Log, name string) (*Outcome, error) {
	last, err := StandingRun(ctx, log, name)
	var records []Record
	if err == nil && (last.Status == RunFailed || last.Status == RunWaiting) {
		records, err = recordsFrom(ctx, log, name, last.Tick, last.after-1, 0)
	}
	if err != nil {
		return nil, err
	}
	return last.outcome(name, records), nil
}

// resumes takes over what goes for the whole run.
func (l *loop) resumes(s Resume, last Run) {
	l.begun, l.tick, l.first, l.policy = true, last.Tick, last.plan.First, last.plan.Approve
	l.refused = last.plan.Refused
	l.halted = last.Status != RunRunning
	if s.Request != nil {
		request := *s.Request
		request.Name, request.Mode = last.Plan, last.plan.Mode
		l.request = &request
	}
}

// reopen builds a recorded tick as it stood.
func (l *loop) reopen(ctx context.Context, last Run) (*tick, error) {
	if _, err := l.view.Refresh(ctx); err != nil {
		return nil, err
	}
	newest, _, err := store.Newest(ctx, l.runner.Log, store.JournalFilter{Context: l.context})
	if err != nil {
		return nil, err
	}
	head, err := l.runner.Log.Head(ctx, l.context)
	if err == nil {
		err = endsAfter(newest, head)
	}
	if err != nil {
		return nil, err
	}
	records, err := l.records(ctx)
	if err != nil {
		return nil, err
	}
	former, err := former(ctx, l.runner.Log, l.context, last.plan.First, records)
	if err != nil {
		return nil, err
	}
	l.view.Hide(slices.Collect(maps.Keys(former))...)
	plan := emptyPlan()
	if last.plan.Seq > 0 {
		if plan, err = l.recorded(ctx, last.plan, former); err != nil {
			return nil, err
		}
	}
	t := newTick(l, plan, last.plan)
	t.begun = true
	t.journalled = newest.N // decisions up to here are in the records
	for _, record := range records {
		twice, err := l.disown(ctx, &record)
		if err != nil {
			return nil, err
		}
		if record.Tick == last.Tick {
			t.restore(record, twice)
		}
	}
	return t, t.readReported(ctx)
}

// records are the context's calls, once the lease is taken: what was left behind by
// whoever had it before is at work no more, and is recorded as cut off.
func (l *loop) records(ctx context.Context) ([]Record, error) {
	records, err := Records(ctx, l.runner.Log, l.context)
	if err != nil {
		return nil, err
	}
	var cut []Record
	var entries []store.Entry
	for i := range records {
		r := &records[i]
		if !r.leftBehind() {
			continue
		}
		if r.Child == "" {
			r.Attempts++ // a delegate's was counted when it began
		} else if err := cancelInside(ctx, l.runner.Log, l.context, r); err != nil {
			return nil, err
		}
		r.Status, r.Error = Failed, map[string]any{"message": "it was cut off when the process ended", "code": "cut-off"}
		cut, entries = append(cut, *r), append(entries, r.entry())
	}
	if len(cut) == 0 {
		return records, nil
	}
	if err := l.append(ctx, store.Batch{ExpectSeq: store.AnySeq, Journal: entries}, leaseFor); err != nil {
		return nil, err
	}
	for _, r := range cut {
		if l.runner.Observe != nil {
			l.runner.Observe(r)
		}
	}
	return records, nil
}

// Round is a tick of a run: its plan as it was compiled when the tick began, and its calls as
// they stand. One whose planner gave no good plan has an empty one.
type Round struct {
	Tick  int
	Plan  *Plan
	Calls []Record
}

// Rounds gives the ticks of the newest run of a context: one, or where its plan is a function
// as many as that was asked. Its error is a [*NoSuchCallError] where nothing has run.
func (r *Runner) Rounds(ctx context.Context, name string) ([]Round, error) {
	p, err := r.within(ctx, name)
	if err != nil {
		return nil, err
	}
	rounds, err := p.runner.rounds(ctx, name)
	return rounds, p.explain(err)
}

func (r *Runner) rounds(ctx context.Context, name string) ([]Round, error) {
	last, err := LastRun(ctx, r.Log, name)
	if err != nil {
		return nil, err
	}
	if last.Tick == 0 {
		return nil, &NoSuchCallError{Message: fmt.Sprintf("context %s has no run", name)}
	}
	records, err := StandingRecords(ctx, r.Log, name, 0)
	if err != nil {
		return nil, err
	}
	plans, err := plansOf(ctx, r.Log, name, last.plan.First)
	if err != nil {
		return nil, err
	}
	former, err := former(ctx, r.Log, name, last.plan.First, records)
	if err != nil {
		return nil, err
	}
	var rounds []Round
	for _, event := range plans {
		round := Round{Tick: event.Tick, Plan: emptyPlan()}
		if event.Seq > 0 {
			if round.Plan, err = (&loop{runner: r, context: name}).recorded(ctx, event, former); err != nil {
				return nil, err
			}
		}
		for _, record := range records {
			if record.Tick == event.Tick {
				round.Calls = append(round.Calls, record)
			}
		}
		rounds = append(rounds, round)
	}
	return rounds, nil
}

// recorded compiles a plan that is in the log, as it was when its tick began; what there
// is of calls' former runs does not count.
func (l *loop) recorded(ctx context.Context, event planEvent, former map[int64]int64) (*Plan, error) {
	log := l.runner.Log
	registry, err := event.contextTools(ctx, log, l.context, l.runner.Registry)
	if err != nil {
		return nil, err
	}
	calls, err := planMessage(ctx, log, l.context, event.Seq)
	if err != nil {
		return nil, err
	}
	if registry, err = registry.withoutFormats(calls); err != nil {
		return nil, err
	}
	request := &Request{Name: event.Plan}
	for _, call := range calls {
		request.Calls = append(request.Calls, Source{Call: call, accepted: true})
	}
	request.HasOutput = event.Output != nil
	var wrong [3]error
	request.Tools, wrong[0] = event.tools()
	request.Schema, wrong[1] = decode(event.Schema)
	request.Output, wrong[2] = decode(event.Output)
	if err := errors.Join(wrong[:]...); err != nil {
		return nil, err
	}
	there := exists(ctx, store.Resolver{Log: without(log, former, math.MaxInt64), Context: l.context, At: event.Start})
	if event.Start == 0 {
		there = NothingExists
	}
	return compile(request, registry, there)
}

// restore takes over what the journal has of a call. What would run twice, and must
// not, is in doubt.
func (t *tick) restore(record Record, twice bool) {
	i := record.Position - 1
	if i < 0 || i >= len(t.calls) {
		return
	}
	c, call := &t.calls[i], t.plan.Calls[i]
	record.Context = ""
	if record.Status == Running && !record.Rests && call.delegate == nil { // the process died meanwhile
		record.Attempts++
	}
	cut := record.Status == Running && !record.Rests || record.Status == Interrupted || record.Status == Cancelled
	switch {
	case record.Status.Settled() || record.Status == InDoubt || record.Status == Held || record.Status == Ready:
		c.record = record
		for _, text := range record.Writes {
			if path, err := store.ParsePath(text); err == nil {
				c.wrote = append(c.wrote, path)
			}
		}
		if record.Status == Held {
			t.noted = append(t.noted, record)
		}
	case twice, cut && (record.Once || call.activity != nil && call.activity.NotIdempotent):
		c.record = record
		c.record.Status = InDoubt
		t.note(i)
	default:
		c.record.Attempts, c.record.Child, c.record.Hold, c.record.Retry = record.Attempts, record.Child, record.Hold, record.Retry
		c.record.Before, c.record.Again = record.Before, record.Again
		c.was = record.Status
		if cut || record.Rests || record.Child != "" || record.Status == Blocked {
			c.record.At = record.At
		}
		if record.Hold != nil {
			c.record.Reads = record.Reads
		}
	}
}

// leftBehind tells of a fire-and-forget call that was at work when its process ended,
// if that has.
func (r Record) leftBehind() bool { return r.Status == Running && r.Unstored }

// readReported finds whose failures became error messages already.
func (t *tick) readReported(ctx context.Context) error {
	reported := map[string]string{}
	for m, err := range t.runner.Log.Messages(ctx, store.Filter{Context: t.context, After: t.event.Start, Kind: store.KindError}) {
		if err != nil {
			return err
		}
		if call, failure := reportedFailure(m); call != "" && !t.view.Hides(m.Seq) {
			reported[call] = string(store.EncodeJSON(failure))
		}
	}
	for i := range t.calls {
		r := &t.calls[i].record
		t.calls[i].reported = r.Error != nil && reported[r.Call] == string(store.EncodeJSON(map[string]any(r.Error)))
	}
	return nil
}
