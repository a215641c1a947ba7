package journal

import (
	"context"
	"time"

	"obelus/store"
)

// A decision belongs to the context in which it was made (protocol §7, Approval): a fork has the
// journal of its origin, and takes from it only what has settled.

// forkedAt returns the position in the journal at which the context was forked: what was decided up
// to there was decided in its origin. It is 0 for a context that is no fork.
func (c Context) forkedAt(ctx context.Context) (int64, error) {
	made, _, err := store.Newest(ctx, c.Log, store.JournalFilter{Context: c.Name, Event: EventFork})
	return made.N, err
}

// IsInherited reports whether the newest tick of a run began before its context was forked.
func (r *Run) IsInherited(ctx context.Context, c Context) (bool, error) {
	at, err := c.forkedAt(ctx)
	return r.After < at, err
}

// WithoutInherited returns the records of the calls that have not settled, and about which a person
// decided before the context was forked, as they are without that decision: held, or in doubt. A
// fork that is made records them itself, but one of an older version has not.
func (c Context) WithoutInherited(ctx context.Context, records []Record) ([]Record, error) {
	at, err := c.forkedAt(ctx)
	if err != nil || at == 0 {
		return nil, err
	}
	return c.undecided(ctx, records, at)
}

// undecided is [Context.WithoutInherited] for decisions up to a position in the journal.
func (c Context) undecided(ctx context.Context, records []Record, at int64) ([]Record, error) {
	var changed []Record
	var reruns map[string]int64
	for _, r := range records {
		if r.Status.Settled() || r.Status == Held || r.Status == InDoubt || r.willBeInDoubt() {
			continue
		}
		if reruns == nil {
			var err error
			if reruns, err = c.rerunDecisions(ctx); err != nil {
				return nil, err
			}
		}
		made, err := c.decisionsAbout(ctx, r.Call)
		if err != nil {
			return nil, err
		}
		rerun := reruns[r.Call]
		newest := max(rerun, made.decided)
		if newest <= made.settled || newest > at {
			continue
		}
		if rerun == newest {
			changed = append(changed, r.withoutRerun())
		} else {
			changed = append(changed, r.heldAs(made.held))
		}
	}
	return changed, nil
}

// willBeInDoubt reports whether the call is in doubt as soon as its run has no holder.
func (r *Record) willBeInDoubt() bool {
	cut := r.Status == Running || r.Status == Interrupted || r.Status == Cancelled
	return cut && r.NotIdempotent && !r.Rests
}

// rerunDecisions returns the position of the newest decision to run a call again, by call.
func (c Context) rerunDecisions(ctx context.Context) (map[string]int64, error) {
	newest := map[string]int64{}
	for entry, err := range c.Log.Journal(ctx, store.JournalFilter{Context: c.Name, Event: EventDecision}) {
		if err != nil {
			return nil, err
		}
		event, err := ReadDecisionEvent(entry)
		if err != nil {
			return nil, err
		}
		if event.Decision == Retried || event.Decision == Rerun {
			newest[event.Call] = entry.N
		}
	}
	return newest, nil
}

// callDecisions are the positions in the journal of what was decided about a call.
type callDecisions struct {
	settled int64   // of its newest outcome
	decided int64   // of the newest approval or rejection since
	held    *Record // as the person saw it who decided
}

func (c Context) decisionsAbout(ctx context.Context, call string) (made callDecisions, err error) {
	for entry, err := range c.Log.Journal(ctx, store.JournalFilter{Context: c.Name, Call: call, Newest: true}) {
		if err != nil {
			return made, err
		}
		switch status := Status(entry.Event); {
		case status.Settled():
			made.settled = entry.N
			return made, nil
		case status == Ready:
			made.decided = entry.N // of several the first counts
		case status == Held && made.decided != 0:
			held, err := ReadRecord(entry)
			made.held = &held
			return made, err
		}
	}
	return made, nil
}

// withoutRerun returns the record of a call that a person had run again as it is where that does
// not count: in doubt.
func (r Record) withoutRerun() Record {
	r.Status, r.Reason = InDoubt, "it was to run again by a decision made before the fork, which does not count here"
	r.At, r.Reads, r.Hold, r.Error, r.WaitingOn = 0, nil, nil, nil, nil
	r.Rests, r.RetryAt = false, ""
	return r
}

// heldAs returns the record of a call that was decided about as it was held before, from now on.
// Its attempts and its delegate's context stay known.
func (r Record) heldAs(held *Record) Record {
	if held == nil || held.Hold == nil { // the journal lacks it
		return r.withoutRerun()
	}
	again, hold := *held, *held.Hold
	hold.Since = store.FormatDate(time.Now())
	again.Hold = &hold
	again.Attempts, again.Child, again.Model = r.Attempts, r.Child, r.Model
	return again
}
