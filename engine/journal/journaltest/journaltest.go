// Package journaltest computes what a journal says in the plainest way, for tests that compare with
// it.
package journaltest

import (
	"context"
	"slices"

	"obelus/engine/journal"
	"obelus/store"
)

// Calls returns the calls of a context at a seq or, with 0, as they stand now, in the order of its
// plans. It decodes every entry, and replaces the record of a call by each newer one.
func Calls(ctx context.Context, log store.Reader, name string, at int64) ([]journal.Record, error) {
	in := journal.In(log, name)
	var all []journal.Record
	for entry, err := range log.Journal(ctx, store.JournalFilter{Context: name}) {
		if err != nil {
			return nil, err
		}
		if at > 0 && entry.Seq > at {
			break
		}
		if all, err = add(ctx, in, all, entry); err != nil {
			return nil, err
		}
	}
	if at > 0 {
		return all, nil
	}
	last, err := in.LastRun(ctx)
	if err != nil {
		return nil, err
	}
	if holder, err := log.Holder(ctx, name); err != nil || holder != "" {
		return all, err
	}
	for i := range all {
		all[i].StandWithoutHolder(last.Status)
	}
	return all, nil
}

// add returns records with those that an entry adds or replaces.
func add(ctx context.Context, in journal.Context, all []journal.Record, entry store.Entry) ([]journal.Record, error) {
	if entry.Call != "" {
		r, err := journal.ReadRecord(entry)
		if err != nil {
			return nil, err
		}
		r.Context = in.Name
		at := slices.IndexFunc(all, func(known journal.Record) bool { return known.Call == r.Call })
		if at < 0 {
			return nil, journal.UnknownCall(entry)
		}
		if r.Status != journal.Ready || all[at].Status == journal.Held { // of several decisions the first counts
			all[at] = r
		}
		return all, nil
	}
	if entry.Event != journal.EventPlan {
		return all, nil
	}
	plan, err := journal.ReadPlanEvent(entry)
	if err != nil || plan.Seq == 0 {
		return all, err
	}
	calls, err := in.PlanMessage(ctx, plan.Seq)
	if err != nil {
		return nil, err
	}
	for i, call := range calls {
		object, _ := call.(map[string]any)
		tool, _ := object["_tool"].(string)
		instance, _ := object["_instance"].(string)
		all = append(all, journal.Record{
			Context: in.Name, Call: journal.CallID(plan.Tick, i+1), Tick: plan.Tick, Position: i + 1, Tool: tool, Instance: instance, Status: journal.Blocked,
		})
	}
	return all, nil
}
