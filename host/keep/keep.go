// Package keep removes contexts from a log whose time is over, a few at a time, while runs go on.
package keep

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"obelus/engine/journal"
	"obelus/store"
)

// NoRun is the status of contexts in which nothing has run.
const NoRun journal.RunStatus = "none"

// Times says for how long contexts are kept after the last append, by the status of their run.
// Others are kept for ever.
type Times map[journal.RunStatus]time.Duration

// Names lists the statuses of runs that may be removed, as the setting keep has them.
func (Times) Names() []string {
	return []string{string(journal.RunCancelled), string(journal.RunDone), string(journal.RunFailed), string(NoRun)}
}

// Remove removes the root contexts whose time was over at a time, with the contexts of their
// delegates, and returns how many roots are gone. A context stays while it or a delegate's is being
// run or has an unfinished run of its own, and while a fork needs it.
func Remove(ctx context.Context, log store.Log, times Times, now time.Time) (removed int, err error) {
	for _, status := range slices.Sorted(maps.Keys(times)) {
		f := store.ContextFilter{Roots: true, Until: now.Add(-times[status]), Statuses: []string{string(status)}}
		if status == NoRun {
			f.Statuses = []string{""}
		}
		for info, err := range log.Contexts(ctx, f) {
			if err != nil {
				return removed, err
			}
			gone, err := removeFamily(ctx, log, info)
			if err != nil {
				return removed, fmt.Errorf("context %s: %w", info.Context, err)
			}
			if gone {
				removed++
			}
		}
	}
	return removed, nil
}

// removeFamily removes a root context with its delegates' contexts, and reports whether it could.
func removeFamily(ctx context.Context, log store.Log, root store.ContextInfo) (bool, error) {
	family := []store.ContextInfo{root}
	for i := 0; i < len(family); i++ {
		over, err := isOver(ctx, log, family[i])
		if !over || err != nil {
			return false, err
		}
		for info, err := range log.Contexts(ctx, store.ContextFilter{Parent: family[i].Context}) {
			if err != nil {
				return false, err
			}
			family = append(family, info)
		}
	}
	err := log.Prune(ctx, family...)
	var changed *store.ChangedError
	var needed *store.NeededError
	var held *store.HeldError
	if errors.As(err, &changed) || errors.As(err, &needed) || errors.As(err, &held) || errors.Is(err, store.ErrNoContext) {
		return false, nil // it is in use again, or another process was faster
	}
	return err == nil, err
}

// isOver reports whether nothing is unfinished in a context: a delegate's run that was left behind
// is part of one that has ended.
func isOver(ctx context.Context, log store.Log, info store.ContextInfo) (bool, error) {
	switch status, _ := journal.StatusOf(info); {
	case info.Holder != "", info.Standing.Background > 0:
		return false, nil
	case status.Finished() || status == journal.RunCancelled:
		return true, nil
	}
	root, err := journal.In(log, info.Context).Root(ctx)
	return err == nil && root != info.Context, err
}
