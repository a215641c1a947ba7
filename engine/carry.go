package engine

import (
	"context"

	"obelus/engine/journal"
)

// arrive stages what others had appended to the context of a tick that is replayed at a
// moment, which may depend on what there is.
func (t *tick) arrive(ctx context.Context, at func(*arrivals) journal.Position) error {
	p := t.runner.replay
	if p == nil {
		return nil
	}
	a, err := p.arriving(ctx, t.context)
	if err != nil {
		return err
	}
	now := at(a)
	arrived, seq := a.until(now.Seq), t.view.Seq()
	t.view.Stage(arrived...)
	a.hide(t.view, arrived, seq, now)
	return nil
}
