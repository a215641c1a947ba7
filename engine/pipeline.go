package engine

import (
	"context"
	"errors"

	"obelus/engine/internal/crash"
	"obelus/store"
)

// flight is a step that is being written while the next one is made. What that one has to
// launch or to tell waits until it is in the log itself, and if the flight comes to nothing
// both are undone. But what nobody can see begins at once: it may be in vain.
type flight struct {
	made
	results  int // that it has of those that were taken
	landed   chan struct{}
	appended store.Appended
	err      error
}

// overlaps tells whether results are to come while the step is written, and nothing else
// is to be seen to meanwhile: a look at the log, or what earlier ticks have left behind, would
// drop or append what is staged. One call alone had better run ahead within the step.
func (t *tick) overlaps(run context.Context) bool {
	switch {
	case len(t.entries)+len(t.view.Staged()) == 0, run.Err() != nil, t.runner.script.Recorded():
		return false
	case t.looks(), t.loop.halted, t.loop.leavesBehind():
		return false
	}
	others := t.running
	for _, s := range t.starts {
		if s.ahead == nil && !t.calls[s.index].record.Unstored {
			others--
		}
	}
	return others > 1
}

// fly writes the step, and meanwhile makes the next one, with the results that it gives.
// Where somebody else has appended the two are undone, and made again as one: that is not to
// fly, or who appends all the time would have calls begin in vain all the time.
func (t *tick) fly(ctx, run context.Context, results []*result) (next []*result, landed bool, err error) {
	f, err := t.depart(ctx, run)
	if err != nil {
		return nil, false, err
	}
	defer func() { <-f.landed }() // it does not outlive its run
	more, err := t.meanwhile(ctx, run, f)
	if err != nil {
		return nil, false, err
	}
	err = t.loop.appended(f.appended, f.err, leaseFor, f.results)
	switch _, conflict := errors.AsType[*store.ConflictError](err); {
	case conflict:
		both := append(results, more...)
		return both, false, t.remake(ctx, func() error { return t.move(ctx, run, both) })
	case err != nil:
		return nil, false, err
	}
	unbegun := t.land(run, f)
	return append(more, unbegun...), true, t.receive(ctx, unbegun)
}

// depart has the step written, and begins the next one.
func (t *tick) depart(ctx, run context.Context) (*flight, error) {
	b := t.batch()
	if err := t.loop.address(&b, leaseFor); err != nil {
		return nil, err
	}
	t.launchUnseen(run)
	f := &flight{made: t.made, results: len(t.loop.releases), landed: make(chan struct{}), err: &brokenStep{}}
	t.flight, t.made, t.spare = f, t.spare, made{}
	t.save()
	go func() {
		defer close(f.landed)
		defer func() {
			if p := recover(); p != nil {
				f.err = &brokenStep{crash.WithPlace(p)}
			}
		}()
		f.appended, f.err = t.runner.Log.Append(ctx, b)
	}()
	return f, nil
}

// meanwhile makes a step with what comes until another one has been written.
func (t *tick) meanwhile(ctx, run context.Context, f *flight) (results []*result, err error) {
	for {
		select {
		case <-f.landed:
			return results, nil
		case res := <-t.loop.results:
			more, err := t.loop.come(ctx, t, res)
			if err == nil {
				err = t.move(ctx, run, more)
			}
			if err != nil {
				return nil, err
			}
			t.launchUnseen(run)
			results = append(results, more...)
		}
	}
}

// launchUnseen launches the calls of the step that nobody can see.
func (t *tick) launchUnseen(run context.Context) {
	var unseen []start
	others := t.starts[:0]
	for _, s := range t.starts {
		if s.ahead != nil {
			unseen = append(unseen, s)
		} else {
			others = append(others, s)
		}
	}
	t.starts = others
	t.loop.launch(t.jobs(run, unseen))
}

// land does what waited for a step to be in the log. It gives those of its calls that have
// not begun, since the run was stopped meanwhile.
func (t *tick) land(run context.Context, f *flight) (unbegun []*result) {
	t.flight = nil
	t.appended()
	t.watched(&f.made)
	jobs, unbegun := t.committed(run, &f.made)
	t.loop.launch(jobs)
	t.spare = made{entries: f.entries, places: f.places, noted: f.noted, saved: undo{calls: f.saved.calls}}
	return unbegun
}
