package engine

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// awaitApproval records that a call waits for a person.
func (t *tick) awaitApproval(i int, resolved, granted map[string]any, reads map[string]int64) {
	c, h := t.change(i), t.preview(i, resolved, granted)
	c.record.Status, c.record.Hold, c.record.WaitingOn, c.record.At = journal.Held, h, nil, t.view.Seq()
	if len(reads) > 0 {
		c.record.Reads = reads
	}
	t.heldCalls[i] = true
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

// applyDecision goes on with a call as a person decided.
func (t *tick) applyDecision(ctx context.Context, i int, h *journal.Hold) error {
	if h.Decision == journal.Rejected {
		failure := &plan.Failure{Fields: map[string]any{"message": h.Reason, "code": journal.Rejected}}
		t.change(i).startedAt = t.runner.now()
		return t.complete(ctx, &result{index: i, err: failure})
	}
	call := t.plan.Calls[i]
	if fits, err := t.fits(ctx, i); !fits || err != nil {
		return err
	}
	// The correction may have been checked against another version of the tool.
	if len(h.Corrected) > 0 {
		if err := call.Definition.Accepts(h.Arguments); err != nil {
			t.change(i).startedAt = t.runner.now()
			return t.complete(ctx, &result{index: i, err: &plan.Fault{Code: plan.CodeSchema, Err: fmt.Errorf("as corrected: %w", err)}})
		}
	}
	resolved := make(map[string]any, len(call.Issued))
	maps.Copy(resolved, h.Arguments)
	call.WithMeta(resolved)
	granted := map[string]any(h.Granted)
	if granted == nil {
		granted = map[string]any{}
	}
	c := t.change(i)
	c.record.Reads = call.ReadsWithout(h.Arguments, h.Corrected, c.record.Reads)
	return t.start(ctx, i, plan.Invocation{Call: resolved, Context: granted, Tool: call.Definition.Schema}, c.record.Reads)
}

// issuedCall is call i as issued, with the corrections that a person made.
func (t *tick) issuedCall(i int) map[string]any {
	call, h := t.plan.Calls[i], t.calls[i].record.Hold
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
func (t *tick) readDecisions(ctx context.Context) error {
	if len(t.heldCalls) == 0 {
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
		if i := r.Position - 1; r.Tick == t.event.Tick && t.heldCalls[i] {
			delete(t.heldCalls, i)
			c := &t.calls[i]
			if c.record.Status, c.record.Hold = journal.Ready, r.Hold; c.due() {
				t.queue(i)
			}
		}
	}
	return nil
}

// isInteractive reports whether a held call may be decided about while the run waits.
func (t *tick) isInteractive() bool {
	if t.runner.Attend == nil {
		return false
	}
	for i := range t.heldCalls {
		r := t.calls[i].record
		r.Context = t.context
		if t.runner.Attend(r) {
			return true
		}
	}
	return false
}
