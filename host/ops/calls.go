package ops

import (
	"context"
	"iter"
	"slices"

	"obelus/engine/history"
	"obelus/engine/journal"
)

// recordsAtOnce is how many records of calls are in memory at once.
const recordsAtOnce = 500

// Calls lists the records of the calls of a context that picks accepts, as they stood at a seq, or,
// with 0, as they stand. limit bounds their number; 0 for all. Who goes through them must not ask
// the same Runs about the context meanwhile.
func (r *Runs) Calls(ctx context.Context, name string, at, limit int64, picks func(*journal.Line) bool) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		err := r.with(ctx, name, func(of *run) error {
			lines, err := of.history.Lines(ctx, at)
			if err != nil {
				return err
			}
			lines = journal.Pick(lines, picks)
			if limit > 0 && int64(len(lines)) > limit {
				lines = lines[:limit]
			}
			for part := range slices.Chunk(lines, recordsAtOnce) {
				records, err := of.history.Records(ctx, part)
				if err != nil {
					return err
				}
				for _, record := range records {
					if !yield(record, nil) {
						return nil
					}
				}
			}
			return nil
		})
		if err != nil {
			yield(journal.Record{}, err)
		}
	}
}

// Graphs returns the graph of each tick of a context's newest run, or of one tick, as the calls
// stood at a seq. A tick of 0 is all of them, and a seq of 0 is now.
func (r *Runs) Graphs(ctx context.Context, name string, tick, at int64) ([]history.Graph, error) {
	ticks, err := r.Ticks(ctx, name, at)
	if err != nil {
		return nil, err
	}
	lines, err := r.Lines(ctx, name, at)
	if err != nil {
		return nil, err
	}
	graphs := []history.Graph{}
	for _, one := range ticks {
		if tick != 0 && int64(one.Tick) != tick {
			continue
		}
		calls, err := r.Records(ctx, name, journal.OfTick(lines, one.Tick))
		if err != nil {
			return nil, err
		}
		graphs = append(graphs, history.GraphOf(one.Plan, calls, one.Tick))
	}
	return graphs, nil
}

// Downstream lists the calls of a tick of the newest run of a context that run again if one does,
// itself first, and the seq at which the context is to be forked for that, see [RerunTick].
func (r *Runs) Downstream(ctx context.Context, name, call string) (calls []string, at int64, err error) {
	of, err := r.RerunTick(ctx, name, call)
	if err != nil {
		return nil, 0, err
	}
	calls, err = history.Downstream(ctx, journal.In(r.Log, name), of.Plan, of.Records, call)
	return calls, of.At, err
}

// Inbox reads what waits for a person in a context and its delegates.
func (p Project) Inbox(ctx context.Context, name string) (in *history.Inbox, err error) {
	in = &history.Inbox{}
	if in.Plans, err = journal.In(p.Log, name).Lazy(ctx); err != nil {
		return in, err
	}
	in.Calls, err = journal.In(p.Log, name).Holds(ctx)
	return in, err
}
