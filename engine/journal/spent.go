package journal

import (
	"context"
	"errors"

	"obelus/engine/plan"
	"obelus/store"
)

// SpentOn sums what models used in a run and its delegates, given the run's first tick. What a fork
// shares was used in another run, and does not count.
func SpentOn(ctx context.Context, in Context, first int) (spent plan.Usage, err error) {
	add := func(u *plan.Usage) {
		if u = u.Within(in.Name); u != nil {
			spent.Add(*u)
		}
	}
	records, err := in.RecordsFrom(ctx, first, 0, func(entry store.Entry) error {
		switch entry.Event {
		case EventPlan:
			if event, err := ReadPlanEvent(entry); err == nil && event.Tick >= first {
				add(event.Model)
			}
		case EventRun:
			if end, _, err := ReadRunEvent(entry); err == nil && end.Tick >= first {
				add(end.Model)
			}
		}
		return nil
	})
	if err != nil {
		return spent, err
	}
	for _, r := range records {
		if r.Tick < first {
			continue
		}
		add(r.Model)
		if r.Child == "" {
			continue
		}
		inside, err := SpentOn(ctx, in.Sibling(r.Child), 1)
		if err != nil && !errors.Is(err, store.ErrNoContext) {
			return spent, err
		}
		spent.Add(inside)
	}
	return spent, nil
}

// SpentWithRoot is [SpentOn], for a delegate's context for all of the run that it is part of: they
// share a budget.
func SpentWithRoot(ctx context.Context, in Context, first int) (spent plan.Usage, err error) {
	root, err := in.Root(ctx)
	switch {
	case err != nil:
		return spent, err
	case root == in.Name:
		return SpentOn(ctx, in, first)
	}
	last, err := in.Sibling(root).LastRun(ctx)
	if err != nil {
		return spent, err
	}
	return SpentOn(ctx, in.Sibling(root), last.Event.First)
}
