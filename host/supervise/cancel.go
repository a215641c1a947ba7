package supervise

import (
	"context"
	"errors"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/store"
)

// Cancel cancels the runs of a context: those that wait for their turn, the one at work, whose
// calls may end within the time of the setting drain, or else the one that has halted. It returns a
// run whose end is to be waited for. Its error is a [*journal.NoSuchCallError] or
// [store.ErrNoContext] if there is nothing to cancel, an [*engine.BusyError] if another process
// runs the context, and a [*PendingError] if it is recorded later.
func (s *Supervisor) Cancel(ctx context.Context, name string, who journal.Who) (*Run, error) {
	run, late, withdrawn := s.runs.cancel(name, who)
	if run != nil {
		select {
		case <-run.recorded:
		case <-run.ended:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if late || !run.isRecorded() {
			<-run.ended
		}
		if run.isRecorded() && !(late && run.State().goesOn()) {
			return run, nil
		}
		// The log has nothing of it, or it has halted. If it was to go on by itself,
		// another process may have completed the run.
		withdrawn = withdrawn || !run.unattended
	}
	err := s.orphans.cancel(ctx, name, who)
	if err != nil && !(withdrawn && isNothingToCancel(err)) {
		return nil, err
	}
	run = cancelledRun(name)
	outcome, unread := engine.ReadOutcome(ctx, s.log, name)
	onlyBackground := err == nil && unread == nil && outcome.Status != "" && outcome.Status.Finished()
	if onlyBackground { // was left to be cancelled
		run.outcome = outcome
	}
	return run, nil
}

// cancelledRun returns an ended run for one that was cancelled after it had halted.
func cancelledRun(name string) *Run {
	run := &Run{context: name, recorded: make(chan struct{}), concluded: make(chan struct{}), ended: make(chan struct{}), outcome: cancelledOutcome(name)}
	run.state.Store(uint32(Ended))
	run.close()
	return run
}

// isNothingToCancel reports whether there was no run to cancel.
func isNothingToCancel(err error) bool {
	return errors.Is(err, store.ErrNoContext) || errors.As(err, new(*journal.NoSuchCallError))
}

// cancelledOutcome is the outcome of a run that was cancelled before it went on.
func cancelledOutcome(name string) *journal.Outcome {
	return &journal.Outcome{Context: name, Status: journal.RunCancelled, Error: engine.ErrCancelled.Error()}
}
