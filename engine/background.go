package engine

import (
	"context"
	"errors"
	"maps"
	"slices"

	"obelus/engine/internal/crash"
	"obelus/engine/internal/lease"
	"obelus/engine/journal"
	"obelus/store"
)

// A fire-and-forget call settles as it starts, and goes on in the background: no run waits for it,
// though the run keeps its context until it has ended (protocol §5).

// hasDetached reports whether calls of the run are at work in the background.
func (t *tickRun) hasDetached() bool { return t.state.Detached() > 0 || t.loop.hasDetached() }

// hasDetached reports it for the calls of ticks that are over.
func (l *loop) hasDetached() bool {
	return slices.ContainsFunc(l.detachedTicks, func(t *tickRun) bool { return t.state.Detached() > 0 })
}

// hasBackground reports whether calls of the run, or of its delegates, are at work in the
// background.
func (t *tickRun) hasBackground() bool { return t.state.Detached() > 0 || t.loop.hasBackground() }

// hasBackground reports it for the calls of ticks that are over, and for those of delegates.
func (l *loop) hasBackground() bool { return l.hasDetached() || l.delegatesLeft.Load() > 0 }

// countBackground returns the number of calls of the run, and of its delegates, in the background
// that have not ended.
func (t *tickRun) countBackground() int {
	ticks := t.loop.detachedTicks
	if !slices.Contains(ticks, t) {
		ticks = append(slices.Clip(ticks), t)
	}
	n := int(t.loop.delegatesLeft.Load())
	for _, t := range ticks {
		for i := range t.state.Calls {
			if t.state.Calls[i].Record.InBackground() {
				n++
			}
		}
	}
	return n
}

// awaitBackground waits until no call of the run or of its delegates is at work in the background,
// each within its own timeout. Once the run is told to stop, they have as long as the runner
// allows.
func (t *tickRun) awaitBackground(ctx context.Context) error {
	l := t.loop
	for t.hasBackground() {
		res := l.next(l.interrupt, nil)
		if broken := l.broken.Load(); broken != nil {
			panic(*broken)
		}
		if res == nil {
			l.interruptedAs, l.givenUp = l.earlyEnd().Status, !l.endsWithHost()
			if err := t.restand(ctx); err != nil { // before another signal may end the process
				return err
			}
			l.interruptRecorded()
			return l.drain(ctx, t)
		}
		if _, err := l.drainResults(ctx, nil, res); err != nil {
			return err
		}
	}
	return t.restand(ctx)
}

// restand writes the standing of a run that has ended or halted anew, if it has changed.
func (t *tickRun) restand(ctx context.Context) error {
	standing := standingOf(t)
	if t.loop.standing.Status == "" || standing.Equal(t.loop.standing) {
		return nil
	}
	t.loop.standing = standing
	return t.loop.append(ctx, store.Batch{ExpectSeq: store.AnySeq, Standing: &standing}, lease.For)
}

// concluded notifies the runner's Concluded of the outcome of a run whose background calls go on.
func (l *loop) concluded(o *journal.Outcome) {
	if l.runner.Concluded != nil {
		o.First, o.Tick = l.first, l.tick
		l.runner.Concluded(o)
	}
}

// isLingering reports whether the run has halted, and its background calls keep it in this process:
// it goes on here if something comes.
func (t *tickRun) isLingering() bool {
	return t.newest.Status == journal.RunWaiting && t.hasBackground()
}

// linger has a tick that has halted wait on for its background calls.
func (t *tickRun) linger() {
	if t.loop.runner.depth == 0 { // else the parent's call would begin to wait, and be told of no end
		t.loop.concluded(t.outcomeNow())
	}
	t.ended, t.loop.halted = nil, true
}

// runDelegate runs the delegate of the call. Where its run concludes before its background calls
// have ended, the result is sent at once, and the worker goes on with them.
func (j *task) runDelegate(working context.Context) (res result) {
	l := j.tick.loop
	inside, cancel := context.WithCancel(l.interrupt)
	defer cancel()
	cut, stop := context.WithCancel(context.WithoutCancel(working))
	defer stop()
	// Its run is over before the runs inside it.
	defer context.AfterFunc(working, func() { cancel(); stop() })()
	j.child.runner.cut = cut
	left := int32(0) // calls in the background of a delegate that has given its result
	j.child.runner.Concluded = func(o *journal.Outcome) {
		early := j.child.result(inside, o)
		early.tick, early.index, early.step = j.tick, j.index, j.step
		left = int32(o.Background)
		l.delegatesLeft.Add(left)
		l.send(&early)
	}
	defer func() {
		if left == 0 {
			return
		}
		if panicked := recover(); panicked != nil {
			broken := any(crash.WithPlace(panicked))
			l.broken.Store(&broken)
		}
		l.delegatesLeft.Add(-left)
		res = result{index: j.index, retryDue: true} // the loop looks whether others are left
	}()
	res = j.child.start(inside)
	res.index = j.index
	return res
}

