package journal

import (
	"context"
	"errors"

	"obelus/engine/plan"
	"obelus/store"
)

// SpentOn sums what models used in a run and its delegates, given the run's first tick.
func SpentOn(ctx context.Context, in Context, first int) (spent plan.Usage, err error) {
	plans, err := in.Plans(ctx, first)
	if err != nil {
		return spent, err
	}
	for _, event := range plans {
		if event.Model != nil {
			spent.Add(*event.Model)
		}
	}
	records, err := in.RecordsFrom(ctx, first, 0, 0)
	if err != nil {
		return spent, err
	}
	for _, r := range records {
		if r.Tick < first {
			continue
		}
		if r.Model != nil {
			spent.Add(*r.Model)
		}
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
