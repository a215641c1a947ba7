package engine

import (
	"context"
	"errors"
	"iter"
	"maps"
	"sync"

	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// A call that runs once more finds more messages in the log than at first. Its reads must not
// depend on them: not on writes of calls that wait until it has read. Of foreign messages, a call
// that runs again reads those that it read at first; a retried call reads all of them. Earlier
// writes of calls that run again are hidden from the whole run, by its view.

// writers maps the seqs of messages to the calls of a tick that wrote them.
type writers map[int64]int

// reportWriter is the author of what told of calls' failures, when the tick had ended: no call
// of it saw that at first.
const reportWriter = -1

// writersIn finds the writers of the messages in a log since a tick began.
func (t *tick) writersIn(ctx context.Context, log store.Reader, began int64) (writers, error) {
	all, reports := writers{}, []int64{}
	for m, err := range log.Messages(ctx, store.Filter{Context: t.context, After: began}) {
		if err != nil {
			return nil, err
		}
		if i, ok := journal.IndexInTick(t.event.Tick, m.Call); ok && i < len(t.state.Calls) {
			all[m.Seq] = i
		}
		failed, _ := journal.ReportedFailure(m)
		if _, ok := journal.IndexInTick(t.event.Tick, failed); ok && m.Call == "" {
			reports = append(reports, m.Seq)
		}
	}
	if len(reports) == 0 {
		return all, nil
	}
	p, err := journal.In(log, t.context).ReadTimeline(ctx, t.event.First)
	for _, seq := range reports {
		if p.TickEndingWith(seq) > 0 { // it is not foreign
			all[seq] = reportWriter
		}
	}
	return all, err
}

// readWriters finds the writers of the tick's messages in the log. From then on reads depend on
// them.
func (t *tick) readWriters(ctx context.Context) (err error) {
	t.writers, err = t.writersIn(ctx, t.runner.Log, t.event.Start)
	return err
}

// noteWriter records the writer of the next message to be staged.
func (t *tick) noteWriter(i int) {
	if t.writers != nil {
		t.writers[t.view.Seq()+1] = i
	}
}

// dropAfter drops the writers of messages after a seq, which are undone.
func (a writers) dropAfter(last int64) {
	maps.DeleteFunc(a, func(seq int64, _ int) bool { return seq > last })
}

// resolver reads paths for call i: as of now, or as of when it started first.
func (t *tick) resolver(i int) store.Resolver {
	r := t.view.Resolver()
	r.At = t.state.Calls[i].Record.At
	if t.writers == nil && !t.runner.script.Recorded() {
		return r
	}
	known, record := t.writers, t.state.Calls[i].Record
	if s := t.runner.script; s.Recorded() {
		// An unreadable record counts as none.
		record, _, _ = s.Record(context.Background(), t.context, record.Call)
		// It reads the same values.
		if record.Before != 0 {
			superseded, _ := s.Superseded(context.Background(), t.context)
			r.Log, r.At, known = withoutSuperseded(s.Log(), superseded, t.recordedSpan(i).Began.N), record.At, t.readRecordedWriters()
		}
	}
	if known != nil {
		overwriters := sync.OnceValue(func() map[int]bool { return t.plan.Graph.Overwriters(i) })
		r.Log = &writeFilter{r.Log, func(seq int64) bool {
			switch author, ours := known[seq]; {
			case !ours:
				return record.Before != 0 && seq > record.Before
			case author == reportWriter:
				return true
			default:
				return overwriters()[author]
			}
		}}
	}
	return r
}

// checkJoin checks the write of call i against the value there. Where that fails for a call that
// runs once more, it is checked against the value without the writes of calls that wait for it. Its
// error is a [*plan.Fault], or that of the log.
func (t *tick) checkJoin(ctx context.Context, i int, check func(store.Resolver) error) error {
	err := check(t.view.Resolver())
	_, misfit := errors.AsType[*store.FitError](err)
	if misfit && t.writers != nil {
		behind, r := t.plan.Graph.Downstream(i), t.view.Resolver()
		r.Log = &writeFilter{t.view, func(seq int64) bool {
			author, ours := t.writers[seq]
			return ours && behind[author]
		}}
		err = check(r)
	}
	if misfit && t.runner.script.Recorded() {
		again, wrong := t.wroteAgain(ctx, t.state.Calls[i].Record.Call)
		if again || wrong != nil {
			err = wrong // its recorded write did fit
		}
	}
	if _, misfit := errors.AsType[*store.FitError](err); misfit {
		return &plan.Fault{Code: "method", Err: err}
	}
	return err
}

// withoutSuperseded is a log without what counted no more at a position in the journal.
func withoutSuperseded(log store.OpReader, former map[int64]int64, n int64) store.OpReader {
	return &writeFilter{log, func(seq int64) bool {
		since, ok := former[seq]
		return ok && since <= n
	}}
}

// writeFilter is a log without the writes that a call must not see.
type writeFilter struct {
	store.OpReader
	hides func(seq int64) bool
}

// Touching implements [store.OpReader].
func (h *writeFilter) Touching(ctx context.Context, q store.Query) iter.Seq2[store.Op, error] {
	return func(yield func(store.Op, error) bool) {
		for op, err := range h.OpReader.Touching(ctx, q) {
			if err == nil && h.hides(op.Seq) {
				continue
			}
			if !yield(op, err) {
				return
			}
		}
	}
}
