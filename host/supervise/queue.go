package supervise

import (
	"context"
	"slices"
	"time"

	"obelus/engine"
)

// admit waits for a run's turn, and registers it.
func (s *Supervisor) admit(ctx, limited context.Context, run *Run) error {
	if err := s.enqueue(run); err != nil {
		return err
	}
	if err := s.waitForTurn(ctx, limited, run); err != nil {
		return err
	}
	s.log.releaseLease(s.running, run.context)
	run.began, run.generation = time.Now(), s.config.Host.Generation().Number
	err := s.register(ctx, limited, run)
	if err != nil {
		s.leaveQueue(run)
	}
	return err
}

// enqueue gives a run a place if one is free, and else puts it in line for one. It is an error if
// too many wait already, unless the run is unattended.
func (s *Supervisor) enqueue(run *Run) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.draining:
		s.move(run, Stopped)
		return ErrStopping
	case s.places < s.config.Runs: // and so the line is empty
		s.places++
	case len(s.line) >= s.config.Queue && !run.unattended:
		return ErrFull
	default:
		run.turn = make(chan struct{})
		s.line = append(s.line, run)
	}
	s.number++
	run.number = s.number
	s.queued[run] = true
	return nil
}

// waitForTurn waits until a run has a place.
func (s *Supervisor) waitForTurn(ctx, limited context.Context, run *Run) error {
	if run.turn == nil {
		return nil
	}
	select {
	case <-run.turn:
		return nil
	case <-ctx.Done():
		s.leaveQueue(run)
		return ctx.Err()
	case <-limited.Done():
		s.leaveQueue(run)
		return limited.Err()
	}
}

// leaveQueue takes a run out of the line or, if it had its turn meanwhile, frees its place.
func (s *Supervisor) leaveQueue(run *Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.line, run); i >= 0 {
		s.line = slices.Delete(s.line, i, i+1)
		return
	}
	s.freePlace()
}

// freePlace gives the place of a run to the first in line. The caller holds the lock.
func (s *Supervisor) freePlace() {
	if len(s.line) == 0 {
		s.places--
		return
	}
	next := s.line[0]
	s.line = slices.Delete(s.line, 0, 1)
	close(next.turn)
}

// register makes a run the active one of its context. It is an error if there is one already.
func (s *Supervisor) register(ctx, limited context.Context, run *Run) error {
	if before, err := s.tryRegister(run); before == nil {
		return err
	}
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(limited, stop)()
	for {
		before, err := s.tryRegister(run)
		if before == nil {
			return err
		}
		if err := s.waitForEnd(waiting, before); err != nil {
			return err
		}
	}
}

// tryRegister registers a run, or returns the run in the way.
func (s *Supervisor) tryRegister(run *Run) (before *Run, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if run.State() != Queued { // it was cancelled, or Shutdown was called
		return nil, context.Canceled
	}
	if before := s.active[run.context]; before != nil {
		return before, nil
	}
	delete(s.woken, run.context) // from now on the run itself looks at the log
	delete(s.queued, run)
	s.active[run.context] = run
	s.move(run, Starting)
	s.runs.Add(1)
	return nil, nil
}

// waitForEnd waits for a run that is almost over: a follower of its context may see its end before
// it is unregistered here. It is an error if the run still holds its context.
func (s *Supervisor) waitForEnd(ctx context.Context, before *Run) error {
	select {
	case <-before.recorded:
	case <-before.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	holder, err := s.log.Holder(ctx, before.context)
	if err != nil {
		return err
	}
	if holder != "" {
		return &engine.BusyError{Context: before.context, Holder: "this process"}
	}
	select {
	case <-before.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
