package engine

import (
	"cmp"
	"context"
	"slices"

	"obelus/engine/internal/sched"
	"obelus/engine/internal/script"
	"obelus/engine/journal"
	"obelus/store"
)

// recordedTick is the part of a tick that only a recorded run has: its calls begin and settle one
// by one, in the order of the recorded run and with the results of that, among the foreign messages
// that it had.
type recordedTick struct {
	values  *values
	script  script.Script
	writers writers // of the tick's messages in the recorded run's log, once they were asked for
	err     error   // the first of the recorded run's log, which ends the run
}

var _ sched.Order = (*recordedTick)(nil)

// Span implements [sched.Order].
func (rt *recordedTick) Span(call string) journal.Span {
	return rt.script.Span(rt.values.context, call)
}

// span is when call i began and settled.
func (rt *recordedTick) span(i int) journal.Span { return rt.Span(rt.callID(i)) }

func (rt *recordedTick) callID(i int) string { return rt.values.state.Calls[i].Record.Call }

// note keeps an error where none can be returned: the next call that begins or settles ends the run
// with it.
func (rt *recordedTick) note(err error) { rt.err = cmp.Or(rt.err, err) }

// record returns the record of a call.
func (rt *recordedTick) record(call string) journal.Record {
	record, _, err := rt.script.Record(context.Background(), rt.values.context, call)
	rt.note(err)
	return record
}

// inject stages the foreign messages that were there at a position, and the writes of calls of the
// tick that are superseded.
func (rt *recordedTick) inject(ctx context.Context, at journal.Position) error {
	if rt.err != nil {
		return rt.err
	}
	vs := rt.values
	before := len(vs.view.Staged())
	err := rt.script.Inject(ctx, vs.view, vs.context, at)
	for _, m := range vs.view.Staged()[before:] {
		if i, ok := journal.IndexInTick(vs.event.Tick, m.Call); ok && i < len(vs.state.Calls) {
			vs.writers[m.Seq] = i
		}
	}
	return err
}

// takeDecisions takes people's decisions about calls, and of calls that ran again, as of when they
// read and up to where they are superseded.
func (rt *recordedTick) takeDecisions() {
	calls := rt.values.state.Calls
	for i := range calls {
		record := rt.record(calls[i].Record.Call)
		if h := record.Hold; h != nil && h.Decision != "" {
			calls[i].Record.Hold = h
		}
		if record.If != nil && record.If.Holds { // else it is evaluated: the call was skipped at once
			calls[i].Record.If = record.If
		}
		calls[i].Record.Due = record.Due
		calls[i].Record.Before, calls[i].Record.SupersededUpTo = record.Before, record.SupersededUpTo
	}
}

// settle prepares the end of a call.
func (rt *recordedTick) settle(ctx context.Context, i int) error {
	return rt.inject(ctx, rt.span(i).Settled)
}

// reportFailures stages the error messages that the recorded run has, where it has them among
// foreign messages.
func (rt *recordedTick) reportFailures(ctx context.Context, failed []*journal.Record, report func(*journal.Record)) error {
	name := rt.values.context
	timeline, err := rt.script.Timeline(ctx, name)
	if err != nil {
		return err
	}
	end, seqs := timeline.Ends[rt.values.event.Tick], map[string]int64{}
	for _, r := range failed {
		if seqs[r.Call], err = rt.script.ErrorSeq(ctx, name, r.Call); err != nil {
			return err
		}
	}
	failed = slices.DeleteFunc(failed, func(r *journal.Record) bool { return seqs[r.Call] == 0 })
	slices.SortFunc(failed, func(x, y *journal.Record) int { return cmp.Compare(seqs[x.Call], seqs[y.Call]) })
	for _, r := range failed {
		if err := rt.inject(ctx, journal.Position{Seq: seqs[r.Call], N: end.N}); err != nil {
			return err
		}
		report(r)
	}
	return rt.inject(ctx, end)
}

// rerun has a resolver read what call i read when it ran again, if it did: from the recorded run's
// log as it was then. It returns what such reads leave out, see [values.resolver]: foreign messages
// after a seq, and messages of some writers.
func (rt *recordedTick) rerun(i int, r *store.Resolver) (before int64, known writers) {
	record := rt.record(rt.callID(i))
	if record.Before == 0 {
		return 0, rt.values.writers
	}
	superseded, err := rt.script.Superseded(context.Background(), rt.values.context)
	rt.note(err)
	r.Log, r.At = superseded.Without(rt.script.Log(), rt.span(i).Began.N), record.At
	return record.Before, rt.readWriters()
}

// readWriters finds the writers of the tick in the log of the recorded run.
func (rt *recordedTick) readWriters() writers {
	if rt.writers == nil {
		ctx := context.Background()
		timeline, err := rt.script.Timeline(ctx, rt.values.context)
		if err == nil {
			rt.writers, err = rt.values.writersIn(ctx, rt.script.Log(), timeline, timeline.Starts[rt.values.event.Tick].Seq)
		}
		rt.note(err)
	}
	return rt.writers
}

// wroteAgain reports whether a call wrote something after it had run again, or had been tried
// again.
func (rt *recordedTick) wroteAgain(ctx context.Context, i int) (bool, error) {
	call := rt.callID(i)
	timeline, err := rt.script.Timeline(ctx, rt.values.context)
	if err != nil || timeline.Reruns[call] == nil {
		return false, err
	}
	record, _, err := rt.script.Record(ctx, rt.values.context, call)
	return len(record.Writes) > 0, err
}
