package history

import (
	"cmp"
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
	err := eachHeld(ctx, log, func(_ store.ContextInfo, chain []string) { f.Among = append(f.Among, chain...) })
	slices.Sort(f.Among)
	f.Among = slices.Compact(f.Among)
	return f, err
}

// eachHeld calls found for each context in which decisions wait for a person, with the contexts
// whose calls wait for it.
func eachHeld(ctx context.Context, log store.Reader, found func(info store.ContextInfo, chain []string)) error {
	for info, err := range log.Contexts(ctx, store.ContextFilter{Held: true}) {
		if err != nil {
			return err
		}
		if journal.RunStatus(info.Standing.Status).Finished() {
			continue
		}
		chain, err := waitingChain(ctx, log, info)
		if err != nil && !errors.As(err, new(*journal.DamagedError)) { // lists show what can't be read too
			return err
		}
		if chain != nil {
			found(info, chain)
		}
	}
	return nil
}

// waitingChain lists a context, whose run waits, and those whose calls wait for it, up to the root;
// none if the call has ended that made it for its delegate, or one further up. With an error it
// lists those up to the one that can't be read.
func waitingChain(ctx context.Context, log store.Reader, info store.ContextInfo) (chain []string, err error) {
	for depth := 0; depth <= plan.MaxDepth; depth++ {
		chain = append(chain, info.Context)
		parent := info.Origin.Parent
		if parent == "" {
			break
		}
		if last, err := journal.In(log, info.Context).LastRun(ctx); err != nil || !last.Event.OfDelegate() {
			return chain, err
		}
		entry, ok, err := store.Newest(ctx, log, store.JournalFilter{Context: parent, Call: info.Origin.Call})
		if err != nil || !ok {
			return nil, err
		}
		record, err := journal.ReadRecord(entry)
		if err == nil && (record.Child != info.Context || record.Status.Settled()) {
			return nil, nil
		}
		next, unknown := log.Info(ctx, parent)
		switch {
		case errors.Is(unknown, store.ErrNoContext): // it was pruned meanwhile
			return nil, nil
		case unknown != nil || err != nil:
			return append(chain, parent), cmp.Or(unknown, err)
		}
		info = next
	}
	return chain, nil
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
	in := &Inbox{}
	waiting, _, _, err := ListHeld(ctx, log)
	for i := 0; i < len(waiting) && err == nil; i++ {
		err = in.Add(ctx, log, waiting[i])
	}
	return in, err
}

// ListHeld lists the contexts in which decisions wait for a person, the one that was appended to
// last first. It counts the decisions, and by context those that a context waits for, in itself and
// in its delegates.
func ListHeld(ctx context.Context, log store.Reader) (waiting []store.ContextInfo, n int, by map[string]int, err error) {
	by = map[string]int{}
	err = eachHeld(ctx, log, func(info store.ContextInfo, chain []string) {
		waiting = append(waiting, info)
		n += info.Standing.Held
		for _, name := range chain {
			by[name] += info.Standing.Held
		}
	})
	return waiting, n, by, err
}

// ReadOldest reads the decisions of some contexts that have waited the longest, at least so many if
// there are: about calls of a tool, or about all calls and plans if it is empty. Since none waits
// for longer than its context exists, it need not read the youngest contexts; rest is the number of
// decisions in those.
func ReadOldest(ctx context.Context, log store.Reader, waiting []store.ContextInfo, atLeast int, tool string) (in *Inbox, rest int, err error) {
	in = &Inbox{}
	var oldest []time.Time // of those that were read, sorted
	waiting = slices.SortedFunc(slices.Values(waiting), func(a, b store.ContextInfo) int { return a.Created.Compare(b.Created) })
	for i, info := range waiting {
		if len(oldest) == atLeast && oldest[atLeast-1].Before(info.Created) {
			for _, unread := range waiting[i:] {
				rest += unread.Standing.Held
			}
			break
		}
		var here Inbox
		if err := here.Add(ctx, log, info); err != nil {
			return nil, 0, err
		}
		if tool != "" {
			here.Plans = nil
			here.Calls = slices.DeleteFunc(here.Calls, func(r journal.Record) bool { return r.Tool != tool })
		}
		in.Calls, in.Plans, in.Damaged = append(in.Calls, here.Calls...), append(in.Plans, here.Plans...), errors.Join(in.Damaged, here.Damaged)
		oldest = append(oldest, sinceOf(here.Calls, here.Plans)...)
		slices.SortFunc(oldest, time.Time.Compare)
		oldest = oldest[:min(len(oldest), atLeast)]
	}
	return in, rest, nil
}

// sinceOf lists since when calls and plans wait.
func sinceOf(calls []journal.Record, plans []journal.LazyPlan) (since []time.Time) {
	add := func(text string) {
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			since = append(since, at)
		}
	}
	for _, r := range calls {
		add(r.Hold.Since)
	}
	for _, p := range plans {
		add(p.Since)
	}
	return since
}

// Add adds what waits in one context, unless the call that made it for its delegate has ended.
func (in *Inbox) Add(ctx context.Context, log store.Reader, info store.ContextInfo) error {
	err := in.read(ctx, log, info)
	switch {
	case errors.As(err, new(*journal.DamagedError)):
		in.Damaged = errors.Join(in.Damaged, err)
		return nil
	case errors.Is(err, store.ErrNoContext): // it was pruned meanwhile
		return nil
	}
	return err
}

func (in *Inbox) read(ctx context.Context, log store.Reader, info store.ContextInfo) error {
	c := journal.In(log, info.Context)
	last, err := c.LastRun(ctx)
	if err != nil || last.Status.Finished() {
		return err
	}
	if chain, err := waitingChain(ctx, log, info); chain == nil || err != nil {
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

// OldestHeld returns since when the oldest decision of some contexts waits; the zero time for none.
func OldestHeld(ctx context.Context, log store.Reader, waiting []store.ContextInfo) (oldest time.Time, err error) {
	in, _, err := ReadOldest(ctx, log, waiting, 1, "")
	if err != nil {
		return oldest, err
	}
	if since := sinceOf(in.Calls, in.Plans); len(since) > 0 {
		oldest = slices.MinFunc(since, time.Time.Compare)
	}
	return oldest, nil
}
