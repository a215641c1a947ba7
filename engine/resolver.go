package engine

import (
	"context"

	"obelus/engine/internal/reading"
	"obelus/engine/journal"
	"obelus/store"
)

// readWriters finds the writers of the tick's messages in the log. From then on reads depend on
// them.
func (vs *values) readWriters(ctx context.Context, timeline *journal.Timeline) error {
	vs.writers = reading.Writers{}
	for m, err := range vs.log.Messages(ctx, store.Filter{Context: vs.context, After: vs.event.Start}) {
		if err != nil {
			return err
		}
		if i, ok := journal.IndexInTick(vs.event.Tick, m.Call); ok && i < len(vs.state.Calls) {
			vs.writers[m.Seq] = i
		}
		failed, _ := journal.ReportedFailure(m)
		if _, ok := journal.IndexInTick(vs.event.Tick, failed); ok && m.Call == "" && timeline.TickEndingWith(m.Seq) > 0 { // it is not foreign
			vs.writers[m.Seq] = reading.Reports
		}
	}
	return nil
}

// noteWriter records the writer of the next message to be staged.
func (vs *values) noteWriter(i int) {
	if vs.writers != nil {
		vs.writers[vs.view.Seq()+1] = i
	}
}

// reads returns what reads for the calls of the tick.
func (vs *values) reads() reading.Reader {
	return reading.Reader{Plan: vs.plan, State: vs.state, View: vs.view, Writers: vs.writers}
}

// resolver reads paths for call i: as of now, or as of when it started first.
func (vs *values) resolver(i int) store.Resolver { return vs.reads().Resolver(i) }
