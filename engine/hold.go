package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"obelus/store"
)

// hold records that a call waits for a person.
func (t *tick) hold(i int, resolved, granted map[string]any, reads map[string]int64) {
	c, h := t.change(i), t.shown(i, resolved, granted)
	c.record.Status, c.record.Hold, c.record.WaitingOn, c.record.At = Held, h, nil, t.view.Seq()
	if len(reads) > 0 {
		c.record.Reads = reads
	}
	t.holding[i] = true
	t.note(i)
}

// shown is what a person is shown of a call.
func (t *tick) shown(i int, resolved, granted map[string]any) *Hold {
	call := t.plan.Calls[i]
	h := &Hold{Since: store.FormatDate(t.runner.date()), Arguments: Values{}, Granted: granted}
	for _, p := range call.params {
		h.Arguments[p.name] = resolved[p.name]
	}
	for _, scope := range call.scopes {
		h.Scopes = append(h.Scopes, strings.TrimPrefix(scope.String(), store.Dagger))
	}
	return h
}

// decided goes on with a call as a person decided.
func (t *tick) decided(ctx context.Context, i int, h *Hold) error {
	if h.Decision == Rejected {
		failure := &Failure{Fields: map[string]any{"message": h.Reason, "code": Rejected}}
		t.change(i).began = t.runner.now()
		return t.settle(ctx, &result{index: i, err: failure})
	}
	call := t.plan.Calls[i]
	if fits, err := t.fits(ctx, i); !fits || err != nil {
		return err
	}
	if len(h.Corrected) > 0 { // who recorded it may know the tool as another one
		if err := call.tool.takes(h.Arguments); err != nil {
			t.change(i).began = t.runner.now()
			return t.settle(ctx, &result{index: i, err: &fault{CodeSchema, fmt.Errorf("as corrected: %w", err)}})
		}
	}
	resolved := make(map[string]any, len(call.Issued))
	maps.Copy(resolved, h.Arguments)
	call.withMeta(resolved)
	granted := map[string]any(h.Granted)
	if granted == nil {
		granted = map[string]any{}
	}
	c := t.change(i)
	c.record.Reads = call.without(h.Arguments, h.Corrected, c.record.Reads)
	return t.start(ctx, i, Invocation{Call: resolved, Context: granted, Tool: call.tool.Schema}, c.record.Reads)
}

// without leaves out of what the call has read what only parameters have in the
// place of which a person has put something else: what is an object or an array may have
// been corrected in part.
func (c *Call) without(arguments map[string]any, corrected []string, reads map[string]int64) map[string]int64 {
	if len(corrected) == 0 {
		return reads
	}
	looked := slices.Clone(c.scopes)
	for _, p := range c.params {
		if isContainer(arguments[p.name]) || !slices.Contains(corrected, p.name) {
			looked = append(looked, p.reads()...)
		}
	}
	kept := map[string]int64{}
	for _, path := range looked {
		if seq, ok := reads[path.String()]; ok {
			kept[path.String()] = seq
		}
	}
	return kept
}

func isContainer(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
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
			corrected[name] = Literal(v)
		}
	}
	return corrected
}

// eachScalar is a value with what a function makes of each scalar in it.
func eachScalar(v any, of func(scalar any) any) any {
	switch v := v.(type) {
	case []any:
		all := make([]any, len(v))
		for i, e := range v {
			all[i] = eachScalar(e, of)
		}
		return all
	case map[string]any:
		all := make(map[string]any, len(v))
		for key, e := range v {
			all[key] = eachScalar(e, of)
		}
		return all
	}
	return of(v)
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
		if entry.Event != string(Ready) {
			continue
		}
		r, err := readRecord(entry)
		if err != nil {
			return err
		}
		if i := r.Position - 1; r.Tick == t.event.Tick && t.holding[i] {
			delete(t.holding, i)
			c := &t.calls[i]
			if c.record.Status, c.record.Hold = Ready, r.Hold; c.due() {
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
