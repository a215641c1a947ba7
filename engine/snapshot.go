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

// A call that runs once more finds more in the log than it did at first. What it reads
// must not depend on that: not what calls wrote that wait until it has read. Of what others
// appended, one that runs again reads what it read at first; one that is tried again reads
// all of it. What calls that run again wrote before is hidden from all of the run, by its
// view.

// authors tells which calls of a tick wrote messages, by their seqs.
type authors map[int64]int

// reporting is the author of what told of calls' failures, when the tick had ended: no call
// of it saw that at first.
const reporting = -1

// authorsIn finds the authors of what a log has of a tick since it began.
func (t *tick) authorsIn(ctx context.Context, log store.Reader, began int64) (authors, error) {
	all, reports := authors{}, []int64{}
	for m, err := range log.Messages(ctx, store.Filter{Context: t.context, After: began}) {
		if err != nil {
			return nil, err
		}
		if i, ok := journal.IndexInTick(t.event.Tick, m.Call); ok && i < len(t.calls) {
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
		if p.TickEndingWith(seq) > 0 { // nobody brought it
			all[seq] = reporting
		}
	}
	return all, err
}

// readAuthors finds who wrote what the log has of the tick. From then on reads depend on
// that.
func (t *tick) readAuthors(ctx context.Context) (err error) {
	t.authors, err = t.authorsIn(ctx, t.runner.Log, t.event.Start)
	return err
}

// wroteNow notes who wrote the message that is about to be staged.
func (t *tick) wroteNow(i int) {
	if t.authors != nil {
		t.authors[t.view.Seq()+1] = i
	}
}

// forget drops what comes behind a seq, which is there no more.
func (a authors) forget(last int64) {
	maps.DeleteFunc(a, func(seq int64, _ int) bool { return seq > last })
}

// resolver reads paths for call i: as of now, or as of when it started first.
func (t *tick) resolver(i int) store.Resolver {
	r := t.view.Resolver()
	r.At = t.calls[i].record.At
	if t.authors == nil && !t.runner.script.Recorded() {
		return r
	}
	known, record := t.authors, t.calls[i].record
	if s := t.runner.script; s.Recorded() {
		record, _, _ = s.Record(context.Background(), t.context, record.Call) // one that can't be read has not been
		if record.Before != 0 {                                               // it reads what it did
			superseded, _ := s.Superseded(context.Background(), t.context)
			r.Log, r.At, known = without(s.Log(), superseded, t.recordedSpan(i).Began.N), record.At, t.recordedAuthors()
		}
	}
	if known != nil {
		overwriters := sync.OnceValue(func() map[int]bool { return t.plan.Graph.Overwriters(i) })
		r.Log = &hindsight{r.Log, func(seq int64) bool {
			switch author, ours := known[seq]; {
			case !ours:
				return record.Before != 0 && seq > record.Before
			case author == reporting:
				return true
			default:
				return overwriters()[author]
			}
		}}
	}
	return r
}

// joins holds what call i writes against what is there. Where that does not do for one that
// runs once more, it is held against what would be there if those had yet to write that wait
// for it. Its error is a [*plan.Fault], or that of the log.
func (t *tick) joins(ctx context.Context, i int, check func(store.Resolver) error) error {
	err := check(t.view.Resolver())
	_, misfit := errors.AsType[*store.FitError](err)
	if misfit && t.authors != nil {
		behind, r := t.plan.Graph.Downstream(i), t.view.Resolver()
		r.Log = &hindsight{t.view, func(seq int64) bool {
			author, ours := t.authors[seq]
			return ours && behind[author]
		}}
		err = check(r)
	}
	if misfit && t.runner.script.Recorded() {
		again, wrong := t.wroteAgain(ctx, t.calls[i].record.Call)
		if again || wrong != nil {
			err = wrong // what the log has of it did do
		}
	}
	if _, misfit := errors.AsType[*store.FitError](err); misfit {
		return &plan.Fault{Code: "method", Err: err}
	}
	return err
}

// without is a log without what counted no more at a position in the journal.
func without(log store.OpReader, former map[int64]int64, n int64) store.OpReader {
	return &hindsight{log, func(seq int64) bool {
		since, ok := former[seq]
		return ok && since <= n
	}}
}

// hindsight is a log without what a call is not to see.
type hindsight struct {
	store.OpReader
	hides func(seq int64) bool
}

// Touching implements [store.OpReader].
func (h *hindsight) Touching(ctx context.Context, q store.Query) iter.Seq2[store.Op, error] {
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
