package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"obelus/engine/journal"
	"obelus/store"
)

// grace is how long workers that were told to stop are waited for.
const grace = time.Second

// interrupted ends the run early: nothing more starts, what runs may end within
// the time that draining has, and what does not is cut off, to run again when
// the run is resumed.
func (t *tick) interrupted(run context.Context) (*journal.Outcome, error) {
	ctx := context.Background()
	t.stopping = true
	end := t.loop.earlyEnd(run)
	end.Tick, t.loop.cutAs = t.event.Tick, end.Status
	drains := t.running+t.detached > 0
	err := t.record(ctx, func() error {
		if drains && !end.Stopped { // who kills the process meanwhile can't make a crash of it
			t.journal(store.Entry{Event: journal.EventRun, Data: string(store.EncodeJSON(end.Draining()))})
		}
		return t.putBackResting()
	})
	if err != nil {
		return nil, err
	}
	if drains {
		t.loop.interruptRecorded()
	}
	if err := t.loop.drain(ctx, t, func(t *tick) int { return t.running + t.detached }); err != nil {
		return nil, err
	}
	err = t.record(ctx, func() error {
		t.journal(store.Entry{Event: journal.EventRun, Data: string(store.EncodeJSON(end))})
		return nil
	})
	t.loop.interruptRecorded()
	return &journal.Outcome{Context: t.context, Status: end.Status, Stopped: end.Stopped, Calls: t.all()}, err
}

// interruptRecorded tells that the log has that the run was interrupted.
func (l *loop) interruptRecorded() {
	if l.runner.Interrupted != nil {
		l.runner.Interrupted()
	}
}

// cut ends a run that was interrupted while its planner was asked. Nothing of
// the new tick is recorded; if it is the first, nothing at all.
func (l *loop) cut(run context.Context) (*journal.Outcome, error) {
	end := l.earlyEnd(run)
	if !l.begun {
		return &journal.Outcome{Status: end.Status}, nil
	}
	ctx := context.Background()
	end.Tick, end.Over, l.cutAs = l.tick, true, end.Status
	var err error
	if l.leavesBehind() {
		if !end.Stopped { // as when a tick is interrupted
			err = l.recordEnd(ctx, end.Draining())
		}
		if err == nil {
			l.interruptRecorded()
			err = l.drain(ctx, nil, (*tick).loosely)
		}
	}
	if err == nil {
		err = l.recordEnd(ctx, end)
	}
	l.interruptRecorded()
	return &journal.Outcome{Context: l.context, Status: end.Status, Stopped: end.Stopped}, err
}

func (l *loop) recordEnd(ctx context.Context, end journal.RunEvent) error {
	return l.append(ctx, store.Batch{ExpectSeq: store.AnySeq, Journal: []store.Entry{{Event: journal.EventRun, Data: string(store.EncodeJSON(end))}}}, leaseFor)
}

// earlyEnd tells how a run ends whose context is done before it came to its end: cancelled by
// [ErrCancelled], else interrupted, and stopped by [ErrStopped]. Who has cancelled it is told of
// the run at the top alone.
func (l *loop) earlyEnd(run context.Context) journal.RunEvent {
	cause := context.Cause(run)
	if !errors.Is(cause, ErrCancelled) {
		return journal.RunEvent{Status: journal.RunInterrupted, Stopped: errors.Is(cause, ErrStopped)}
	}
	end := journal.RunEvent{Status: journal.RunCancelled}
	if by, ok := errors.AsType[*CancelledError](cause); ok && l.runner.depth == 0 {
		end.Who = by.Who
	}
	return end
}

// drain waits until nothing is left of a tick and of those behind it that left
// counts, for as long as the runner allows, and then cuts it off. Until then each
// outcome is recorded as it comes.
func (l *loop) drain(ctx context.Context, last *tick, left func(*tick) int) error {
	ticks := l.behind
	if last != nil {
		ticks = append(slices.Clone(ticks), last)
	}
	limit := l.runner.Drain
	if limit == 0 {
		limit = DefaultDrain
	}
	deadline := time.Now().Add(limit)
	for _, t := range ticks {
		if err := t.collect(ctx, left, time.Until(deadline)); err != nil {
			return err
		}
	}
	return l.stopAll(ctx, ticks, left)
}

// stopAll tells what is left to stop, and records together what ends within the
// grace: it ends at once, and chance is not to decide in which order.
func (l *loop) stopAll(ctx context.Context, ticks []*tick, left func(*tick) int) error {
	l.stop()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	n, ended := 0, map[*tick][]*result{}
	for _, t := range ticks {
		n += left(t)
	}
	for ; n > 0; n-- {
		res := l.next(ctx, timer.C)
		if res == nil {
			break
		}
		if res.rested || res.tick.undone(res) {
			res.drop()
			n++ // it is not of those that are left
			continue
		}
		l.own(res)
		ended[res.tick] = append(ended[res.tick], res)
	}
	for _, t := range ticks {
		results := ended[t]
		slices.SortFunc(results, func(a, b *result) int { return a.index - b.index })
		if err := t.record(ctx, func() error { return t.receive(ctx, results) }); err != nil {
			return err
		}
		if err := t.cutOffAll(ctx, left); err != nil {
			return err
		}
	}
	return nil
}

// abandon waits for workers that were told to stop, so that none outlives the
// run.
func (l *loop) abandon() {
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

// collect settles calls until none of the tick is left, or the limit has passed.
func (t *tick) collect(ctx context.Context, left func(*tick) int, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for left(t) > 0 {
		t.deliverRecorded(ctx)
		res := t.loop.next(ctx, timer.C)
		if res == nil {
			return nil
		}
		if _, err := t.loop.come(ctx, nil, res); err != nil {
			return err
		}
	}
	return nil
}

// cutOffAll records that what is left was stopped.
func (t *tick) cutOffAll(ctx context.Context, left func(*tick) int) error {
	return t.record(ctx, func() error {
		for i := range t.calls {
			if left(t) > 0 && t.calls[i].record.Status == journal.Running {
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

// cutOff records that a call was stopped.
func (t *tick) cutOff(i, attempts int) {
	c := t.change(i)
	c.record.Attempts += attempts
	c.record.Duration = t.since(c)
	t.free(i)
	if c.record.Unstored {
		t.fail(i, map[string]any{"message": "it was cut off when the run ended", "code": "cut-off"})
		return
	}
	switch {
	case c.record.NotIdempotent:
		c.record.Status = journal.InDoubt
	case t.loop.cutAs == journal.RunCancelled:
		c.record.Status = journal.Cancelled
	default:
		c.record.Status = journal.Interrupted
	}
	t.note(i)
}

// putBack records that a call that was to start has not begun: it has its turn when
// the run is resumed, and nobody need ask whether it may run.
func (t *tick) putBack(i int) {
	t.free(i)
	c := t.change(i)
	if c.again != nil && !c.rested {
		t.resting--
	}
	c.again, c.rested, c.record.Rests, c.record.RetryAt = nil, false, false, ""
	c.record.Status = journal.Blocked
	t.note(i)
	t.queue(i)
}
