package engine

import (
	"context"
	"errors"

	"obelus/engine/internal/crash"
	"obelus/engine/internal/lease"
	"obelus/engine/internal/sched"
	"obelus/store"
)

// pendingCommit is a step that is being written while the next one is made. The launches and
// notifications of that one wait until it is in the log itself, and if the pending commit fails
// both are undone. Calls without visible effects begin at once: they may run in vain.
type pendingCommit struct {
	made
	tick     *tickRun
	changed  sched.Undo // its changes of calls
	results  int        // that it has of those that were taken
	done     chan struct{}
	appended store.Appended
	err      error
}

// canPipeline reports whether results may come while the step is written, and the loop needs
// nothing else meanwhile: polling the log, or detached calls of earlier ticks, would drop or append
// staged messages. A single call is better speculated on within the step.
func (t *tickRun) canPipeline() bool {
	switch {
	case len(t.entries)+len(t.view.Staged()) == 0, t.loop.isInterrupted():
		return false
	case t.state.AwaitsOutside(), t.loop.halted, t.loop.hasDetached():
		return false
	}
	others := t.state.Running()
	for _, s := range t.starts {
		if s.speculative == nil && !t.state.Calls[s.index].Record.Unstored {
			others--
		}
	}
	return others > 1
}

// commitPipelined writes the step and makes the next one meanwhile, with the results that come.
// After a conflicting append the two are undone, and made again as one that is not pipelined:
// constant foreign appends would otherwise have calls begin in vain all the time.
func (t *tickRun) commitPipelined(ctx context.Context, results []*result) (next []*result, committed bool, err error) {
	p, err := t.startCommit(ctx)
	if err != nil {
		return nil, false, err
	}
	defer func() { <-p.done }() // it does not outlive its run
	more, err := p.makeNext(ctx)
	if err != nil {
		return nil, false, err
	}
	err = t.loop.lease.Appended(p.appended, p.err, lease.For)
	switch _, conflict := errors.AsType[*store.ConflictError](err); {
	case conflict:
		both := append(results, more...)
		return both, false, t.remake(ctx, func() error { return t.apply(ctx, both) })
	case err != nil:
		return nil, false, err
	}
	t.loop.releaseFirst(p.results)
	unbegun := p.finish()
	return append(more, unbegun...), true, t.receive(ctx, unbegun)
}

// startCommit has the step written, and begins the next one.
func (t *tickRun) startCommit(ctx context.Context) (*pendingCommit, error) {
	b := t.batch()
	if err := t.loop.lease.Address(&b, lease.For); err != nil {
		return nil, err
	}
	t.launchPure()
	p := &pendingCommit{tick: t, made: t.made, changed: t.state.KeepUndo(), results: len(t.loop.releases), done: make(chan struct{}), err: errGoroutineEnded}
	t.pending, t.made = p, made{}
	t.save()
	go func() {
		defer close(p.done)
		defer func() {
			if panicked := recover(); panicked != nil {
				p.err = &brokenStep{crash.WithPlace(panicked)}
			}
		}()
		p.appended, p.err = t.runner.Log.Append(ctx, b)
	}()
	return p, nil
}

// makeNext makes the next step with the results that come until this one has been written.
func (p *pendingCommit) makeNext(ctx context.Context) (results []*result, err error) {
	t := p.tick
	for {
		select {
		case <-p.done: // also where a result has come too: chance decides nothing
			return results, nil
		default:
		}
		select {
		case <-p.done:
			return results, nil
		case res := <-t.loop.results:
			more, err := t.loop.drainResults(ctx, t, res)
			if err == nil {
				err = t.apply(ctx, more)
			}
			if err != nil {
				return nil, err
			}
			t.launchPure()
			results = append(results, more...)
		}
	}
}

// launchPure launches the calls of the step that have no visible effect.
func (t *tickRun) launchPure() {
	var pure []start
	others := t.starts[:0]
	for _, s := range t.starts {
		if s.speculative != nil {
			pure = append(pure, s)
		} else {
			others = append(others, s)
		}
	}
	t.starts = others
	t.loop.launch(t.tasksOf(pure))
}

// finish does the work that waited for the step to be in the log. It returns those of its calls
// that have not begun, since the run was stopped meanwhile.
func (p *pendingCommit) finish() (unbegun []*result) {
	t := p.tick
	t.pending = nil
	t.appended()
	t.notifyObservers(&p.made)
	tasks, unbegun := t.committed(&p.made)
	t.loop.launch(tasks)
	return unbegun
}
