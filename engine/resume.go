package engine

import (
	"cmp"
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

	// From is a call that has settled, to run again in a fork with all that is
	// downstream of it, and Set corrections of its arguments, as [Hold.With] takes
	// them. No call is named twice.
	From string
	Set  map[string]any

	// Unasked tells that nobody asks for it: a run that somebody has cancelled
	// meanwhile stays so.
	Unasked bool

	// Begun, if it is set, is called once nobody else can resume it.
	Begun func()
}

// decides tells whether somebody decides about calls.
func (s *Resume) decides() bool { return len(s.Retry)+len(s.Skip) > 0 || s.From != "" }

// check refuses what can't all be meant.
func (s *Resume) check() error {
	if s.From == "" && len(s.Set) > 0 {
		return &NoSuchCallError{Message: "there are corrections of arguments, and no call that they are for: name the call that is to run again"}
	}
	named := map[string]bool{s.From: s.From != ""}
	for _, call := range slices.Concat(s.Retry, s.Skip) {
		if named[call] {
			return &NoSuchCallError{Message: fmt.Sprintf("call %s is named twice: name it once, to be retried, to be skipped or to run again", call)}
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

// Cancel records that the newest run of a context, which has come to a halt, is
// not to go on by itself; it can still be resumed. Its error is a
// [*NoSuchCallError] where no run is halted, a [*BusyError] where it runs, and a
// [*DelegateError] for what is part of another run.
func Cancel(ctx context.Context, log store.Log, name string) error {
	if err := store.CheckContext(name); err != nil {
		return err
	}
	if _, err := log.Head(ctx, name); err != nil {
		return err
	}
	root, err := Root(ctx, log, name)
	if err != nil {
		return err
	}
	if root != name {
		return &DelegateError{Context: name, Root: root}
	}
	return cancel(ctx, log, name)
}

func cancel(ctx context.Context, log store.Log, name string) error {
	l, err := (&Runner{Log: log}).newLoop(ctx, name)
	if err != nil {
		return err
	}
	defer l.close()
	if _, err := halted(ctx, log, name); err != nil {
		return err
	}
	if err := l.take(ctx); err != nil {
		return err
	}
	last, err := halted(ctx, log, name) // whoever had the lease before may have gone on until now
	if err != nil {
		return err
	}
	if _, err := l.records(ctx); err != nil {
		return err
	}
	end := runEvent{Tick: last.Tick, Status: RunCancelled, Over: last.over}
	return l.append(ctx, store.Batch{ExpectSeq: store.AnySeq, Journal: []store.Entry{{Event: eventRun, Data: text(end)}}}, 0)
}

// cancelInside cancels what the delegate of a context's call runs, and the delegates in
// it: the call has ended.
func cancelInside(ctx context.Context, log store.Log, name string, r *Record) error {
	child, err := ownChild(ctx, log, name, r)
	if child == "" || err != nil {
		return err
	}
	records, err := Records(ctx, log, child)
	if errors.Is(err, store.ErrNoContext) {
		return nil // it had not begun
	}
	for i := range records {
		if err == nil {
			err = cancelInside(ctx, log, child, &records[i])
		}
	}
	if err == nil {
		err = cancel(ctx, log, child)
	}
	if errors.As(err, new(*NoSuchCallError)) || errors.As(err, new(*BusyError)) {
		return nil // it has ended, or somebody goes on with it by itself
	}
	return err
}

// halted gives a run that can be cancelled.
func halted(ctx context.Context, log store.Log, name string) (Run, error) {
	last, err := LastRun(ctx, log, name)
	switch {
	case err != nil:
		return last, err
	case last.Tick == 0:
		return last, &NoSuchCallError{Message: fmt.Sprintf("context %s has no run to cancel", name)}
	case last.Status.Finished() || last.Unwanted():
		return last, &NoSuchCallError{Message: fmt.Sprintf("the run of context %s is %s already", name, last.Status)}
	}
	return last, nil
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

// Stands tells how the newest run of a context stands, under way or not, as its journal
// has it; the calls of one that has failed, or waits, with it. A context in which nothing
// has run gives an Outcome without a status. Its error may be a [*DamagedError].
func Stands(ctx context.Context, log store.Log, name string) (*Outcome, error) {
	last, err := LastRun(ctx, log, name)
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
		if plan, err = l.recorded(ctx, last, former); err != nil {
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

// Recorded gives the newest plan of a context as it was compiled when its tick
// began, and its calls as they stand. A tick without a plan gives an empty one.
// Its error is a [*NoSuchCallError] where nothing has run.
func (r *Runner) Recorded(ctx context.Context, name string) (*Plan, []Record, error) {
	p, err := r.within(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	plan, records, err := p.runner.recorded(ctx, name)
	return plan, records, p.explain(err)
}

func (r *Runner) recorded(ctx context.Context, name string) (*Plan, []Record, error) {
	last, err := LastRun(ctx, r.Log, name)
	if err != nil {
		return nil, nil, err
	}
	if last.Tick == 0 {
		return nil, nil, &NoSuchCallError{Message: fmt.Sprintf("context %s has no run", name)}
	}
	records, err := Records(ctx, r.Log, name)
	if err != nil {
		return nil, nil, err
	}
	plan := emptyPlan()
	if last.plan.Seq > 0 {
		former, err := former(ctx, r.Log, name, last.plan.First, records)
		if err == nil {
			plan, err = (&loop{runner: r, context: name}).recorded(ctx, last, former)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return plan, slices.DeleteFunc(records, func(r Record) bool { return r.Tick != last.Tick }), nil
}

// recorded compiles a plan that is in the log, as it was when its tick began; what there
// is of calls' former runs does not count.
func (l *loop) recorded(ctx context.Context, last Run, former map[int64]int64) (*Plan, error) {
	log := l.runner.Log
	registry, err := last.plan.contextTools(ctx, log, l.context, l.runner.Registry)
	if err != nil {
		return nil, err
	}
	calls, err := planMessage(ctx, log, l.context, last.plan.Seq)
	if err != nil {
		return nil, err
	}
	request := &Request{Name: last.Plan}
	for _, call := range calls {
		request.Calls = append(request.Calls, Source{Call: call})
	}
	request.HasOutput = last.plan.Output != nil
	var wrong [3]error
	request.Tools, wrong[0] = last.plan.tools()
	request.Schema, wrong[1] = decode(last.plan.Schema)
	request.Output, wrong[2] = decode(last.plan.Output)
	if err := errors.Join(wrong[:]...); err != nil {
		return nil, err
	}
	there := exists(ctx, store.Resolver{Log: without(log, former, math.MaxInt64), Context: l.context, At: last.plan.Start})
	if last.plan.Start == 0 {
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
	if record.Status == Running && call.delegate == nil { // the process died meanwhile
		record.Attempts++
	}
	cut := record.Status == Running || record.Status == Cancelled
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
	case twice, cut && call.activity != nil && call.activity.NotIdempotent:
		c.record = record
		c.record.Status = InDoubt
		t.note(i)
	default:
		c.record.Attempts, c.record.Child, c.record.Hold, c.record.Retry = record.Attempts, record.Child, record.Hold, record.Retry
		c.record.Before, c.record.Again = record.Before, record.Again
		c.was = record.Status
		if cut || record.Child != "" || record.Status == Blocked {
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

// decide applies a person's decisions to calls of the tick.
func (t *tick) decide(ctx context.Context, s Resume) error {
	if s.From != "" {
		if err := t.again(ctx, s.From, s.Set); err != nil {
			return err
		}
	}
	revived, first := make([]bool, len(t.calls)), []int(nil)
	for _, name := range s.Retry {
		i, err := t.decidable(name)
		if err != nil {
			return err
		}
		twice, err := t.restart(ctx, &t.calls[i].record)
		switch {
		case err != nil:
			return err
		case twice:
			t.note(i)
		default:
			t.revive(i)
			revived[i], first = true, append(first, i)
		}
	}
	if len(s.Retry) > 0 {
		behind, err := t.downstream(ctx, first...)
		if err != nil {
			return err
		}
		for _, i := range behind { // what has run without them, by another alternative perhaps
			if !revived[i] && t.calls[i].record.Status == Done {
				t.outdated = append(t.outdated, t.calls[i].record.Call)
			}
		}
		t.reviveBehind(revived)
		if err := t.hideFormer(ctx); err != nil {
			return err
		}
	}
	for _, name := range s.Skip {
		i, err := t.decidable(name)
		if err != nil {
			return err
		}
		c := &t.calls[i]
		c.record.Status, c.record.Reason = Skipped, skippedByPerson
		t.note(i)
	}
	return nil
}

func (t *tick) decidable(name string) (int, error) {
	i, ok := callAt(t.event.Tick, name)
	if !ok || i >= len(t.calls) {
		return 0, &NoSuchCallError{Message: fmt.Sprintf("no call %q in the last tick%s", name, t.span()), Absent: true}
	}
	status := t.calls[i].record.Status
	if status != Failed && status != InDoubt {
		status = cmp.Or(t.calls[i].was, status)
		return 0, &NoSuchCallError{Message: fmt.Sprintf("call %s is %s: only one that failed or is in doubt can be retried or skipped", name, status)}
	}
	return i, nil
}

// span names the calls that there are.
func (t *tick) span() string {
	if len(t.calls) == 0 {
		return ", which has none"
	}
	return fmt.Sprintf(": its calls are %s to %s", callID(t.event.Tick, 1), callID(t.event.Tick, len(t.calls)))
}

// skippedByPerson is the reason of a call that a person goes on without.
const skippedByPerson = "skipped by a person"

// revive makes a call run again, and what was skipped behind it be looked at
// again. One that was in doubt, or whose delegate goes on, does so with what it
// began with: what it read, and what a person approved.
func (t *tick) revive(i int) {
	c := &t.calls[i]
	was := c.record
	c.record, c.reported = t.fresh(i), false
	c.record.Attempts, c.record.Child, c.record.Retry = was.Attempts, was.Child, was.Child != ""
	c.record.Before, c.record.Again = was.Before, was.Again
	if was.Status == Failed {
		c.record.Again = t.view.Seq() // what told of it
	}
	switch {
	case was.Status == InDoubt || was.Child != "":
		c.record.At, c.record.Reads, c.record.Hold = was.At, was.Reads, was.Hold
	case was.Before != 0 && was.Hold != nil && was.Hold.Corrected != nil && !t.event.Approve.holds(t.plan.Calls[i]): // it has not come to effect
		c.record.Reads, c.record.Hold = was.Reads, was.Hold
	}
	t.note(i)
}

// reviveBehind has what was skipped behind calls that run again be looked at again.
func (t *tick) reviveBehind(again []bool) {
	for more := true; more; {
		more = false
		for i, call := range t.plan.Calls {
			r := &t.calls[i].record
			if r.Status == Skipped && r.Reason != skippedByPerson && !again[i] && t.plan.graph.dependsOnAny(i, call.reads, again) {
				t.revive(i)
				again[i], more = true, true
			}
		}
	}
}

// outrun tells whether calls are to run that others have outrun which wait for them, or
// run again: then they are not to see all that is there.
func (t *tick) outrun() bool {
	settled := func(e edge) bool { return t.calls[e.to].record.Status.Settled() }
	for i := range t.calls {
		r := &t.calls[i].record
		if r.Before != 0 || r.Again != 0 || !r.Status.Settled() && slices.ContainsFunc(t.plan.graph.outOf[i], settled) {
			return true
		}
	}
	return false
}
