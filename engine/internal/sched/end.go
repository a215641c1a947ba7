package sched

import (
	"fmt"

	"obelus/engine/journal"
)

// RunStatus returns the status of the run as far as the calls tell: waiting, failed, or done.
func (s *State) RunStatus() journal.RunStatus {
	status := journal.RunDone
	for i := range s.Calls {
		switch r := &s.Calls[i].Record; {
		case r.Blamed():
			status = journal.RunFailed
		case !r.Status.Settled() && !r.InBackground():
			return journal.RunWaiting
		}
	}
	return status
}

// Unreported returns the calls, in the order of the plan, whose failures the plan does not handle
// and no error message has reported yet.
func (s *State) Unreported() (failed []*journal.Record) {
	for i := range s.Calls {
		if r := &s.Calls[i].Record; r.Blamed() && !s.Calls[i].Reported {
			failed = append(failed, r)
		}
	}
	return failed
}

// DecideEnd returns the status of the run after a tick whose calls have all settled, and the error
// that it ends with; exhausted reports that only the limit ends it. status is the calls' status
// ([State.RunStatus]), and problem, which may be nil, is why the plan was refused or there is no
// output. limit is how often the planner may be asked in the run, 0 if it is not to be asked again;
// asked is how often it has been. If repeated is set, it gave the solution once more that had just
// been refused.
func DecideEnd(status journal.RunStatus, problem error, limit, asked int, repeated bool) (_ journal.RunStatus, err error, exhausted bool) {
	switch {
	case limit > 0 && repeated:
		return journal.RunFailed, fmt.Errorf("the planner gave the same solution again after it had been refused: %w", problem), false
	case asked < limit:
		return journal.RunContinued, nil, false
	case limit > 0:
		bound := fmt.Errorf("the planner has been asked %d times without giving an output: the setting ticks allows no more", limit)
		if problem != nil {
			bound = fmt.Errorf("%w; the last time: %s", bound, problem)
		}
		return journal.RunFailed, bound, true
	case problem != nil:
		return journal.RunFailed, problem, false
	}
	return status, nil, false
}
