package engine

import (
	"context"
	"strings"

	"obelus/engine/internal/sched"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// awaitApproval records that a call waits for a person.
func (t *tick) awaitApproval(i int, d sched.Decision) {
	c, h := t.state.Change(i), t.preview(i, d.Arguments, d.Granted)
	c.Record.Hold, c.Record.WaitingOn, c.Record.At = h, nil, t.view.Seq()
	if len(d.Reads) > 0 {
		c.Record.Reads = d.Reads
	}
	t.state.Apply(sched.Event{Kind: sched.HeldBack, Call: i})
	t.recordCall(i)
}

// preview returns the part of a call that a person is shown.
func (t *tick) preview(i int, resolved, granted map[string]any) *journal.Hold {
	call := t.plan.Calls[i]
	h := &journal.Hold{Since: store.FormatDate(t.runner.date()), Arguments: plan.Values{}, Granted: granted}
	for _, p := range call.Params {
		h.Arguments[p.Name] = resolved[p.Name]
	}
	for _, scope := range call.ScopePaths {
		h.Scopes = append(h.Scopes, strings.TrimPrefix(scope.String(), store.Dagger))
	}
	return h
}

// issuedCall is call i as issued, with the corrections that a person made.
func (vs *values) issuedCall(i int) map[string]any {
	call, h := vs.plan.Calls[i], vs.state.Calls[i].Record.Hold
	if h == nil || len(h.Corrected) == 0 {
		return call.Issued
	}
	corrected := make(map[string]any, len(call.Issued))
	for name, v := range call.Issued {
		corrected[name] = v
	}
	for _, name := range h.Corrected {
		delete(corrected, name)
		if v, ok := h.Arguments[name]; ok {
			corrected[name] = plan.Literal(v)
		}
	}
	return corrected
}

// readDecisions finds what people have decided about held calls while the tick
// runs.
func (t *tickRun) readDecisions(ctx context.Context) error {
	if t.state.In(sched.Held) == 0 {
		return nil
	}
	for entry, err := range t.runner.Log.Journal(ctx, store.JournalFilter{Context: t.context, After: t.journalled}) {
		if err != nil {
			return err
		}
		t.journalled = entry.N
		if entry.Event != string(journal.Ready) {
			continue
		}
		r, err := journal.ReadRecord(entry)
		if err != nil {
			return err
		}
		if i := r.Position - 1; r.Tick == t.event.Tick && t.isHeld(i) {
			t.state.Apply(sched.Event{Kind: sched.Decided, Call: i, Hold: r.Hold})
		}
	}
	return nil
}

// isHeld reports whether there is a call at a place, and a person is to decide about it.
func (t *tick) isHeld(i int) bool {
	return i >= 0 && i < len(t.state.Calls) && t.state.Calls[i].Phase == sched.Held
}

// isInteractive reports whether a held call may be decided about while the run waits.
func (t *tickRun) isInteractive() bool {
	if t.runner.Attend == nil || t.state.In(sched.Held) == 0 {
		return false
	}
	for i := range t.state.Calls {
		if !t.isHeld(i) {
			continue
		}
		r := t.state.Calls[i].Record
		r.Context = t.context
		if t.runner.Attend(r) {
			return true
		}
	}
	return false
}
