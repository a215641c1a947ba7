package cmd

import (
	"context"

	"obelus/cmd/internal/cli"
	"obelus/engine"
)

// rerunCall runs a call of a fork again, and all calls downstream of it.
func rerunCall(ctx context.Context, a *app, call string, set []string, w deciderFlags) error {
	corrections, err := cli.ReadFlag("set", set)
	if err != nil {
		return err
	}
	by, err := w.decider()
	if err != nil {
		return err
	}
	return resumeRun(ctx, a, engine.Resume{From: call, Set: corrections, Who: by}, nil)
}
