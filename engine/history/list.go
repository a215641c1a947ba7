package history

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// List yields the contexts that a filter picks and whose newest run has one of some statuses, as
// [journal.StatusOf] has them; none for all. The filter's own statuses are ignored.
func List(ctx context.Context, log store.Reader, f store.ContextFilter, statuses []journal.RunStatus) iter.Seq2[store.ContextInfo, error] {
	if f.Retrying && len(statuses) == 0 {
		statuses = retryStatuses
	}
	f.Statuses = recordedAs(statuses)
	return func(yield func(store.ContextInfo, error) bool) {
		f, err := amongHeld(ctx, log, f)
		if err != nil {
			yield(store.ContextInfo{}, err)
			return
		}
		for info, err := range log.Contexts(ctx, f) {
			if err != nil {
				yield(info, err)
				return
			}
			status, _ := journal.StatusOf(info)
			picked := len(statuses) == 0 || slices.Contains(statuses, status)
			if f.Retrying {
				picked = picked && slices.Contains(retryStatuses, status)
			}
			if picked && !yield(info, nil) {
				return
			}
		}
	}
}

// retryStatuses are the statuses of runs whose calls are tried again by themselves.
var retryStatuses = []journal.RunStatus{journal.RunRunning, journal.RunWaiting}

// recordedAs returns the statuses of standings among which runs of some statuses are; nil for all.
func recordedAs(statuses []journal.RunStatus) (recorded []string) {
	for _, status := range statuses {
		switch status {
		case journal.RunRunning: // and those that are being interrupted or cancelled
			recorded = append(recorded, string(journal.RunRunning), string(journal.RunInterrupted), string(journal.RunCancelled))
		case journal.RunInterrupted: // and those whose process has died
			recorded = append(recorded, string(journal.RunInterrupted), string(journal.RunRunning))
		default:
			recorded = append(recorded, string(status))
		}
	}
	slices.Sort(recorded)
	return slices.Compact(recorded)
}

// Count counts the contexts that a filter picks by the status of their newest run, "" where nothing
// has run.
func Count(ctx context.Context, log store.Reader, f store.ContextFilter) (map[journal.RunStatus]int64, error) {
	f, err := amongHeld(ctx, log, f)
	if err != nil {
		return nil, err
	}
	recorded, err := log.CountContexts(ctx, f)
	if err != nil {
		return nil, err
	}
	counts := map[journal.RunStatus]int64{}
	for status, n := range recorded {
		counts[journal.RunStatus(status)] = n
	}
	// Whether a process is at work shows in the lease alone. All that may differ by that are due.
	f.Statuses = slices.DeleteFunc(recordedAs([]journal.RunStatus{journal.RunRunning}), func(status string) bool {
		return f.Statuses != nil && !slices.Contains(f.Statuses, status)
	})
	f.Due = time.Now()
	for info, err := range log.Contexts(ctx, f) {
		if err != nil {
			return nil, err
		}
		was := journal.RunStatus(info.Standing.Status)
		if status, _ := journal.StatusOf(info); status != was {
			counts[was]--
			counts[status]++
		}
	}
	for status, n := range counts {
		// A run may have ended between the two looks.
		if n <= 0 || f.Retrying && !slices.Contains(retryStatuses, status) {
			delete(counts, status)
		}
	}
	return counts, nil
}

// amongHeld returns a filter of runs that wait for a person with their names in place of Held: a
// run waits too where a call of a delegate's is held. Other filters it returns as they are.
func amongHeld(ctx context.Context, log store.Reader, f store.ContextFilter) (store.ContextFilter, error) {
	if !f.Held {
		return f, nil
	}
	f.Held, f.Among = false, []string{}
	chains := parents{log, map[string]map[string]bool{}}
	for info, err := range log.Contexts(ctx, store.ContextFilter{Held: true}) {
		if err != nil {
			return f, err
		}
		if journal.RunStatus(info.Standing.Status).Finished() {
			continue
		}
		root, err := chains.rootOf(ctx, info)
		switch {
		case errors.As(err, new(*journal.DamagedError)): // lists show contexts that can't be read too
			root = info.Context
		case err != nil:
			return f, err
		}
		if root != "" {
			f.Among = append(f.Among, root, info.Context)
		}
	}
	slices.Sort(f.Among)
	f.Among = slices.Compact(f.Among)
	return f, nil
}

// Inbox is all that waits for a person: held calls, and plans to be released.
type Inbox struct {
	Calls []journal.Record
	Plans []journal.LazyPlan

	// Damaged holds the errors of contexts that can't be read, joined; nil for none.
	Damaged error
}

// ReadInbox reads what waits for a person in all contexts, the one that was appended to last first.
func ReadInbox(ctx context.Context, log store.Reader) (*Inbox, error) {
	in, chains := &Inbox{}, parents{log, map[string]map[string]bool{}}
	for info, err := range log.Contexts(ctx, store.ContextFilter{Held: true}) {
		if err != nil {
			return nil, err
		}
		switch err := in.read(ctx, log, info, &chains); {
		case errors.As(err, new(*journal.DamagedError)):
			in.Damaged = errors.Join(in.Damaged, err)
		case err != nil:
			return nil, err
		}
	}
	return in, nil
}

// read adds what waits in one context, unless the call that made it for its delegate has ended.
func (in *Inbox) read(ctx context.Context, log store.Reader, info store.ContextInfo, chains *parents) error {
	c := journal.In(log, info.Context)
	last, err := c.LastRun(ctx)
	if err != nil || last.Status.Finished() {
		return err
	}
	if root, err := chains.rootOf(ctx, info); root == "" || err != nil {
		return err
	}
	if last.Held {
		in.Plans = append(in.Plans, last.LazyPlan(info.Context))
		return nil
	}
	records, err := c.Records(ctx)
	for _, r := range records {
		if r.Status == journal.Held && r.Hold != nil {
			in.Calls = append(in.Calls, r)
		}
	}
	return err
}

// parents knows which delegates' contexts the calls of others wait for.
type parents struct {
	log     store.Reader
	awaited map[string]map[string]bool // by parent and by its delegates' contexts
}

// rootOf returns the context whose run the newest run of a context is part of; "" if that no longer
// waits for it, since the call that made it for its delegate, or one further up, has ended.
func (p *parents) rootOf(ctx context.Context, info store.ContextInfo) (root string, err error) {
	for depth := 0; info.Origin.Parent != "" && depth <= plan.MaxDepth; depth++ {
		if last, err := journal.In(p.log, info.Context).LastRun(ctx); err != nil || !last.Event.OfDelegate() {
			return info.Context, err
		}
		parent := info.Origin.Parent
		if p.awaited[parent] == nil {
			records, err := journal.In(p.log, parent).Records(ctx)
			if err != nil {
				return "", err
			}
			children := map[string]bool{}
			for i := range records {
				if r := &records[i]; r.Child != "" && !r.Status.Settled() {
					children[r.Child] = true
				}
			}
			p.awaited[parent] = children
		}
		if !p.awaited[parent][info.Context] {
			return "", nil
		}
		if info, err = p.log.Info(ctx, parent); err != nil {
			return "", err
		}
	}
	return info.Context, nil
}
