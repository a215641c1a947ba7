package supervise

import (
	"context"
	"sync/atomic"
	"time"

	"obelus/engine"
)

// gate bounds how many runs there are at once, and how many wait for their turn.
type gate struct {
	places  chan struct{}
	queue   int64
	waiting atomic.Int64
}

func newGate(places, queue int) *gate {
	return &gate{places: make(chan struct{}, places), queue: int64(queue)}
}

// enter waits for a place. It returns an error if too many wait already, unless patient.
func (g *gate) enter(ctx context.Context, patient bool) error {
	select {
	case g.places <- struct{}{}:
		return nil
	default:
	}
	if n := g.waiting.Add(1); n > g.queue && !patient {
		g.waiting.Add(-1)
		return ErrFull
	}
	defer g.waiting.Add(-1)
	select {
	case g.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gate) leave() { <-g.places }

// admit waits for a run's turn, and registers it.
func (s *Supervisor) admit(ctx, limited context.Context, run *Run) error {
	if err := s.enqueue(run); err != nil {
		return err
	}
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(limited, stop)()
	if err := s.gate.enter(waiting, run.unattended); err != nil {
		return err
	}
	s.log.releaseLease(s.running, run.context)
	run.began, run.generation = time.Now(), s.config.Host.Generation().Number
	err := s.register(waiting, run)
	if err != nil {
		s.gate.leave()
	}
	return err
}

// enqueue records that a run waits for its turn.
func (s *Supervisor) enqueue(run *Run) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
	run.number = s.number
	if s.draining {
		s.move(run, Stopped)
		return ErrStopping
	}
	s.queued[run] = true
	return nil
}

// register makes a run the active one of its context. It is an error if there is one already.
func (s *Supervisor) register(ctx context.Context, run *Run) error {
	for {
		before, err := s.tryRegister(run)
		if before == nil {
			return err
		}
		if err := s.waitForEnd(ctx, before); err != nil {
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

// waitForEnd waits for a run that is almost over: a client that follows its context may see its end
// before it is unregistered here. It is an error if the run still holds its context.
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
