package engine

import (
	"cmp"
	"context"
	"slices"

	"obelus/engine/journal"
)

// inject stages the foreign messages that a recorded run had at a position.
func (vs *values) inject(ctx context.Context, at journal.Position) error {
	return vs.script.Inject(ctx, vs.view, vs.context, at)
}

// reportRecorded stages the error messages that the recorded run has, where it has them among
// foreign messages.
func (e *ending) reportRecorded(ctx context.Context, failed []*journal.Record) error {
	timeline, err := e.runner.script.Timeline(ctx, e.context)
	if err != nil {
		return err
	}
	end, seqs := timeline.Ends[e.event.Tick], map[string]int64{}
	for _, r := range failed {
		if seqs[r.Call], err = e.runner.script.ErrorSeq(ctx, e.context, r.Call); err != nil {
			return err
		}
	}
	failed = slices.DeleteFunc(failed, func(r *journal.Record) bool { return seqs[r.Call] == 0 })
	slices.SortFunc(failed, func(x, y *journal.Record) int { return cmp.Compare(seqs[x.Call], seqs[y.Call]) })
	for _, r := range failed {
		if err := e.inject(ctx, journal.Position{Seq: seqs[r.Call], N: end.N}); err != nil {
			return err
		}
		e.reportFailure(r)
	}
	return e.inject(ctx, end)
}

// awaitsRecorded reports whether a call that settled before the next one began in the record has
// not been answered: the next call may join its writes.
func (t *tick) awaitsRecorded(next int) bool {
	if !t.runner.script.Recorded() {
		return false
	}
	began := t.recordedSpan(next).Began
	first := func(s start) bool { return t.recordedSpan(s.index).Settled.Before(began) }
	return slices.ContainsFunc(t.recordedStarts, first) || slices.ContainsFunc(t.starts, first)
}

// takeRecorded takes decisions about calls from the record, and drops the waits that calls
// overtook.
func (vs *values) takeRecorded() {
	vs.writers = writers{}
	for i := range vs.state.Calls {
		c := &vs.state.Calls[i]
		c.Record.Hold, c.Record.Before, c.Record.SupersededUpTo = vs.recordedDecision(c.Record.Call)
	}
}

// recordedDecision returns a person's decision about a recorded call: its hold, nil for none, and,
// of a call that ran again, as of when it reads and up to where it is superseded.
func (vs *values) recordedDecision(call string) (h *journal.Hold, before, superseded int64) {
	record, _, err := vs.script.Record(context.Background(), vs.context, call)
	if err != nil {
		return nil, 0, 0
	}
	if h = record.Hold; h != nil && h.Decision == "" {
		h = nil
	}
	return h, record.Before, record.SupersededUpTo
}

// byPerson returns a person's decision that settled a recorded call: [journal.ReasonSkipped],
// [journal.ReasonGiven], or nothing.
func (vs *values) byPerson(call string) string {
	record, _, err := vs.script.Record(context.Background(), vs.context, call)
	if err == nil && (record.Status == journal.Skipped && record.Reason == journal.ReasonSkipped || record.Status == journal.Done && record.Reason == journal.ReasonGiven) {
		return record.Reason
	}
	return ""
}

// deliverRecorded brings the result of a call of a recorded run: of those that have
// started, the one that settled first.
func (t *tickRun) deliverRecorded() {
	if len(t.recordedStarts) == 0 {
		return
	}
	next := 0
	for i, s := range t.recordedStarts {
		if t.recordedSpan(s.index).Settled.N < t.recordedSpan(t.recordedStarts[next].index).Settled.N {
			next = i
		}
	}
	s := t.recordedStarts[next]
	t.recordedStarts = slices.Delete(t.recordedStarts, next, next+1)
	res := (&task{t, s}).do()
	res.tick = t
	t.loop.results <- &res // there is room: no other result is on its way
}
