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

// grace is how long workers that were told to stop are waited for.
const grace = time.Second

// interrupted ends the run early: nothing more starts, what runs may end within
// the time that draining has, and what does not is cut off, to run again when
// the run is resumed.
func (t *tickRun) interrupted() (*journal.Outcome, error) {
	ctx := context.Background()
	if t.isLingering() { // it has halted already
		t.ended = &t.newest
		err := t.awaitBackground(ctx)
		return t.outcomeNow(), err
	}
	t.stopping = true
	end := t.loop.earlyEnd()
	end.Tick, t.loop.interruptedAs = t.event.Tick, end.Status
	drains := t.state.In(sched.Running) > 0
	err := t.commitStep(ctx, func() error {
		// So that killing the process meanwhile does not make it a crash.
		if drains && !end.Stopped {
			appendRunEvent(t.tick, end.Draining())
		}
		t.pauseEnd.stop()
		t.requeuePaused()
		return nil
	})
	if err != nil {
		return nil, err
	}
	if drains {
		t.loop.interruptRecorded()
	}
	if err := t.loop.drain(ctx, t); err != nil {
		return nil, err
	}
	err = t.commitStep(ctx, func() error {
		appendRunEvent(t.tick, end)
		return nil
	})
	t.loop.interruptRecorded()
	return &journal.Outcome{Context: t.context, Status: end.Status, Stopped: end.Stopped, Calls: t.all()}, err
}

// interruptRecorded calls Interrupted: the log has the interruption.
func (l *loop) interruptRecorded() {
	if l.runner.Interrupted != nil {
		l.runner.Interrupted()
	}
}

// cut ends a run that was interrupted while its planner was asked. Nothing of
// the new tick is recorded; if it is the first, nothing at all.
func (l *loop) cut() (*journal.Outcome, error) {
	end := l.earlyEnd()
	if !l.begun {
		return &journal.Outcome{Status: end.Status}, nil
	}
	ctx := context.Background()
	end.Tick, end.Over, end.Model, l.interruptedAs = l.tick, true, l.planUsage, end.Status
	var err error
	if l.hasBackground() {
		if !end.Stopped { // as when a tick is interrupted
			err = l.recordEnd(ctx, end.Draining())
			end.Model = nil // it is counted once
		}
		if err == nil {
			l.interruptRecorded()
			err = l.drain(ctx, nil)
		}
	}
	if err == nil {
		err = l.recordEnd(ctx, end)
	}
	l.interruptRecorded()
	return &journal.Outcome{Context: l.context, Status: end.Status, Stopped: end.Stopped}, err
}

func (l *loop) recordEnd(ctx context.Context, end journal.RunEvent) error {
	c := journal.In(l.runner.Log, l.context)
	return journal.Amend(ctx, c, func(n int64) error {
		standing, err := journal.ReadStanding(ctx, c)
		if err != nil {
			return err
		}
		if standing.Status = string(end.Status); l.current != nil {
			l.current.newest = end
		}
		journal.Schedule(&standing, l.opened, end.Stopped, l.hasDetached(), time.Time{})
		if end.Drains {
			standing.Due = l.opened
		}
		return l.append(ctx, store.Batch{ExpectSeq: store.AnySeq, ExpectN: n, Journal: []store.Entry{end.Entry()}, Standing: &standing}, lease.For)
	})
}

// earlyEnd returns the end of a run whose context is done before it ended: cancelled by
// [ErrCancelled], else interrupted, and stopped by [ErrStopped]. Only the run at the top has the
// author of a cancellation.
func (l *loop) earlyEnd() journal.RunEvent {
	cause := context.Cause(l.interrupt)
	if !errors.Is(cause, ErrCancelled) {
		return journal.RunEvent{Status: journal.RunInterrupted, Stopped: errors.Is(cause, ErrStopped)}
	}
	end := journal.RunEvent{Status: journal.RunCancelled}
	if by, ok := errors.AsType[*CancelledError](cause); ok && l.runner.depth == 0 {
		end.Who = by.Who
	}
	return end
}

