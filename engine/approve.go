package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"obelus/engine/expr"
	"obelus/engine/internal/jsonvalue"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// Decide records a decision about a call that is held. Corrected arguments must
// fit the call's tool. Whoever runs the context, or resumes it, goes on from
// there. Its error is a [*journal.NoSuchCallError] where the call is not held.
func (r *Runner) Decide(ctx context.Context, d journal.Decision) error {
	at, err := r.scopeOf(ctx, d.Context)
	if err != nil {
		return err
	}
	var before, recorded int64
	err = journal.Amend(ctx, journal.In(at.runner.Log, d.Context), func(n int64) (err error) {
		before = n
		recorded, err = at.runner.decide(ctx, d, n)
		return err
	})
	if err != nil {
		return err
	}
	return at.runner.checkFirst(ctx, d, before, recorded)
}

// decide records a decision in the light of the journal as it is, with its newest entry at newest,
// and returns the decision's position.
func (r *Runner) decide(ctx context.Context, d journal.Decision, newest int64) (n int64, err error) {
	records, err := journal.In(r.Log, d.Context).Records(ctx)
	if err != nil {
		return 0, err
	}
	i := slices.IndexFunc(records, func(record journal.Record) bool { return record.Call == d.Call })
	if i < 0 {
		return 0, &journal.NoSuchCallError{Message: fmt.Sprintf("no call %q in context %s", d.Call, d.Context), Absent: true}
	}
	record := &records[i]
	if err := record.Decidable(); err != nil {
		return 0, err
	}
	hold := *record.Hold
	hold.Decision, hold.Who = d.Word(), d.Who
	if d.Reject {
		hold.Reason = cmp.Or(strings.TrimSpace(d.Reason), "rejected by a person")
	} else if d.Arguments != nil {
		if err := r.applyCorrection(ctx, *record, &hold, d.Arguments); err != nil {
			return 0, err
		}
	}
	record.Status, record.Hold = journal.Ready, &hold
	entry := record.Entry()
	entry.Date = r.now()
	last, err := journal.In(r.Log, d.Context).LastRun(ctx)
	if err != nil {
		return 0, err
	}
	standing := last.Standing(records)
	return journal.AppendInput(ctx, r.Log, d.Context, newest, entry, &standing)
}

// checkFirst returns an error if a decision, recorded at a position in the journal, is not the
// first about its hold: of concurrent decisions the first counts. The call was held after a
// position before.
func (r *Runner) checkFirst(ctx context.Context, d journal.Decision, before, recorded int64) error {
	f := store.JournalFilter{Context: d.Context, Call: d.Call, Event: string(journal.Ready), After: before, At: recorded - 1}
	for entry, err := range r.Log.Journal(ctx, f) {
		if err != nil {
			return err
		}
		record, err := journal.ReadRecord(entry)
		if err != nil {
			return err
		}
		if record.Hold == nil {
			return &journal.NoSuchCallError{Message: fmt.Sprintf("call %s has been decided already: that decision counts", d.Call)}
		}
		return &journal.NoSuchCallError{Message: fmt.Sprintf("%s has just %s call %s: that decision counts", record.Hold.Name(), record.Hold.Decision, d.Call)}
	}
	return nil
}

// keepShown keeps the values that a person who corrects a call was shown, and the references in the
// call as issued that had given them.
func keepShown(hold *journal.Hold, issued map[string]any) {
	hold.Was = plan.Values{}
	for _, name := range hold.Corrected {
		if was, ok := hold.Arguments[name]; ok {
			hold.Was[name] = was
		}
		if ref, ok := issued[name].(string); ok && expr.IsExpr(ref) {
			if hold.Refs == nil {
				hold.Refs = map[string]string{}
			}
			hold.Refs[name] = ref
		}
	}
}

// applyCorrection puts a person's arguments in place of those that were shown.
func (r *Runner) applyCorrection(ctx context.Context, record journal.Record, hold *journal.Hold, arguments map[string]any) error {
	last, err := journal.In(r.Log, record.Context).LastRun(ctx)
	if err != nil {
		return err
	}
	registry, err := last.Event.ContextTools(ctx, journal.In(r.Log, record.Context), r.Registry)
	if err != nil {
		return err
	}
	brought, err := last.Event.DecodeTools()
	if err != nil {
		return err
	}
	if arguments, err = plan.NormalizeObject(arguments, ""); err != nil {
		return &journal.CorrectionError{Call: record.Call, Err: err}
	}
	calls, err := journal.In(r.Log, record.Context).PlanMessage(ctx, last.Event.MessageSeq())
	if err != nil {
		return err
	}
	var issued map[string]any
	if i := record.Position - 1; record.Tick == last.Tick && i < len(calls) {
		issued, _ = calls[i].(map[string]any)
	}
	tool, ok := registry.WithDefinitions(brought).Tool(record.Tool)
	if !ok { // a call with a delegate needs no tool
		tool, ok = &plan.Tool{Name: record.Tool}, plan.NamesDelegate(issued)
	}
	if !ok {
		return &journal.NoSuchCallError{Message: fmt.Sprintf("call %s: its tool %q is not registered any more, so that its arguments can't be checked", record.Call, record.Tool)}
	}
	if err := tool.Check(); err != nil {
		return &journal.NoSuchCallError{Message: fmt.Sprintf("call %s: its tool %q can't be used: %s", record.Call, record.Tool, err)}
	}
	if err := cmp.Or(tool.Correctable(jsonvalue.SortedKeys(arguments), hold.Arguments), tool.Accepts(arguments)); err != nil {
		return &journal.CorrectionError{Call: record.Call, Err: err}
	}
	for name := range arguments {
		if before, ok := hold.Arguments[name]; !ok || string(store.EncodeJSON(before)) != string(store.EncodeJSON(arguments[name])) {
			hold.Corrected = append(hold.Corrected, name)
		}
	}
	for name := range hold.Arguments {
		if _, ok := arguments[name]; !ok {
			hold.Corrected = append(hold.Corrected, name)
		}
	}
	slices.Sort(hold.Corrected)
	if len(hold.Corrected) > 0 {
		keepShown(hold, issued)
	}
	hold.Arguments = arguments
	return nil
}
