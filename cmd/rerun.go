package cmd

import (
	"context"

	"obelus/engine"
)

// rerun runs a call of a fork again, and all that is downstream of it.
func (a *app) rerun(ctx context.Context, call string, set []string, w who) error {
	corrections, err := readFlag("set", set)
	if err != nil {
		return err
	}
	by, err := w.decider()
	if err != nil {
		return err
	}
	return a.resume(ctx, engine.Resume{From: call, Set: corrections, Who: by})
}
