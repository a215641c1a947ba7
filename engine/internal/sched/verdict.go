package sched

import (
	"fmt"

	"obelus/engine/journal"
)

// Verdict is how a tick ends as far as its calls tell: waiting, failed, or done.
func (s *State) Verdict() journal.RunStatus {
	status := journal.RunDone
	for i := range s.Calls {
		switch r := &s.Calls[i].Record; {
		case r.Blamed():
			status = journal.RunFailed
		case !r.Status.Settled() && !(r.Unstored && r.Status == journal.Running):
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

// Ending holds the facts by which a run goes on or ends after a tick whose calls have all settled.
type Ending struct {
	Asks     bool  // its planner is to be asked until it gives an output, and has given none
	Repeated bool  // the planner gave the solution once more that had just been refused
	Asked    int   // how often the planner has been asked in this run
	Limit    int   // how often it may be
	Problem  error // why its plan was refused or there is no output; may be nil
}

// Decide returns the status of the run, where its calls tell one status so far, and the error that
// it ends with. exhausted reports that the planner may not be asked again.
func (e Ending) Decide(status journal.RunStatus) (_ journal.RunStatus, problem error, exhausted bool) {
	switch {
	case e.Asks && e.Repeated:
		return journal.RunFailed, fmt.Errorf("the planner gave the same solution again after it had been refused: %w", e.Problem), false
	case e.Asks && e.Asked < e.Limit:
		return journal.RunContinued, nil, false
	case e.Asks:
		bound := fmt.Errorf("the planner has been asked %d times without giving an output: the setting ticks allows no more", e.Limit)
		if e.Problem != nil {
			bound = fmt.Errorf("%w; the last time: %s", bound, e.Problem)
		}
		return journal.RunFailed, bound, true
	case e.Problem != nil:
		return journal.RunFailed, e.Problem, false
	}
	return status, nil, false
}
