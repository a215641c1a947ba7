package lookup

import (
	"context"
	"slices"
	"sync"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
)

// Bounds of the contexts that are kept, and of the records of one.
const (
	mostKept    = 8
	mostRecords = 200_000
)

// Runs reads the calls of contexts, and keeps those it has read last: a
// page that follows a run, or goes through its past, reads the new entries of the journal alone.
// Its methods may be called from several goroutines at once.
type Runs struct {
	Project

	mu   sync.Mutex
	kept []*run // the one that was asked for last stands first
}

// run is a context with its calls.
type run struct {
	context string
	created time.Time

	mu      sync.Mutex
	history *journal.CallHistory
	ticks   []engine.Tick // as they stood when they were read
	plans   int           // of the history then
	digest  string        // of the scripts then
}

// take returns a context's run.
func (r *Runs) take(ctx context.Context, name string) (*run, error) {
	info, err := r.Log.Info(ctx, name)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.kept, func(of *run) bool { return of.context == name && of.created.Equal(info.Created) })
	found := &run{context: name, created: info.Created, history: journal.In(r.Log, name).CallHistory()}
	if i >= 0 {
		found = r.kept[i]
		r.kept = slices.Delete(r.kept, i, i+1)
	}
	r.kept = slices.Insert(r.kept[:min(len(r.kept), mostKept-1)], 0, found)
	return found, nil
}

// drop forgets a run that is too large to be kept.
func (r *Runs) drop(large *run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = slices.DeleteFunc(r.kept, func(of *run) bool { return of == large })
}

// Records returns the calls of a context as they stood at a seq; 0 for now.
func (r *Runs) Records(ctx context.Context, name string, at int64) (records []journal.Record, err error) {
	of, err := r.take(ctx, name)
	if err != nil {
		return nil, err
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	return r.recordsOf(ctx, of, at)
}

func (r *Runs) recordsOf(ctx context.Context, of *run, at int64) (records []journal.Record, err error) {
	if at == 0 {
		records, err = of.history.Current(ctx)
	} else if err = of.history.Update(ctx); err == nil {
		records, err = of.history.At(at)
	}
	if err != nil || of.history.Size() > mostRecords {
		r.drop(of)
	}
	return records, err
}

// Pauses returns the pauses of a context's calls up to a seq, or up to now for 0.
func (r *Runs) Pauses(ctx context.Context, name string, at int64) (map[string][]journal.Pause, error) {
	of, err := r.take(ctx, name)
	if err != nil {
		return nil, err
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	if err := of.history.Update(ctx); err != nil {
		return nil, err
	}
	return of.history.Pauses(at), nil
}

// Outcome is [engine.ReadOutcome], which reads the calls of a run that has failed or waits.
func (r *Runs) Outcome(ctx context.Context, name string) (*journal.Outcome, error) {
	last, err := journal.In(r.Log, name).CurrentRun(ctx)
	if err != nil {
		return nil, err
	}
	var records []journal.Record
	if last.Status == journal.RunFailed || last.Status == journal.RunWaiting {
		if records, err = r.Records(ctx, name, 0); err != nil {
			return nil, err
		}
	}
	return last.Outcome(name, records), nil
}

// Ticks is [Project.Ticks].
func (r *Runs) Ticks(ctx context.Context, name string, at int64) ([]engine.Tick, error) {
	records, err := r.Records(ctx, name, at)
	if err != nil {
		return nil, err
	}
	return r.TicksOf(ctx, name, at, records)
}

// TicksOf is Ticks, with the calls that [Runs.Records] has returned for the same moment.
func (r *Runs) TicksOf(ctx context.Context, name string, at int64, records []journal.Record) ([]engine.Tick, error) {
	of, err := r.take(ctx, name)
	if err != nil {
		return nil, err
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	if digest := r.Host.Generation().Digest; of.plans != of.history.Plans() || of.digest != digest {
		if of.ticks, err = r.Project.Ticks(ctx, name, 0); err != nil {
			return nil, err
		}
		of.plans, of.digest = of.history.Plans(), digest
	}
	return r.asOf(ctx, name, of.ticks, records, at)
}
