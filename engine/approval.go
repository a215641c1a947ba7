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

// hold records that a call waits for a person.
func (t *tick) hold(i int, resolved, granted map[string]any, reads map[string]int64) {
	c, h := t.change(i), t.shown(i, resolved, granted)
	c.record.Status, c.record.Hold, c.record.WaitingOn, c.record.At = journal.Held, h, nil, t.view.Seq()
	if len(reads) > 0 {
		c.record.Reads = reads
	}
	t.holding[i] = true
	t.note(i)
}

// shown is what a person is shown of a call.
func (t *tick) shown(i int, resolved, granted map[string]any) *journal.Hold {
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

// decided goes on with a call as a person decided.
func (t *tick) decided(ctx context.Context, i int, h *journal.Hold) error {
	if h.Decision == journal.Rejected {
		failure := &plan.Failure{Fields: map[string]any{"message": h.Reason, "code": journal.Rejected}}
		t.change(i).began = t.runner.now()
		return t.settle(ctx, &result{index: i, err: failure})
	}
	call := t.plan.Calls[i]
	if fits, err := t.fits(ctx, i); !fits || err != nil {
		return err
	}
	if len(h.Corrected) > 0 { // who recorded it may know the tool as another one
		if err := call.Definition.Accepts(h.Arguments); err != nil {
			t.change(i).began = t.runner.now()
			return t.settle(ctx, &result{index: i, err: &plan.Fault{Code: plan.CodeSchema, Err: fmt.Errorf("as corrected: %w", err)}})
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

// issued is call i as issued, with the corrections that a person made.
func (t *tick) issued(i int) map[string]any {
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

// takeDecisions finds what people have decided about held calls while the tick
// runs.
func (t *tick) takeDecisions(ctx context.Context) error {
	if len(t.holding) == 0 {
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
		if i := r.Position - 1; r.Tick == t.event.Tick && t.holding[i] {
			delete(t.holding, i)
			c := &t.calls[i]
			if c.record.Status, c.record.Hold = journal.Ready, r.Hold; c.due() {
				t.queue(i)
			}
		}
	}
	return nil
}

// attended tells whether a held call may be decided about while the run waits.
func (t *tick) attended() bool {
	if t.runner.Attend == nil {
		return false
	}
	for i := range t.holding {
		r := t.calls[i].record
		r.Context = t.context
		if t.runner.Attend(r) {
			return true
		}
	}
	return false
}