// revive restores the ticks of a run that are over except for background calls which their process
// has left, applies decisions about these, and starts them again. The last tick is among them, and
// is returned, if all of the run is over.
func (l *loop) revive(ctx context.Context, s Resume, last journal.Run, isOver, inherited bool, records []journal.Record) (over *tickRun, err error) {
	plans, err := journal.In(l.runner.Log, l.context).Plans(ctx, last.Event.First)
	if err != nil {
		return nil, err
	}
	for _, event := range plans {
		isLeft := slices.ContainsFunc(records, func(r journal.Record) bool { return r.Tick == event.Tick && r.InBackground() })
		isLast := event.Tick == last.Tick
		if isLast {
			isLeft = isOver // the other calls of a run that is over stand there too
		}
		if !isLeft {
			continue
		}
		run := last
		run.Event, run.Tick = event, event.Tick
		t, err := l.restoreTick(ctx, run, inherited, records)
		if err != nil {
			return nil, err
		}
		t.over, t.newest = true, journal.RunEvent{Tick: last.Tick, Status: last.Status, Error: last.Error}
		if isLast {
			over, l.current = t, t
		}
		if mine := s.only(t.hasCall); mine.decides() {
			if err := (&amendment{t, inherited}).decide(ctx, mine); err != nil {
				return nil, err
			}
		}
		t.state.Restore()
		l.detachedTicks = append(l.detachedTicks, t)
	}
	for _, t := range l.detachedTicks {
		tasks, err := t.step(context.WithoutCancel(ctx), t.givenResults, false)
		if err != nil {
			return nil, err
		}
		l.launch(tasks)
	}
	return over, nil
}

// only returns the resumption with those decisions that are about picked calls.
func (s Resume) only(picks func(call string) bool) Resume {
	not := func(call string) bool { return !picks(call) }
	s.Retry = slices.DeleteFunc(slices.Clone(s.Retry), not)
	s.Skip = slices.DeleteFunc(slices.Clone(s.Skip), not)
	s.Result = maps.Clone(s.Result)
	maps.DeleteFunc(s.Result, func(call string, _ any) bool { return not(call) })
	if s.From != "" && !picks(s.From) {
		s.From, s.Set = "", nil
	}
	return s
}

// isOfDetachedTick reports whether a call is one of a tick that is over.
func (l *loop) isOfDetachedTick(call string) bool {
	return slices.ContainsFunc(l.detachedTicks, func(t *tickRun) bool { return t.hasCall(call) })
}

// hasCall reports whether a call, such as "1.2", is one of the tick.
func (t *tickRun) hasCall(call string) bool {
	_, ok := journal.IndexInTick(t.event.Tick, call)
	return ok
}

// isAboutBackground reports whether the resumption decides about background calls alone.
func (s Resume) isAboutBackground(records []journal.Record) bool {
	isOther := func(call string) bool {
		return !slices.ContainsFunc(records, func(r journal.Record) bool { return r.Call == call && r.InBackground() })
	}
	others := s.only(isOther)
	return s.decides() && !others.decides()
}

// goOnInBackground starts the background calls again that a run which has ended has left, and waits
// for them. The context's lease is taken.
func (l *loop) goOnInBackground(ctx context.Context, s Resume, last journal.Run) (*journal.Outcome, error) {
	c := journal.In(l.runner.Log, l.context)
	records, timeline, err := c.RecordsAndTimeline(ctx, last.Event.First)
	if err != nil {
		return nil, err
	}
	l.timeline = timeline
	inherited, err := last.IsInherited(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := l.countSpent(ctx, last.Event.First); err != nil {
		return nil, err
	}
	t, err := l.revive(ctx, s, last, true, inherited, records)
	if err != nil {
		return nil, err
	}
	if s.Begun != nil {
		s.Begun()
	}
	l.concluded(last.Outcome(l.context, slices.Clone(records)))
	recording := context.WithoutCancel(ctx)
	if err := t.awaitBackground(recording); err != nil {
		return nil, err
	}
	if records, err = c.Records(recording); err != nil {
		return nil, err
	}
	outcome := last.Outcome(l.context, records)
	outcome.First = l.first
	return outcome, nil
}

// endsWithHost reports whether the run is told to stop since its host stops: what is cut off then
// is left as a crash leaves it, so that a server goes on with it.
func (l *loop) endsWithHost() bool { return errors.Is(context.Cause(l.interrupt), ErrStopped) }

// delegatesInBackground returns the contexts of the delegates of a context, at any depth, whose
// runs have ended but for calls in the background.
func delegatesInBackground(ctx context.Context, log store.Reader, name string) (left []string, err error) {
	seen := map[string]bool{name: true} // an edited log may have contexts around themselves
	for under := []string{name}; len(under) > 0; under = under[1:] {
		for info, err := range log.Contexts(ctx, store.ContextFilter{Parent: under[0]}) {
			if err != nil {
				return nil, err
			}
			if seen[info.Context] {
				continue
			}
			seen[info.Context] = true
			under = append(under, info.Context)
			if info.Standing.Background > 0 && journal.RunStatus(info.Standing.Status).Finished() {
				left = append(left, info.Context)
			}
		}
	}
	return left, nil
}
