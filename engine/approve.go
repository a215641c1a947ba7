package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

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
	tool, ok := registry.WithDefinitions(brought).Tool(record.Tool)
	if !ok {
		calls, err := journal.In(r.Log, record.Context).PlanMessage(ctx, last.Event.Seq)
		if err != nil {
			return err
		}
		if i := record.Position - 1; record.Tick == last.Tick && i < len(calls) {
			given, _ := calls[i].(map[string]any)
			// A call with a delegate needs no tool.
			tool, ok = &plan.Tool{Name: record.Tool}, plan.NamesDelegate(given)
		}
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
	hold.Arguments = arguments
	return nil
}

// Release releases a lazy plan, which runs once its context is resumed: that of a context, or, if
// its own is not lazy, the one of a delegate of it. It returns the plan's context. Its error is a
// [*journal.NoSuchCallError] where no plan waits for that, where several do, or where another
// release was first.
func Release(ctx context.Context, log store.ReadAppender, name string, who journal.Who) (string, error) {
	last, err := journal.In(log, name).LastRun(ctx)
	if err != nil {
		return "", err
	}
	if last.Held {
		return name, last.Release(ctx, log, name, who)
	}
	plans, err := journal.In(log, name).LazyInside(ctx)
	if err != nil {
		return "", err
	}
	contexts := make([]string, len(plans))
	for i, p := range plans {
		contexts[i] = p.Context
	}
	switch {
	case len(plans) == 0:
		return "", &journal.NoSuchCallError{Message: fmt.Sprintf("context %s has no plan that waits to be approved", name)}
	case last.Event.Mode == plan.ModeLazy: // a second release must not release another plan
		return "", journal.SeveralContexts("the plan of context "+name+" was approved before, and a delegate's waits", contexts)
	case len(plans) > 1:
		return "", journal.SeveralContexts(fmt.Sprintf("%d delegates have plans that wait", len(plans)), contexts)
	}
	if last, err = journal.In(log, contexts[0]).LastRun(ctx); err != nil {
		return "", err
	}
	return contexts[0], last.Release(ctx, log, contexts[0], who)
}
