package engine

import (
	"context"
	"errors"
	"maps"
	"sync"

	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// writers maps the seqs of messages to the calls of a tick that wrote them. A call that runs once
// more finds more messages in the log than at first, and its reads must not depend on them: not on
// writes of calls that wait until it has read. Of foreign messages, a call that runs again reads
// those that it read at first; a retried call reads all of them. Earlier writes of calls that run
// again are hidden from the whole run, by its view.
type writers map[int64]int

// reportWriter stands for the writer of messages that report calls' failures. They came as the tick
// ended, so that none of its calls saw them at first.
const reportWriter = -1

// writersIn finds the writers of the messages in a log, with the timeline of its journal, since a
// tick began.
func (vs *values) writersIn(ctx context.Context, log store.Reader, timeline *journal.Timeline, began int64) (writers, error) {
	all := writers{}
	for m, err := range log.Messages(ctx, store.Filter{Context: vs.context, After: began}) {
		if err != nil {
			return nil, err
		}
		if i, ok := journal.IndexInTick(vs.event.Tick, m.Call); ok && i < len(vs.state.Calls) {
			all[m.Seq] = i
		}
		failed, _ := journal.ReportedFailure(m)
		if _, ok := journal.IndexInTick(vs.event.Tick, failed); ok && m.Call == "" && timeline.TickEndingWith(m.Seq) > 0 { // it is not foreign
			all[m.Seq] = reportWriter
		}
	}
	return all, nil
}

// readWriters finds the writers of the tick's messages in the log. From then on reads depend on
// them.
func (vs *values) readWriters(ctx context.Context, timeline *journal.Timeline) (err error) {
	vs.writers, err = vs.writersIn(ctx, vs.log, timeline, vs.event.Start)
	return err
}

// noteWriter records the writer of the next message to be staged.
func (vs *values) noteWriter(i int) {
	if vs.writers != nil {
		vs.writers[vs.view.Seq()+1] = i
	}
}

// dropAfter drops the writers of messages after a seq, which are undone.
func (w writers) dropAfter(last int64) {
	maps.DeleteFunc(w, func(seq int64, _ int) bool { return seq > last })
}

// resolver reads paths for call i: as of now, or as of when it started first.
func (vs *values) resolver(i int) store.Resolver {
	r, record := vs.view.Resolver(), &vs.state.Calls[i].Record
	r.At = record.At
	before, known := record.Before, vs.writers
	if vs.recorded != nil {
		before, known = vs.recorded.rerun(i, &r)
	}
	if known != nil {
		overwriters := sync.OnceValue(func() map[int]bool { return vs.plan.Graph.Overwriters(i) })
		r.Log = store.Hiding(r.Log, func(seq int64) bool {
			switch writer, ours := known[seq]; {
			case !ours:
				return before != 0 && seq > before
			case writer == reportWriter:
				return true
			default:
				return overwriters()[writer]
			}
		})
	}
	return r
}

// checkJoin checks the write of call i against the value there. Where that fails for a call that
// runs once more, it is checked against the value without the writes of calls that wait for it. Its
// error is a [*plan.Fault], or the log's.
func (vs *values) checkJoin(ctx context.Context, i int, check func(store.Resolver) error) error {
	err := check(vs.view.Resolver())
	_, misfit := errors.AsType[*store.FitError](err)
	if misfit && vs.writers != nil {
		downstream, r := vs.plan.Graph.Downstream(i), vs.view.Resolver()
		r.Log = store.Hiding(vs.view, func(seq int64) bool {
			writer, ours := vs.writers[seq]
			return ours && downstream[writer]
		})
		err = check(r)
	}
	if misfit && vs.recorded != nil {
		again, wrong := vs.recorded.wroteAgain(ctx, i)
		if again || wrong != nil {
			err = wrong // its recorded write did fit
		}
	}
	if _, misfit := errors.AsType[*store.FitError](err); misfit {
		return &plan.Fault{Code: "method", Err: err}
	}
	return err
}