// drain waits until no call of a tick and of those before it is at work, for as long as the runner
// allows, and then cuts off those that are left. Until then each outcome is recorded as it comes.
func (l *loop) drain(ctx context.Context, last *tickRun) error {
	ticks := l.detachedTicks
	if last != nil && !slices.Contains(ticks, last) {
		ticks = append(slices.Clone(ticks), last)
	}
	limit := l.runner.Drain
	if limit == 0 {
		limit = DefaultDrain
	}
	deadline := time.Now().Add(limit)
	for _, t := range ticks {
		if err := l.collect(ctx, time.Until(deadline), t.isAtWork); err != nil {
			return err
		}
	}
	if err := l.collect(ctx, time.Until(deadline), func() bool { return l.delegatesLeft.Load() > 0 }); err != nil {
		return err
	}
	return l.stopAll(ctx, ticks)
}

// stopAll stops the calls that are left, and records together those that end within the grace: they
// end at once, and their order would be random.
func (l *loop) stopAll(ctx context.Context, ticks []*tickRun) error {
	l.stop()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	n, ended := 0, map[*tickRun][]*result{}
	for _, t := range ticks {
		n += t.state.In(sched.Running)
	}
	for ; n > 0; n-- {
		res := l.next(ctx, timer.C)
		if res == nil {
			break
		}
		if res.retryDue || res.tick.undone(res) {
			res.drop()
			n++ // it is not of those that are left
			continue
		}
		l.holdRelease(res)
		ended[res.tick] = append(append(ended[res.tick], res), res.others...)
		n -= len(res.others)
	}
	for _, t := range ticks {
		results := ended[t]
		slices.SortFunc(results, func(a, b *result) int { return a.index - b.index })
		if err := t.commitStep(ctx, func() error { return t.receive(ctx, results) }); err != nil {
			return err
		}
		if err := t.cutOffAll(ctx); err != nil {
			return err
		}
	}
	return nil
}

// dropResults waits for workers that were told to stop, so that none outlives the
// run.
func (l *loop) dropResults() {
	if !l.hasWorkers.Load() {
		return
	}
	ended := make(chan struct{})
	go func() {
		l.workers.Wait()
		close(ended)
	}()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}

// collect settles calls as long as any that are waited for are left, until the limit has passed.
func (l *loop) collect(ctx context.Context, limit time.Duration, left func() bool) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for left() {
		res := l.next(ctx, timer.C)
		if res == nil {
			return nil
		}
		if _, err := l.drainResults(ctx, nil, res); err != nil {
			return err
		}
	}
	return nil
}

// isAtWork reports whether calls of the tick are at work.
func (t *tickRun) isAtWork() bool { return t.state.In(sched.Running) > 0 }

// cutOffAll records that the calls that are left were stopped.
func (t *tickRun) cutOffAll(ctx context.Context) error {
	return t.commitStep(ctx, func() error {
		for i := range t.state.Calls {
			if t.state.Calls[i].Phase == sched.Running {
				attempts := 1
				if t.plan.Calls[i].Delegate != nil {
					attempts = 0 // counted when it began
				}
				t.cutOff(i, attempts)
			}
		}
		return nil
	})
}

// cutOff records that a call was stopped. A background call that the end of the host stops is left
// as it is in the log, as by a crash.
func (t *tick) cutOff(i, attempts int) {
	c := t.state.Change(i)
	if c.Record.Unstored && t.loop.endsWithHost() {
		return
	}
	c.Record.Attempts += attempts
	c.Record.Duration = t.since(c)
	status, isCancelled := journal.Interrupted, t.loop.interruptedAs == journal.RunCancelled
	switch {
	case isCancelled && c.Record.Unstored: // nothing of it is left
		status = journal.Cancelled
	case c.Record.NotIdempotent:
		status = journal.InDoubt
	case isCancelled:
		status = journal.Cancelled
	}
	t.record(c, sched.Event{Kind: sched.Cut, Status: status})
}

// requeue records that a call that was to start has not begun: it is next when the run is resumed,
// and needs no decision.
func (t *tick) requeue(i int) {
	t.record(t.state.Change(i), sched.Event{Kind: sched.Returned})
}

// requeuePaused leaves calls that pause between attempts to the next resume.
func (t *tick) requeuePaused() {
	for i := range t.state.Calls {
		if t.state.Calls[i].AwaitsRetry() {
			t.requeue(i)
		}
	}
}
