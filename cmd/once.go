package cmd

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"obelus/cmd/internal/exit"
	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host/once"
	"obelus/store"
)

// runOnce makes the run of the name that -c gives or, if the log has it, goes on with it or prints
// how it ended.
func runOnce(ctx context.Context, a *app, start engine.Start, registry *plan.Registry, o runOptions) error {
	path, err := a.dbPath()
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		if err := a.openLog(); err != nil {
			return err
		}
		if has, err := hasRun(ctx, a, start); has || err != nil {
			return finishOnce(ctx, a, err)
		}
	}
	err = runAndReport(ctx, a, start, registry, o)
	if errors.Is(err, store.ErrExists) { // another process was faster, or it was pruned
		if has, other := hasRun(ctx, a, start); has || other != nil {
			return finishOnce(ctx, a, other)
		}
	}
	return err
}

// hasRun reports whether the log has the run of a start. One with another plan or input is an
// error.
func hasRun(ctx context.Context, a *app, start engine.Start) (bool, error) {
	start.Context = a.context
	has, err := once.HasRun(ctx, a.log, &start)
	if errors.As(err, new(*once.OtherRunError)) {
		err = exit.Usagef("--once: %s: give another name by -c", err)
	}
	return has, err
}

// finishOnce goes on with the run of the context that -c names, or prints how it ended. A run that
// was cancelled has ended.
func finishOnce(ctx context.Context, a *app, err error) error {
	if err != nil {
		return err
	}
	began := time.Now()
	outcome, err := engine.ReadOutcome(ctx, a.log, a.context)
	if err != nil {
		return err
	}
	isOver := outcome.Status.Finished() && outcome.Background == 0
	if isOver || outcome.Status == journal.RunCancelled {
		return reportOutcome(ctx, a, outcome, began)
	}
	return goOn(ctx, a, engine.Resume{Context: a.context})
}
